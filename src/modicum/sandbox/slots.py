"""Turns that processes of one machine take: locks on files that others cannot touch."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from modicum.core.errors import UnavailableError
from modicum.sandbox.deadline import Patience
from modicum.sandbox.problems import missing
from modicum.system.file_locks import let_go, take

#: Root's turns: nobody else can make or remove anything there.
FOLDER_OF_ROOT: Final = Path("/run/modicum-sandbox")
#: Other users' turns; what somebody else put there first is not taken.
FOLDER_OF_OTHERS: Final = Path("/tmp")  # noqa: S108 - it is looked at after it is made


class Turns:
    """Locks of this process, each held until all are given back."""

    def __init__(self) -> None:
        self._handles: list[int] = []
        self._process = os.getpid()

    def take(self, name: str, patience: Patience, *, is_shared: bool = False) -> None:
        """Take a turn after whoever waits for it already.

        Who waits for the turn holds a queue, in which all others wait: so whoever ends
        a turn and wants another overtakes nobody.

        Args:
            name: Whose turn it is.
            patience: How long to wait for it.
            is_shared: Whether others that share it may have it meanwhile.

        Raises:
            UnavailableError: If it was not free for long, or there is no place for
                locks that is safe.
        """
        queue = _locked(f"{name}.queue", fcntl.LOCK_EX, patience)
        try:
            how = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
            self._handles.append(_locked(name, how, patience))
        finally:
            let_go(queue, self._process)

    def give_back(self) -> None:
        """Let others have what was taken."""
        while self._handles:
            let_go(self._handles.pop(), self._process)


def _locked(name: str, how: int, patience: Patience) -> int:
    """Return a handle of a file that is locked, and is the one that has its name."""
    place = folder()
    while True:
        handle = _opened(place, name)
        try:
            take(handle, how, lambda taken: patience.wait(taken.wait))
            if _is_there(handle, place / name):
                return handle
        except BaseException:
            let_go(handle, os.getpid())
            raise
        os.close(handle)  # Somebody tidied it away: others would find a new one.


def folder() -> Path:
    """Return where the turns of this user are; the same for all of its processes."""
    user = _user()
    return FOLDER_OF_ROOT if user == 0 else FOLDER_OF_OTHERS / f"modicum-sandbox-{user}"


def _user() -> int:
    return os.getresuid()[1]


def _opened(place: Path, name: str) -> int:
    """Return a handle of a file in a folder that is this user's alone."""
    try:
        with suppress(FileExistsError):  # Whatever is there is looked at below.
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
                f"{place} cannot be used, by which programs wait for each other"
                f" ({error.strerror})",
                "let it be a folder of the user that modicum runs as, and theirs alone",
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
