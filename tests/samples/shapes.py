"""Documents as the shapes that the schema declares."""

from __future__ import annotations

from typing import Any, TypeVar

from modicum.api.schema.shape import Shape, convert, plain

S = TypeVar("S", bound=Shape)


def exactly(kind: type[S], document: Any) -> S:
    """Return a document as a shape; it has no other keys, and misses none."""
    found = convert(document, kind)
    shown = plain(found)
    absent = {key for key, value in shown.items() if value is None}
    assert document | dict.fromkeys(absent - document.keys()) == shown
    return found
