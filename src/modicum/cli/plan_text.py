"""What `modicum plan run`, `show` and `commit` print for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from modicum.cli.output import print_table, seconds
from modicum.cli.plan_wishes import words_of
from modicum.core.errors import printable
from modicum.core.rationals import brief

if TYPE_CHECKING:
    from modicum.api.local.plans.commit import Committed
    from modicum.api.local.plans.plan import Plan


def print_plan(plan: Plan, *, requests: bool = False) -> None:
    """Print what a plan accepts, in numbers.

    Args:
        plan: The plan.
        requests: Whether to list its requests, too.
    """
    from rich.table import Table

    head = f"{plan.id}, round `{plan.round}`, by {plan.solver}, on entry {plan.seq}"
    print(printable(head))
    print()
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for title in ("REQUESTS", "UTILITY", ""):
        table.add_column(title, justify="right", no_wrap=True)
    for outcome, found in plan.by_outcome.items():
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


def print_next(plan: Plan, out: Path | None) -> None:
    """Print what may be done with a plan.

    Args:
        plan: The plan.
        out: Where it was written; None if it was not.
    """
    if not plan.accepted:
        print("nothing was accepted; the most common reason, with an example:")
        for reason, count in Counter(one.why[:1] for one in plan.asked).most_common(1):
            print(printable(f"  {count} of {len(plan.asked)}: {' '.join(reason)}"))
            example = next(one for one in plan.asked if one.why[:1] == reason)
            for line in example.why[1:]:
                print(printable(f"  {example.release}: {line}"))
    if out is not None and not plan.accepted:
        print(printable(f"written to {out}; it accepts nothing, and reserves nothing"))
    elif out is not None:
        print(printable(f"written to {out}; reserve it:  modicum plan commit {out}"))
        print("(for 24 hours; --expires-in 7d would say for a week)")
    elif plan.accepted:
        print("nothing is reserved; to commit it, write it with  --out plan.json")
    if len(plan.accepted) < len(plan.asked):
        first = "" if out else " write it with  --out plan.json, then"
        shown = f"modicum plan show {out or 'plan.json'}"
        others = "the others" if plan.accepted else "each"
        print(printable(f"why not {others}:{first}  {shown}"))


def print_committed(done: Committed) -> None:
    """Print what a plan reserved.

    Args:
        done: What it reserved.
    """
    count = len(done.releases)
    if not count:
        print(printable(f"{done.plan} accepts nothing: nothing was written"))
        return
    print(
        printable(
            f"{done.plan} is committed in round `{done.round}`:"
            f" {words_of(count, 'release')} reserved until"
            f" {seconds(done.expires_at)} (entry {done.seq})"
        )
    )


def _share(part: Fraction, whole: Fraction) -> str:
    return f"{float(100 * part / whole):.1f} %" if whole else ""


def _print_requests(plan: Plan) -> None:
    for one in plan.asked:
        line = f"{one.outcome.value:<9} {one.release}  (utility {brief(one.utility)})"
        print(printable(line))
        for why in one.why:
            print(printable(f"          {why}"))
