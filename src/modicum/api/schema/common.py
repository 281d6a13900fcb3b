"""Shapes that several answers contain."""

from __future__ import annotations

from typing import Literal

import msgspec

from modicum.api.schema.shape import Digest, Shape


class Head(Shape, frozen=True, kw_only=True):
    """How far the log goes."""

    seq: int
    head: Digest


class NamedPolicy(Shape, frozen=True, kw_only=True):
    """The policy that an answer goes by."""

    name: str
    digest: Digest
    active: bool


class Problem(Shape, frozen=True, kw_only=True):
    """One mistake."""

    code: str
    message: str
    file: str | None
    line: int | None
    column: int | None
    length: int | None
    label: str
    notes: tuple[str, ...]
    help: str


class ProblemDetails(Shape, frozen=True, kw_only=True):
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
    problems: tuple[Problem, ...]
    trace_id: str


class Approval(Shape, frozen=True, kw_only=True):
    """Who must agree."""

    need: int
    roles: tuple[str, ...] = msgspec.field(name="from")
    requester_may_approve: bool
