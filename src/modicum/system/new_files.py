"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from modicum.core.errors import Code, Problem, UsageError

#: How every database of SQLite begins.
_SQLITE = b"SQLite format 3\0"


def write_whole(path: str | Path, pieces: Iterable[bytes]) -> None:
    """Write a file from pieces; who reads it finds the old one or all of the new one.

    Args:
        path: Where to.
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
    """Write a text to a file that is not there yet.

    Args:
        path: Where to.
        text: Its contents.

    Raises:
        UsageError: If something is there, or it cannot be written.
    """
    if path.exists():
        remedy = "choose another file with  --out FILE  , or remove it"
        raise UsageError(
            Problem(Code.ALREADY_EXISTS, f"{path} already exists", help=remedy)
        )
    write_whole(path, [text.encode()])


def _refuse_database(path: str | Path, target: Path) -> None:
    """Refuse to write over a file of SQLite: it may be a ledger, which is not lost."""
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
                f"{path} is there, and is a database: maybe a ledger",
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
