"""A release that a server decided, looked at again: what would pass, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from modicum.api import operations
from modicum.api.local.explanation.release_text import written
from modicum.api.local.explanation.remedies import Explanation, Fit, Option, Options
from modicum.api.operations import Operation
from modicum.api.schema import release as schema
from modicum.api.schema.release import DenialDetails
from modicum.client.request_encoding import Sent
from modicum.client.retry_connection import Connection, Request
from modicum.client.told import decision_in, text_of
from modicum.core.yaml_reader import read_document

A = TypeVar("A")


@dataclass(frozen=True)
class ToldExplanation(Explanation):
    """What the log tells about a denial, as a server tells it."""

    added: DenialDetails = field(default_factory=DenialDetails)
    told: schema.Explanation | None = None

    @property
    def words(self) -> DenialDetails:
        """All of it in words."""
        return self.added

    @property
    def view(self) -> schema.Explanation:
        """The same, as answers show it."""
        assert self.told is not None  # It was made of it.
        return self.told


@dataclass(frozen=True, slots=True)
class AskedRemotely:
    """A release that was asked for, looked at again by the server.

    Attributes:
        connection: The server.
        sent: The release.
    """

    connection: Connection
    sent: Sent

    def largest_fit(self, vary: str, mechanism: str | None) -> Fit:
        """Return the closest variant that passes.

        Args:
            vary: What is varied.
            mechanism: The name of the one mechanism to vary; None for all.

        Raises:
            InputError: If there is no such thing to vary, or no such mechanism.
        """
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
        """Return what the log tells about the denial; None if it passes now."""
        told = self.connection.ask(
            self._request(operations.CHECK_RELEASE, explain=True, words=True)
        )
        found, added = decision_in(told), text_of(told).added
        if found.explanation is None or added is None:
            return None
        return ToldExplanation(
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
