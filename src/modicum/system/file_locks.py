"""Locks on files that the kernel keeps: in the order of arrival, up to a deadline."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable


def take(descriptor: int, kind: int, wait: Callable[[threading.Event], None]) -> None:
    """Take a lock in the order of arrival, or give up.

    The kernel keeps the order, but only among those who wait in it, and it has no
    timeout. So a thread waits in the kernel, and this one waits for the thread. The
    lock belongs to the opened file, not to the descriptor: if this thread gives up, the
    last of the two releases it.
    """
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        taken, given_up = threading.Event(), threading.Event()
        closes = threading.Lock()  # Its holder closes what the thread waits with.
        own = os.dup(descriptor)
        waiting = threading.Thread(
            target=_wait,
            args=(own, kind, taken, given_up, closes),
            name="modicum-turn",
            daemon=True,
        )
        try:
            waiting.start()  # An interruption may come as soon as it runs.
            wait(taken)
        except BaseException:
            given_up.set()  # Before the lock is released.
            if closes.acquire(blocking=False):
                os.close(own)
            raise


def release_lock(descriptor: int, process: int) -> None:
    """Release a lock, and close its file.

    Closing alone would not do: a child that was forked meanwhile has the file open
    too, and would keep the lock for as long as it lives. Such a child closes only.
    """
    if os.getpid() == process:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _wait(
    descriptor: int,
    kind: int,
    taken: threading.Event,
    given_up: threading.Event,
    closes: threading.Lock,
) -> None:
    if not closes.acquire(blocking=False):
        return  # The caller is gone.
    try:
        fcntl.flock(descriptor, kind)
        taken.set()
        if given_up.is_set():
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)
