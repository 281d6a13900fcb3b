"""Approvals and hearings as a server tells them, and what people said."""

from __future__ import annotations

from collections.abc import Iterable

from modicum.api.local.governance.approval_cases import Spoken
from modicum.api.schema import approval as schema
from modicum.api.schema.policy import Approval as ApprovalShape
from modicum.client.problems import not_understood
from modicum.ledger.decision.approvals import Hearing
from modicum.policy.model import Approval
from modicum.policy.predicates import Constant


def approval_of(one: ApprovalShape) -> Approval:
    """Return what an approval takes; the server says which releases need it."""
    return Approval(
        when=Constant(value=True),
        need=one.need,
        roles=one.roles,
        requester_may_approve=one.requester_may_approve,
        mark=None,
    )


def hearings_of(found: Iterable[schema.ApprovalStatus]) -> tuple[Hearing, ...]:
    """Return where approvals stand.

    Args:
        found: What a server answers.

    Raises:
        UnavailableError: If it contradicts itself.
    """
    return tuple(map(_hearing, found))


def _hearing(one: schema.ApprovalStatus) -> Hearing:
    found = Hearing(
        approval_of(one), one.approved_by, one.rejected_by, one.left, one.asking
    )
    # It is given only if all that is told agrees on that.
    if (found.given, found.missing) != (one.given, one.missing):
        raise not_understood("what it says of an approval contradicts itself").alone()
    return found


def spoken_of(found: Iterable[schema.Vote]) -> tuple[Spoken, ...]:
    """Return what people said, oldest first.

    Args:
        found: What a server answers.
    """
    return tuple(
        Spoken(
            seq=one.entry,
            at=one.at,
            by=one.by,
            content=one.content,
            approves=one.approves,
            roles=one.roles,
            reason=one.reason,
            key=one.key or "",
        )
        for one in found
    )
