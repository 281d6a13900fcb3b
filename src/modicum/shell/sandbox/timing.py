"""Runs that are told at a fixed time, however they went."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Final, TypeAlias

from modicum.shell.sandbox.places import Place, Places
from modicum.workspace.escrowing.ports import Limits

#: A run, given the moment of the monotonic clock at which it is ended and the user it
#: runs as. It yields its score at that moment at the latest, and is gone afterwards.
Run: TypeAlias = Callable[[float, "int | None"], AbstractContextManager["float | None"]]

#: What is left to end a run, at least, and for each GiB that is to be given back.
_GRACE_SECONDS: Final = 0.25
_GRACE_SECONDS_PER_GIB: Final = 0.25
#: Nothing begins and ends in less.
SECONDS_MIN: Final = 1.0


def told_at_the_end(places: Places, limits: Limits, run: Run) -> float | None:
    """Return what a run yields when its time is over: not before, and not later.

    What is left of it then goes on to end behind the caller's back, and its place stays
    taken until it has: so being hard to kill tells the caller nothing.

    Args:
        places: Where it runs.
        limits: How long a run takes, and how much memory it may have to give back.
        run: The run.

    Raises:
        InputError: If the time is too short to begin and end anything.
        UnavailableError: If no place was free for long.
    """
    limits.refuse_short()
    stay = _Stay(places)
    tell_at = time.monotonic() + limits.seconds
    said: Future[float | None] = Future()
    try:
        watching = threading.Thread(
            target=_watch,
            args=(run, tell_at - limits.grace_seconds, stay, said),
            name="sandbox",
            daemon=True,  # Whoever ends does not wait: the kernel ends the run then.
        )
        try:
            watching.start()
        except BaseException:
            stay.leave()  # Nobody else will.
            raise
        sleep_until(tell_at)
    finally:
        stay.leave()
    return said.result() if said.done() else None


class _Stay:
    """A place that is taken until two have left it: who runs, and who asked."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._lock = threading.Lock()
        self._here = 2
        self.place: Place = places.take()

    def leave(self) -> None:
        with self._lock:
            self._here -= 1
            is_empty = self._here == 0
        if is_empty:
            self._places.free(self.place)


def _watch(run: Run, end_at: float, stay: _Stay, said: Future[float | None]) -> None:
    """Run, and tell; the thread that begins a run must outlive it."""
    try:
        with run(end_at, stay.place.uid) as found:
            said.set_result(found)
    except BaseException as error:  # noqa: BLE001 - raised by who asked, at the end
        if said.done():  # It may still be there: then its place stays taken.
            return
        said.set_exception(error)
    stay.leave()


def sleep_until(moment: float) -> None:
    """Return when the monotonic clock has reached a moment."""
    while (left := moment - time.monotonic()) > 0:
        time.sleep(left)
