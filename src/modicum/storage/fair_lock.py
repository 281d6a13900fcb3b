"""A lock for threads that serves those who wait in the order of their arrival."""

from __future__ import annotations

import threading
from collections import deque


class FairLock:
    """A fair lock: releasing it hands it to the next waiter."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._is_held = False
        self._waiting: deque[threading.Event] = deque()

    def acquire(self, timeout: float) -> bool:
        """Return whether the lock was acquired within the timeout."""
        with self._guard:
            if not self._is_held:
                self._is_held = True
                return True
            mine = threading.Event()
            self._waiting.append(mine)
        try:
            if mine.wait(timeout):
                return True
        except BaseException:
            if not self._leave(mine):
                self.release()
            raise
        return not self._leave(mine)

    def release(self) -> None:
        """Hand the lock to the one who waits longest, or free it."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._is_held = False

    def _leave(self, mine: threading.Event) -> bool:
        """Stop waiting; return False if the lock was handed over meanwhile."""
        with self._guard:
            if mine.is_set():
                return False
            self._waiting.remove(mine)
            return True
