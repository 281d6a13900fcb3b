"""`modicum policy diff`, `simulate` and `explain`: the life of a policy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.exit_codes import Exit
from modicum.cli.options import DEFAULT_LEDGER, AsOf, Json, Ledger, point
from modicum.cli.output import console, note, print_json, reporting

if TYPE_CHECKING:
    from modicum.api.local.policies.replay import History
    from modicum.cli.policy_text import Met
    from modicum.policy import CompiledPolicy

#: The name of the ledger's active policy.
ACTIVE = "active"

All = Annotated[
    bool, typer.Option("--all", help="Show every line, not only the first.")
]
MaybeLedger = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        envvar="MODICUM_LEDGER",
        help="The ledger whose history is replayed.",
        metavar="FILE|URL",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to those about policies."""
    app.command("diff")(diff)
    app.command("simulate")(simulate)
    app.command("explain")(explain)


def diff(
    old: Annotated[
        str,
        typer.Argument(
            help="A policy file, or the word `active` for the ledger's active policy;"
            " if left out, that one.",
            metavar="[OLD]",
        ),
    ],
    new: Annotated[
        Path | None, typer.Argument(help="A policy file.", metavar="NEW")
    ] = None,
    ledger: MaybeLedger = None,
    show_all: All = False,
    as_json: Json = False,
) -> None:
    """Show what a new policy tightens and loosens; with a ledger, its conflicts.

    The active policy is that of ledger.db, if no other ledger is given. Exits with code
    4 if past releases exceed a rule that is new or tighter, or one that they did not
    exceed under the old policy.
    """
    from msgspec.structs import asdict

    from modicum.api.local.governance.activation import may_deny_more
    from modicum.api.local.views.ledger import problems_view
    from modicum.api.local.views.policy_changes import differences_view, what_if_view
    from modicum.api.schema.policy_change import PolicyComparison
    from modicum.cli.policy_text import print_diff
    from modicum.policy.changes.differences import differences

    if new is None:
        old, new = _active_beside(old)
    ledger = _ledger_of(old, ledger)
    with reporting(as_json=as_json):
        before, after = _policy(old, ledger), _load(new)
        found = differences(before, after)
        met = (
            None
            if ledger is None
            else _met(ledger, before, after, may_deny_more(found), as_json=as_json)
        )
        problems = met.problems if met else []
        if as_json:
            print_json(
                PolicyComparison(
                    **asdict(differences_view(before, after, found)),
                    history=None if met is None else what_if_view(met.what_if),
                    exceeded_before=tuple(sorted(met.before)) if met else (),
                    problems=problems_view(problems),
                )
            )
        else:
            several = _several(before) or _several(after)
            print_diff(found, met, several_units=several, whole=show_all)
            for problem in problems:
                note("\n" + problem.render())
        if problems:
            raise typer.Exit(Exit.INVALID)


def _met(
    ledger: str,
    before: CompiledPolicy,
    after: CompiledPolicy,
    changed: frozenset[str],
    *,
    as_json: bool,
) -> Met:
    from modicum.api.local.explanation.conflicts import conflicts
    from modicum.api.local.policies.what_if import what_if
    from modicum.cli.policy_text import Met

    history = read_history(ledger)
    with progress("deciding release", as_json=as_json) as on_attempt:
        found = what_if(history, after, on_attempt)
    exceeded = conflicts(history.reserved(before), before) if found.conflicts else ()
    return Met(found, frozenset(one.rule.id for one in exceeded), changed)


def simulate(
    policy: Annotated[Path, typer.Argument(help="The policy file.", metavar="POLICY")],
    ledger: Ledger = DEFAULT_LEDGER,
    show_all: All = False,
    as_json: Json = False,
) -> None:
    """Replay past releases under a policy, one by one. Writes nothing."""
    from modicum.api.local.policies.what_if import what_if
    from modicum.api.local.views.policy_changes import simulation_view
    from modicum.cli.policy_simulation_text import print_simulation

    with reporting(as_json=as_json):
        compiled = _load(policy)
        history = read_history(ledger)
        with progress("deciding release", as_json=as_json) as on_attempt:
            found = what_if(history, compiled, on_attempt)
        if as_json:
            print_json(simulation_view(compiled, history, found))
        else:
            print_simulation(found, whole=show_all)


def explain(
    policy: Annotated[
        str,
        typer.Argument(
            help="A policy file, or the word `active` for the ledger's active policy.",
            metavar="POLICY",
        ),
    ] = ACTIVE,
    rule: Annotated[
        str | None,
        typer.Argument(
            help="Required: the id of a rule, or its scope for all contexts.",
            metavar="RULE",
        ),
    ] = None,
    context: Annotated[
        list[str] | None,
        typer.Option("--context", help="A setting of the rule.", metavar="SETTING"),
    ] = None,
    ledger: MaybeLedger = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Explain a rule: its promise, its origin, and its remaining budget.

    The active policy is that of ledger.db, if no other ledger is given.
    """
    from modicum.api.local.policies.rule_standing import rule_standing
    from modicum.cli.policy_text import SHOWN, print_rule, rule_to_dict
    from modicum.policy.rule_lookup import find_rules
    from modicum.policy.rule_profile import rule_profiles
    from modicum.policy.rules import Stage

    if rule is None:
        if policy == ACTIVE or Path(policy).suffix in (".yaml", ".yml"):
            raise typer.BadParameter("give a rule, or its scope", param_hint="RULE")
        policy, rule = ACTIVE, policy
    ledger = _ledger_of(policy, ledger)
    with reporting(as_json=as_json):
        compiled = _policy(policy, ledger, point(as_of))
        places = find_rules(compiled, rule, context or ())
        history = None if ledger is None else read_history(ledger, point(as_of))
        lines = []
        for profile in rule_profiles(compiled, places[:SHOWN]):
            over_history = profile.rule.stage is Stage.HISTORY
            lines.append(
                (
                    profile,
                    rule_standing(profile.rule, history, compiled)
                    if history is not None and over_history
                    else None,
                )
            )
        if as_json:
            left = len(places) - len(lines)
            print_json({"rules": [rule_to_dict(*one) for one in lines], "left": left})
            return
        for number, one in enumerate(lines):
            print("\n" * bool(number), end="")
            print_rule(*one)
        if len(places) > len(lines):
            print(
                f"\n… {len(places) - len(lines)} more contexts: choose with --context"
            )


def _active_beside(only: str) -> tuple[str, Path]:
    """Return what a single policy is compared with, and its file."""
    if only == ACTIVE:
        raise typer.BadParameter("name the file of the new policy", param_hint="NEW")
    return ACTIVE, Path(only)


def _ledger_of(named: str, ledger: str | None) -> str | None:
    """Return the given ledger; the default one if its active policy is meant."""
    return DEFAULT_LEDGER if named == ACTIVE and ledger is None else ledger


def _policy(
    named: str, ledger: str | None, as_of: int | str | None = None
) -> CompiledPolicy:
    """Return the policy of a file; or the one that is, or was, active in a ledger."""
    from modicum.cli.ledger_access import open_view

    if named == ACTIVE and ledger is not None:
        return open_view(ledger, as_of=as_of).policy()
    return _load(Path(named))


def _load(file: Path) -> CompiledPolicy:
    from modicum.ops.files.documents import load_policy

    return load_policy(file)


def _several(compiled: CompiledPolicy) -> bool:
    return len(compiled.policy.vocabulary.units) > 1


def read_history(ledger: str, as_of: int | str | None = None) -> History:
    """Return the history of a ledger, as of now, or an earlier time."""
    from modicum.api.local.policies.replay import history_of
    from modicum.cli.ledger_access import open_view

    view = open_view(ledger, as_of=as_of)
    return history_of(view.records(), view.current()[2])


@contextmanager
def progress(
    what: str, *, as_json: bool
) -> Iterator[Callable[[int, int], None] | None]:
    """Yield something to call with how far one is; draws only on a terminal."""
    if as_json or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what)

        def on_step(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield on_step
