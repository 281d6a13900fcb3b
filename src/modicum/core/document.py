"""A text as a tree of marked nodes: every key and value has its position.

`modicum.core.yaml_reader` reads files, this module Python values. Numbers stay text
until their exact value is needed, so ``1e-7`` is never a rounded number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import islice
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from modicum.core.canonical import Plain
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.core.rationals import number_text, parse_number

#: Deeper nesting is refused; no policy or release needs a tenth of it.
DEPTH_MAX = 24


class Kind(Enum):
    """The type of a plain scalar in the YAML 1.2 core schema."""

    TEXT = "text"
    NUMBER = "a number"
    BOOLEAN = "true or false"
    NULL = "nothing"


class Scalar(Struct, frozen=True, eq=False, gc=False):
    """One value without parts.

    Attributes:
        kind: Its type.
        text: Its text as written, without quotes.
        quoted: Whether it was quoted (and so is text, whatever its content).
        mark: Its position.
        lines: The lines that it is written on, if they are several: each with the
            column in which its text begins. Equal values may differ in them.
    """

    kind: Kind
    text: str
    quoted: bool
    mark: Mark | None
    lines: tuple[Mark, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scalar) and self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(self._compared())

    def _compared(self) -> tuple[Kind, str, bool, Mark | None]:
        return self.kind, self.text, self.quoted, self.mark


class Items(Struct, frozen=True):
    """An ordered list of nodes."""

    items: tuple[Node, ...]
    mark: Mark | None


class Entries(Struct, frozen=True):
    """An ordered mapping; keys are scalars and differ in kind or text."""

    entries: tuple[tuple[Scalar, Node], ...]
    mark: Mark | None


Node: TypeAlias = Scalar | Items | Entries


def describe(node: Node) -> str:
    """Return a description of a node, for a message: ``a list``, ``text "x"``."""
    match node:
        case Items():
            return "a list"
        case Entries():
            return "a mapping"
        case Scalar(kind=Kind.TEXT, text=text):
            return f'text "{text[:40]}"'
        case Scalar(kind=Kind.NULL):
            return "nothing"
        case Scalar(text=text):
            return f"`{text[:40]}`"


def to_plain(node: Node) -> Plain:
    """Return the tree as plain data that preserves order and exact values.

    Mappings become lists of pairs, because the order of a policy's rules is
    significant; numbers become their canonical text, marked as numbers. Two texts have
    the same plain form exactly if they have the same meaning.
    """
    match node:
        case Items(items=items):
            return {"list": [to_plain(item) for item in items]}
        case Entries(entries=entries):
            return {"map": [[to_plain(key), to_plain(value)] for key, value in entries]}
        case Scalar(kind=Kind.NUMBER, text=text):
            exact = parse_number(text)
            return {"number": number_text(exact) if exact is not None else text}
        case Scalar(kind=Kind.TEXT, text=text):
            return text
        case Scalar(kind=Kind.BOOLEAN, text=text):
            return text.lower() == "true"
        case Scalar():
            return None


# --- from Python values ------------------------------------------------------


def from_python(value: object) -> Node:
    """Return the tree of a Python value, as if read from a file.

    A float means its shortest decimal text: ``0.1`` is one tenth.

    Raises:
        InputError: If the value contains something that a file cannot.
    """
    return _from_python(value, 0)


def _from_python(value: object, depth: int) -> Node:
    if depth > DEPTH_MAX:
        problem = Problem(Code.TOO_LARGE, f"nesting is deeper than {DEPTH_MAX} levels")
        raise InputError(problem)
    match value:
        case None:
            return Scalar(Kind.NULL, "null", quoted=False, mark=None)
        case bool():
            return Scalar(Kind.BOOLEAN, str(value).lower(), quoted=False, mark=None)
        case Fraction() | int() | float() | Decimal():
            return Scalar(Kind.NUMBER, _number_text(value), quoted=False, mark=None)
        case str():
            return Scalar(Kind.TEXT, _characters(value), quoted=True, mark=None)
        case bytes() | bytearray() | memoryview():
            raise InputError(_no_value(value))
        case Mapping():
            return Entries(tuple(_pairs(value, depth)), None)
        case list() | tuple():  # Other sequences may have unexpected contents.
            items = tuple(_from_python(item, depth + 1) for item in value)
            return Items(items, None)
        case _:
            raise InputError(_no_value(value))


def _characters(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        problem = Problem(Code.NOT_TEXT, "an unpaired surrogate is not a character")
        raise InputError(problem) from error
    return str.__str__(value)  # Not one of a subclass, which means something else.


def _number_text(value: Fraction | float | Decimal) -> str:
    try:
        return number_text(value) if isinstance(value, Fraction) else str(value)
    except ValueError as error:  # More digits than Python will print.
        problem = Problem(Code.OUT_OF_RANGE, "a number has too many digits")
        raise InputError(problem) from error


def _pairs(value: Mapping[object, object], depth: int) -> Iterator[tuple[Scalar, Node]]:
    seen: set[str] = set()
    for key, item in value.items():
        scalar = _key(key)
        if scalar.text in seen:
            problem = Problem(
                Code.DUPLICATE_KEY, f"the key `{scalar.text[:60]}` is given twice"
            )
            raise InputError(problem)
        seen.add(scalar.text)
        yield scalar, _from_python(item, depth + 1)


def _no_value(value: object) -> Problem:
    return Problem(
        Code.WRONG_TYPE,
        f"a value of type `{type(value).__name__}` is not allowed in a release",
    )


def _key(key: object) -> Scalar:
    if isinstance(key, str):
        return Scalar(Kind.TEXT, _characters(key), quoted=True, mark=None)
    if isinstance(key, int | float | Decimal) and not isinstance(key, bool):
        return Scalar(Kind.NUMBER, _number_text(key), quoted=False, mark=None)
    problem = Problem(
        Code.WRONG_TYPE, f"a key must be text or a number, got {type(key).__name__}"
    )
    raise InputError(problem)


#: Longer texts are of no help in a message.
CHARACTERS_MAX = 100


def flow_text(node: Node) -> str:
    """Return a tree as YAML in one line; ``…`` where it would be long."""
    written = _flow(node)
    return written if len(written) <= CHARACTERS_MAX else "…"


def _flow(node: Node) -> str:
    match node:
        case Entries(entries=entries):
            pairs = (f"{key.text}: {_flow(value)}" for key, value in entries)
            return "{" + ", ".join(pairs) + "}"
        case Items(items=items):
            return "[" + ", ".join(map(_flow, items)) + "]"
        case Scalar(text=text, quoted=True):
            return f'"{text}"' if '"' not in text else f"'{text}'"
        case Scalar(text=text):
            return text


#: The representations of one character, by quote.
_PIECES = {
    '"': re.compile(r"\\(?:x(..)|u(....)|U(.{8})|(.)|$)|."),
    "'": re.compile(r"''|."),
    "": re.compile(r"."),
}
#: Escapes of YAML for white space.
_BLANKS = frozenset("tnvfr NLP_\t")


def place_inside(node: Scalar, line: int, column: int) -> Mark | None:
    """Return the position in the file of a character of a value.

    Folding changes only white space; so the position is found by counting all the other
    characters before it.

    Args:
        node: The value.
        line: The line of the character within the value, from 1.
        column: Its column there, from 1.

    Returns:
        The mark of one character; the value's own position if the character is not
        found, and None if the value does not come from a file.
    """
    if node.mark is None:
        return None
    before = node.text.split("\n")[:line]
    before[-1] = before[-1][: column - 1]
    wanted = sum(not character.isspace() for character in "".join(before))
    return next(islice(_character_marks(node, node.mark), wanted, None), node.mark)


def _character_marks(node: Scalar, mark: Mark) -> Iterator[Mark]:
    """Return the places of a value's characters that are no white space."""
    first = mark.source[mark.column - 1 : mark.column]
    quote = first if node.quoted and first in ('"', "'") else ""
    for part in node.lines or (mark,):
        begin = part.column - 1
        if quote and part.line == mark.line:
            begin += 1
        for piece in _PIECES[quote].finditer(part.source, begin):
            if not _is_blank(piece):
                yield replace(part, column=piece.start() + 1, length=1)


def _is_blank(piece: re.Match[str]) -> bool:
    written = piece[0]
    if written[0] != "\\" or piece.re is not _PIECES['"']:
        return written.isspace()
    code = piece[1] or piece[2] or piece[3]
    if code is None:
        return piece[4] is None or piece[4] in _BLANKS  # None: the line is joined.
    return chr(int(code, 16)).isspace()
