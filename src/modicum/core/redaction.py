"""Redaction: failures of work on rows reveal nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from modicum.core.errors import ModicumError

_Result = TypeVar("_Result")


def scrubbed(work: Callable[[], _Result], failure: ModicumError) -> _Result:
    """Return the result of some work; a failure reveals nothing of its cause.

    An unexpected error may quote rows or exact numbers. The frames that any error
    passed through contain those, too, so no error keeps them.

    Args:
        work: The work.
        failure: Raised in place of an error that is not modicum's.

    Raises:
        ModicumError: An error of modicum, or the failure.
    """
    try:
        return work()
    except ModicumError as known:
        error = known
    except Exception:  # noqa: BLE001 - it may be anything, with rows in it
        error = failure
    # Outside of the handler: otherwise the cause would stay attached to this error.
    raise error.alone()
