"""Decisions as a server tells them: in numbers for people, and in the same words."""

from __future__ import annotations

from typing import Any, Final

from modicum.api.local.decision import Decision, LossesTold
from modicum.api.schema import release as schema
from modicum.api.schema.release import Loss, RuleLines
from modicum.client.again import AskedRemotely
from modicum.client.hearings import approval_of
from modicum.client.problems import not_understood
from modicum.client.request_encoding import Sent
from modicum.client.retry_connection import Connection
from modicum.client.told import decision_in, text_of
from modicum.ledger import Verdict


class SaidVerdict(Verdict):
    """What rules say, as a server tells it."""

    def __init__(self, told: schema.Decision) -> None:
        self.uncovered = told.uncovered
        self.allowed = not told.over_limit
        self.__dict__["blocking"] = told.over_limit
        self.__dict__["rounded"] = told.rounded
        self.__dict__["losses"] = told.losses


class RemoteDecision(Decision, frozen=True):
    """The answer of a server to a release.

    Attributes:
        said: The reasons in words.
    """

    said: tuple[RuleLines, ...] = ()

    @property
    def headline(self) -> str:
        """The decision in one line."""
        if self.verdict.losses or self.retry or self.status == "recorded":
            return super().headline
        return f"{'ALLOW' if self.allowed else 'DENY'} {self.release}"

    def _reasons(self) -> tuple[RuleLines, ...]:
        return self.said

    def _losses_view(self, losses: LossesTold) -> tuple[Loss, ...] | None:
        if losses == "none":
            return None
        every: tuple[Any, ...] = self.verdict.losses
        return tuple(one for one in every if losses == "all" or not one.allowed)

    @property
    def _remarks(self) -> tuple[str, ...]:
        return self.notices  # With what is said of rounded cells.


#: What is denied, or was taken back, is not allowed.
_NOT_LET_IN: Final = frozenset({"denied", "voided", "expired"})


def decision_of(told: Any, connection: Connection, sent: Sent | None) -> RemoteDecision:
    """Return the decision that a server told.

    Args:
        told: What it told.
        connection: The server.
        sent: The release, as it was sent; None if it cannot be looked at again.

    Raises:
        UnavailableError: If it is not of that form, contradicts itself, or is about
            another release.
    """
    found = decision_in(told)
    if found.losses is None:
        raise not_understood("it tells of no losses").alone()
    decision = RemoteDecision(
        release=found.release,
        verdict=SaidVerdict(found),
        status=found.status,
        policy_name=found.policy.name,
        policy_digest=found.policy.digest,
        policy_active=found.policy.active,
        seq=found.ledger.seq,
        head=found.ledger.head,
        expires_at=found.expires_at or "",
        retry=found.retry,
        notices=found.notices,
        approvals=tuple(map(approval_of, found.approvals)),
        again=None if sent is None else AskedRemotely(connection, sent),
        said=text_of(told).reasons,
    )
    # It is allowed only if all that is told agrees on that. Prose is never compared:
    # another version may word it otherwise.
    if (
        found.decision != ("allow" if decision.allowed else "deny")
        or found.blocking != decision.blocking
        or (decision.allowed and found.status in _NOT_LET_IN)
        or any(
            not one.allowed and one.rule not in decision.over_limit
            for one in found.losses
        )
    ):
        raise not_understood("its decision contradicts itself").alone()
    if sent is not None and sent.release not in ("", found.release):
        raise not_understood("it tells of another release").alone()
    return decision
