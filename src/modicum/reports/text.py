"""How much a statement shows, and how it writes times: the same in every section."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from modicum.reports.log_position import Told
from modicum.reports.markup import Markup, element

T = TypeVar("T")

#: What a cell says that has nothing to say.
NOTHING = "none"
#: A cell names so many people, words or versions.
NAMED = 10
#: A table shows so many rows; the JSON form has all of them.
SHOWN = 500


def newest(items: Sequence[T]) -> list[T]:
    """Return as many of the last items as a table shows, the last one first.

    Args:
        items: The items, oldest first.
    """
    return list(reversed(items[-SHOWN:]))


def left_out(count: int) -> Iterator[Markup]:
    """Yield how many items a table does not show, if there are any.

    Args:
        count: How many there are in all.
    """
    if count > SHOWN:
        words = f"{count - SHOWN} more are in the JSON form of this statement."
        yield element("p", words, class_="soft")


def few(texts: Sequence[str]) -> str:
    """Return the last of some texts, as many as a cell shows.

    Args:
        texts: The texts, oldest first.
    """
    more = len(texts) - NAMED
    said = "; ".join(texts[-NAMED:])
    if not said:
        return NOTHING
    return f"{said}; and {more} more" if more > 0 else said


def when(told: Told) -> str:
    """Return when something happened, and in which entry.

    Args:
        told: Where it stands.
    """
    return f"{minute(told.at)} (entry {told.seq})"


def minute(at: str) -> str:
    """Return a time for people, to the minute, in UTC.

    Args:
        at: The time, as events write it.
    """
    return f"{at[:10]} {at[11:16]} UTC"
