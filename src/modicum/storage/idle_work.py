"""Work that a thread does while it waits for a turn."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeAlias, TypeVar

T = TypeVar("T")

#: Does a little, and returns whether there is more to do immediately.
Chore: TypeAlias = Callable[[], bool]

#: Interval of further checks where there was nothing to do, in seconds.
PACE_SECONDS = 0.01


class IdleWork:
    """The chores of the threads that wait for one ledger; each has its own, or none."""

    def __init__(self) -> None:
        self._of = threading.local()

    @property
    def chore(self) -> Chore | None:
        """The work of this thread while it waits."""
        return getattr(self._of, "chore", None)

    @chore.setter
    def chore(self, chore: Chore) -> None:
        self._of.chore = chore

    def wait(self, done: threading.Event, seconds: float) -> bool:
        """Return whether an event was set within the timeout."""
        if self.chore is None:
            return done.wait(seconds)
        deadline = time.monotonic() + seconds
        pace = PACE_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            if done.wait(min(pace, left)):
                return True
            pace = 0 if self.chore() else PACE_SECONDS
        return done.is_set()

    def during(self, call: Callable[[], T]) -> T:
        """Return the result of a call that blocks in a separate thread."""
        from concurrent.futures import Future

        answer: Future[T] = Future()
        done = threading.Event()

        def run() -> None:
            try:
                answer.set_result(call())
            except BaseException as error:  # noqa: BLE001 - raised where it is awaited
                answer.set_exception(error)
            done.set()

        thread = threading.Thread(target=run, name="modicum-turn", daemon=True)
        thread.start()
        try:
            while not self.wait(done, threading.TIMEOUT_MAX):
                pass
        finally:
            thread.join()
        return answer.result()
