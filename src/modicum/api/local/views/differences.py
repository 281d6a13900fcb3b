"""What a new policy tightens and loosens, as answers show it."""

from __future__ import annotations

from modicum.accounting.budgets import budget_text
from modicum.api.schema import policy as schema
from modicum.policy import CompiledPolicy
from modicum.policy.changes.differences import Differences, RuleChange, Verdict


def differences_view(
    old: CompiledPolicy, new: CompiledPolicy, found: Differences
) -> schema.PolicyDiff:
    """Return how two policies differ.

    Args:
        old: The policy that holds.
        new: The one that would.
        found: How they differ.
    """
    return schema.PolicyDiff(
        old=_named(old),
        new=_named(new),
        same_document=found.same_document,
        loosens=found.loosens,
        counts={one.value: found.counts.get(one, 0) for one in Verdict},
        rules=tuple(map(_change_view, found.rules)),
        declared=tuple(
            schema.DeclaredChange(
                verdict=one.verdict.value, subject=one.subject, text=one.text
            )
            for one in found.declared
        ),
    )


def _named(compiled: CompiledPolicy) -> schema.PolicyName:
    return schema.PolicyName(name=compiled.policy.name, digest=compiled.policy.digest)


def _change_view(change: RuleChange) -> schema.RuleChange:
    old, new = change.old_budget, change.new_budget
    return schema.RuleChange(
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
