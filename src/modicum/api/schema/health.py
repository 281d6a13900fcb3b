"""What the doctor finds, as facts that name nobody and no place."""

from __future__ import annotations

from typing import Literal

from modicum.api.schema.shape import Shape


class CheckResult(Shape, frozen=True, kw_only=True):
    """The result of a check.

    Attributes:
        check: Its name.
        status: Its outcome.
        facts: Its public facts: numbers, booleans, versions, codes of errors.
    """

    check: str
    status: Literal["ok", "warn", "fail"]
    facts: dict[str, int | bool | str | None]


class Diagnosis(Shape, frozen=True, kw_only=True):
    """The results of all checks.

    Attributes:
        ok: Whether no check failed.
        failed: The number of checks that failed.
        warned: The number of checks with a warning.
        checks: The checks, in order.
    """

    ok: bool
    failed: int
    warned: int
    checks: tuple[CheckResult, ...]
