"""Rules that history exceeds, as answers show them."""

from __future__ import annotations

from msgspec.structs import asdict

from modicum.accounting.budgets import budget_text
from modicum.api.local.explanation.conflicts import Conflict
from modicum.api.local.explanation.contributions import spenders_view
from modicum.api.local.explanation.denial_text import ordered
from modicum.api.schema import policy as schema
from modicum.api.schema.policy import RuleSpent
from modicum.ledger import RuleLoss
from modicum.ledger.decision.amounts import amounts


def spent_view(loss: RuleLoss) -> RuleSpent:
    """Return what a rule was charged, and what it admits."""
    shown = amounts(loss)
    spent, limit = ordered(shown.together, shown.limit, shown.scale)
    return RuleSpent(
        rule=loss.rule.id,
        unit=loss.rule.unit,
        measure=shown.measure,
        spent=spent,
        limit=limit,
    )


def conflict_view(conflict: Conflict) -> schema.Conflict:
    """Return a rule that history exceeds."""
    fits = conflict.fits
    return schema.Conflict(
        **asdict(spent_view(conflict.loss)),
        budget=budget_text(conflict.rule.budget),
        fits=None if fits is None else budget_text(fits),
        contributors=spenders_view(conflict.contributors, conflict.coordinate),
    )
