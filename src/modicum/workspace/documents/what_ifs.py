"""What a policy would have decided, as plain JSON."""

from __future__ import annotations

from modicum.policy import CompiledPolicy
from modicum.workspace.documents.conflicts import conflict_to_dict, spent_to_dict
from modicum.workspace.policies.past import History
from modicum.workspace.policies.what_if import Change, Replayed, WhatIf


def simulation_to_dict(
    compiled: CompiledPolicy, history: History, found: WhatIf
) -> dict[str, object]:
    """Return what a policy would have decided (docs/reference/json.md).

    Args:
        compiled: The policy.
        history: What happened.
        found: What the policy says to it.
    """
    policy = compiled.policy
    return {
        "policy": {"name": policy.name, "digest": policy.digest},
        "ledger": {"seq": history.seq, "head": history.head},
        **what_if_to_dict(found),
    }


def what_if_to_dict(found: WhatIf) -> dict[str, object]:
    """Return a history under a policy (docs/reference/json.md).

    Args:
        found: What the policy says to it.
    """
    return {
        "totals": totals(found),
        "releases": [_replayed_to_dict(one) for one in found.replayed],
        "closest": [spent_to_dict(loss) for loss in found.closest],
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
        "problems": [one.to_dict() for one in found.problems],
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


def totals(found: WhatIf) -> dict[str, int]:
    """Return how many releases a policy would have let in, denied, and so on.

    Args:
        found: A history under the policy.
    """
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
