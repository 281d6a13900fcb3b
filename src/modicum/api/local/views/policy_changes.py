"""Public forms of policy changes and simulations."""

from __future__ import annotations

from msgspec.structs import asdict

from modicum.accounting.budgets import budget_text
from modicum.api.local.explanation.conflicts import Conflict
from modicum.api.local.explanation.contributions import spenders_view
from modicum.api.local.explanation.denial_text import ordered
from modicum.api.local.policies.replay import History
from modicum.api.local.policies.what_if import Change, Replayed, WhatIf
from modicum.api.local.views.ledger import problems_view
from modicum.api.schema import policy as schema
from modicum.api.schema import policy_change
from modicum.api.schema.ledger import Head
from modicum.api.schema.policy import RuleSpent
from modicum.ledger import RuleLoss
from modicum.ledger.decision.amounts import amounts
from modicum.policy import CompiledPolicy
from modicum.policy.changes.differences import Differences, RuleChange, Verdict


def spent_view(loss: RuleLoss) -> RuleSpent:
    """Return the charge of a rule, with its limit."""
    shown = amounts(loss)
    spent, limit = ordered(shown.together, shown.limit, shown.scale)
    return RuleSpent(
        rule=loss.rule.id,
        unit=loss.rule.unit,
        measure=shown.measure,
        spent=spent,
        limit=limit,
    )


def conflict_view(conflict: Conflict) -> policy_change.Conflict:
    """Return a rule that history exceeds."""
    fits = conflict.fits
    return policy_change.Conflict(
        **asdict(spent_view(conflict.loss)),
        budget=budget_text(conflict.rule.budget),
        fits=None if fits is None else budget_text(fits),
        contributors=spenders_view(conflict.contributors, conflict.coordinate),
    )


def simulation_view(
    compiled: CompiledPolicy, history: History, found: WhatIf
) -> policy_change.Simulation:
    """Return the decisions that a policy would have made."""
    policy = compiled.policy
    return policy_change.Simulation(
        policy=schema.PolicyName(name=policy.name, digest=policy.digest),
        ledger=Head(seq=history.seq, head=history.head),
        **asdict(what_if_view(found)),
    )


def what_if_view(found: WhatIf) -> policy_change.WhatIf:
    """Return a history under a policy."""
    return policy_change.WhatIf(
        totals=totals(found),
        releases=tuple(map(_replayed_view, found.replayed)),
        closest=tuple(map(spent_view, found.closest)),
        conflicts=tuple(map(conflict_view, found.conflicts)),
        assumptions=found.assumptions,
        remarks=tuple(found.remarks),
        problems=problems_view(found.problems),
    )


def _replayed_view(one: Replayed) -> policy_change.Replayed:
    return policy_change.Replayed(
        entry=one.attempt.seq,
        release=one.attempt.release.id,
        then=one.attempt.outcome,
        blocking_then=tuple(one.attempt.blocking),
        decision="allow" if one.allowed else "deny",
        blocking=tuple(one.blocking),
        guards=tuple(one.guards),
        unmatched=tuple(one.unmatched),
        change=one.change.value,
    )


def totals(found: WhatIf) -> policy_change.Totals:
    """Return how many releases a policy would have allowed, denied, and so on."""
    allowed = sum(one.allowed for one in found.replayed)
    return policy_change.Totals(
        attempts=len(found.replayed),
        allowed=allowed,
        denied=len(found.replayed) - allowed,
        denied_now=len(found.of(Change.DENIED_NOW)),
        allowed_now=len(found.of(Change.ALLOWED_NOW)),
        recorded_over=sum(one.allowed and bool(one.blocking) for one in found.replayed),
    )


def differences_view(
    old: CompiledPolicy, new: CompiledPolicy, found: Differences
) -> policy_change.PolicyDiff:
    """Return how two policies differ."""
    return policy_change.PolicyDiff(
        old=_named(old),
        new=_named(new),
        same_document=found.same_document,
        loosens=found.loosens,
        counts={one.value: found.counts.get(one, 0) for one in Verdict},
        rules=tuple(map(_change_view, found.rules)),
        declared=tuple(
            policy_change.DeclaredChange(
                verdict=one.verdict.value, subject=one.subject, text=one.text
            )
            for one in found.declared
        ),
    )


def _named(compiled: CompiledPolicy) -> schema.PolicyName:
    return schema.PolicyName(name=compiled.policy.name, digest=compiled.policy.digest)


def _change_view(change: RuleChange) -> policy_change.RuleChange:
    old, new = change.old_budget, change.new_budget
    return policy_change.RuleChange(
        verdict=change.verdict.value,
        stage=change.stage.value,
        scope=change.scope,
        context=tuple(change.context),
        unit=change.unit,
        old=change.old or None,
        new=change.new or None,
        old_budget=None if old is None else budget_text(old),
        new_budget=None if new is None else budget_text(new),
        predicate=change.predicate.value if change.predicate else None,
        budget=change.budget.value if change.budget else None,
        covered_by=change.covered_by or None,
        across=tuple(change.across),
    )
