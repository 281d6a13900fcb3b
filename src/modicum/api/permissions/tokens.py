"""API tokens and sessions: their format and what is stored.

A token is `mdc_`, its id, `_` and a secret of 256 bits. Only its digest is stored: the
token is shown once, when it is created.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from hmac import compare_digest
from itertools import chain
from typing import Final

from modicum.api.permissions.identity import Grants, Identity
from modicum.api.schema import account as schema
from modicum.api.schema.account import TOKEN_DAYS, TOKEN_DAYS_MAX
from modicum.core.errors import Code, InputError, Problem

DAY_SECONDS: Final = 24 * 60 * 60
#: Maximum number of active tokens per actor.
ACTIVE_TOKENS_MAX: Final = 100

_CHARACTERS_MAX = 200
_ID = re.compile(r"[a-z2-7]{10}")
_CALLED = re.compile(rf"(mdc_)?(?P<id>{_ID.pattern})(?(1)(_.*)?)", re.DOTALL)
_WRITTEN = re.compile(rf"mdc_{_ID.pattern}_[A-Za-z0-9_-]{{43}}")


def written_token(identifier: str, secret: str) -> str:
    """Return a token as it is shown."""
    return f"mdc_{identifier}_{secret}"


def token_digest(text: str) -> str | None:
    """Return the lookup digest of a token; None if the text is no token."""
    return secret_digest(text) if _WRITTEN.fullmatch(text) else None


def token_id(text: str) -> str:
    """Return the id that a text names; empty if it names none."""
    found = _CALLED.fullmatch(text.strip())
    return found["id"] if found else ""


def no_token(identifier: str) -> str:
    """Return the message for an unknown token."""
    if not identifier:
        return "no token has that id"
    return f"unknown token `{identifier}`"


def secret_digest(secret: str) -> str:
    """Return the stored form of a secret: its SHA-256, in hexadecimal.

    It cannot be searched for: a secret has 256 random bits.
    """
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class TokenStatus(Enum):
    """The status of a token."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class TokenUse:
    """The purpose of a token.

    Attributes:
        actor: The actor it acts as, 1 to 200 printable characters.
        grants: For each role, the data sets that it is for.
        is_service: Whether it is for a program that acts by itself.
        name: Its purpose, up to 200 printable characters.
    """

    actor: str
    grants: Grants
    is_service: bool = False
    name: str = ""


@dataclass(frozen=True, slots=True)
class TokenTerms(TokenUse):
    """The terms of a new token.

    Attributes:
        seconds: Its lifetime: 1 second to 366 days.

    Raises:
        InputError: If something of it is malformed, or it has no role.
        AccessError: If its roles must stay apart.
    """

    seconds: int = TOKEN_DAYS * DAY_SECONDS

    def __post_init__(self) -> None:
        _refuse_unprintable("actor of a token", self.actor, at_least=1)
        _refuse_unprintable("name of a token", self.name, at_least=0)
        for one in chain.from_iterable(self.grants.values()):
            _refuse_unprintable("data set of a token", one, at_least=1)
        if not Identity(self.actor, self.grants).grants:
            raise InputError(
                Problem(Code.MISSING_KEY, "a token needs a role for some data set")
            )
        if not 1 <= self.seconds <= TOKEN_DAYS_MAX * DAY_SECONDS:
            raise InputError(
                Problem(
                    Code.OUT_OF_RANGE,
                    f"a token lasts 1 second to {TOKEN_DAYS_MAX} days,"
                    f" not {self.seconds} seconds",
                )
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Token(TokenUse):
    """A stored token.

    Attributes:
        id: Its public id.
        digest: The digest of the token.
        created_by: The actor who created it.
        created_at: When, in UTC, as events write it.
        expires_at: When it ends.
        revoked_at: When it was revoked; empty if it was not.
    """

    id: str
    digest: str = field(repr=False)
    created_by: str
    created_at: str
    expires_at: str
    revoked_at: str = ""

    def status(self, now: str) -> TokenStatus:
        """Return its status."""
        if self.revoked_at:
            return TokenStatus.REVOKED
        return TokenStatus.EXPIRED if self.expires_at <= now else TokenStatus.ACTIVE

    def identity(self) -> Identity:
        """Return the identity that it authenticates while it is active."""
        return Identity(
            self.actor,
            self.grants,
            self.is_service,
            via=f"token {self.id}",
            by_token=True,
        )

    def view(self, now: str) -> schema.Token:
        """Return its public form, without a secret."""
        return schema.Token(
            id=self.id,
            status=self.status(now).value,
            name=self.name,
            actor=self.actor,
            kind="service" if self.is_service else "person",
            grants={
                role.value: tuple(sorted(own)) for role, own in self.grants.items()
            },
            created_by=self.created_by,
            created_at=self.created_at,
            expires_at=self.expires_at,
            revoked_at=self.revoked_at or None,
        )


def _refuse_unprintable(what: str, text: str, *, at_least: int) -> None:
    """Refuse a text that cannot be written into an event unchanged."""
    is_plain = text.isprintable() and text == text.strip()
    if not is_plain or not at_least <= len(text) <= _CHARACTERS_MAX:
        raise InputError(
            Problem(
                Code.BAD_NAME,
                f"the {what} has {at_least} to {_CHARACTERS_MAX} printable characters,"
                " and no space at its ends",
            )
        )


#: A session lasts so long at most.
SESSION_SECONDS_MAX: Final = 30 * DAY_SECONDS


@dataclass(frozen=True, slots=True)
class Session:
    """A stored session.

    Attributes:
        digest: The digest of its secret, which the browser has in a cookie.
        identity: The authenticated identity.
        csrf: The digest of the token that a page must send to change something.
        created_at: When they signed in, in UTC, as events write it.
        expires_at: When it ends.
    """

    digest: str = field(repr=False)
    identity: Identity
    csrf: str = field(repr=False)
    created_at: str
    expires_at: str

    def is_over(self, now: str) -> bool:
        """Return whether it has ended."""
        return self.expires_at <= now

    def comes_from_a_page(self, sent: str) -> bool:
        """Return whether a request carries the CSRF token of the service's pages."""
        return compare_digest(self.csrf, secret_digest(sent))
