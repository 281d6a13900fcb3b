"""`modicum release record-past`: count what happened before."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger, Policy
from modicum.cli.output import print_json, reporting
from modicum.cli.policy_changes import progress

if TYPE_CHECKING:
    from modicum.core.document import Node
    from modicum.workspace import Decision, Workspace
    from modicum.workspace.bringing_in import Submission

#: So many releases are stored in one turn: others wait no longer than that.
BATCH = 100


def register(app: typer.Typer) -> None:
    """Add the command to those about releases."""
    app.command("record-past")(record_past)


def record_past(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="The releases, YAML or JSON; - for standard input.", metavar="FILE..."
        ),
    ],
    policy: Policy = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Count releases that happened before; they are never denied.

    Each file holds one release, or a list of them. A mistake in one is said before
    any counts.
    """
    from modicum.cli.opening import open_workspace

    with reporting(as_json=as_json):
        workspace = open_workspace(ledger, policy=policy, actor=actor)
        submissions = _prepared(workspace, files)
        decisions = list(_recorded(workspace, submissions, as_json=as_json))
        if as_json:
            print_json({"releases": [one.to_dict() for one in decisions]})
            return
        for decision in decisions:
            _print(decision)
        if len(decisions) > 1:
            print(_summary(decisions))


def _prepared(workspace: Workspace, files: Sequence[Path]) -> list[Submission]:
    """Return all releases, read and priced; a mistake in one refuses all of them."""
    from modicum.core.reading import Problems

    found = Problems()
    prepared: list[Submission] = []
    for file in files:
        with found.guard():
            for node in _releases(file):
                with found.guard():
                    prepared.append(workspace.prepare_past(node))
    found.raise_any()
    return prepared


def _releases(file: Path) -> tuple[Node, ...]:
    from modicum.shell.files import load_release, releases_of, standard_input

    if str(file) == "-":
        return releases_of(standard_input(sys.stdin.buffer))
    return releases_of(load_release(file))


def _recorded(
    workspace: Workspace, submissions: Sequence[Submission], *, as_json: bool
) -> Iterator[Decision]:
    """Record releases in batches, and yield what was decided about each."""
    from modicum.core.errors import ModicumError

    with progress("recording", as_json=as_json) as on_step:
        for first in range(0, len(submissions), BATCH):
            batch = submissions[first : first + BATCH]
            for one in workspace.record_past_many(batch):
                if isinstance(one, ModicumError):
                    raise one
                yield one
            if on_step is not None:
                on_step(first + len(batch), len(submissions))


def _print(decision: Decision) -> None:
    """Print a decision: what is assumed; all of it if something is over its limit."""
    first, *rest = decision.explain().splitlines()
    print(first)
    for line in rest:
        if decision.over_limit or line.startswith("  note: assumed"):
            print(line)


def _summary(decisions: Sequence[Decision]) -> str:
    new = sum(not one.retry for one in decisions)
    again = len(decisions) - new
    over = sorted({rule for one in decisions for rule in one.over_limit})
    told = [f"{new} release{'' if new == 1 else 's'} recorded"]
    told += [f"{again} stood already"] if again else []
    told += [f"over their limit now: {', '.join(over)}"] if over else []
    return "; ".join(told)
