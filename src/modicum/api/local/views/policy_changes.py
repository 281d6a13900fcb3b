"""History under another policy, as answers show it."""

from __future__ import annotations

from msgspec.structs import asdict

from modicum.api.local.policies.replay import History
from modicum.api.local.policies.what_if import Change, Replayed, WhatIf
from modicum.api.local.views.conflicts import conflict_view, spent_view
from modicum.api.local.views.problems import problems_view
from modicum.api.schema import policy as schema
from modicum.api.schema.ledger import Head
from modicum.policy import CompiledPolicy


def simulation_view(
    compiled: CompiledPolicy, history: History, found: WhatIf
) -> schema.Simulation:
    """Return what a policy would have decided.

    Args:
        compiled: The policy.
        history: What happened.
        found: What the policy says to it.
    """
    policy = compiled.policy
    return schema.Simulation(
        policy=schema.PolicyName(name=policy.name, digest=policy.digest),
        ledger=Head(seq=history.seq, head=history.head),
        **asdict(what_if_view(found)),
    )


def what_if_view(found: WhatIf) -> schema.WhatIf:
    """Return a history under a policy."""
    return schema.WhatIf(
        totals=totals(found),
        releases=tuple(map(_replayed_view, found.replayed)),
        closest=tuple(map(spent_view, found.closest)),
        conflicts=tuple(map(conflict_view, found.conflicts)),
        assumptions=tuple(
            schema.Assumption(
                kind=one.kind,
                subject=one.subject,
                taken=one.taken,
                releases=tuple(one.releases),
            )
            for one in found.assumptions
        ),
        remarks=tuple(found.remarks),
        problems=problems_view(found.problems),
    )


def _replayed_view(one: Replayed) -> schema.Replayed:
    return schema.Replayed(
        entry=one.attempt.seq,
        release=one.attempt.release.id,
        then=one.attempt.outcome,
        blocking_then=tuple(one.attempt.blocking),
        decision="allow" if one.allowed else "deny",
        blocking=tuple(one.blocking),
        guards=tuple(one.guards),
        change=one.change.value,
    )


def totals(found: WhatIf) -> schema.Totals:
    """Return how many releases a policy would have allowed, denied, and so on."""
    allowed = sum(one.allowed for one in found.replayed)
    return schema.Totals(
        attempts=len(found.replayed),
        allowed=allowed,
        denied=len(found.replayed) - allowed,
        denied_now=len(found.of(Change.DENIED_NOW)),
        allowed_now=len(found.of(Change.ALLOWED_NOW)),
        recorded_over=sum(one.allowed and bool(one.blocking) for one in found.replayed),
    )
