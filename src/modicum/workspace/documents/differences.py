"""What a new policy tightens and loosens, as plain JSON."""

from __future__ import annotations

from modicum.accounting.budgets import budget_text
from modicum.policy import CompiledPolicy
from modicum.policy.changes.differences import Differences, RuleChange, Verdict


def differences_to_dict(
    old: CompiledPolicy, new: CompiledPolicy, found: Differences
) -> dict[str, object]:
    """Return how two policies differ (docs/reference/json.md).

    Args:
        old: The policy that holds.
        new: The one that would.
        found: How they differ.
    """
    return {
        "old": _policy_to_dict(old),
        "new": _policy_to_dict(new),
        "same_document": found.same_document,
        "loosens": found.loosens,
        "counts": {one.value: found.counts.get(one, 0) for one in Verdict},
        "rules": [_change_to_dict(change) for change in found.rules],
        "declared": [
            {"verdict": one.verdict.value, "subject": one.subject, "text": one.text}
            for one in found.declared
        ],
    }


def _policy_to_dict(compiled: CompiledPolicy) -> dict[str, object]:
    policy = compiled.policy
    return {"name": policy.name, "digest": policy.digest}


def _change_to_dict(change: RuleChange) -> dict[str, object]:
    old, new = change.old_budget, change.new_budget
    return {
        "verdict": change.verdict.value,
        "stage": change.stage.value,
        "scope": change.scope,
        "context": list(change.context),
        "unit": change.unit,
        "old": change.old or None,
        "new": change.new or None,
        "old_budget": None if old is None else budget_text(old),
        "new_budget": None if new is None else budget_text(new),
        "predicate": change.predicate.value if change.predicate else None,
        "budget": change.budget.value if change.budget else None,
        "covered_by": change.covered_by or None,
        "across": list(change.across),
    }
