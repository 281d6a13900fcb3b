"""Graceful shutdown: a stopping process reports it before it refuses new work."""

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

#: The stop signals.
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Shutdown:
    """Receives the stop signal, and passes it on later.

    Args:
        parts: The state shown by `/readyz`.
        seconds: The time the process continues to serve.
    """

    def __init__(self, parts: Parts, seconds: float) -> None:
        self._parts = parts
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._next: dict[int, Any] = {}

    def begin(self) -> None:
        """Receive signals, before the present handlers."""
        self._next = {one: signal.signal(one, self._signalled) for one in SIGNALS}

    def end(self) -> None:
        """Restore the handlers."""
        for one, handler in self._next.items():
            signal.signal(one, handler)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        was_leaving = self._parts.is_leaving
        self._parts.leave()
        if not was_leaving:
            self._loop.call_later(self._seconds, self._hand_on, number, frame)
        elif number == signal.SIGINT:
            self._hand_on(number, frame)
        # SIGTERM comes from a supervisor and from the parent: the first one counts.

    def _hand_on(self, number: int, frame: FrameType | None) -> None:
        self._next[number](number, frame)


@contextmanager
def leaving(parts: Parts, seconds: float) -> Iterator[None]:
    """Let a process announce its shutdown, if it can receive signals."""
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
    """Let a stopped process exit with 0, after finishing its work.

    Uvicorn raises the stop signal again, which would kill the process.
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
    """Exit when the parent, which would send the stop signal, is gone."""
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)
