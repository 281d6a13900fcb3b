"""A folder of our own, and files in it that are there as a whole or not at all."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, cast

from modicum.core.errors import Code, InputError, Problem
from modicum.vault.problems import unusable

#: Timeout for the lock.
WAIT_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.005
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: A pipe in the place of a file is opened without waiting, and refused.
_FILE: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Folder:
    """An open folder that only its owner, this process, can access.

    Its methods raise `OSError`, which `opened` translates.

    Args:
        at: The handle of the folder.
    """

    def __init__(self, at: int) -> None:
        self._at = at

    def has(self, name: str) -> bool:
        """Return whether anything has this name, be it a link that leads nowhere."""
        try:
            os.stat(name, dir_fd=self._at, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""
        return sorted(os.listdir(self._at))

    def reading(self, name: str) -> BinaryIO:
        """Return a file to be read; the caller closes it."""
        return self._file(name, os.O_RDONLY, "rb")

    def read(self, name: str, most: int) -> bytes | None:
        """Return the bytes of a file, cut off after `most`; None if it is not there."""
        try:
            while True:
                with self.reading(name) as file:
                    data = file.read(most)
                    # An unlinked file may have been overwritten meanwhile.
                    now = os.stat(name, dir_fd=self._at, follow_symlinks=False)
                    if os.path.samestat(now, os.fstat(file.fileno())):
                        return data
        except FileNotFoundError:
            return None

    def new(self, name: str) -> BinaryIO:
        """Return a new file to be written, for our eyes only; the caller closes it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        return os.fdopen(os.open(name, flags | _FILE, 0o600, dir_fd=self._at), "wb")

    def write(self, name: str, data: bytes) -> None:
        """Write a new file, durably but for its name."""
        with self.new(name) as file:
            file.write(data)
            durable(file)

    def rename(self, name: str, to: str) -> None:
        """Rename a file, replacing an existing one."""
        os.replace(name, to, src_dir_fd=self._at, dst_dir_fd=self._at)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        try:
            os.unlink(name, dir_fd=self._at)
        except FileNotFoundError:
            return

    def erase(self, name: str) -> None:
        """Overwrite a file and remove it, if it is there."""
        try:
            file = self.overwriting(name)
        except FileNotFoundError:
            return
        with file:
            overwrite(file)
        self.remove(name)

    def overwriting(self, name: str) -> BinaryIO:
        """Return a file to be overwritten, even if it is renamed."""
        return self._file(name, os.O_RDWR, "r+b")

    def sync(self) -> None:
        """Make created and removed names durable."""
        os.fsync(self._at)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold an exclusive lock on the folder, for a `with` block."""
        take(self._at)
        try:
            yield
        finally:
            fcntl.flock(self._at, fcntl.LOCK_UN)

    def _file(self, name: str, flags: int, mode: str) -> BinaryIO:
        handle = os.open(name, flags | _FILE, dir_fd=self._at)
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            os.close(handle)
            raise OSError(0, "something in it is not a file, or has another owner")
        return cast("BinaryIO", os.fdopen(handle, mode))


def durable(file: BinaryIO) -> None:
    """Make the bytes of a file durable."""
    file.flush()
    os.fsync(file.fileno())


def overwrite(file: BinaryIO) -> None:
    """Overwrite all bytes of a file, durably. Where disks move blocks, copies stay."""
    file.seek(0)
    file.write(bytes(os.fstat(file.fileno()).st_size))
    durable(file)


def take(handle: int) -> None:
    """Take the lock of an open file, or give up after a while."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise OSError(0, "it is locked by another process") from None
            time.sleep(_PAUSE_SECONDS)
        else:
            return


@contextmanager
def opened(path: Path) -> Iterator[Folder]:
    """Open a folder of our own, for a `with` block."""
    try:
        at = os.open(path, _FOLDER)
        try:
            _refuse_open(path, os.fstat(at))
            yield Folder(at)
        finally:
            os.close(at)
    except OSError as error:
        why = (error.strerror or "system error").lower()
        raise unusable(path, why) from None


def made(path: Path) -> None:
    """Make a folder for our eyes only, if nothing has its name."""
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return
    except OSError as error:
        why = (error.strerror or "system error").lower()
        raise unusable(path, why) from None


def _refuse_open(path: Path, found: os.stat_result) -> None:
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid != os.geteuid():
        raise unusable(path, "it has another owner", "use your own")
    if mode & 0o077:
        raise unusable(
            path,
            f"it is accessible to other users (mode {mode:04o})",
            f"chmod 700 {path}",
        )


#: Maximum length of an id in UTF-8, in bytes.
ID_BYTES_MAX: Final = 512
_PREFIX: Final = b"modicum-vault/v1\0"
_KEY: Final = re.compile(r"[0-9a-f]{64}\.key")
_DEBRIS: Final = re.compile(r"[0-9a-f]{64}\.(?:[0-9a-f]{16}\.part|key\.new)")


@dataclass(frozen=True, slots=True)
class Names:
    """The files of one object.

    Attributes:
        id: The object's id.
        tag: SHA-256 of the id, 32 bytes.
    """

    id: str
    tag: bytes

    @property
    def content(self) -> str:
        """The encrypted content."""
        return f"{self.tag.hex()}.sealed"

    @property
    def key(self) -> str:
        """The wrapped key; the object exists while it does."""
        return f"{self.tag.hex()}.key"

    @property
    def new_key(self) -> str:
        """A wrapped key that is not in use yet."""
        return f"{self.tag.hex()}.key.new"

    @property
    def tombstone(self) -> str:
        """An empty file: while it exists, the object is gone permanently."""
        return f"{self.tag.hex()}.shredded"

    def part(self, nonce: bytes) -> str:
        """Return the name of incomplete content."""
        return f"{self.tag.hex()}.{nonce.hex()}.part"


def names_of(identifier: str) -> Names:
    """Return the file names of an object."""
    fits = identifier.isprintable() and 0 < len(identifier) <= ID_BYTES_MAX
    data = identifier.encode() if fits else b""
    if not 0 < len(data) <= ID_BYTES_MAX:
        raise InputError(
            Problem(
                Code.BAD_NAME,
                "the id is empty, too long, or cannot be shown",
                help=f"use printable characters, at most {ID_BYTES_MAX} bytes in UTF-8",
            )
        )
    return Names(identifier, hashlib.sha256(_PREFIX + data).digest())


def is_key(name: str) -> bool:
    """Return whether a file name is that of a wrapped key."""
    return _KEY.fullmatch(name) is not None


def is_debris(name: str) -> bool:
    """Return whether a file of this name is incomplete, or not in use yet."""
    return _DEBRIS.fullmatch(name) is not None
