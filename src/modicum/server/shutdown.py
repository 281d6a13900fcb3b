"""Leaving: a process that is told to end says so, before it takes on nothing more."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, Final

from modicum.server.components import Parts

#: What tells a process to end.
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Shutdown:
    """Hears that the process is to end, and hands it on later.

    Args:
        parts: What tells those who ask `/readyz`.
        seconds: How long the process goes on serving then.
    """

    def __init__(self, parts: Parts, seconds: float) -> None:
        self._parts = parts
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._next: dict[int, Any] = {}

    def begin(self) -> None:
        """Hear signals, before whoever hears them now."""
        self._next = {one: signal.signal(one, self._heard) for one in SIGNALS}

    def end(self) -> None:
        """Hear them no more."""
        for one, handler in self._next.items():
            signal.signal(one, handler)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        was_leaving = self._parts.is_leaving
        self._parts.is_leaving = True
        if not was_leaving:
            self._loop.call_later(self._seconds, self._hand_on, number, frame)
        elif number == signal.SIGINT:
            self._hand_on(number, frame)
        # SIGTERM comes from a supervisor and from the parent: the first one counts.

    def _hand_on(self, number: int, frame: FrameType | None) -> None:
        self._next[number](number, frame)


@contextmanager
def leaving(parts: Parts, seconds: float) -> Iterator[None]:
    """Have a process say that it leaves, if it can hear that it is to end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    own = Shutdown(parts, seconds)
    own.begin()
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    try:
        yield
    finally:
        own.end()


@contextmanager
def ending_well() -> Iterator[None]:
    """Have a process that is told to end leave with 0, after all was finished.

    Uvicorn sends itself once more what ended it, so that it would be killed by it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {one: signal.signal(one, _leave) for one in SIGNALS}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _end_with(parent: BaseProcess) -> None:
    """End when the process is gone that would say so: nobody else would."""
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)
