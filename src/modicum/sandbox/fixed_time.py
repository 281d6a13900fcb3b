"""Runs whose results are returned at a fixed time, whatever happens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import TypeAlias

from modicum.api.ports.escrow import Limits
from modicum.sandbox.slots import SlotLease

#: A run, given its end on the monotonic clock and its user. It yields its score at that
#: time at the latest, and is gone afterwards.
Run: TypeAlias = Callable[[float, "int | None"], AbstractContextManager["float | None"]]


def at_fixed_time(stay: SlotLease, limits: Limits, run: Run) -> float | None:
    """Return the result of a run when its time is over: not before, and not later.

    The remaining cleanup continues in the background, and the slot stays occupied until
    it is done: so slow cleanup reveals nothing to the caller.
    """
    limits.refuse_short()
    stay.begin()
    tell_at = time.monotonic() + limits.seconds
    answer: Future[float | None] = Future()
    begins = threading.Lock()  # Its holder reports when nothing is left of the run.
    watching = threading.Thread(
        target=_watch,
        args=(run, tell_at - limits.grace_seconds, stay, answer, begins),
        name="sandbox",
        daemon=True,  # Exit does not wait: the kernel ends the run then.
    )
    try:
        watching.start()
    except BaseException:
        if begins.acquire(blocking=False):
            stay.end()
        raise
    sleep_until(tell_at)
    return answer.result() if answer.done() else None


def _watch(
    run: Run,
    end_at: float,
    stay: SlotLease,
    answer: Future[float | None],
    begins: threading.Lock,
) -> None:
    """Run and report; the thread that starts a run must outlive it."""
    if not begins.acquire(blocking=False):
        return  # The caller is gone.
    try:
        with run(end_at, stay.place.uid) as found:
            answer.set_result(found)
    except BaseException as error:  # noqa: BLE001 - raised by the caller, at the end
        if answer.done():  # It may still be running: then its slot stays occupied.
            return
        answer.set_exception(error)
    stay.end()


def sleep_until(moment: float) -> None:
    """Return when the monotonic clock has reached a moment."""
    while (left := moment - time.monotonic()) > 0:
        time.sleep(left)
