"""Files that are read because they lie in a folder: regular ones, of that folder.

Who may put a file there need not be allowed to read what its reader may read, or to
make the reader wait. So nothing is opened that a link leads out of the folder to, and
nothing that is no regular file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from modicum.core.errors import Code, InputError, Problem

#: A pipe that nobody writes to is opened, and refused, without waiting.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@contextmanager
def opened(file: Path, folder: Path | None = None) -> Iterator[BinaryIO]:
    """Open a regular file to be read, and close it after the block.

    Args:
        file: The file. One that was named directly may be a link to anywhere.
        folder: The folder that it was found in, if it was; a link may not lead out.

    Yields:
        Its bytes.

    Raises:
        InputError: If it is no regular file, lies outside, or cannot be read, also
            within the block. Nothing of it is quoted.
    """
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
    """Open what a file stands for, from the folder on and by no link any more.

    So it does not matter if somebody puts a link into its way meanwhile.
    """
    base = folder.resolve()
    try:
        target = file.resolve()
    except RuntimeError as error:  # Links in a circle.
        raise InputError(_refusal(file, "it is a link to itself")) from error
    if not target.is_relative_to(base):
        raise InputError(_refusal(file, "it is a link that leads out of the folder"))
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
    file: Path, why: str, remedy: str = "put the file itself into the folder"
) -> Problem:
    return Problem(Code.FILE_UNREADABLE, f"cannot read {file}: {why}", help=remedy)


def _unreadable(file: Path, error: OSError) -> Problem:
    remedy = "correct the path, or make the file"
    if isinstance(error, PermissionError):
        remedy = "have its owner let you read it, with  chmod"
    reason = (error.strerror or "the system refuses to read it").lower()
    return Problem(Code.FILE_UNREADABLE, f"cannot read {file}: {reason}", help=remedy)
