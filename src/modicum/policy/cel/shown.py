"""A mistake in a predicate, as it is shown in the file that the predicate stands in."""

from __future__ import annotations

from modicum.core.document import Scalar
from modicum.core.errors import Problem
from modicum.core.places import place_inside
from modicum.policy.cel.tree import CelError

_OTHER_QUOTE = {'"': "'", "'": '"'}
#: What a text without quotes cannot begin with, in YAML.
_NO_PLAIN_BEGINNING = frozenset("\"'![")


def problem_of(error: CelError, node: Scalar) -> Problem:
    """Return the problem of a predicate.

    Args:
        error: What is wrong with it.
        node: Where it is written.
    """
    return Problem(
        error.code,
        error.message,
        place_inside(node, *error.at),
        error.label,
        error.notes,
        _remedy(error, node),
    )


def _remedy(error: CelError, node: Scalar) -> str:
    """Return what to write, so that it fits between the quotes of the file."""
    if error.rewrite is None:
        return error.help
    old, new = error.rewrite.old, error.rewrite.new
    around = _quote_around(node)
    if around in new and _OTHER_QUOTE.get(around, around) not in new:
        new = new.replace(around, _OTHER_QUOTE.get(around, around))
    said = f"write  {new}" + (f"  instead of  {old}" if old else "")
    if not around and error.at == (1, 1) and new[:1] in _NO_PLAIN_BEGINNING:
        return f"{said} , and the whole text in single quotes"
    return said


def _quote_around(node: Scalar) -> str:
    """Return the quote that the file has around a text: one, or none."""
    mark = node.mark
    if mark is None:
        return "|"  # No file, so no quotes to clash with.
    first = mark.source[mark.column - 1 : mark.column]
    return first if node.quoted else ""
