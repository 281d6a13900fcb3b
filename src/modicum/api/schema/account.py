"""Identities and tokens."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias, get_args

from msgspec import UNSET, Meta, UnsetType

from modicum.api.schema.shape import Input, Name, Shape

#: A token is good for so long unless it is said otherwise, and for so long at most.
TOKEN_DAYS: Final = 90
TOKEN_DAYS_MAX: Final = 366

#: What somebody is to an organization that has a privacy budget.
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


class TokenInput(Input, frozen=True, kw_only=True):
    """What a token is to be.

    Attributes:
        name: What it is for; may be empty.
        actor: Who it acts as; you, if left out.
        service: Whether it is for a program that acts by itself.
        expires_in_days: How long it is good for.
        grants: For each role, the data sets that it is for, `*` for all; if left out,
            all that you may.
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
    """A token that was made just now; its text is never told again.

    Attributes:
        token: The token itself, which is told this once.
    """

    token: str


class TokenList(Shape, frozen=True, kw_only=True):
    """Tokens, oldest first.

    Attributes:
        tokens: Your tokens, and those of others that you manage.
    """

    tokens: tuple[Token, ...]


class Me(Shape, frozen=True, kw_only=True):
    """Who asks, and what they may do.

    Attributes:
        name: Who asks.
        is_service: Whether that is a program that acts by itself.
        via: How they were recognized, such as `session` or `token ID`.
        roles: By role, the data sets that it is for; `*` stands for all.
        actions: What they may do, for some data set at least.
    """

    name: str
    is_service: bool
    via: str
    roles: dict[str, tuple[str, ...]]
    actions: tuple[str, ...]
