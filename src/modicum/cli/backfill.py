"""`modicum release backfill` and `redescribe`: past releases."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.governance import Reason, approval_lines, governance_of
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger, Policy
from modicum.cli.output import in_turn, note, once, print_json, reporting
from modicum.cli.policy_changes import progress
from modicum.cli.release_files import read_releases
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local import Decision, Workspace
    from modicum.api.local.governance.requests import Requested
    from modicum.api.local.submit import Submission

#: Maximum number of releases stored in one turn: others wait no longer.
BATCH = 100
#: Maximum number of exceeded rules shown in detail, for one release.
_OVER_SHOWN = 5
#: Maximum number of them listed at the end.
_OVER_NAMED = 10


def backfill(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="The releases, YAML or JSON; - for standard input.", metavar="FILE..."
        ),
    ],
    policy: Policy = None,
    ledger: Ledger = DEFAULT_LEDGER,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the effect; write nothing.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Explain every rule of every release.")
    ] = False,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", help="Record releases without `periods`, without asking."
        ),
    ] = False,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Record past releases; they are counted, and never denied.

    Each file contains one release, or a list of them. All files are checked before any
    release is recorded.
    """
    from modicum.api.local.dry_run import on_trial
    from modicum.cli.ledger_access import open_workspace

    with reporting(as_json=as_json):
        workspace = open_workspace(ledger, policy=policy, actor=actor)
        submissions = _prepared(workspace, files)
        confirm = not (yes or dry_run)
        _confirm(workspace, submissions, confirm=confirm, as_json=as_json)
        target = on_trial(workspace) if dry_run else workspace
        decisions = list(_recorded(target, submissions, as_json=as_json))
        if as_json:
            releases = [one.to_dict() for one in decisions]
            print_json({"dry_run": dry_run, "releases": releases})
            return
        shared: list[tuple[str, str]] = []
        for decision in decisions:
            for line in _lines(decision, full=full, dry_run=dry_run):
                print(printable(line))
            if not full:
                name = decision.release
                shared.extend((name, line) for line in _remarks(decision))
        for line in once(shared):
            print(printable(line))
        print(_summary(decisions, dry_run=dry_run))


def _prepared(workspace: Workspace, files: Sequence[Path]) -> list[Submission]:
    """Return all releases, read and priced; a mistake in one refuses all of them."""
    from modicum.core.reader import Problems

    found = Problems()
    prepared: list[Submission] = []
    for file in files:
        with found.guard():
            for node in read_releases(file):
                with found.guard():
                    prepared.append(workspace.prepare_backfill(node))
    found.raise_any()
    return prepared


def _confirm(
    workspace: Workspace,
    submissions: Sequence[Submission],
    *,
    confirm: bool,
    as_json: bool,
) -> None:
    """Warn of releases without `periods`, and ask for confirmation."""
    from modicum.api.local.evaluation import every_period

    known = workspace.state().releases if workspace.exists() else {}
    new = [one for one in submissions if one.release.id not in known]
    found = [every_period(one.release, one.compiled) for one in new]
    bare = [one for one in found if one]
    if not bare:
        return
    no, each = ("has no", "it") if len(bare) == 1 else ("have no", "each")
    warning = (
        f"{len(bare)} of {len(new)} release{'' if len(new) == 1 else 's'} {no}"
        f" `periods`: {each} will be charged to {bare[0]}"
    )
    if confirm and not (as_json or not sys.stdin.isatty()):
        note(f"warning: {warning}")
        typer.confirm("Record them anyway?", abort=True, err=True)
    elif confirm:
        raise typer.BadParameter(
            f"{warning}; give their `periods`, or confirm",
            param_hint="--yes",
        )
    else:
        note(f"warning: {warning}")


def _recorded(
    workspace: Workspace, submissions: Sequence[Submission], *, as_json: bool
) -> Iterator[Decision]:
    """Record releases in batches, and yield the decision about each."""
    from modicum.core.errors import ModicumError

    with progress("recording", as_json=as_json) as on_step:
        for first in range(0, len(submissions), BATCH):
            batch = submissions[first : first + BATCH]
            for one in workspace.backfill_many(batch):
                if isinstance(one, ModicumError):
                    raise one
                yield one
            if on_step is not None:
                on_step(first + len(batch), len(submissions))


def _lines(decision: Decision, *, full: bool, dry_run: bool) -> Iterator[str]:
    """Yield the description of a release, and what it exceeds."""
    first, *rest = decision.explain().splitlines()
    recorded = f"{decision.release}: recorded"
    if dry_run and first.startswith(recorded):
        first = f"{decision.release}: would be recorded{first.removeprefix(recorded)}"
    yield first
    if full:
        yield from rest
        return
    over = [line for line in rest if line.startswith("  OVER ")]
    yield from over[:_OVER_SHOWN]
    if len(over) > _OVER_SHOWN:
        yield f"  and {len(over) - _OVER_SHOWN} more over their limit (--full)"


def _remarks(decision: Decision) -> Iterator[str]:
    """Yield why a release exceeds rules in every period, and its assumptions."""
    from modicum.api.local.explanation.denial_text import cause_text

    causes = map(cause_text, decision.verdict.losses)
    yield from (cause for cause in dict.fromkeys(causes) if cause)
    yield from (
        f"note: {notice}"
        for notice in decision.notices
        if notice.startswith("assumed: ")
    )


def _summary(decisions: Sequence[Decision], *, dry_run: bool) -> str:
    new = sum(not one.retry for one in decisions)
    again = len(decisions) - new
    over = sorted({rule for one in decisions for rule in one.over_limit})
    verb = "would be recorded" if dry_run else "recorded"
    lines = [f"{new} release{'' if new == 1 else 's'} {verb}"]
    lines += [f"{again} already existed"] if again else []
    if over:
        more = len(over) - _OVER_NAMED
        named = ", ".join(over[:_OVER_NAMED]) + (
            f" and {more} more" if more > 0 else ""
        )
        lines.append(f"over their limit {'then' if dry_run else 'now'}: {named}")
    return "; ".join(lines)


def redescribe(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="The releases as they were recorded, with other `periods`; - for"
            " standard input.",
            metavar="FILE...",
        ),
    ],
    reason: Reason,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Request a correction of the `periods` of past releases.

    Another person must approve it with  release approve  , and more if the policy
    requires. Until then, the releases are charged as they were recorded.
    """
    from modicum.api.local.backfill import id_of
    from modicum.api.local.views.approvals import correction_view

    with reporting(as_json=as_json):
        office = governance_of(ledger, actor)
        nodes = [node for file in files for node in read_releases(file)]
        found = in_turn(
            nodes,
            lambda node: (id_of(node), office.redescribe(node, reason=reason)),
            id_of,
        )
        if as_json:
            print_json({"corrections": [correction_view(*one) for one in found]})
            return
        for line in _redescribed_lines(found):
            print(printable(line))


def _redescribed_lines(found: Sequence[tuple[str, Requested | None]]) -> Iterator[str]:
    shared: list[tuple[str, str]] = []
    it = "it" if len(found) == 1 else "one alone"
    for name, details in found:
        if details is None:
            yield f"{name}: already described so; nothing to request"
            continue
        again = " already" if details.repeated else ""
        yield f"{name}: a correction is requested{again} (entry {details.request.seq})"
        over = ", ".join(details.decision.over_limit)
        rules = (
            f"over their limit: {over}"
            if over
            else "none of its rules is over its limit"
        )
        shared.append((name, f"with {it}, {rules}"))
        shared.extend((name, line) for line in approval_lines(details.approval_states))
    yield from once(shared)
    if shared:
        named = shared[0][0] if len(found) == 1 else "FILE"
        yield (
            f"  another person approves it with  modicum release approve {named}"
            " --reason …"
        )
