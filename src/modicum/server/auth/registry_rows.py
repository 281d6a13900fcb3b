"""Tokens and sessions as rows, and the statements on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, LiteralString

from modicum.api.permissions.identity import (
    grants_of,
    grants_text,
    identity_of,
    identity_text,
)
from modicum.api.permissions.tokens import ACTIVE_TOKENS_MAX, Session, Token
from modicum.core.errors import AccessError, Code, Problem, VerificationError
from modicum.storage.service_tables import Statement

_SELECT: LiteralString = (
    "SELECT id, digest, actor, grants, kind, name, created_by, created_at,"
    " expires_at, revoked_at FROM {s}.tokens "
)
#: Maximum number of tokens read by one query.
TOGETHER_MAX = 64
_NAMES = tuple(f"digest_{number}" for number in range(TOGETHER_MAX))
_IN: LiteralString = ", ".join("{" + name + "}" for name in _NAMES)
_KINDS = {"person": False, "service": True}
#: Maximum number of expired sessions deleted whenever one is opened.
FORGOTTEN_MAX = 100


# --- tokens ---


def all_tokens() -> Statement:
    """Return the query for every token, oldest first."""
    return Statement(_SELECT + "ORDER BY created_at, id")


def token_with(digest: str) -> Statement:
    """Return the query for the token with a digest."""
    return Statement(_SELECT + "WHERE digest = {digest}", {"digest": digest})


def tokens_with(digests: Sequence[str]) -> Iterator[Statement]:
    """Yield the queries for the tokens with some digests."""
    for first in range(0, len(digests), TOGETHER_MAX):
        some = digests[first : first + TOGETHER_MAX]
        values = dict.fromkeys(_NAMES, some[0]) | dict(zip(_NAMES, some, strict=False))
        yield Statement(_SELECT + f"WHERE digest IN ({_IN})", values)


def digest_of(row: tuple[Any, ...]) -> str:
    """Return the digest in a row of a token."""
    return str(row[1])


def token_called(identifier: str) -> Statement:
    """Return the query for the token with an id."""
    return Statement(_SELECT + "WHERE id = {id}", {"id": identifier})


def adding(token: Token, active_max: int = ACTIVE_TOKENS_MAX) -> Statement:
    """Return an insert of a token, unless its actor has the maximum of active ones."""
    return Statement(
        "INSERT INTO {s}.tokens (id, digest, name, actor, kind, grants, created_by,"
        " created_at, expires_at, revoked_at) SELECT {id}, {digest}, {name}, {actor},"
        " {kind}, {grants}, {created_by}, {created_at}, {expires_at}, {revoked_at}"
        " WHERE (SELECT count(*) FROM {s}.tokens WHERE actor = {actor}"
        " AND revoked_at = '' AND expires_at > {created_at}) < {active_max}",
        {
            "id": token.id,
            "digest": token.digest,
            "name": token.name,
            "actor": token.actor,
            "kind": "service" if token.is_service else "person",
            "grants": grants_text(token.grants),
            "created_by": token.created_by,
            "created_at": token.created_at,
            "expires_at": token.expires_at,
            "revoked_at": token.revoked_at,
            "active_max": active_max,
        },
    )


def revoking(identifier: str, now: str) -> Statement:
    """Return an update that revokes a token, unless it was revoked before."""
    return Statement(
        "UPDATE {s}.tokens SET revoked_at = {now} WHERE id = {id} AND revoked_at = ''",
        {"id": identifier, "now": now},
    )


def token_as(token: Token) -> Statement:
    """Return the query that has a row if a token is stored, and revoked as given."""
    return Statement(
        "SELECT 1 FROM {s}.tokens WHERE id = {token_id} AND digest = {token_digest}"
        " AND revoked_at = {token_revoked_at}",
        {
            "token_id": token.id,
            "token_digest": token.digest,
            "token_revoked_at": token.revoked_at,
        },
    )


def token_of(row: tuple[Any, ...]) -> Token:
    """Return the token of a row."""
    identifier, digest, actor, grants, kind, name, *rest = row
    created_by, created_at, expires_at, revoked_at = rest
    try:
        return Token(
            actor,
            grants_of(grants),
            _KINDS[kind],
            name,
            id=identifier,
            digest=digest,
            created_by=created_by,
            created_at=created_at,
            expires_at=expires_at,
            revoked_at=revoked_at,
        )
    except (ValueError, KeyError) as error:
        raise _damaged(f"the token `{identifier}`") from error


# --- sessions ---


def session_with(digest: str) -> Statement:
    """Return the query for the session with a digest."""
    return Statement(
        "SELECT digest, identity, csrf, created_at, expires_at FROM {s}.sessions"
        " WHERE digest = {digest}",
        {"digest": digest},
    )


def owners() -> Statement:
    """Return the query for the owners of tokens, and the identities of sessions."""
    return Statement(
        "SELECT actor, '' FROM {s}.tokens UNION SELECT '', identity FROM {s}.sessions"
    )


def owner_of(row: tuple[Any, ...]) -> str:
    """Return the name of an owner."""
    actor, identity = row
    try:
        return str(actor) or identity_of(identity).name
    except (ValueError, AccessError) as error:
        raise _damaged("a session") from error


def beginning(session: Session) -> Statement:
    """Return an insert of a session."""
    return Statement(
        "INSERT INTO {s}.sessions (digest, identity, csrf, created_at, expires_at)"
        " VALUES ({digest}, {identity}, {csrf}, {created_at}, {expires_at})",
        {
            "digest": session.digest,
            "identity": identity_text(session.identity),
            "csrf": session.csrf,
            "created_at": session.created_at,
            "expires_at": session.expires_at,
        },
    )


def prolonging(digest: str, until: str) -> Statement:
    """Return an update that extends a session; it never shortens one."""
    return Statement(
        "UPDATE {s}.sessions SET expires_at = {until}"
        " WHERE digest = {digest} AND expires_at < {until}",
        {"digest": digest, "until": until},
    )


def ending(digest: str) -> Statement:
    """Return a delete of a session."""
    return Statement(
        "DELETE FROM {s}.sessions WHERE digest = {digest}", {"digest": digest}
    )


def forgetting(now: str, count_max: int = FORGOTTEN_MAX) -> Statement:
    """Return a delete of expired sessions, the oldest first."""
    return Statement(
        "DELETE FROM {s}.sessions WHERE digest IN (SELECT digest FROM {s}.sessions"
        " WHERE expires_at <= {now} ORDER BY expires_at LIMIT {count})",
        {"now": now, "count": count_max},
    )


def session_of(row: tuple[Any, ...]) -> Session:
    """Return the session of a row."""
    digest, identity, *rest = row
    try:
        return Session(digest, identity_of(identity), *rest)
    except (ValueError, AccessError) as error:
        raise _damaged("a session") from error


def _damaged(what: str) -> VerificationError:
    return VerificationError(
        Problem(
            Code.LEDGER_BROKEN,
            f"{what} was changed in the store",
            notes=("it grants no access",),
            help="find what changed it; delete it",
        )
    )
