"""Files: regular ones of a folder, and new ones that appear complete.

A person who may put a file there may lack permission to read what its reader may read,
or to make the reader wait. So nothing is opened that a link leads out of the folder to,
and nothing that is no regular file.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from modicum.core.errors import Code, InputError, Problem, UsageError

#: A pipe without a writer is opened, and refused, without waiting.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@contextmanager
def opened(file: Path, folder: Path | None = None) -> Iterator[BinaryIO]:
    """Open a regular file to be read, and close it after the block."""
    try:
        handle = _handle(file) if folder is None else _handle_inside(file, folder)
        with os.fdopen(handle, "rb") as stream:
            yield stream
    except OSError as error:
        raise InputError(_unreadable(file, error)) from error


def _handle(file: Path) -> int:
    _refuse_irregular(file, file.stat().st_mode)  # To open a device may change it.
    return _regular(file, os.open(file, _FLAGS))


def _handle_inside(file: Path, folder: Path) -> int:
    """Open the target of a file, from the folder on and by no further link.

    So a link placed on its path meanwhile has no effect.
    """
    base = folder.resolve()
    try:
        target = file.resolve()
    except RuntimeError as error:  # Links in a circle.
        raise InputError(_refusal(file, "it is a link to itself")) from error
    if not target.is_relative_to(base):
        raise InputError(_refusal(file, "it is a link to a file outside the folder"))
    _refuse_irregular(file, target.lstat().st_mode)
    *folders, name = target.relative_to(base).parts
    at = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for each in folders:
            inner = os.open(each, _FLAGS | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = inner
        handle = os.open(name, _FLAGS | os.O_NOFOLLOW, dir_fd=at)
    finally:
        os.close(at)
    return _regular(file, handle)


def _regular(file: Path, handle: int) -> int:
    """Return the handle of a regular file; close that of any other."""
    try:
        _refuse_irregular(file, os.fstat(handle).st_mode)
    except InputError:
        os.close(handle)
        raise
    return handle


def _refuse_irregular(file: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "a pipe, a device or a socket"
        raise InputError(_refusal(file, f"it is {what}", "use a regular file"))


def _refusal(
    file: Path, why: str, remedy: str = "move the file itself into the folder"
) -> Problem:
    return Problem(Code.FILE_UNREADABLE, f"cannot read {file}: {why}", help=remedy)


def _unreadable(file: Path, error: OSError) -> Problem:
    remedy = "correct the path, or create the file"
    if isinstance(error, PermissionError):
        remedy = "ask its owner for read permission, with  chmod"
    reason = (error.strerror or "system error").lower()
    return Problem(Code.FILE_UNREADABLE, f"cannot read {file}: {reason}", help=remedy)


#: The first bytes of every SQLite database.
_SQLITE = b"SQLite format 3\0"


def write_whole(path: str | Path, pieces: Iterable[bytes]) -> None:
    """Write a file from pieces; who reads it finds the old one or all of the new one.

    Args:
        path: The path.
        pieces: Its contents, in order. If one cannot be had, nothing is written.

    Raises:
        UsageError: If the file cannot be written, or a database is there.
    """
    target = Path(path).resolve()  # A link stays a link.
    _refuse_database(path, target)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise _unwritable(path, error) from error
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fchmod(file.fileno(), _mode(target))
            os.fsync(file.fileno())
        draft.replace(target)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        draft.unlink(missing_ok=True)


def write_new(path: Path, text: str) -> None:
    """Write a text to a file that is not there yet."""
    if path.exists():
        remedy = "choose another file with  --out FILE  , or remove it"
        raise UsageError(
            Problem(Code.ALREADY_EXISTS, f"{path} already exists", help=remedy)
        )
    write_whole(path, [text.encode()])


def _refuse_database(path: str | Path, target: Path) -> None:
    """Refuse to overwrite a SQLite file: it may be a ledger, which must not be lost."""
    try:
        if not target.is_file():  # Nothing is there, or nothing that is replaced.
            return
        with target.open("rb") as file:
            begins = file.read(len(_SQLITE))
    except OSError as error:
        raise _unwritable(path, error) from error
    if begins == _SQLITE:
        raise UsageError(
            Problem(
                Code.ALREADY_EXISTS,
                f"{path} already exists, and is a database: maybe a ledger",
                help="choose another name",
            )
        )


def _mode(target: Path) -> int:
    """Return the rights of the file that is replaced, or those of a common new one."""
    try:
        return target.stat().st_mode & 0o777
    except OSError:
        return 0o644


def _unwritable(path: str | Path, error: OSError) -> UsageError:
    reason = (error.strerror or "it cannot be written").lower()
    return UsageError(Problem(Code.FILE_UNREADABLE, f"cannot write {path}: {reason}"))
