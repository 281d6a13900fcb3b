"""`modicum plan`: spend a scarce budget well."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from modicum.cli.group import ADVANCED
from modicum.cli.ledger_signatures import file_named
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger, expires_in_seconds
from modicum.cli.output import count_text, note, print_json, print_table, reporting
from modicum.cli.plan_access import export_access
from modicum.cli.plan_files import (
    is_file,
    print_committed,
    print_compared,
    print_next,
    print_plan,
    read_plan_file,
    refuse_other_than_plan,
    refuse_path,
    write_plan_file,
)
from modicum.cli.plan_rotation import rotation
from modicum.cli.plan_simulation import compare, simulate
from modicum.cli.plan_simulation_options import known
from modicum.core.diagnostics import shortened
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local import Workspace
    from modicum.api.local.plans.plan import Plan
    from modicum.api.local.plans.requests import Request
    from modicum.api.local.plans.rounds import Remainder, Round
    from modicum.ledger.log.events import PlanCommitted

#: Maximum number of skipped files listed.
_NAMED_MAX = 5


def note_unread(sources: Sequence[Path]) -> None:
    """Report the skipped files of folders."""
    from modicum.ops.files.requests import unread

    for source in sources:
        names = unread(source)
        if names:
            listed = shortened(names, _NAMED_MAX)
            note(printable(f"note: not read in {source}: {listed}"))


def note_unnamed_groups(
    workspace: Workspace, requests: Sequence[Request], plan: Plan
) -> None:
    """Warn of requests that name no groups, where these take turns."""
    if workspace.policy().policy.rotation is None:
        return
    accepted = frozenset(plan.accepted)
    unnamed = [
        one
        for one in requests
        if not one.names_groups and one.release.id not in accepted
    ]
    if unnamed:
        note(
            f"warning: {count_text(len(unnamed), 'request')} of {len(requests)}"
            f" {'names' if len(unnamed) == 1 else 'name'} no `groups`, and so also"
            f" {'reads' if len(unnamed) == 1 else 'read'} those that have not"
            f" started{_named(workspace)}"
        )


def _named(workspace: Workspace) -> str:
    """Return how to name the groups that are active."""
    from modicum.api.local.explanation.denial_text import written_groups
    from modicum.release.parts import merged

    present = workspace.rounds.present()
    active = (
        merged([(one.group, one.group) for one in present.active]) if present else ()
    )
    return f"; name those that are active:  {written_groups(active)}" if active else ""


def open_round(
    round_id: Annotated[
        str,
        typer.Argument(help="The id of the round.", metavar="[ID]"),
    ] = "",
    unlock: Annotated[
        list[str] | None,
        typer.Option(
            "--unlock",
            help="The share of every budget of a unit that is unlocked, from 0 to 1,"
            " or in percent; repeatable. It never decreases.",
            metavar="UNIT=SHARE",
        ),
    ] = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Open the next round: unlock budgets, and rotate user groups.

    If the policy has a `rotation`, the next group becomes active, and a group after its
    last round retires.
    """
    from modicum.cli.ledger_access import open_workspace

    with reporting(as_json=as_json):
        workspace = open_workspace(ledger, actor=actor)
        unlocked = _shares(unlock or (), workspace)
        opened = workspace.rounds.open(round_id, unlocked=unlocked)
        if as_json:
            from modicum.api.local.views.rounds import round_view

            print_json(round_view(opened))
        else:
            print_round(opened)


def remainder(ledger: Ledger = DEFAULT_LEDGER, as_json: Json = False) -> None:
    """Show the budget that user groups left over when they retired.

    With `retired: first-come` in the policy, releases may use it, first come, first
    served.
    """
    from modicum.cli.ledger_access import open_workspace

    with reporting(as_json=as_json):
        workspace = open_workspace(ledger)
        found = workspace.rounds.remainders()
        rotation = workspace.policy().policy.rotation
        retired = None if rotation is None else rotation.retired.value
        if as_json:
            groups = [_remainder_to_dict(one) for one in found]
            print_json({"retired": retired, "groups": groups})
            return
        if not found:
            print("no group has retired")
            return
        _print_remainders(found)
        if retired == "closed":
            print("nobody may use it: the policy has  retired: closed")


def print_round(found: Round) -> None:
    """Print a round, and whose turn it is."""
    again = " (it was already open)" if found.again else ""
    number = _ordinal(found.number)
    print(printable(f"round `{found.id}` is open, the {number}{again}"))
    for unit, share in found.unlocked.items():
        print(printable(f"  {unit}: {_percent(share)} of every budget is unlocked"))
    for turn in found.active:
        print(
            f"  group {turn.group}: active for {_rounds(turn.age)},"
            f" {_percent(turn.unlocked)} unlocked"
        )
    if found.retired:
        print(f"  retired: {_groups_text(found.retired)}")


def _shares(given: Iterable[str], workspace: Workspace) -> dict[str, Fraction]:
    shares: dict[str, Fraction] = {}
    for one in given:
        unit, equals, written = one.partition("=")
        share = _share(written)
        if not (unit and equals) or share is None:
            known = next(iter(workspace.policy().policy.vocabulary.units))
            raise typer.BadParameter(
                "write UNIT=SHARE with a share from 0 to 1, such as"
                f" {known}=0.25 or {known}=25%, not `{one}`",
                param_hint="--unlock",
            )
        if unit in shares:
            raise typer.BadParameter(f"`{unit}` is given twice", param_hint="--unlock")
        shares[unit] = share
    return shares


def _share(written: str) -> Fraction | None:
    """Return a share from 0 to 1 that is a number or in percent; None if it is none."""
    from modicum.core.rationals import parse_number

    number = parse_number(written.removesuffix("%"))
    if number is None:
        return None
    share = number / 100 if written.endswith("%") else number
    return share if 0 <= share <= 1 else None


def _percent(share: Fraction) -> str:
    tenths = share.numerator * 1000 // share.denominator
    return f"{tenths / 10:g} %"


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def _ordinal(number: int) -> str:
    last = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")  # codespell:ignore nd
    return f"{number}{'th' if number % 100 in (11, 12, 13) else last}"


def _groups_text(groups: tuple[int, ...]) -> str:
    if len(groups) == groups[-1] - groups[0] + 1 and len(groups) > 2:
        return f"groups {groups[0]} to {groups[-1]}"
    return ", ".join(f"group {one}" for one in groups)


def _print_remainders(found: Iterable[Remainder]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from modicum.api.local.explanation.denial_text import amount_text, room_text
    from modicum.ledger.decision.amounts import amounts

    table = Table(box=None, pad_edge=False)
    for title in ("GROUP", "RETIRED IN", "LEAST REMAINING OF", "WHERE"):
        table.add_column(title, no_wrap=True)
    for title in ("USED", "LEFT"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in found:
        text = amounts(one.standing)
        left = max(0, text.limit - text.together)
        table.add_row(
            str(one.group),
            escape(printable(one.until)),
            escape(printable(one.standing.rule.id)),
            escape(printable(one.standing.cell)),
            f"{text.measure} {amount_text(text.together, text.scale)}",
            room_text(left, text.scale),
        )
    print_table(table, spare=("RETIRED IN",))


def _remainder_to_dict(one: Remainder) -> dict[str, object]:
    from modicum.api.local.explanation.denial_text import loss_view

    return {
        "group": one.group,
        "until": one.until,
        "standing": loss_view(one.standing),
    }


PlanFile = Annotated[
    Path, typer.Argument(help="A plan that `plan run --out` wrote.", metavar="PLAN")
]


def run(
    requests: Annotated[
        list[Path],
        typer.Argument(
            help="The requests: release files with `utility`, or folders of them.",
            metavar="REQUESTS",
        ),
    ],
    solver: Annotated[
        str,
        typer.Option(
            "--solver",
            help="The solver: fcfs, dpf, dpf-weighted, dpf-remaining,"
            " dpf-weighted-remaining, dpk, guided or ilp.",
        ),
    ] = "dpk",
    compare: Annotated[
        list[str] | None,
        typer.Option("--compare", help="Another solver to compare with; repeatable."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The plan file, for commit; only an earlier plan is overwritten.",
            metavar="FILE",
            callback=file_named,
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option("--engine", help="auto, numba or numpy; the plan is the same."),
    ] = "auto",
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Choose which requests of a round to reserve together. Reserves nothing.

    The plan is for the current ledger: any entry before its commit makes it stale.
    """
    from modicum.cli.ledger_access import open_workspace
    from modicum.ops.files.requests import load
    from modicum.ops.simulation import engine_named

    solvers = tuple(dict.fromkeys([solver, *(compare or ())]))
    with reporting(as_json=as_json):
        _check_options(solvers, engine, out)
        workspace = open_workspace(ledger, actor=actor)
        engine_of = engine_named(engine).make
        requests_loaded = load(*requests, policy=workspace.policy())
        note_unread(requests)
        first, *others = (
            workspace.rounds.plan(requests_loaded, solver=one, engine_of=engine_of)
            for one in solvers
        )
        if out is not None:
            write_plan_file(out, first)
        note_unnamed_groups(workspace, requests_loaded, first)
        if as_json:
            compared = [_summary(one) for one in (first, *others)]
            print_json({**first.to_dict(), "compared": compared})
            return
        print_plan(first)
        if others:
            print_compared([first, *others])
        print_next(first, out)


def show(
    plan: Annotated[
        str,
        typer.Argument(
            help="A plan's file, or the id of one that was committed; by default,"
            " the open round and all plans.",
            metavar="[PLAN|ID]",
        ),
    ] = "",
    ledger: Ledger = DEFAULT_LEDGER,
    as_json: Json = False,
) -> None:
    """Show a plan; or the open round, and the committed plans."""
    from modicum.cli.ledger_access import open_workspace

    with reporting(as_json=as_json):
        if plan and is_file(plan):
            _show_file(read_plan_file(Path(plan)), as_json=as_json)
            return
        workspace = open_workspace(ledger)
        if plan:
            refuse_path(plan)
            found = [workspace.rounds.committed_plan(plan)]
        else:
            found = list(workspace.rounds.committed())
        _show_ledger(workspace, found, whole=not plan, as_json=as_json)


def why_not(
    plan: PlanFile,
    release: Annotated[
        str, typer.Argument(help="The id of a request.", metavar="RELEASE")
    ],
    as_json: Json = False,
) -> None:
    """Explain why a request is not in a plan: the missing budget, and who took it."""
    with reporting(as_json=as_json):
        found = read_plan_file(plan)
        why = _why_not(found, release, plan)
        if as_json:
            print_json({"plan": found.id, "release": release, "why": list(why)})
        elif why:
            print(printable(f"{release} is not in {found.id}:"))
            for line in why:
                print(printable(f"  {line}"))
        else:
            print(printable(f"{release} is accepted in {found.id}"))


def commit(
    plan: PlanFile,
    expires_in: Annotated[
        str,
        typer.Option(
            "--expires-in",
            help="How long unstarted reservations last, such as 90s, 30m, 24h or 7d.",
        ),
    ] = "24h",
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Reserve all accepted requests of a plan, or none.

    Every release is read, priced and decided again. If the ledger has changed since the
    plan was made, nothing is reserved, and the command exits with code 7.
    """
    from modicum.cli.ledger_access import open_workspace

    length = expires_in_seconds(expires_in)
    with reporting(as_json=as_json):
        found = read_plan_file(plan)
        workspace = open_workspace(ledger, actor=actor)
        done = workspace.rounds.commit(found, reserve_seconds=length)
        if as_json:
            from modicum.api.local.views.rounds import committed_view

            print_json(committed_view(done))
            return
        print_committed(done)


# --- requests -----------------------------------------------------------------------


def _check_options(solvers: Sequence[str], engine: str, out: Path | None) -> None:
    """Refuse mistakes in the command line, before anything is read or planned.

    Raises:
        UsageError: If the solver or engine is unknown, or the output file exists.
    """
    from modicum.cli.options import from_options
    from modicum.ops.simulation import ENGINES
    from modicum.planner.ledger_round.plan import ON_LEDGER

    with from_options():
        for one in solvers:
            known("solver", one, ON_LEDGER, "; the others are for simulations only")
        known("engine", engine, ENGINES)
    if out is not None:
        refuse_other_than_plan(out)


def _why_not(plan: Plan, release: str, path: Path) -> tuple[str, ...]:
    """Return why a request was not accepted; a mistake refers to the file."""
    from modicum.core.errors import InputError

    try:
        return plan.why_not(release)
    except InputError as error:
        remedy = f"list them with  modicum plan show {path}"
        raise InputError(*(replace(one, help=remedy) for one in error.problems)) from (
            error
        )


# --- output -------------------------------------------------------------------------


def _show_file(plan: Plan, *, as_json: bool) -> None:
    if as_json:
        print_json(plan.to_dict())
    else:
        print_plan(plan, requests=True)


def _show_ledger(
    workspace: Workspace, found: Sequence[PlanCommitted], *, whole: bool, as_json: bool
) -> None:
    opened = workspace.rounds.present() if whole else None
    if as_json:
        from modicum.api.local.views.rounds import plan_view, round_view
        from modicum.api.schema.plan import PlanStatus

        shown = None if opened is None else round_view(opened)
        print_json(PlanStatus(round=shown, plans=tuple(map(plan_view, found))))
        return
    if whole:
        if opened is None:
            print("no round is open")
        else:
            print_round(opened)
    for one in found:
        count = count_text(len(one.releases), "release")
        print(printable(f"{one.id}, round `{one.round}`: {count}"))
        if not whole:
            for release in one.releases:
                print(printable(f"  {release}"))


def _summary(plan: Plan) -> dict[str, object]:
    return {
        "solver": plan.solver,
        "accepted": len(plan.accepted),
        "utility": float(plan.utility),
    }


app = typer.Typer(help="Plan rounds, user groups and budgets.", no_args_is_help=True)
app.command("open")(open_round)
app.command("run")(run)
app.command("show")(show)
app.command("why-not")(why_not)
app.command("commit")(commit)
app.command("export-access")(export_access)
app.command("remainder")(remainder)
app.command("rotation", rich_help_panel=ADVANCED)(rotation)
app.command("simulate", rich_help_panel=ADVANCED)(simulate)
app.command("compare", rich_help_panel=ADVANCED)(compare)
