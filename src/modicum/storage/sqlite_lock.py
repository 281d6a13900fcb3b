"""Turns between processes and threads, by kernel locks.

Three files beside a ledger, all empty, each for one lock:

- `.lock` is the turn: a writer holds it alone, readers of an idle file share it.
- `.queue` is held while waiting for the turn, and released once the turn is taken. A
  process that ends a turn and wants the next one waits behind all others in the queue,
  so nobody overtakes and nobody starves.
- `.live` is shared by the processes that keep the ledger open between turns.

A process that dies, at any point, releases all three.

The files of a ledger have the rights of its owner, never those of the umask; those
beside it have the rights of the ledger.
"""

from __future__ import annotations

import fcntl
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from modicum.storage.idle_work import IdleWork
from modicum.system.file_locks import release_lock, take

_OWNERS_ONLY: Final = 0o600
_NEW: Final = os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class TurnTimeoutError(Exception):
    """The turn could not be had in time."""


class SqliteLock:
    """The locks beside one ledger.

    Args:
        path: The ledger's file, links resolved.
        wait_seconds: How long to wait for a lock.

    Attributes:
        meanwhile: The work of threads while they wait for the turn.
    """

    def __init__(self, path: Path, wait_seconds: float) -> None:
        self.meanwhile = IdleWork()
        self._ledger = path
        self._turn = Path(f"{path}.lock")
        self._queue = Path(f"{path}.queue")
        self._live = Path(f"{path}.live")
        self._wait_seconds = wait_seconds

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the turn alone; the lock files are made if they are not there."""
        deadline = time.monotonic() + self._wait_seconds
        process, turn = os.getpid(), None
        queue = self._made(self._queue)
        try:
            try:
                _take(queue, fcntl.LOCK_EX, deadline, self.meanwhile)
                turn = self._made(self._turn)
                _take(turn, fcntl.LOCK_EX, deadline, self.meanwhile)
            finally:
                release_lock(queue, process)
            yield
        finally:
            if turn is not None:
                release_lock(turn, process)

    @contextmanager
    def reading(self) -> Iterator[bool]:
        """Share the turn with other readers; yield whether it is open elsewhere.

        Nothing is created: without lock files, there is no writer.
        """
        deadline = time.monotonic() + self._wait_seconds
        with ExitStack() as resources:
            live = self._share(resources, deadline)
            while live is None:
                live = self._share(resources, deadline)
            yield live

    def _share(self, resources: ExitStack, deadline: float) -> bool | None:
        """Share the turn, and return whether the ledger is open elsewhere.

        None if a queue was created meanwhile: the result is valid only for a process in
        the queue, since the check takes the lock for an instant.
        """
        with ExitStack() as briefly:
            queued = self._enter(briefly, self._queue, fcntl.LOCK_EX, deadline)
            attempt = briefly.enter_context(ExitStack())
            self._enter(attempt, self._turn, fcntl.LOCK_SH, deadline)
            if not self._live.exists():
                live = False
            elif not queued and self._queue.exists():
                return None
            else:
                live = self._is_live()
            resources.push(attempt.pop_all())
            return live

    def mark_live(self) -> Callable[[], None]:
        """Mark the ledger as kept open by this process."""
        # Processes that check whether the ledger is live wait in the queue.
        os.close(self._made(self._queue))
        descriptor = self._made(self._live)
        fcntl.flock(descriptor, fcntl.LOCK_SH)  # Waits for a look, which is brief.
        return partial(release_lock, descriptor, os.getpid())

    def _is_live(self) -> bool:
        with _opened(self._live) as descriptor:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    def _made(self, path: Path) -> int:
        """Open a lock file, which is made if it is not there."""
        return open_beside(path, self._ledger, os.O_RDWR)

    @staticmethod
    def _enter(stack: ExitStack, path: Path, kind: int, deadline: float) -> bool:
        """Take a lock for as long as the stack lives, if its file is there."""
        try:
            descriptor = stack.enter_context(_opened(path))
        except FileNotFoundError:
            return False
        _take(descriptor, kind, deadline)
        return True


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open an existing lock file; release its lock at the end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    process = os.getpid()
    try:
        yield descriptor
    finally:
        release_lock(descriptor, process)


def _take(
    descriptor: int, kind: int, deadline: float, meanwhile: IdleWork | None = None
) -> None:
    """Take a lock in the order of arrival, or give up at the deadline."""

    def wait(taken: threading.Event) -> None:
        left = max(0.0, deadline - time.monotonic())
        if not (meanwhile or IdleWork()).wait(taken, left):
            raise TurnTimeoutError

    take(descriptor, kind, wait)


# --- the rights of files --------------------------------------------------------------


def create_private(path: Path) -> None:
    """Create an empty file that only its owner may read or write."""
    os.close(os.open(path, _NEW | os.O_WRONLY, _OWNERS_ONLY))


def open_beside(path: Path, ledger: Path, flags: int) -> int:
    """Open a file beside a ledger; a new one gets the rights of the ledger.

    So those who share the ledger share its locks and its snapshot, as SQLite does it
    with the write-ahead log.
    """
    try:
        return os.open(path, flags | os.O_CLOEXEC)
    except FileNotFoundError:
        pass
    try:
        descriptor = os.open(path, flags | _NEW, _OWNERS_ONLY)
    except FileExistsError:  # Another process has just created it.
        return os.open(path, flags | os.O_CLOEXEC)
    try:
        _share(descriptor, ledger)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _share(descriptor: int, ledger: Path) -> None:
    try:
        found = os.stat(ledger)
    except FileNotFoundError:  # The turn that creates it needs the locks first.
        return
    mode = stat.S_IMODE(found.st_mode) & 0o666
    if mode == _OWNERS_ONLY:
        return
    if found.st_gid != os.fstat(descriptor).st_gid:
        try:
            os.fchown(descriptor, -1, found.st_gid)
        except PermissionError:  # The rights are for a group that is not this one.
            mode &= ~stat.S_IRWXG
    os.fchmod(descriptor, mode)
