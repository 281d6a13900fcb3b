"""Mistakes."""

from __future__ import annotations

from typing import Literal, TypeAlias

from modicum.api.schema.shape import Shape

#: The kind of mistake; a client raises the same exception.
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
    """An error.

    Attributes:
        code: A code of Errors.
        message: The error message.
        file: The file.
        line: The line, from 1.
        column: The column in characters, from 1.
        length: The number of characters underlined, starting at the column.
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
    """One or several errors (RFC 9457).

    Attributes:
        type: A link to the explanation of its code.
        title: The phrase of the HTTP status.
        status: The HTTP status.
        detail: The error message.
        code: A code of Errors.
        kind: The kind of mistake.
        line: The line, from 1.
        column: The column in characters, from 1.
        help: The remedy; may be empty.
        problems: All problems; those above are of the first.
        trace_id: The id of the request, for finding it in logs.
    """

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


class Mistake(Shape, frozen=True, kw_only=True):
    """A mistake, as a command prints it.

    Attributes:
        error: The first problem.
        problems: All problems, each with the keys of `error`.
    """

    error: Problem
    problems: tuple[Problem, ...]
