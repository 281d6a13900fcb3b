"""Mistakes in a predicate, shown in its file."""

from __future__ import annotations

import re

from modicum.core.document import Scalar, place_inside
from modicum.core.errors import Code, Problem
from modicum.policy.cel.fields import Operand
from modicum.policy.cel.tree import (
    CelError,
    Field,
    Item,
    Literal,
    Name,
    Part,
    Rewrite,
    outside,
)


def needs_text(part: Part) -> CelError:
    """Return the error for something that should be a text."""
    return CelError(
        Code.CEL_TYPE,
        "only a text is allowed here",
        part.at,
        help='write a text, in quotes: "…"',
    )


def needs_number(part: Part) -> CelError:
    """Return the error for something that should be a whole number."""
    written = part.written if isinstance(part, Literal) else ""
    digits = written.strip("\"'")
    whole = re.fullmatch(r"(\d{1,9})(\.\d+)?", digits)
    help_text = "write an integer, such as 20"
    if whole and whole[2]:
        help_text = f"write an integer: {whole[1]} or {int(whole[1]) + 1}"
    message = "only an integer is allowed here"
    error = CelError(Code.CEL_TYPE, message, part.at, help=help_text)
    return error.mended_by(Rewrite(written, digits) if whole and not whole[2] else None)


def not_a_list(left: Operand, right: Part) -> CelError:
    """Return the error for `in` with something that is no list."""
    error = outside(
        right.at,
        "`in` looks into a list, m.attributes or m.contribution_bound",
        help='write  ["a", "b"]  for a list',
    )
    if isinstance(right, Literal) and isinstance(right.value, str):
        return error.mended_by(Rewrite(right.written, f"[{right.written}]"))
    if isinstance(left, str) and isinstance(right, Field):
        return error.mended_by(Rewrite("", f'{path(right)} == "{left}"'))
    return error


def membership_test(word: str, where: Part) -> Rewrite:
    """Return the membership test of a word in a field."""
    return Rewrite("", f'"{word}" in {path(where)}')


def entry_suggestion(part: Item) -> Rewrite | None:
    """Return the rewrite of ``m["ml"]`` and ``m.attributes["age"]``."""
    if not (isinstance(part.key, Literal) and isinstance(part.key.value, str)):
        return None
    if isinstance(part.owner, Name):
        old = f"{part.owner.name}[{part.key.written}]"
        return Rewrite(old, f"{part.owner.name}.{part.key.value}")
    if path(part.owner) == "m.attributes":
        old = f"m.attributes[{part.key.written}]"
        return Rewrite(old, f"{part.key.written} in m.attributes")
    return None


def is_fraction(part: Part) -> bool:
    """Return whether a part is a number with a point."""
    return isinstance(part, Literal) and "." in part.written and part.value is None


def path(part: Part) -> str:
    """Return how a field is written, such as ``m.attributes``."""
    if isinstance(part, Field) and isinstance(part.owner, Name):
        return f"{part.owner.name}.{part.name}"
    return part.name if isinstance(part, Name | Field) else "…"


_OTHER_QUOTE = {'"': "'", "'": '"'}
#: Characters that an unquoted YAML text cannot start with.
_NO_PLAIN_BEGINNING = frozenset("\"'![")


def problem_of(error: CelError, node: Scalar) -> Problem:
    """Return the problem of a predicate."""
    return Problem(
        error.code,
        error.message,
        place_inside(node, *error.at),
        error.label,
        error.notes,
        _remedy(error, node),
    )


def _remedy(error: CelError, node: Scalar) -> str:
    """Return the remedy, escaped for the quotes of the file."""
    if error.rewrite is None:
        return error.help
    old, new = error.rewrite.old, error.rewrite.new
    around = _quote_around(node)
    if around in new and _OTHER_QUOTE.get(around, around) not in new:
        new = new.replace(around, _OTHER_QUOTE.get(around, around))
    text = f"write  {new}" + (f"  instead of  {old}" if old else "")
    if not around and error.at == (1, 1) and new[:1] in _NO_PLAIN_BEGINNING:
        return f"{text} , and the whole text in single quotes"
    return text


def _quote_around(node: Scalar) -> str:
    """Return the quote that the file has around a text: one, or none."""
    mark = node.mark
    if mark is None:
        return "|"  # No file, so no quotes to clash with.
    first = mark.source[mark.column - 1 : mark.column]
    return first if node.quoted else ""
