"""A release that a server decided, looked at again: what would pass, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from modicum.core.yaml_reader import read_document
from modicum.remote.connection import Connection, Request
from modicum.remote.decision_forms import ToldDecision, words_of
from modicum.remote.rules import Head
from modicum.remote.told import read_as
from modicum.remote.written import Sent
from modicum.workspace.explaining.fits import Explanation, Fit, Option, Options
from modicum.workspace.explaining.words import Added
from modicum.workspace.explaining.written import written


class _ToldFit(msgspec.Struct):
    vary: str
    release: str | None
    changes: tuple[str, ...]
    why: tuple[str, ...]
    ledger: Head
    ended_early: bool = False


class _ToldOption(msgspec.Struct):
    kind: str
    title: str
    release: str
    why: tuple[str, ...]
    only_if: str | None
    not_before: str | None


class _ToldOptions(msgspec.Struct):
    options: tuple[_ToldOption, ...]
    ended_early: bool = False


@dataclass(frozen=True)
class ToldExplanation(Explanation):
    """What the log tells about a denial, as a server tells it."""

    added: Added = field(default_factory=lambda: Added((), ()))
    told: Mapping[str, object] = field(default_factory=dict)

    @property
    def words(self) -> Added:
        """All of it in words."""
        return self.added

    def to_dict(self) -> dict[str, object]:
        """Return the documented JSON form (docs/reference/json.md)."""
        return dict(self.told)


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
        query = {"vary": vary, "mechanism": mechanism}
        return _fit(self._ask("/releases:fit", query))

    def options(self) -> Options:
        """Return the changes after which it passes."""
        told = self._ask("/releases:options", {})
        found = read_as(_ToldOptions, told)
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
        told = self._ask("/releases:check", {"explain": True, "words": True})
        found = read_as(ToldDecision, told)
        added = words_of(told).added
        if told.get("explanation") is None or added is None:
            return None
        own = told["explanation"]
        return ToldExplanation((), _fit(own["fit"]), found.ledger.seq, added, own)

    def _ask(self, path: str, query: Mapping[str, str | bool | None]) -> Any:
        return self.connection.ask(Request("POST", path, query, self.sent))


def _fit(told: object) -> Fit:
    one = read_as(_ToldFit, told)
    release = None if one.release is None else _release(one.release)
    at = one.ledger.seq, one.ledger.head
    return Fit(one.vary, release, one.changes, one.why, *at, one.ended_early)


def _release(text: str) -> Mapping[str, object]:
    return written(read_document(text.encode(), "variant"))
