"""`modicum plan run`, `show`, `why-not` and `commit`: a round on the real ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.ledger_signatures import file_named
from modicum.cli.options import (
    DEFAULT_LEDGER,
    Actor,
    Json,
    Ledger,
    expires_in_seconds,
)
from modicum.cli.output import print_json, reporting
from modicum.cli.plan_files import (
    is_file,
    read_plan_file,
    refuse_other_than_plan,
    refuse_path,
    write_plan_file,
)
from modicum.cli.plan_notes import note_unnamed_groups, note_unread
from modicum.cli.plan_rounds import print_round
from modicum.cli.plan_text import (
    print_committed,
    print_compared,
    print_next,
    print_plan,
)
from modicum.cli.plan_wishes import known, words_of
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local import Workspace
    from modicum.api.local.plans.plan import Plan
    from modicum.ledger.log.events import PlanCommitted

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
            help="What chooses: fcfs, dpf, dpf-weighted, dpf-remaining,"
            " dpf-weighted-remaining, dpk, guided or ilp.",
        ),
    ] = "dpk",
    compare: Annotated[
        list[str] | None,
        typer.Option("--compare", help="Another solver to show beside it; repeatable."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Where to write the plan, to be committed; over an earlier plan, but"
            " over no other file.",
            metavar="FILE",
            callback=file_named,
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", help="auto, numba or numpy: the same plan.")
    ] = "auto",
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Choose which requests of a round to reserve together. Reserves nothing.

    The plan holds for the ledger as it is now: what comes in before it is committed
    makes it stale.
    """
    from modicum.cli.ledger_access import open_workspace
    from modicum.ops.files.requests import load
    from modicum.ops.simulation import engine_named

    solvers = tuple(dict.fromkeys([solver, *(compare or ())]))
    with reporting(as_json=as_json):
        _check_options(solvers, engine, out)
        workspace = open_workspace(ledger, actor=actor)
        engine_of = engine_named(engine).make
        asked = load(*requests, policy=workspace.policy())
        note_unread(requests)
        first, *others = (
            workspace.rounds.plan(asked, solver=one, engine_of=engine_of)
            for one in solvers
        )
        if out is not None:
            write_plan_file(out, first)
        note_unnamed_groups(workspace, asked, first)
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
            help="A plan's file, or the id of one that was committed; by default the"
            " round that is open, and every plan.",
            metavar="[PLAN|ID]",
        ),
    ] = "",
    ledger: Ledger = DEFAULT_LEDGER,
    as_json: Json = False,
) -> None:
    """Show a plan; or the round that is open, and what was committed."""
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
    """Say why a request is not in a plan: what was missing, where, and who took it."""
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
            help="How long the reservations stand if they are not started, such as"
            " 90s, 30m, 24h or 7d.",
        ),
    ] = "24h",
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Reserve everything that a plan accepts, together, or nothing.

    Every release is read, priced and decided once more. If the ledger went on since
    the plan was made, nothing is reserved, and the command leaves with 7.
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


# --- what is asked for --------------------------------------------------------------


def _check_options(solvers: Sequence[str], engine: str, out: Path | None) -> None:
    """Refuse what is wrong with the command line, before anything is read or planned.

    Raises:
        UsageError: If there is no such solver or engine, or a file stands in the way.
    """
    from modicum.cli.given import from_options
    from modicum.ops.simulation import ENGINES
    from modicum.planner.ledger_round.plan import ON_LEDGER

    with from_options():
        for one in solvers:
            known("solver", one, ON_LEDGER, "; others are for simulations")
        known("engine", engine, ENGINES)
    if out is not None:
        refuse_other_than_plan(out)


def _why_not(plan: Plan, release: str, path: Path) -> tuple[str, ...]:
    """Return why a request was not accepted; a mistake tells of the file.

    Raises:
        InputError: If the plan knows no such request.
    """
    from modicum.core.errors import InputError

    try:
        return plan.why_not(release)
    except InputError as error:
        remedy = f"list them with  modicum plan show {path}"
        raise InputError(*(replace(one, help=remedy) for one in error.problems)) from (
            error
        )


# --- what is printed ----------------------------------------------------------------


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

        print_json(
            {
                "round": None if opened is None else round_view(opened),
                "plans": [plan_view(one) for one in found],
            }
        )
        return
    if whole:
        if opened is None:
            print("no round is open")
        else:
            print_round(opened)
    for one in found:
        count = words_of(len(one.releases), "release")
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
