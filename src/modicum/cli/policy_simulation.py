"""What `modicum policy simulate` prints."""

from __future__ import annotations

from collections.abc import Sequence

from modicum.accounting.budgets import budget_text
from modicum.cli.output import fitting, print_table
from modicum.ledger import RuleLoss
from modicum.ledger.deciding.amounts import amounts
from modicum.policy import CompiledPolicy
from modicum.workspace.explaining.conflicts import Conflict
from modicum.workspace.explaining.contributions import contributors_to_list
from modicum.workspace.explaining.explain import amount_text, ordered
from modicum.workspace.policies.past import History
from modicum.workspace.policies.what_if import Change, Replayed, WhatIf

#: How many rules are named beside a release.
NAMED = 3


def print_simulation(found: WhatIf, *, whole: bool) -> None:
    """Print what a policy would have decided, for people.

    Args:
        found: What it says to a history.
        whole: Whether to list also what was and would be let in.
    """
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
    if found.conflicts:
        print(
            f"note: what did happen exceeds {len(found.conflicts)} of its rules:"
            "  modicum policy diff active POLICY --ledger FILE"
        )


def _remarkable(one: Replayed) -> bool:
    return one.change is not Change.SAME or bool(one.blocking or one.guards)


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
    by = [*(f"guard {name}" for name in one.guards), *one.blocking]
    kept = by[: fitting(len(by), NAMED)]
    more = f" and {len(by) - len(kept)} more" if len(kept) < len(by) else ""
    return ", ".join(kept) + more


def _totals(found: WhatIf) -> str:
    counts = _counts(found)
    attempts = counts["attempts"]
    return (
        f"{attempts} release{'' if attempts == 1 else 's'}: {counts['allowed']} let in,"
        f" {counts['denied']} denied; {counts['denied_now']} denied now,"
        f" {counts['allowed_now']} allowed now; {_recorded(counts['recorded_over'])}"
    )


def _recorded(over: int) -> str:
    return f"{over} recorded {'one goes' if over == 1 else 'ones go'} over a limit"


def past_releases(ids: Sequence[str]) -> str:
    """Return how many past releases there are."""
    return f"{len(ids)} past release{'' if len(ids) == 1 else 's'}"


def _counts(found: WhatIf) -> dict[str, int]:
    allowed = sum(one.allowed for one in found.replayed)
    return {
        "attempts": len(found.replayed),
        "allowed": allowed,
        "denied": len(found.replayed) - allowed,
        "denied_now": len(found.of(Change.DENIED_NOW)),
        "allowed_now": len(found.of(Change.ALLOWED_NOW)),
        "recorded_over": sum(
            one.allowed and bool(one.blocking) for one in found.replayed
        ),
    }


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


# --- JSON -----------------------------------------------------------------------


def simulation_to_dict(
    compiled: CompiledPolicy, history: History, found: WhatIf
) -> dict[str, object]:
    """Return the documented JSON form (docs/reference/json.md)."""
    policy = compiled.policy
    return {
        "policy": {"name": policy.name, "digest": policy.digest},
        "ledger": {"seq": history.seq, "head": history.head},
        **what_if_to_dict(found),
    }


def what_if_to_dict(found: WhatIf) -> dict[str, object]:
    """Return a history under a policy as plain JSON (docs/reference/json.md)."""
    return {
        "totals": _counts(found),
        "releases": [_replayed_to_dict(one) for one in found.replayed],
        "closest": [_spent_to_dict(loss) for loss in found.closest],
        "conflicts": [conflict_to_dict(one) for one in found.conflicts],
        "assumptions": [
            {
                "kind": one.kind,
                "subject": one.subject,
                "taken": one.taken,
                "releases": list(one.releases),
            }
            for one in found.assumptions
        ],
        "remarks": list(found.remarks),
    }


def _replayed_to_dict(one: Replayed) -> dict[str, object]:
    return {
        "entry": one.attempt.seq,
        "release": one.attempt.release.id,
        "then": one.attempt.outcome,
        "blocking_then": list(one.attempt.blocking),
        "decision": "allow" if one.allowed else "deny",
        "blocking": list(one.blocking),
        "guards": list(one.guards),
        "change": one.change.value,
    }


def _spent_to_dict(loss: RuleLoss) -> dict[str, object]:
    shown = amounts(loss)
    spent, limit = ordered(shown.together, shown.limit, shown.scale)
    return {
        "rule": loss.rule.id,
        "unit": loss.rule.unit,
        "measure": shown.measure,
        "spent": spent,
        "limit": limit,
    }


def conflict_to_dict(conflict: Conflict) -> dict[str, object]:
    """Return a rule that history exceeds, as plain JSON."""
    fits = conflict.fits
    return {
        **_spent_to_dict(conflict.loss),
        "budget": budget_text(conflict.rule.budget),
        "fits": None if fits is None else budget_text(fits),
        "contributors": contributors_to_list(
            conflict.contributors, conflict.coordinate
        ),
    }
