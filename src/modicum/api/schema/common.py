"""Shapes that several answers contain."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from modicum.api.schema.shape import Amount, Digest, Shape

#: What kind of mistake it is; a client raises the same exception.
Kind: TypeAlias = Literal[
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


class Head(Shape, frozen=True, kw_only=True):
    """How far the log goes.

    Attributes:
        seq: The number of its last entry; 0 if it is empty.
        head: The hash of that entry; 64 zeros if it is empty.
    """

    seq: int
    head: Digest


class NamedPolicy(Shape, frozen=True, kw_only=True):
    """The policy that an answer goes by.

    Attributes:
        name: Its name.
        digest: Its digest.
        active: Whether it is the ledger's active policy.
    """

    name: str
    digest: Digest
    active: bool


class Spender(Shape, frozen=True, kw_only=True):
    """What one release takes of a rule.

    Attributes:
        release: Its id, or a phrase if the reader may not see it.
        coordinate: What it is measured by.
        amount: Its loss on that.
        share: Its part of the sum, from 0 to 1; None if the sum is infinite.
        undated: Whether it is charged to every period, because it names no `periods`.
    """

    release: str
    coordinate: str
    amount: Amount
    share: float | None
    undated: bool


class Problem(Shape, frozen=True, kw_only=True):
    """One mistake.

    Attributes:
        code: A code of Errors.
        message: What is wrong.
        file: The file.
        line: The line, from 1.
        column: The column in characters, from 1.
        length: How many characters are underlined, from the column on.
        label: The remark beside the caret, such as `did you mean "…"?`; may be empty.
        notes: Reasons.
        help: The remedy; may be empty.
    """

    code: str
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    length: int | None = None
    label: str = ""
    notes: tuple[str, ...] = ()
    help: str = ""


class ProblemDetails(Shape, frozen=True, kw_only=True):
    """A mistake, or several (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    kind: Kind
    line: int | None
    column: int | None
    help: str
    problems: tuple[Problem, ...]
    trace_id: str


class ApproxDp(Shape, frozen=True, kw_only=True):
    """The tightest known epsilon, for information.

    Attributes:
        delta: At this δ.
        before: Before.
        alone: This release by itself.
        together: Both.
        method: How `together` was found: `pure`, `zcdp`, `rdp(16)`.
    """

    delta: float
    before: Amount
    alone: Amount
    together: Amount
    method: str


class Approval(Shape, frozen=True, kw_only=True):
    """Who must agree.

    Attributes:
        need: How many people.
        roles: The roles that they may have.
        requester_may_approve: Whether who asks may be one of them.
    """

    need: int
    roles: tuple[str, ...] = msgspec.field(name="from")
    requester_may_approve: bool
