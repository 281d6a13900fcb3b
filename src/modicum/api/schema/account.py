"""Identities and tokens."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias, get_args

from msgspec import UNSET, Meta, UnsetType

from modicum.api.schema.shape import Input, Name, Shape

#: Default and maximum lifetime of a token.
TOKEN_DAYS: Final = 90
TOKEN_DAYS_MAX: Final = 366

#: The role of an actor.
RoleName: TypeAlias = Literal[
    "analyst",
    "data-steward",
    "privacy-officer",
    "platform-engineer",
    "auditor",
    "admin",
]


class Token(Shape, frozen=True, kw_only=True):
    """A token, without its secret.

    Attributes:
        id: The token's id.
        status: Whether the token is active, expired or revoked.
        name: Its purpose; may be empty.
        actor: The actor it acts as.
        kind: Whether it is for a program that acts by itself.
        grants: By role, the data sets it covers; `*` means all.
        created_by: The actor who created it.
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


class TokenInput(Input, frozen=True, kw_only=True):
    """A request for a new token.

    Attributes:
        name: Its purpose; may be empty.
        actor: The actor it acts as; the caller if omitted.
        service: Whether it is for a program that acts by itself.
        expires_in_days: Its lifetime.
        grants: By role, the data sets it covers, `*` for all; all of the caller's
            grants if omitted.
    """

    name: Annotated[str, Meta(max_length=200)] = ""
    actor: Name | UnsetType = UNSET
    service: bool = False
    expires_in_days: Annotated[int, Meta(ge=1, le=TOKEN_DAYS_MAX)] = TOKEN_DAYS
    grants: (
        Annotated[
            dict[RoleName, Annotated[tuple[Name, ...], Meta(min_length=1)]],
            Meta(extra_json_schema={"propertyNames": {"enum": [*get_args(RoleName)]}}),
        ]
        | UnsetType
    ) = UNSET


class IssuedToken(Token, frozen=True, kw_only=True):
    """A new token; its text is never shown again.

    Attributes:
        token: The token text, shown only once.
    """

    token: str


class TokenList(Shape, frozen=True, kw_only=True):
    """Tokens, oldest first.

    Attributes:
        tokens: Your tokens, and those of others that you manage.
    """

    tokens: tuple[Token, ...]


class Me(Shape, frozen=True, kw_only=True):
    """The caller and their permissions.

    Attributes:
        name: The caller.
        is_service: Whether that is a program that acts by itself.
        via: How they were recognized, such as `session` or `token ID`.
        roles: By role, the data sets it covers; `*` means all.
        actions: The actions allowed for at least one data set.
    """

    name: str
    is_service: bool
    via: str
    roles: dict[str, tuple[str, ...]]
    actions: tuple[str, ...]
