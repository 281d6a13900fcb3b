"""What `modicum plan run` and `show` print for people."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from modicum.cli.output import print_table
from modicum.core.errors import printable
from modicum.core.exact import brief

if TYPE_CHECKING:
    from modicum.workspace.planning.plan import Plan


def print_plan(plan: Plan, *, requests: bool = False) -> None:
    """Print what a plan accepts, in numbers.

    Args:
        plan: The plan.
        requests: Whether to list its requests, too.
    """
    from rich.table import Table

    from modicum.workspace.planning.making import by_outcome

    head = f"{plan.id}, round `{plan.round}`, by {plan.solver}, on entry {plan.seq}"
    print(printable(head))
    print()
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for title in ("REQUESTS", "UTILITY", ""):
        table.add_column(title, justify="right", no_wrap=True)
    for outcome, found in by_outcome(plan).items():
        worth = sum((one.utility for one in found), Fraction(0))
        share = _share(worth, plan.possible)
        table.add_row(outcome.value, str(len(found)), brief(worth), share)
    table.add_row("all", str(len(plan.asked)), brief(plan.possible), "")
    print_table(table)
    if plan.remark:
        print(printable(plan.remark))
    print()
    if requests:
        _print_requests(plan)


def print_compared(plans: Sequence[Plan]) -> None:
    """Print what several solvers accept, side by side.

    Args:
        plans: A plan of each, for the same requests.
    """
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("SOLVER", no_wrap=True)
    for title in ("ACCEPTED", "UTILITY", ""):
        table.add_column(title, justify="right", no_wrap=True)
    for one in plans:
        share = _share(one.utility, one.possible)
        table.add_row(one.solver, str(len(one.accepted)), brief(one.utility), share)
    print_table(table)
    print()


def _share(part: Fraction, whole: Fraction) -> str:
    return f"{float(100 * part / whole):.1f} %" if whole else ""


def _print_requests(plan: Plan) -> None:
    for one in plan.asked:
        line = f"{one.outcome.value:<9} {one.release}  (utility {brief(one.utility)})"
        print(printable(line))
        for why in one.why:
            print(printable(f"          {why}"))
