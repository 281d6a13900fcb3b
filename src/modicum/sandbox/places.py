"""Who programs run as, so many at a time on a machine."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from modicum.sandbox.deadline import Patience
from modicum.sandbox.slots import Turns


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

    def take(self, patience: Patience | None = None) -> Place:
        """Return a place that nothing else has, once there is one.

        Args:
            patience: How long to wait for it; None for as long as is usual.

        Raises:
            UnavailableError: If none was free for long, or this cannot be known.
        """
        patience = patience or Patience()
        number = self._number(patience)
        turns = Turns()
        try:
            turns.take("all", patience, is_shared=self.at_a_time > 1)
            if self.at_a_time > 1:
                turns.take(f"place-{number}", patience)
        except BaseException:
            turns.give_back()
            self._free.put(number)
            raise
        return Place(None if self.uid is None else self.uid + number, number, turns)

    def _number(self, patience: Patience) -> int:
        found: list[int] = []

        def happens(seconds: float) -> bool:
            with suppress(queue.Empty):
                found.append(self._free.get(timeout=seconds))
            return bool(found)

        patience.wait(happens)
        return found[0]

    def free(self, place: Place) -> None:
        """Give a place back: nothing of its run is there any more.

        Args:
            place: What `take` returned.
        """
        place.turns.give_back()
        self._free.put(place.number)

    @contextmanager
    def alone(self, patience: Patience | None = None) -> Iterator[None]:
        """Hold all runs of this machine back for as long as the block takes.

        Args:
            patience: How long to wait for that; None for as long as is usual.

        Raises:
            UnavailableError: If others went on for long, or this cannot be known.
        """
        turns = Turns()
        try:
            turns.take("all", patience or Patience())
            yield
        finally:
            turns.give_back()
