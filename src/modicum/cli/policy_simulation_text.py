"""Printed output of `modicum policy simulate`."""

from __future__ import annotations

from collections.abc import Sequence

from modicum.api.local.explanation.denial_text import amount_text
from modicum.api.local.policies.what_if import Change, Replayed, WhatIf
from modicum.api.local.views.policy_changes import totals
from modicum.cli.output import fitting, print_table
from modicum.ledger import RuleLoss
from modicum.ledger.decision.amounts import amounts
from modicum.ledger.log.events import causes

#: Maximum number of rules listed beside a release.
NAMED = 3


def print_simulation(found: WhatIf, *, whole: bool) -> None:
    """Print the decisions of a simulated policy."""
    rows = [one for one in found.replayed if whole or _remarkable(one)]
    if rows:
        _print_table(rows)
    print(_totals(found))
    if found.closest:
        print("\nclosest to their limit at the end")
        _print_closest(found.closest)
    for one in found.assumptions:
        print(
            f"note: {one.kind} `{one.subject}` {one.taken}"
            f" ({past_releases(one.releases)})"
        )
    for remark in found.remarks:
        print(f"note: {remark}")
    for problem in found.problems:
        print(f"conflict: {problem.message}")
    if found.conflicts:
        print(
            f"note: the actual history exceeds {len(found.conflicts)} of its rules:"
            "  modicum policy diff active POLICY --ledger FILE"
        )


def _remarkable(one: Replayed) -> bool:
    return one.change is not Change.SAME or bool(_causes(one))


def _print_table(rows: Sequence[Replayed]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("ENTRY", "RELEASE", "THEN", "NOW", "CHANGE", "BY"):
        right = title == "ENTRY"
        justify = "right" if right else "left"
        table.add_column(title, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for one in rows:
        cells = (
            str(one.attempt.seq),
            one.attempt.release.id,
            one.attempt.outcome,
            _now(one),
            "" if one.change is Change.SAME else one.change.value,
            _by(one),
        )
        table.add_row(*map(escape, cells))
    print_table(table)


def _now(one: Replayed) -> str:
    if not one.allowed:
        return "deny"
    return "counted, over" if one.blocking else "allow"


def _by(one: Replayed) -> str:
    by = _causes(one)
    kept = by[: fitting(len(by), NAMED)]
    more = f" and {len(by) - len(kept)} more" if len(kept) < len(by) else ""
    return ", ".join(kept) + more


def _causes(one: Replayed) -> tuple[str, ...]:
    guards = (f"guard {name}" for name in one.guards)
    return (*guards, *causes(one.blocking, one.unmatched))


def _totals(found: WhatIf) -> str:
    counts = totals(found)
    attempts = counts.attempts
    return (
        f"{attempts} release{'' if attempts == 1 else 's'}: {counts.allowed}"
        f" allowed, {counts.denied} denied; {counts.denied_now} denied now,"
        f" {counts.allowed_now} allowed now; {_recorded(counts.recorded_over)}"
    )


def _recorded(over: int) -> str:
    return f"{over} recorded {'one exceeds' if over == 1 else 'ones exceed'} a limit"


def past_releases(ids: Sequence[str]) -> str:
    """Return how many past releases there are."""
    return f"{len(ids)} past release{'' if len(ids) == 1 else 's'}"


def _print_closest(closest: Sequence[RuleLoss]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("RULE", "SPENT", "LIMIT", "SCALE"):
        right = title in ("SPENT", "LIMIT")
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    for loss in closest:
        shown = amounts(loss)
        table.add_row(
            escape(loss.rule.id),
            amount_text(shown.together, shown.scale),
            amount_text(shown.limit, shown.scale),
            escape(f"{shown.measure} per {loss.rule.unit}"),
        )
    print_table(table)
