"""What several answers have in common."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

#: An amount of loss; infinite where it is said so.
Amount: TypeAlias = float | Literal["inf"]
#: SHA-256 as 64 hexadecimal digits.
Digest: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
#: What modicum stores about a mechanism; see the release format.
Plain: TypeAlias = dict[str, Any]


class Form(BaseModel):
    """An answer with these keys, and no others."""

    model_config = ConfigDict(extra="forbid")


class OpenForm(BaseModel):
    """An answer that the reference of JSON documents describes."""

    model_config = ConfigDict(extra="allow")


class Head(Form):
    """How far the log goes."""

    seq: int
    head: Digest


class NamedPolicy(Form):
    """The policy that an answer goes by."""

    name: str
    digest: Digest
    active: bool


class ProblemItem(Form):
    """One mistake."""

    code: str
    message: str
    file: str | None
    line: int | None
    column: int | None
    length: int | None
    label: str
    notes: list[str]
    help: str


class ProblemForm(Form):
    """A mistake, or several (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    kind: Literal[
        "input",
        "conflict",
        "access",
        "approval",
        "stale",
        "usage",
        "unavailable",
        "verification",
        "internal",
    ]
    line: int | None
    column: int | None
    help: str
    problems: list[ProblemItem]
    trace_id: str


class Approval(Form):
    """Who must agree."""

    need: int
    from_: Annotated[list[str], Field(alias="from")]
    requester_may_approve: bool
