"""`modicum status`: the status of every rule."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.options import DEFAULT_LEDGER, AsOf, Json, Ledger, Policy, point
from modicum.cli.output import (
    count_text,
    fitting,
    note,
    print_json,
    print_shapes,
    reporting,
)
from modicum.core.errors import printable
from modicum.core.rationals import brief, rational

if TYPE_CHECKING:
    from modicum.api.local.ledger_view import LedgerView
    from modicum.api.schema.policy import RuleStanding

#: Maximum number of rules shown by default.
SHOWN = 12


def status(
    policy: Policy = None,
    ledger: Ledger = DEFAULT_LEDGER,
    show_all: Annotated[
        bool,
        typer.Option("--all", help=f"Show every rule, not only the tightest {SHOWN}."),
    ] = False,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Show the spent budget of every rule, the tightest first."""
    from modicum.cli.ledger_access import open_view

    with reporting(as_json=as_json):
        workspace = open_view(ledger, policy=policy, as_of=point(as_of))
        if as_json:
            from modicum.api.local.views.ledger import status_view

            print_json(status_view(workspace))
            return
        print_status(workspace, shown=None if show_all else SHOWN)


def print_status(workspace: LedgerView, *, shown: int | None) -> None:
    """Print a balance for each rule, the tightest first."""
    from modicum.api.local.views.ledger import standing_view, understatements
    from modicum.api.schema.policy import RuleStanding
    from modicum.ledger.decision.amounts import filled

    standings = sorted(workspace.standings(), key=filled, reverse=True)
    kept = list(map(standing_view, standings[: fitting(len(standings), shown)]))
    print_shapes(
        RuleStanding, kept, {"allowed": _bar, "measure": _scale, "state": _state}
    )
    for one in kept:
        if one.cause:
            print(printable(f"{one.rule}: {one.cause}"))
    left = len(standings) - len(kept)
    if left:
        print(f"… {left} more (--all)")
    print(_summary(workspace))
    print(printable(_policy_text(workspace)))
    for problem in understatements(workspace):
        note(problem.render().replace("error[", "warning[", 1))


def _summary(workspace: LedgerView) -> str:
    state = workspace.state()
    counted, denials = state.releases.counted, state.denials
    return (
        f"{count_text(counted, 'release')} counted,"
        f" {count_text(denials, 'denial')};"
        f" entry {state.seq}, head {state.head[:12]}"
    )


def _policy_text(workspace: LedgerView) -> str:
    """Return which policy is shown, and which one is active if that is another."""
    given, active = workspace.policy().policy, workspace.state().policy
    called = f"policy `{given.name}` ({given.digest[:12]})"
    if active is None:
        return f"{called}, on an empty ledger: none exists yet"
    if active.digest == given.digest:
        return f"{called}, active since entry {active.seq}"
    return f"{called}; active is `{active.name}` ({active.digest[:12]})"


_BAR = 14


def _bar(one: RuleStanding) -> str:
    """Return how full a rule is, as a bar."""
    filled = Fraction(not one.allowed)
    if one.allowed and 0 < one.limit < math.inf:
        filled = rational(one.spent) / rational(one.limit)
    eighths = min(int(filled * _BAR * 8), _BAR * 8)
    full, rest = divmod(eighths, 8)
    partial = " ▏▎▍▌▋▊▉"[rest].strip()
    return ("█" * full + partial).ljust(_BAR, "·")


def _scale(one: RuleStanding) -> str:
    near = one.approx_dp if one.measure == "eps" else None
    at = f" at {brief(rational(near.delta))}" if near is not None else ""
    return f"{one.measure}{at} per {one.unit}"


def _state(one: RuleStanding) -> str:
    from modicum.api.local.policies.rule_standing import in_cells

    over_in = in_cells(one.cells_denying) if one.cell and not one.allowed else ""
    return one.state + over_in
