"""Sandbox slots: who programs run as, each held until its last process exits."""

from __future__ import annotations

import errno
import fcntl
import os
import queue
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from modicum.core.errors import UnavailableError, check
from modicum.sandbox.deadline import Deadline
from modicum.sandbox.problems import missing
from modicum.system.file_locks import release_lock, take

#: Locks of root: no other user can create or remove files there.
FOLDER_OF_ROOT: Final = Path("/run/modicum-sandbox")
#: Locks of other users; files that others placed there first are refused.
FOLDER_OF_OTHERS: Final = Path("/tmp")  # noqa: S108 - it is looked at after it is made


class SlotQueue:
    """Locks of this process, each held until all are released."""

    def __init__(self) -> None:
        self._handles: list[int] = []
        self._process = os.getpid()

    def take(self, name: str, deadline: Deadline, *, is_shared: bool = False) -> None:
        """Take a lock in the order of arrival.

        A waiter holds a queue lock, for which all others wait: so a process that
        releases the lock and requests it again goes to the end.
        """
        queue = _locked(f"{name}.queue", fcntl.LOCK_EX, deadline)
        try:
            how = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
            self._handles.append(_locked(name, how, deadline))
        finally:
            release_lock(queue, self._process)

    def give_back(self) -> None:
        """Release all locks."""
        while self._handles:
            release_lock(self._handles.pop(), self._process)


def _locked(name: str, how: int, deadline: Deadline) -> int:
    """Return a handle of a file that is locked, and is the one that has its name."""
    place = folder()
    while True:
        handle = _opened(place, name)
        try:
            take(handle, how, lambda taken: deadline.wait(taken.wait))
            if _is_there(handle, place / name):
                return handle
        except BaseException:
            release_lock(handle, os.getpid())
            raise
        os.close(handle)  # It was deleted meanwhile: others would find a new one.


def folder() -> Path:
    """Return where the turns of this user are; the same for all of its processes."""
    user = _user()
    return FOLDER_OF_ROOT if user == 0 else FOLDER_OF_OTHERS / f"modicum-sandbox-{user}"


def _user() -> int:
    return os.getresuid()[1]


def _opened(place: Path, name: str) -> int:
    """Return a handle of a file in a folder that is this user's alone."""
    try:
        with suppress(FileExistsError):  # An existing file is checked below.
            place.mkdir(0o700)
        inside = os.open(
            place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        )
        try:
            found = os.fstat(inside)
            if found.st_uid != _user() or stat.S_IMODE(found.st_mode) & 0o077:
                raise PermissionError(errno.EACCES, "others can use it")
            flags = os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            return os.open(name, flags, 0o600, dir_fd=inside)
        finally:
            os.close(inside)
    except OSError as error:
        raise UnavailableError(
            missing(
                f"{place} cannot be used for locks between programs ({error.strerror})",
                "make it a private folder of the user that modicum runs as",
            )
        ) from error


def _is_there(handle: int, path: Path) -> bool:
    """Return whether a file has its name still; it is marked as used, then."""
    os.utime(handle)
    try:
        found = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(handle))


@dataclass(frozen=True, slots=True)
class Slot:
    """A sandbox slot, held until its last process exits.

    Attributes:
        uid: The user that it runs as; None for the present one.
        number: Which place it is.
        turns: The locks that keep other runs on this machine waiting.
    """

    uid: int | None
    number: int
    turns: SlotQueue


class Slots:
    """The users of programs, each for one run at a time.

    With one run at a time, nothing else runs on this machine, in any process and tier:
    concurrent runs could signal to each other.

    Args:
        uid: As root, the first of as many users as concurrent runs. Otherwise None.
        at_a_time: The number of concurrent runs; others wait.

    Attributes:
        uid: The first of them.
        at_a_time: How many there are.
    """

    def __init__(self, uid: int | None, at_a_time: int) -> None:
        self.uid = uid
        self.at_a_time = at_a_time
        self._free: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in range(at_a_time):
            self._free.put(number)

    def take(self, deadline: Deadline | None = None) -> Slot:
        """Return a free slot, once there is one."""
        deadline = deadline or Deadline()
        number = self._number(deadline)
        turns = SlotQueue()
        try:
            turns.take("all", deadline, is_shared=self.at_a_time > 1)
            if self.at_a_time > 1:
                turns.take(f"place-{number}", deadline)
        except BaseException:
            turns.give_back()
            self._free.put(number)
            raise
        return Slot(None if self.uid is None else self.uid + number, number, turns)

    def _number(self, deadline: Deadline) -> int:
        found: list[int] = []

        def happens(seconds: float) -> bool:
            with suppress(queue.Empty):
                found.append(self._free.get(timeout=seconds))
            return bool(found)

        deadline.wait(happens)
        return found[0]

    def free(self, place: Slot) -> None:
        """Give a place back: nothing of its run is there any more."""
        place.turns.give_back()
        self._free.put(place.number)

    @contextmanager
    def alone(self, deadline: Deadline | None = None) -> Iterator[None]:
        """Block all runs of this machine for the length of the block."""
        turns = SlotQueue()
        try:
            turns.take("all", deadline or Deadline())
            yield
        finally:
            turns.give_back()


class SlotLease:
    """A slot in which its holder runs programs, one after the other.

    It is free again when they have left it, and nothing runs there any more.

    Args:
        taken_from: The slots; the call waits for one.
        deadline: How long; None for as long as is usual.

    Raises:
        UnavailableError: If none was free for long, or this cannot be known.
    """

    def __init__(self, taken_from: Slots, deadline: Deadline | None = None) -> None:
        self._from = taken_from
        self._changed = threading.Condition()
        self._is_held, self._is_running = True, False
        self.place: Slot = taken_from.take(deadline)

    def begin(self) -> None:
        """Start a run, once nothing of the last one is left."""
        with self._changed:
            Deadline().wait(
                lambda seconds: self._changed.wait_for(self._is_idle, seconds)
            )
            check(self._is_held, "nothing runs in a released slot")
            self._is_running = True

    def end(self) -> None:
        """Report that nothing is left of the run."""
        with self._changed:
            self._is_running = False
            self._changed.notify()
            self._free_if_empty()

    def leave(self) -> None:
        """Report that no other run will start."""
        with self._changed:
            self._is_held = False
            self._free_if_empty()

    def _is_idle(self) -> bool:
        return not self._is_running

    def _free_if_empty(self) -> None:
        if not self._is_held and not self._is_running:
            self._from.free(self.place)


@contextmanager
def slot_lease(
    taken_from: Slots, deadline: Deadline | None = None
) -> Iterator[SlotLease]:
    """Hold a slot for the length of the block and of its runs."""
    stay = SlotLease(taken_from, deadline)
    try:
        yield stay
    finally:
        stay.leave()
