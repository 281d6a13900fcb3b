"""The deadline of a wait for a sandbox, and its cancellation."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from modicum.api.ports.escrow import Still, go_on
from modicum.core.errors import UnavailableError
from modicum.sandbox.problems import missing

#: Longer waits fail; the longest usual runs are over by then.
WAIT_SECONDS: Final = 600.0
_PIECE_SECONDS: Final = 0.2


class Deadline:
    """The total time available for several waits.

    Args:
        still: Raises if they wait no longer.
    """

    def __init__(self, still: Still = go_on) -> None:
        self._still = still
        self._until = time.monotonic() + WAIT_SECONDS

    def wait(self, happens: Callable[[float], bool]) -> None:
        """Return when something happens."""
        self._still()
        while not happens(max(0.0, min(self._left(), _PIECE_SECONDS))):
            self._still()
            if self._left() <= 0:
                raise _too_long()

    def _left(self) -> float:
        return self._until - time.monotonic()


def _too_long() -> UnavailableError:
    return UnavailableError(
        missing(
            f"this program waited for other programs for {WAIT_SECONDS / 60:g} minutes",
            "run it again later, or check which other modicum runs programs here",
        )
    )
