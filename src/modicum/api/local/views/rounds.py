"""Public forms of rounds and plans."""

from __future__ import annotations

from modicum.api.local.plans.commit import Committed
from modicum.api.local.plans.rounds import Round
from modicum.api.schema import plan as schema
from modicum.api.schema.ledger import Head
from modicum.ledger.log.events import PlanCommitted


def round_view(found: Round) -> schema.OpenedRound:
    """Return a round, and the user groups that are active in it."""
    return schema.OpenedRound(
        round=found.id,
        number=found.number,
        unlocked={unit: float(share) for unit, share in found.unlocked.items()},
        active=tuple(
            schema.UserGroup(group=one.group, age=one.age, unlocked=float(one.unlocked))
            for one in found.active
        ),
        retired=tuple(found.retired),
        plans=tuple(found.plans),
    )


def committed_view(done: Committed) -> schema.CommittedPlan:
    """Return the reservations of a plan."""
    return schema.CommittedPlan(
        plan=done.plan,
        round=done.round,
        releases=tuple(done.releases),
        expires_at=done.expires_at or None,
        ledger=Head(seq=done.seq, head=done.head),
    )


def plan_view(one: PlanCommitted) -> schema.Plan:
    """Return a plan that was committed."""
    return schema.Plan(
        plan=one.id, round=one.round, content=one.content, releases=tuple(one.releases)
    )
