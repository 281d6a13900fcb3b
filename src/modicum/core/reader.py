"""Reading marked trees strictly: no key is ignored, every mistake has a place."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from fractions import Fraction

from modicum.core.diagnostics import (
    PROBLEMS_MAX,
    Problems,
    fail,
    nearest,
    place,
    placed,
)
from modicum.core.document import (
    Entries,
    Items,
    Kind,
    Node,
    Scalar,
    describe,
    flow_text,
)
from modicum.core.errors import Code
from modicum.core.fields import Fields, has_decimal_comma
from modicum.core.rationals import parse_number

__all__ = [
    "PROBLEMS_MAX",
    "Fields",
    "Problems",
    "boolean",
    "choice",
    "count",
    "fail",
    "has_decimal_comma",
    "items",
    "line",
    "name",
    "nearest",
    "number",
    "optional_items",
    "place",
    "placed",
    "positive",
    "probability",
    "refuse_nothing",
    "release_id",
    "take_format",
    "text",
]

# Control characters, half surrogates, odd line breaks, and bidirectional controls.
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    r"\ud800-\udfff]"
)
# Invisible characters: two texts that look the same would differ.
_INVISIBLE = re.compile(
    r"[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065"
    r"\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_NAME = re.compile(r"\w[\w.+-]{0,127}")
_RELEASE_ID = re.compile(r"\w[\w.:/@+-]{0,199}")


def take_format(fields: Fields, known: str) -> None:
    """Take the key ``format``, which must have the one known value.

    Raises:
        InputError: If it is missing or another.
    """
    node = fields.take("format")
    given = line(node, "`format`")
    if given != known:
        raise fail(
            Code.UNKNOWN_VERSION,
            f"unknown format `{given[:40]}`",
            node,
            help=f"write `format: {known}`",
        )


def items(node: Node, what: str) -> tuple[Node, ...]:
    """Return the items of a list.

    Raises:
        InputError: If it is not a list.
    """
    if not isinstance(node, Items):
        message = f"{what} must be a list, got {describe(node)}"
        raise fail(Code.WRONG_TYPE, message, node, help=_as_list(node))
    return node.items


def _as_list(node: Node) -> str:
    """Return how to turn a value into a list."""
    match node:
        case Scalar(quoted=True, text=text) if text[:1] == "[":
            return "leave the quotes around it out"
        case Scalar(kind=Kind.TEXT | Kind.NUMBER):
            written = flow_text(node)
            return f"write  [{written}]  instead of  {written}"
        case Entries(entries=[_, *_]):
            return "write a dash before each of its items"
        case _:
            return ""


def optional_items(node: Node | None, what: str) -> tuple[Node, ...]:
    """Return the items of an optional list.

    Args:
        node: The list; None if the key is absent.
        what: Its name, for messages.

    Raises:
        InputError: If there is something else.
    """
    if node is None:
        return ()
    refuse_nothing(node, what)
    return items(node, what)


def refuse_nothing(node: Node, what: str) -> None:
    """Refuse an optional key without a value.

    Raises:
        InputError: If there is nothing.
    """
    if isinstance(node, Scalar) and node.kind is Kind.NULL:
        message = f"{what} is empty"
        raise fail(Code.WRONG_TYPE, message, node, help=f"leave {what} out")


def text(node: Node, what: str, *, characters_max: int = 2000) -> str:
    """Return a text; a bare number or boolean is refused rather than converted.

    Raises:
        InputError: If it is not text, is too long, or contains control characters.
    """
    if not isinstance(node, Scalar) or node.kind is not Kind.TEXT:
        bare = isinstance(node, Scalar) and node.kind is not Kind.NULL
        raise fail(
            Code.WRONG_TYPE,
            f"{what} must be text, got {describe(node)}",
            node,
            help="put it in quotes" if bare else _without_brackets(node),
        )
    if len(node.text) > characters_max:
        raise fail(
            Code.TOO_LARGE, f"{what} has more than {characters_max} characters", node
        )
    if _UNPRINTABLE.search(node.text):
        raise fail(
            Code.NOT_TEXT,
            f"{what} contains a control character or an unpaired surrogate",
            node,
            notes=("other people's terminals would print it",),
        )
    if _INVISIBLE.search(node.text):
        raise fail(
            Code.NOT_TEXT,
            f"{what} contains an invisible character",
            node,
            notes=("a reader could not see the difference",),
            help="retype the text",
        )
    return node.text


def _without_brackets(node: Node) -> str:
    """Return how to write a list of one item as that item."""
    if isinstance(node, Items) and len(node.items) == 1:
        return f"write  {flow_text(node.items[0])}  instead of  {flow_text(node)}"
    return ""


def line(node: Node, what: str) -> str:
    """Return a text of one line.

    Raises:
        InputError: If it is not text, is too long, or has line breaks or controls.
    """
    value = text(node, what)
    if "\n" in value or "\t" in value:
        raise fail(Code.NOT_TEXT, f"{what} must be a single line without tabs", node)
    return value


def name(node: Node, what: str) -> str:
    """Return a name: letters, digits, `_.+-`, at most 128 characters, NFC."""
    return _matching(node, what, _NAME, "letters, digits and _ . + -")


def release_id(node: Node, what: str) -> str:
    """Return a release id: a name that may also hold `:/@`, at most 200 characters."""
    return _matching(node, what, _RELEASE_ID, "letters, digits and _ . : / @ + -")


def _matching(node: Node, what: str, pattern: re.Pattern[str], allowed: str) -> str:
    value = text(node, what)
    if value[:1] in ("[", "{") and isinstance(node, Scalar) and node.quoted:
        message = f"{what} is text, because of the quotes"
        raise fail(Code.BAD_NAME, message, node, help="leave the quotes out")
    if not pattern.fullmatch(value) or unicodedata.normalize("NFC", value) != value:
        raise fail(
            Code.BAD_NAME,
            f"{what} is not a valid name: `{value[:60]}`",
            node,
            help=f"use {allowed}, starting with a letter, digit or _",
        )
    return value


def choice(node: Node, what: str, known: Iterable[str], code: Code) -> str:
    """Return one of a closed set of words.

    Raises:
        InputError: With `code`, if it is none of them.
    """
    options = list(known)
    value = text(node, what)
    if value not in options:
        raise fail(
            code,
            f'unknown {what} "{value[:60]}"',
            node,
            label=nearest(value, options),
            help="known: " + (", ".join(options[:20]) or "none"),
        )
    return value


def boolean(node: Node, what: str) -> bool:
    """Return true or false.

    Raises:
        InputError: If it is neither.
    """
    if not isinstance(node, Scalar) or node.kind is not Kind.BOOLEAN:
        raise fail(
            Code.WRONG_TYPE, f"{what} must be true or false, got {describe(node)}", node
        )
    return node.text.lower() == "true"


def number(node: Node, what: str) -> Fraction:
    """Return the exact value of a finite number.

    Raises:
        InputError: If it is quoted (a text, not a number), NaN, infinite, or
            written with more than 64 characters or a power of ten over 400.
    """
    if not isinstance(node, Scalar) or node.kind is not Kind.NUMBER:
        quoted = (
            isinstance(node, Scalar)
            and node.quoted
            and parse_number(node.text) is not None
        )
        remedy = "remove the quotes" if quoted else ""
        if isinstance(node, Scalar) and has_decimal_comma(node.text):
            point = node.text.replace(",", ".")
            remedy = f"write  {point}  instead of  {flow_text(node)}"
        raise fail(
            Code.NOT_A_NUMBER,
            f"{what} must be a number, got {describe(node)}",
            node,
            label="this is text, because of the quotes" if quoted else "",
            help=remedy,
        )
    value = parse_number(node.text)
    if value is None and "/" in node.text:
        return Fraction(node.text)  # Only from Python: files know no fractions.
    if value is None and re.fullmatch(r"[-+.0-9eE]+", node.text):
        raise fail(
            Code.OUT_OF_RANGE,
            f"{what} must be a number with fewer digits, got `{node.text[:70]}`",
            node,
            notes=("at most 64 characters, and an exponent of at most 400",),
        )
    if value is None:
        raise fail(
            Code.OUT_OF_RANGE,
            f"{what} must be a finite decimal number, got `{node.text[:70]}`",
            node,
            notes=("NaN and infinity are not allowed",)
            if "n" in node.text.lower()
            else (),
        )
    return value


def positive(node: Node, what: str) -> Fraction:
    """Return a number that is greater than 0.

    Raises:
        InputError: If it is not a number, or not above 0.
    """
    value = number(node, what)
    if value <= 0:
        raise fail(
            Code.OUT_OF_RANGE,
            f"{what} must be greater than 0, got {_shown(node)}",
            node,
        )
    return value


def probability(node: Node, what: str) -> Fraction:
    """Return a number strictly between 0 and 1.

    Raises:
        InputError: If it is not a number, or not between them.
    """
    value = number(node, what)
    if not 0 < value < 1:
        raise fail(
            Code.OUT_OF_RANGE,
            f"{what} must be strictly between 0 and 1, got {_shown(node)}",
            node,
        )
    return value


def count(node: Node, what: str, *, at_least: int, at_most: int) -> int:
    """Return an integer within bounds, both included.

    Raises:
        InputError: If it is not an integer, or out of bounds.
    """
    value = number(node, what)
    if value.denominator != 1 or not at_least <= value <= at_most:
        raise fail(
            Code.OUT_OF_RANGE,
            f"{what} must be an integer from {at_least} to {at_most},"
            f" got {_shown(node)}",
            node,
        )
    return value.numerator


def _shown(node: Node) -> str:
    return node.text if isinstance(node, Scalar) else describe(node)
