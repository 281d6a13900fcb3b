"""Turns that processes of one machine take: locks on files that others cannot touch."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from modicum.core.errors import UnavailableError
from modicum.shell.sandbox.missing import missing

#: Root's turns: nobody else can make or remove anything there.
FOLDER_OF_ROOT: Final = Path("/run/modicum-sandbox")
#: Other users' turns; what somebody else put there first is not taken.
FOLDER_OF_OTHERS: Final = Path("/tmp")  # noqa: S108 - it is looked at after it is made
_POLL_SECONDS: Final = 0.02


class Turns:
    """Locks of this process, each held until all are given back."""

    def __init__(self) -> None:
        self._handles: list[int] = []

    def take(self, name: str, until: float, *, is_shared: bool = False) -> bool:
        """Return whether a turn was had before a moment of the monotonic clock.

        Args:
            name: Whose turn it is.
            until: How long to wait for it.
            is_shared: Whether others that share it may have it meanwhile.

        Raises:
            UnavailableError: If there is no place for locks that is safe.
        """
        handle = _opened(folder(), name)
        self._handles.append(handle)
        how = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
        while True:
            try:
                fcntl.flock(handle, how | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= until:
                    return False
                time.sleep(_POLL_SECONDS)
            else:
                return True

    def give_back(self) -> None:
        """Let others have what was taken."""
        while self._handles:
            os.close(self._handles.pop())


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
