"""Mistakes."""

from __future__ import annotations

from typing import Literal, TypeAlias

from modicum.api.schema.shape import Shape

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
