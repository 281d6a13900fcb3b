"""The length limits and time format of a statement, equal in every section."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from modicum.api.local.alternatives.part_text import periods_of, where_of
from modicum.api.local.explanation.release_text import release_text
from modicum.release import Part
from modicum.reports.log_position import Placed
from modicum.reports.markup import Markup, element

T = TypeVar("T")

#: The text of an empty cell.
NOTHING = "none"
#: Maximum number of people, votes or versions in a table cell.
NAMED = 10
#: Maximum number of table rows; the JSON form has all of them.
SHOWN = 500


def newest(items: Sequence[T]) -> list[T]:
    """Return the last items, up to the length of a table, newest first."""
    return list(reversed(items[-SHOWN:]))


def left_out(count: int) -> Iterator[Markup]:
    """Yield how many items a table does not show, if there are any."""
    if count > SHOWN:
        text = f"{count - SHOWN} more are in the JSON form of this statement."
        yield element("p", text, class_="soft")


def few(texts: Sequence[str]) -> str:
    """Return the last texts, up to the limit of a cell."""
    more = len(texts) - NAMED
    text = "; ".join(texts[-NAMED:])
    if not text:
        return NOTHING
    return f"{text}; and {more} more" if more > 0 else text


def when(entry: Placed) -> str:
    """Return when something happened, and in which entry."""
    return f"{minute(entry.at)} (entry {entry.seq})"


def minute(at: str) -> str:
    """Return a time for display, to the minute, in UTC."""
    return f"{at[:10]} {at[11:16]} UTC"


def part_text(part: Part) -> str:
    """Return a part as in a release file, such as ``where: {region: EU}``."""
    text = (f"{key}: {_flow(value)}" for key, value in _stated(part))
    return ", ".join(text) or "all of it"


def _stated(part: Part) -> Iterator[tuple[str, Any]]:
    if part.where is not None:
        yield "where", where_of(part.where)
    if part.periods is not None:
        yield "periods", periods_of(part.periods)
    if part.groups is not None:
        # Groups are numbers, as the values of an attribute may be.
        yield from where_of([(("groups", part.groups),)]).items()


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{key}: {_flow(inner)}" for key, inner in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    # A text that reads as something else in YAML is quoted.
    return release_text({"value": value}).removeprefix("value: ").rstrip("\n")
