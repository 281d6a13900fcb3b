"""Who programs run as, so many at a time."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import contextmanager


class Places:
    """Users that programs run as, each for one run at a time.

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
        self._free: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        for number in range(at_a_time):
            self._free.put(None if uid is None else uid + number)

    @contextmanager
    def taken(self) -> Iterator[int | None]:
        """Yield a user that nothing else runs as, once there is one."""
        uid = self._free.get()
        try:
            yield uid
        finally:
            self._free.put(uid)
