"""Who programs run as, so many at a time on a machine."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from modicum.core.errors import UnavailableError
from modicum.shell.sandbox.missing import missing
from modicum.shell.sandbox.turns import Turns

#: Whoever waits longer is told; the longest of usual runs are over then.
WAIT_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class Place:
    """What a run takes for as long as anything of it is there.

    Attributes:
        uid: The user that it runs as; None for whoever runs this.
        number: Which place it is.
        turns: What keeps others on this machine from running meanwhile.
    """

    uid: int | None
    number: int
    turns: Turns


class Places:
    """Users that programs run as, each for one run at a time.

    Where one runs at a time, nothing else runs on this machine then, whatever process
    and tier begins it: runs at the same time could tell each other something.

    Args:
        uid: As root, the first of as many users as run at a time. Otherwise None.
        at_a_time: How many run at once; others wait.

    Attributes:
        uid: The first of them.
        at_a_time: How many there are.
    """

    def __init__(self, uid: int | None, at_a_time: int) -> None:
        self.uid = uid
        self.at_a_time = at_a_time
        self._free: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in range(at_a_time):
            self._free.put(number)

    def take(self) -> Place:
        """Return a place that nothing else has, once there is one.

        Raises:
            UnavailableError: If none was free for long, or this cannot be known.
        """
        until = time.monotonic() + WAIT_SECONDS
        try:
            number = self._free.get(timeout=WAIT_SECONDS)
        except queue.Empty:
            raise too_long() from None
        turns = Turns()
        try:
            is_free = turns.take("all", until, is_shared=self.at_a_time > 1)
            if is_free and self.at_a_time > 1:
                is_free = turns.take(f"place-{number}", until)
            if not is_free:
                raise too_long()
        except BaseException:
            turns.give_back()
            self._free.put(number)
            raise
        return Place(None if self.uid is None else self.uid + number, number, turns)

    def free(self, place: Place) -> None:
        """Give a place back: nothing of its run is there any more.

        Args:
            place: What `take` returned.
        """
        place.turns.give_back()
        self._free.put(place.number)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold all runs of this machine back for as long as the block takes.

        Raises:
            UnavailableError: If others went on for long, or this cannot be known.
        """
        turns = Turns()
        try:
            if not turns.take("all", time.monotonic() + WAIT_SECONDS):
                raise too_long()
            yield
        finally:
            turns.give_back()


def too_long() -> UnavailableError:
    """Return that a place was not free for long."""
    return UnavailableError(
        missing(
            f"this program waited for others for {WAIT_SECONDS / 60:g} minutes",
            "run it again later, or see which other modicum runs programs here",
        )
    )
