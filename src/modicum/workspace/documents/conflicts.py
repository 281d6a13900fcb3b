"""Rules that history exceeds, as plain JSON."""

from __future__ import annotations

from modicum.accounting.budgets import budget_text
from modicum.ledger import RuleLoss
from modicum.ledger.deciding.amounts import amounts
from modicum.workspace.explaining.conflicts import Conflict
from modicum.workspace.explaining.contributions import contributors_to_list
from modicum.workspace.explaining.explain import ordered


def spent_to_dict(loss: RuleLoss) -> dict[str, object]:
    """Return what a rule was charged, and what it admits.

    Args:
        loss: What it was charged.
    """
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
    """Return a rule that history exceeds.

    Args:
        conflict: The rule, and who made it so.
    """
    fits = conflict.fits
    return {
        **spent_to_dict(conflict.loss),
        "budget": budget_text(conflict.rule.budget),
        "fits": None if fits is None else budget_text(fits),
        "contributors": contributors_to_list(
            conflict.contributors, conflict.coordinate
        ),
    }
