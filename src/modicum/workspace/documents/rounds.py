"""Rounds and plans as plain JSON."""

from __future__ import annotations

from modicum.ledger.log.events import PlanCommitted
from modicum.workspace.planning.committing import Committed
from modicum.workspace.planning.rounds import Round


def round_to_dict(found: Round) -> dict[str, object]:
    """Return a round, and whose turn it is.

    Args:
        found: The round.
    """
    return {
        "round": found.id,
        "number": found.number,
        "unlocked": {unit: float(share) for unit, share in found.unlocked.items()},
        "active": [
            {"group": one.group, "age": one.age, "unlocked": float(one.unlocked)}
            for one in found.active
        ],
        "retired": list(found.retired),
        "plans": list(found.plans),
    }


def committed_to_dict(done: Committed) -> dict[str, object]:
    """Return what a plan reserved.

    Args:
        done: What was reserved.
    """
    return {
        "plan": done.plan,
        "round": done.round,
        "releases": list(done.releases),
        "expires_at": done.expires_at or None,
        "ledger": {"seq": done.seq, "head": done.head},
    }


def plan_to_dict(one: PlanCommitted) -> dict[str, object]:
    """Return a plan that was committed.

    Args:
        one: The plan, as it stands in the log.
    """
    return {
        "plan": one.id,
        "round": one.round,
        "content": one.content,
        "releases": list(one.releases),
    }
