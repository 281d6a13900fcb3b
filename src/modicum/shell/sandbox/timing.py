"""Runs that are told at a fixed time, however they went."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from modicum.core.errors import Code, InputError, Problem
from modicum.workspace.escrowing.ports import Limits

#: What is left to end a run, at least, and for each GiB that is to be given back.
_GRACE_SECONDS: Final = 0.25
_GRACE_SECONDS_PER_GIB: Final = 0.25
#: Nothing begins and ends in less.
SECONDS_MIN: Final = 1.0


def told_at_the_end(
    limits: Limits, run: Callable[[float], float | None]
) -> float | None:
    """Return what a run returns when its time is over, not before.

    If the run could not be ended in time, it has no score, and it is told at the end
    of as many more times as it took: so that a program can tell one bit at most by
    being hard to kill.

    Args:
        limits: How long a run takes, and how much memory it may have to give back.
        run: The run, given the time of the monotonic clock to be ended at.

    Raises:
        InputError: If the time is too short to begin and end anything.
    """
    grace = _GRACE_SECONDS + _GRACE_SECONDS_PER_GIB * limits.memory_bytes / 2**30
    if limits.seconds < max(SECONDS_MIN, 2 * grace):
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"a program has {limits.seconds:g} seconds, and that is too short",
                help=f"give it {max(SECONDS_MIN, 2 * grace):g} seconds or more",
            )
        )
    begun = time.monotonic()
    try:
        found = run(begun + limits.seconds - grace)
    finally:
        periods = max(1, -(-(time.monotonic() - begun) // limits.seconds))
        sleep_until(begun + periods * limits.seconds)
    return found if periods == 1 else None


def sleep_until(moment: float) -> None:
    """Return when the monotonic clock has reached a moment."""
    while (left := moment - time.monotonic()) > 0:
        time.sleep(left)
