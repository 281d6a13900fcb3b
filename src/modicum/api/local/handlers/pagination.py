"""Pages of lists: a cursor marks the next item and its list."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Final

from msgspec import Meta

from modicum.core.errors import Code, InputError, Problem

#: Maximum number of items per page.
PAGE_MAX: Final = 500
#: Maximum number of items scanned for one page, shown or not.
LOOKED_AT: Final = 5_000

Limit = Annotated[
    int, Meta(ge=1, le=PAGE_MAX, description="the maximum number of items")
]
Cursor = Annotated[
    str, Meta(max_length=200, description="`next` of the page before; empty at first")
]


def cursor_of(listed: str, after: int | None) -> str | None:
    """Return the cursor of the next page; None if there is none."""
    if after is None:
        return None
    return base64.urlsafe_b64encode(f"{listed}:{after}".encode()).decode().rstrip("=")


def after_of(listed: str, cursor: str) -> int:
    """Return the number to go on after."""
    if not cursor:
        return 0
    padded = cursor + "=" * (-len(cursor) % 4)
    try:
        text = base64.urlsafe_b64decode(padded.encode("ascii")).decode("ascii")
    except (binascii.Error, ValueError):
        raise _no_cursor() from None
    name, _, number = text.rpartition(":")
    if name != listed or not number.isdigit() or len(number) > 18:
        raise _no_cursor()
    if cursor_of(listed, int(number)) != cursor:
        raise _no_cursor()
    return int(number)


def _no_cursor() -> InputError:
    return InputError(
        Problem(
            Code.BAD_REQUEST,
            "the cursor does not belong to this list, or to another order of it",
            help="start without one, and continue with `next` of each page",
        )
    )
