"""Approvals and hearings as a server tells them, and what people said."""

from __future__ import annotations

import msgspec

from modicum.ledger.deciding.approvals import Hearing
from modicum.policy.model import Approval
from modicum.policy.predicates import Constant
from modicum.remote.mistakes import not_understood
from modicum.remote.told import plain_as
from modicum.workspace.governing.topics import Spoken


class ToldApproval(msgspec.Struct):
    """What an approval asks for."""

    need: int
    roles: tuple[str, ...] = msgspec.field(name="from")
    requester_may_approve: bool = False

    @property
    def approval(self) -> Approval:
        """The same as a value; the server says which releases need it."""
        return Approval(
            when=Constant(value=True),
            need=self.need,
            roles=self.roles,
            requester_may_approve=self.requester_may_approve,
            mark=None,
        )


class ToldHearing(ToldApproval, kw_only=True):
    """Where an approval stands."""

    given: bool
    missing: int
    approved_by: tuple[str, ...]
    rejected_by: tuple[str, ...]
    left: tuple[str, ...]
    asking: tuple[str, ...]


class _ToldSpoken(msgspec.Struct):
    entry: int
    at: str
    by: str
    content: str
    approves: bool
    roles: tuple[str, ...]
    reason: str
    key: str | None


def hearings_of(told: object) -> tuple[Hearing, ...]:
    """Return where approvals stand.

    Args:
        told: What a server told.

    Raises:
        UnavailableError: If it is not of that form, or contradicts itself.
    """
    return tuple(map(_hearing, plain_as(tuple[ToldHearing, ...], told)))


def _hearing(told: ToldHearing) -> Hearing:
    found = Hearing(
        told.approval, told.approved_by, told.rejected_by, told.left, told.asking
    )
    # It is given only if all that is told agrees on that.
    if (found.given, found.missing) != (told.given, told.missing):
        raise not_understood("what it says of an approval contradicts itself").alone()
    return found


def spoken_of(told: object) -> tuple[Spoken, ...]:
    """Return what people said, oldest first.

    Args:
        told: What a server told.

    Raises:
        UnavailableError: If it is not of that form.
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
        for one in plain_as(tuple[_ToldSpoken, ...], told)
    )
