"""Decisions of a server: in display numbers, with the same text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from modicum.api import operations
from modicum.api.local.decision import Decision, LossesShown
from modicum.api.local.explanation.release_text import written
from modicum.api.local.explanation.remedies import Explanation, Fit, Option, Options
from modicum.api.operations import Operation
from modicum.api.schema import release as schema
from modicum.api.schema.release import DenialDetails, Loss, RuleLines
from modicum.client.decoding import approval_of, decision_in, text_of
from modicum.client.problems import not_understood
from modicum.client.request_encoding import EncodedRequest
from modicum.client.retry_connection import Connection, Request
from modicum.core.yaml_reader import read_document
from modicum.ledger import Verdict

A = TypeVar("A")


@dataclass(frozen=True)
class RemoteExplanation(Explanation):
    """A server's explanation of a denial."""

    added: DenialDetails = field(default_factory=DenialDetails)
    reply: schema.Explanation | None = None

    @property
    def details(self) -> DenialDetails:
        """The complete text."""
        return self.added

    @property
    def view(self) -> schema.Explanation:
        """The public form."""
        assert self.reply is not None  # It was made of it.
        return self.reply


@dataclass(frozen=True, slots=True)
class RemoteReconsideration:
    """A denied release and its connection, for further requests.

    Attributes:
        connection: The server.
        sent: The release.
    """

    connection: Connection
    sent: EncodedRequest

    def largest_fit(self, vary: str, mechanism: str | None) -> Fit:
        """Return the closest variant that passes."""
        return _fit(
            self.connection.call(
                self._request(operations.FIT_RELEASE, vary=vary, mechanism=mechanism)
            )
        )

    def options(self) -> Options:
        """Return the changes after which it passes."""
        found = self.connection.call(self._request(operations.RELEASE_OPTIONS))
        return Options(
            (
                Option(
                    one.kind,
                    one.title,
                    _release(one.release),
                    one.why,
                    one.only_if or "",
                    one.not_before or "",
                )
                for one in found.options
            ),
            ended_early=found.ended_early,
        )

    def explanation(self) -> Explanation | None:
        """Return what the log shows about the denial; None if it is allowed now."""
        reply = self.connection.send(
            self._request(operations.CHECK_RELEASE, explain=True, text=True)
        )
        found, added = decision_in(reply), text_of(reply).added
        if found.explanation is None or added is None:
            return None
        return RemoteExplanation(
            (), _fit(found.explanation.fit), found.ledger.seq, added, found.explanation
        )

    def _request(
        self, operation: Operation[A], **query: str | bool | None
    ) -> Request[A]:
        return Request(operation, query=query, sent=self.sent)


def _fit(one: schema.Fit) -> Fit:
    release = None if one.release is None else _release(one.release)
    at = one.ledger.seq, one.ledger.head
    return Fit(one.vary, release, one.changes, one.why, *at, one.ended_early)


def _release(text: str) -> Mapping[str, object]:
    return written(read_document(text.encode(), "variant"))


class RemoteVerdict(Verdict):
    """A server's verdict."""

    def __init__(self, reply: schema.Decision) -> None:
        self.uncovered = reply.uncovered
        self.unmatched = reply.unmatched
        self.allowed = not reply.over_limit and not reply.unmatched
        self.__dict__["blocking"] = reply.over_limit
        self.__dict__["rounded"] = reply.rounded
        self.__dict__["losses"] = reply.losses


class RemoteDecision(Decision, frozen=True):
    """A server's decision about a release.

    Attributes:
        reason_lines: The reasons as text.
    """

    reason_lines: tuple[RuleLines, ...] = ()

    @property
    def headline(self) -> str:
        """The decision in one line."""
        known = self.verdict.losses or self.verdict.unmatched
        if known or self.retry or self.status == "recorded":
            return super().headline
        return f"{'ALLOW' if self.allowed else 'DENY'} {self.release}"

    def _reasons(self) -> tuple[RuleLines, ...]:
        return self.reason_lines

    def _losses_view(self, losses: LossesShown) -> tuple[Loss, ...] | None:
        if losses == "none":
            return None
        every: tuple[Any, ...] = self.verdict.losses
        return tuple(one for one in every if losses == "all" or not one.allowed)

    @property
    def _remarks(self) -> tuple[str, ...]:
        return self.notices  # With the note on rounded cells.


#: A denied or canceled release is not allowed.
_NOT_LET_IN: Final = frozenset({"denied", "canceled", "expired"})


def decision_of(
    reply: Any, connection: Connection, sent: EncodedRequest | None
) -> RemoteDecision:
    """Return the decision in a server's response."""
    found = decision_in(reply)
    if found.losses is None:
        raise not_understood("it contains no losses").alone()
    decision = RemoteDecision(
        release=found.release,
        verdict=RemoteVerdict(found),
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
        again=None if sent is None else RemoteReconsideration(connection, sent),
        reason_lines=text_of(reply).reasons,
    )
    # It is allowed only if all data agrees on that. Prose is never compared: another
    # version may word it differently.
    if (
        found.decision != ("allow" if decision.allowed else "deny")
        or found.blocking != decision.blocking
        or (decision.allowed and found.status in _NOT_LET_IN)
        or any(
            not one.allowed and one.rule not in decision.over_limit
            for one in found.losses
        )
    ):
        raise not_understood("its decision is inconsistent").alone()
    if sent is not None and sent.release not in ("", found.release):
        raise not_understood("it is about another release").alone()
    return decision
