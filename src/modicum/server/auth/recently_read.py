"""What was read a moment ago, so that it is not read again for each request."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

#: So many are remembered at most; the one that was read longest ago goes first.
REMEMBERED_MAX = 10_000


class RecentlyRead(Generic[T]):
    """Things by their keys, as they were a few seconds ago; any thread may ask.

    What is not there is not remembered: so a thing is seen as soon as it is there, and
    whoever asks for nonsense fills no memory.

    Args:
        read: Reads the thing with a key; None if there is none.
        seconds: How old what is returned may be.
        clock: Tells seconds, from any beginning.
    """

    def __init__(
        self,
        read: Callable[[str], T | None],
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._seconds = seconds
        self._clock = clock
        self._guard = threading.Lock()
        self._known: OrderedDict[str, tuple[T, float]] = OrderedDict()
        self._changes = 0

    def get(self, key: str) -> T | None:
        """Return the thing with a key, as it is or was a few seconds ago.

        Args:
            key: The key.
        """
        asked_at = self._clock()
        with self._guard:
            known = self._known.get(key)
            changes = self._changes
        if known is not None and asked_at - known[1] < self._seconds:
            return known[0]
        found = self._read(key)
        with self._guard:
            self._known.pop(key, None)
            # What was changed while it was read may have been read as it was before.
            if found is not None and changes == self._changes:
                self._known[key] = found, asked_at
                if len(self._known) > REMEMBERED_MAX:
                    self._known.popitem(last=False)
        return found

    def forget(self) -> None:
        """Forget everything: something was changed just now."""
        with self._guard:
            self._changes += 1
            self._known.clear()
