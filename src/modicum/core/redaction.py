"""Work that touches rows: where it fails, nothing of the failure is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from modicum.core.errors import ModicumError

_Result = TypeVar("_Result")


def scrubbed(work: Callable[[], _Result], failure: ModicumError) -> _Result:
    """Return what some work returns; where it fails, nothing of the failure is told.

    An error that nobody foresaw may quote rows or exact numbers. Those also stand in
    the frames that any error came through, so no error keeps them.

    Args:
        work: The work.
        failure: What is raised in place of an error that is not modicum's.

    Raises:
        ModicumError: What modicum itself found wrong, or the failure.
    """
    try:
        return work()
    except ModicumError as known:
        error = known
    except Exception:  # noqa: BLE001 - it may be anything, with rows in it
        error = failure
    # Outside of the handler: else what went wrong would stay attached to this one.
    raise error.alone()
