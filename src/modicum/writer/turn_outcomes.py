"""The outcomes of the writer's turns: when the last one succeeded, and which failed."""

from __future__ import annotations

import time
from typing import Final

from modicum.core.errors import ModicumError
from modicum.system.clock import SystemClock

#: Returns the time of a failure, in UTC.
NOW: Final = SystemClock().now


class TurnOutcomes:
    """What became of the turns; one thread notes it, any thread may look.

    Attributes:
        succeeded: The monotonic time of the last success; long ago, if none.
        failure: The last failure, if no turn succeeded since.
        failed_at: The time of the last failure, in UTC; empty if none.
    """

    def __init__(self) -> None:
        self.succeeded = float("-inf")
        self.failure: ModicumError | None = None
        self.failed_at = ""

    def note_success(self) -> None:
        """Note that a turn succeeded."""
        self.succeeded = time.monotonic()
        self.failure = None

    def note_failure(self, error: ModicumError) -> None:
        """Note that a turn failed: its store, its log or its clock."""
        self.failed_at = NOW()
        self.failure = error
