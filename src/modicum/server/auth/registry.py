"""The registry of tokens and sessions.

It is stored beside the log, in the ledger's own database. Write access to it is the
power to authenticate as anyone.
"""

from __future__ import annotations

import base64
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from modicum.ledger.proof.access_trail import AccessEvent, AccessKind, bounded
from modicum.ops.wiring import printable_actor
from modicum.server.auth import registry_rows
from modicum.server.auth.known_names import KnownNames
from modicum.server.lookalikes import refuse_lookalike
from modicum.storage.access_table import AccessTable
from modicum.storage.service_tables import ServiceTables, Statement
from modicum.system.clock import SystemClock

T = TypeVar("T")

#: Maximum number of cached entries; the least recently read is dropped first.
REMEMBERED_MAX = 10_000


class RecentlyRead(Generic[T]):
    """A cache of entries with a maximum age of a few seconds; for any thread.

    Missing entries are not cached: so an entry is seen as soon as it exists, and
    invalid requests use no memory.

    Args:
        read: Reads the entry of a key; None if there is none.
        seconds: The maximum age of a result.
        clock: Returns seconds, from any origin.
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
        """Return the entry of a key, possibly a few seconds old."""
        asked_at = self._clock()
        with self._guard:
            known, changes = self._fresh(key, asked_at), self._changes
        if known is not None:
            return known
        found = self._read(key)
        self._keep({key: found}, asked_at, changes)
        return found

    def get_all(
        self, keys: Sequence[str], read: Callable[[Sequence[str]], dict[str, T | None]]
    ) -> dict[str, T | None]:
        """Return the entries of keys, all read now.

        Args:
            keys: The keys.
            read: Reads the entries; it may leave some out.
        """
        asked_at = self._clock()
        with self._guard:
            changes = self._changes
        found = read(keys)
        self._keep(found, asked_at, changes)
        return found

    def peek(self, key: str) -> T | None:
        """Return what `get` would return without reading; None if it would read."""
        with self._guard:
            return self._fresh(key, self._clock())

    def _keep(
        self, found: Mapping[str, T | None], asked_at: float, changes: int
    ) -> None:
        with self._guard:
            for key, entry in found.items():
                self._known.pop(key, None)
                # An entry changed during the read may have been read in its old form.
                if entry is not None and changes == self._changes:
                    self._known[key] = entry, asked_at
                    if len(self._known) > REMEMBERED_MAX:
                        self._known.popitem(last=False)

    def _fresh(self, key: str, now: float) -> T | None:
        known = self._known.get(key)
        return known[0] if known and now - known[1] < self._seconds else None

    def forget(self) -> None:
        """Forget everything: something was changed just now."""
        with self._guard:
            self._changes += 1
            self._known.clear()


#: Maximum delay until revocations by another process take effect, in seconds.
FRESH_SECONDS = 5.0
_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A new token.

    Attributes:
        text: The token text; it is shown once, and never stored.
        token: The stored part.
    """

    text: str = field(repr=False)
    token: Token


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A new session.

    Attributes:
        secret: The browser's cookie; it is not stored elsewhere.
        csrf: The token that the service's pages send to change something.
        session: The stored part.
    """

    secret: str = field(repr=False)
    csrf: str = field(repr=False)
    session: Session


class Registry:
    """The tokens and sessions of one ledger; any thread may use it.

    Its own changes take effect immediately; those of others, a few seconds later.

    Args:
        store: The store; it stays open.
        clock: The time of day.
        fresh_seconds: The maximum delay until revocations by another process take
            effect; 0 to read each time.

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
        #: The access trail, which has an event of each change of a token.
        self.trail = AccessTable(store)
        self._used: set[str] = set()
        #: Called with each token that this process has not seen in use before.
        self.on_use: Callable[[Token], object] = lambda _: None
        self._clock = clock
        self._tokens = RecentlyRead(self._read_token, fresh_seconds)
        self._sessions = RecentlyRead(self._read_session, fresh_seconds)
        self._names = KnownNames(store, self._owners)

    def lookalike_of(self, name: str, named: Iterable[str] = ()) -> str | None:
        """Return a known name that people may take for a new one; None if none is.

        Args:
            name: The name.
            named: Known names, besides those of the ledger.
        """
        return self._names.lookalike_of(name, named)

    def _owners(self) -> list[str]:
        return [
            registry_rows.owner_of(row) for row in self._rows(registry_rows.owners())
        ]

    # --- tokens ---

    def add_token(
        self, terms: TokenTerms, *, created_by: str, named: Iterable[str] = ()
    ) -> IssuedToken:
        """Create a token, and return it: it is never shown again.

        Args:
            terms: Its terms.
            created_by: The actor who creates it.
            named: Known names, besides those of the ledger.

        Raises:
            InputError: If its owner is new, and looks like a known name.
            AccessError: If 100 tokens of the same actor are active already.
            UsageError: If there is no ledger.
            UnavailableError: If it could not be stored, or that is unknown; a token
                that nobody has seen is harmless.
        """
        refuse_lookalike(terms.actor, self.lookalike_of(terms.actor, named))
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
        if not self._change_token(registry_rows.adding(token), token, token.created_by):
            raise _too_many_tokens(terms.actor)
        return IssuedToken(text, token)

    def token_by_digest(self, digest: str) -> Token | None:
        """Return the active token with a digest; None if there is none.

        Args:
            digest: The result of `token_digest`.

        Raises:
            UnavailableError: If it cannot be read now.
            VerificationError: If it is not stored as it was written.
        """
        return self._active(self._tokens.get(digest))

    def tokens_by_digest(self, digests: Sequence[str]) -> dict[str, Token | None]:
        """Return what `token_by_digest` returns for each digest, read together.

        A token that is not stored as it was written is left out.

        Args:
            digests: As for `token_by_digest`.

        Raises:
            UnavailableError: If they cannot be read now.
        """
        found = self._tokens.get_all(digests, self._read_tokens)
        return {digest: self._active(token) for digest, token in found.items()}

    def cached_token(self, digest: str) -> Token | None:
        """Return what `token_by_digest` would return, if nothing need be read for it.

        Args:
            digest: As for `token_by_digest`.
        """
        return self._active(self._tokens.peek(digest))

    def _active(self, token: Token | None) -> Token | None:
        if token is None or token.status(self._clock.now()) is not TokenStatus.ACTIVE:
            return None
        if token.id not in self._used:
            self._used.add(token.id)
            self.on_use(token)
        return token

    def tokens(self) -> list[Token]:
        """Return every token, oldest first; those that ended are among them."""
        return [
            registry_rows.token_of(row)
            for row in self._rows(registry_rows.all_tokens())
        ]

    def revoke_token(self, identifier: str, *, revoked_by: str = "") -> Token:
        """Revoke a token; repeating changes nothing.

        Args:
            identifier: Its id, or the token itself.
            revoked_by: The actor who revokes it.

        Raises:
            InputError: If there is none.
            UnavailableError: If it is unknown whether it was stored; try again.
        """
        # Errors of the ledger are reported first.
        called = token_id(identifier)
        found = self._rows(registry_rows.token_called(called))
        if not found:
            raise _unknown(called)
        token = registry_rows.token_of(found[0])
        if token.revoked_at:
            return token
        revoked = replace(token, revoked_at=self._clock.now())
        change = registry_rows.revoking(called, revoked.revoked_at)
        self._change_token(change, revoked, revoked_by)
        return revoked

    def _change_token(self, change: Statement, token: Token, who: str) -> bool:
        """Make a change with its event in the access trail, both or neither."""
        is_new = not token.revoked_at
        event = AccessEvent(
            token.revoked_at or token.created_at,
            AccessKind.TOKEN_CREATED if is_new else AccessKind.TOKEN_REVOKED,
            who=bounded(who),
            token=token.id,
            owner=bounded(token.actor),
        )
        proof = registry_rows.token_as(token)
        return self._changed(lambda: self.trail.change(change, proof, event))

    def _read_token(self, digest: str) -> Token | None:
        found = self._rows(registry_rows.token_with(digest))
        return registry_rows.token_of(found[0]) if found else None

    def _read_tokens(self, digests: Sequence[str]) -> dict[str, Token | None]:
        found: dict[str, Token | None] = dict.fromkeys(digests)
        for statement in registry_rows.tokens_with(digests):
            for row in self._rows(statement):
                try:
                    token = registry_rows.token_of(row)
                except Exception:  # noqa: BLE001 - it is read alone, and reported there
                    found.pop(registry_rows.digest_of(row), None)
                else:
                    found[token.digest] = token
        return found

    # --- sessions ---

    def add_session(self, identity: Identity, *, seconds: int) -> OpenedSession:
        """Open a session for an authenticated person.

        Args:
            identity: The identity.
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
        """Extend a session; a missing one is ignored.

        Args:
            digest: The digest of its secret.
            until: When it ends then, in UTC, as events write it.

        Raises:
            UnavailableError: If it could not be stored, or that is unknown.
        """
        self._change(registry_rows.prolonging(digest, until))

    def end_session(self, digest: str) -> None:
        """End a session; a missing one is ignored.

        Args:
            digest: The digest of its secret.

        Raises:
            UnavailableError: If it is unknown whether it was stored; try again.
        """
        self._change(registry_rows.ending(digest))

    def purge(self) -> int:
        """Delete some expired sessions.

        Some are deleted whenever one is opened, so calling this is rarely necessary.

        Returns:
            The number of deleted sessions; 0 if none is left.
        """
        return self._change(registry_rows.forgetting(self._clock.now()))[0]

    def _read_session(self, digest: str) -> Session | None:
        found = self._rows(registry_rows.session_with(digest))
        return registry_rows.session_of(found[0]) if found else None

    # --- inside ---

    def _rows(self, statement: Statement) -> Sequence[tuple[object, ...]]:
        return self._beside.rows_beside(statement)

    def _change(self, *statements: Statement) -> list[int]:
        return self._changed(lambda: self._beside.change_beside(statements))

    def _changed(self, change: Callable[[], T]) -> T:
        """Make a change, and know nothing from before."""
        if not self._store.exists():
            raise _no_ledger(self._store.name)
        try:
            return change()
        finally:  # Also where the outcome is unknown.
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
