"""Identities and tokens."""

from __future__ import annotations

from typing import Literal

from modicum.api.schema.shape import Shape


class Token(Shape, frozen=True, kw_only=True):
    """A token, without its secret.

    Attributes:
        id: What it is called.
        status: Whether it lets anybody in.
        name: What it is for; may be empty.
        actor: Who it acts as.
        kind: Whether it is for a program that acts by itself.
        grants: The data sets that a role is for; `*` stands for all.
        created_by: Who made it.
        created_at: When, in UTC.
        expires_at: When it ends.
        revoked_at: When it was revoked.
    """

    id: str
    status: Literal["active", "expired", "revoked"]
    name: str
    actor: str
    kind: Literal["service", "person"]
    grants: dict[str, tuple[str, ...]]
    created_by: str
    created_at: str
    expires_at: str
    revoked_at: str | None


class IssuedToken(Token, frozen=True, kw_only=True):
    """A token that was made just now; its text is never told again."""

    token: str


class TokenList(Shape, frozen=True, kw_only=True):
    """Tokens, oldest first."""

    tokens: tuple[Token, ...]


class Me(Shape, frozen=True, kw_only=True):
    """Who asks, and what they may do."""

    name: str
    is_service: bool
    via: str
    roles: dict[str, tuple[str, ...]]
    actions: tuple[str, ...]
