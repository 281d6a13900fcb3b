"""The origin of an exception, without its message, which may contain rows."""

from __future__ import annotations

from pathlib import PurePath
from traceback import walk_tb
from typing import Final

#: Maximum number of frames: the innermost.
FRAMES: Final = 12
#: Maximum number of exceptions: the last, and its causes.
CAUSES: Final = 4


def kind_of(error: BaseException) -> str:
    """Return the name of an exception's type."""
    return type(error).__qualname__


def kinds_of(error: BaseException) -> list[str]:
    """Return the names of the types of an exception, and of those that led to it."""
    found: list[str] = []
    one: BaseException | None = error
    while one is not None and len(found) < CAUSES:
        found.append(kind_of(one))
        one = one.__cause__ or one.__context__
    return found


def frames_of(error: BaseException) -> list[str]:
    """Return the origin of an exception: file, line and function, innermost last.

    No source line, value or message is included.
    """
    found = [
        f"{_file(frame.f_code.co_filename)}:{line}:{frame.f_code.co_name}"
        for frame, line in walk_tb(error.__traceback__)
    ]
    return found[-FRAMES:]


def _file(path: str) -> str:
    """Return the last two parts of a path: where a server is installed is no news."""
    return "/".join(PurePath(path).parts[-2:])
