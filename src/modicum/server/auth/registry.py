"""The registry: who may come in, by tokens and by sessions.

It is kept beside the log, in the ledger's own database. Whoever may write there may let
anybody in.
"""

from __future__ import annotations

import base64
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from modicum.api.permissions.identity import Identity
from modicum.api.permissions.tokens import (
    ACTIVE_TOKENS_MAX,
    SESSION_SECONDS_MAX,
    Session,
    Token,
    TokenStatus,
    TokenTerms,
    no_token,
    secret_digest,
    token_id,
    written_token,
)
from modicum.api.ports.storage import Clock, Store
from modicum.core.errors import AccessError, Code, InputError, Problem, UsageError
from modicum.ops.wiring import printable_actor
from modicum.server.auth import registry_rows
from modicum.storage.service_tables import ServiceTables, Statement
from modicum.system.clock import SystemClock

T = TypeVar("T")

#: So many are remembered at most; the one that was read longest ago goes first.
REMEMBERED_MAX = 10_000


class RecentlyRead(Generic[T]):
    """Things by their keys, as they were a few seconds ago; any thread may ask.

    What is not there is not remembered: so a thing is seen as soon as it is there, and
    whoever asks for nonsense fills no memory.

    Args:
        read: Reads the thing with a key; None if there is none.
        seconds: How old what is returned may be.
        clock: Tells seconds, from any beginning.
    """

    def __init__(
        self,
        read: Callable[[str], T | None],
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._seconds = seconds
        self._clock = clock
        self._guard = threading.Lock()
        self._known: OrderedDict[str, tuple[T, float]] = OrderedDict()
        self._changes = 0

    def get(self, key: str) -> T | None:
        """Return the thing with a key, as it is or was a few seconds ago."""
        asked_at = self._clock()
        with self._guard:
            known = self._known.get(key)
            changes = self._changes
        if known is not None and asked_at - known[1] < self._seconds:
            return known[0]
        found = self._read(key)
        with self._guard:
            self._known.pop(key, None)
            # What was changed while it was read may have been read as it was before.
            if found is not None and changes == self._changes:
                self._known[key] = found, asked_at
                if len(self._known) > REMEMBERED_MAX:
                    self._known.popitem(last=False)
        return found

    def forget(self) -> None:
        """Forget everything: something was changed just now."""
        with self._guard:
            self._changes += 1
            self._known.clear()


#: What another process revoked or ended is let in for so many seconds more at most.
FRESH_SECONDS = 5.0
_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token that was made just now.

    Attributes:
        text: The token itself; it is shown once, and stored nowhere.
        token: What is stored of it.
    """

    text: str = field(repr=False)
    token: Token


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A session that began just now.

    Attributes:
        secret: What the browser keeps in a cookie; it is stored nowhere else.
        csrf: What the service's pages send back to change something.
        session: What is stored of it.
    """

    secret: str = field(repr=False)
    csrf: str = field(repr=False)
    session: Session


class Registry:
    """The tokens and sessions of one ledger; any thread may use it.

    What it changes itself holds at once; what others change, a few seconds later.

    Args:
        store: Where they are kept; it stays open.
        clock: The time of day.
        fresh_seconds: What another process revoked or ended is let in for so many
            seconds more at most; 0 to look each time.

    Raises:
        UsageError: If nothing can be kept there, as in an audit bundle.
    """

    def __init__(
        self, store: Store, clock: Clock, fresh_seconds: float = FRESH_SECONDS
    ) -> None:
        if not isinstance(store, ServiceTables):
            raise _keeps_nothing(store.name)
        self._store = store
        self._beside: ServiceTables = store
        self._clock = clock
        self._tokens = RecentlyRead(self._read_token, fresh_seconds)
        self._sessions = RecentlyRead(self._read_session, fresh_seconds)

    # --- tokens ---

    def add_token(self, terms: TokenTerms, *, created_by: str) -> IssuedToken:
        """Make a token, and return it: it is never shown again.

        Args:
            terms: What it is to be.
            created_by: Who makes it.

        Raises:
            AccessError: If 100 tokens of the same actor are active already.
            UsageError: If there is no ledger.
            UnavailableError: If it could not be stored, or nobody knows; a token that
                nobody has seen lets nobody in.
        """
        identifier = base64.b32encode(secrets.token_bytes(7))[:10].decode().lower()
        text = written_token(identifier, secrets.token_urlsafe(_SECRET_BYTES))
        now = self._clock.now()
        token = Token(
            id=identifier,
            digest=secret_digest(text),
            actor=terms.actor,
            grants=terms.grants,
            is_service=terms.is_service,
            name=terms.name,
            created_by=printable_actor(created_by),
            created_at=now,
            expires_at=self._clock.after(now, terms.seconds),
        )
        if self._change(registry_rows.adding(token)) == [0]:
            raise _too_many_tokens(terms.actor)
        return IssuedToken(text, token)

    def token_by_digest(self, digest: str) -> Token | None:
        """Return the token with a digest; None if there is none that may be used now.

        Args:
            digest: What `token_digest` returns.

        Raises:
            UnavailableError: If it cannot be read now.
            VerificationError: If it is not stored as it was written.
        """
        token = self._tokens.get(digest)
        if token is None or token.status(self._clock.now()) is not TokenStatus.ACTIVE:
            return None
        return token

    def tokens(self) -> list[Token]:
        """Return every token, oldest first; those that ended are among them."""
        return [
            registry_rows.token_of(row)
            for row in self._rows(registry_rows.all_tokens())
        ]

    def revoke_token(self, identifier: str) -> Token:
        """Let nobody in by a token any more; again, it changes nothing.

        Args:
            identifier: Its id, or the token itself.

        Raises:
            InputError: If there is none.
            UnavailableError: If nobody knows whether it was stored; try again.
        """
        # Whatever is wrong with the ledger is told first.
        called = token_id(identifier)
        found = self._rows(registry_rows.token_called(called))
        if not found:
            raise _unknown(called)
        token = registry_rows.token_of(found[0])
        if token.revoked_at:
            return token
        now = self._clock.now()
        self._change(registry_rows.revoking(called, now))
        return replace(token, revoked_at=now)

    def _read_token(self, digest: str) -> Token | None:
        found = self._rows(registry_rows.token_with(digest))
        return registry_rows.token_of(found[0]) if found else None

    # --- sessions ---

    def add_session(self, identity: Identity, *, seconds: int) -> OpenedSession:
        """Begin a session for somebody who was recognized.

        Args:
            identity: Who.
            seconds: How long it lasts: 1 second to 30 days.

        Raises:
            InputError: If it would last for longer.
            UsageError: If there is no ledger.
            UnavailableError: If it could not be stored.
        """
        if not 1 <= seconds <= SESSION_SECONDS_MAX:
            raise _too_long(seconds)
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        csrf = secrets.token_urlsafe(_SECRET_BYTES)
        now = self._clock.now()
        session = Session(
            digest=secret_digest(secret),
            identity=identity,
            csrf=secret_digest(csrf),
            created_at=now,
            expires_at=self._clock.after(now, seconds),
        )
        self._change(registry_rows.forgetting(now), registry_rows.beginning(session))
        return OpenedSession(secret, csrf, session)

    def session_by_digest(self, digest: str) -> Session | None:
        """Return the session with a digest; None if there is none, or it is over.

        Args:
            digest: The digest of its secret.

        Raises:
            UnavailableError: If it cannot be read now.
            VerificationError: If it is not stored as it was written.
        """
        session = self._sessions.get(digest)
        if session is None or session.is_over(self._clock.now()):
            return None
        return session

    def prolong_session(self, digest: str, until: str) -> None:
        """Have a session end later; if there is none, nothing is changed.

        Args:
            digest: The digest of its secret.
            until: When it ends then, in UTC, as events write it.

        Raises:
            UnavailableError: If it could not be stored, or nobody knows.
        """
        self._change(registry_rows.prolonging(digest, until))

    def end_session(self, digest: str) -> None:
        """End a session; if there is none, nothing is changed.

        Args:
            digest: The digest of its secret.

        Raises:
            UnavailableError: If nobody knows whether it was stored; try again.
        """
        self._change(registry_rows.ending(digest))

    def purge(self) -> int:
        """Forget some sessions that are over.

        Some are forgotten whenever one begins; so nobody needs to call this often.

        Returns:
            How many were forgotten; 0 if none is left.
        """
        return self._change(registry_rows.forgetting(self._clock.now()))[0]

    def _read_session(self, digest: str) -> Session | None:
        found = self._rows(registry_rows.session_with(digest))
        return registry_rows.session_of(found[0]) if found else None

    # --- inside ---

    def _rows(self, statement: Statement) -> Sequence[tuple[object, ...]]:
        return self._beside.rows_beside(statement)

    def _change(self, *statements: Statement) -> list[int]:
        """Run statements, and know nothing from before."""
        if not self._store.exists():
            raise _no_ledger(self._store.name)
        try:
            return self._beside.change_beside(statements)
        finally:  # Where nobody knows what was stored, too.
            self._tokens.forget()
            self._sessions.forget()


def open_registry(
    store: Store, *, clock: Clock | None = None, fresh_seconds: float = FRESH_SECONDS
) -> Registry:
    """Return the registry of a ledger."""
    return Registry(store, clock or SystemClock(), fresh_seconds)


def _too_many_tokens(actor: str) -> AccessError:
    return AccessError(
        Problem(
            Code.FORBIDDEN,
            f"`{actor[:200]}` has {ACTIVE_TOKENS_MAX} active tokens, the maximum",
            help="revoke an unused one; see  modicum token list , or  /tokens",
        )
    )


def _unknown(identifier: str) -> InputError:
    return InputError(
        Problem(
            Code.NOT_FOUND,
            no_token(identifier),
            help="list them with  modicum token list",
        )
    )


def _too_long(seconds: int) -> InputError:
    return InputError(
        Problem(
            Code.OUT_OF_RANGE,
            f"a session lasts 1 to {SESSION_SECONDS_MAX} seconds, not {seconds}",
        )
    )


def _no_ledger(name: str) -> UsageError:
    return UsageError(
        Problem(
            Code.LEDGER_MISSING,
            f"there is no ledger at {name}",
            help="create one with  modicum init --policy policy.yaml",
        )
    )


def _keeps_nothing(name: str) -> UsageError:
    return UsageError(
        Problem(Code.LEDGER_MISSING, f"{name} is not a ledger with tokens")
    )
