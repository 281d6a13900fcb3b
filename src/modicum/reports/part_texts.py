"""Parts of the data in one line, as a release file writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from modicum.api.local.alternatives.part_text import periods_of, where_of
from modicum.api.local.explanation.release_text import release_text
from modicum.release import Part


def part_text(part: Part) -> str:
    """Return a part as a release file says it, such as ``where: {region: EU}``.

    Args:
        part: The part.

    Returns:
        The text, in one line; ``all of it`` for all of the data.
    """
    said = (f"{key}: {_flow(value)}" for key, value in _stated(part))
    return ", ".join(said) or "all of it"


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
