"""Interfaces that authentication needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from modicum.api.permissions.identity import Identity
from modicum.api.permissions.tokens import Session, Token
from modicum.server.auth.registry import OpenedSession


class Clock(Protocol):
    """The time of day, in UTC."""

    def now(self) -> str:
        """Return the time, as `YYYY-MM-DDTHH:MM:SS.ffffffZ`."""

    def after(self, now: str, seconds: int) -> str:
        """Return the time that many seconds after `now`."""


class Tokens(Protocol):
    """The store of API tokens."""

    def token_by_digest(self, digest: str) -> Token | None:
        """Return the token with a digest; None if none is active."""

    def tokens_by_digest(self, digests: Sequence[str]) -> Mapping[str, Token | None]:
        """Return the tokens with some digests; those that cannot be read are left out.

        It is quicker than reading them one after the other.
        """

    def cached_token(self, digest: str) -> Token | None:
        """Return it without reading anything; None if that is not possible."""


class Names(Protocol):
    """The names that are known."""

    def lookalike_of(self, name: str, named: Iterable[str] = ()) -> str | None:
        """Return a known name that looks like a new one; None if none does."""


class SessionStore(Protocol):
    """The store of sessions."""

    def add_session(self, identity: Identity, *, seconds: int) -> OpenedSession:
        """Open a session for an authenticated person."""

    def session_by_digest(self, digest: str) -> Session | None:
        """Return the session with a digest; None if there is none, or it is over."""

    def prolong_session(self, digest: str, until: str) -> None:
        """Have a session end later; nothing happens if there is none."""

    def end_session(self, digest: str) -> None:
        """End a session; nothing happens if there is none."""
