"""A text as a tree of marked nodes: every key and value knows where it stands.

YAML 1.2 (core schema) and JSON are read alike. Numbers stay text until somebody
asks for their exact value, so ``1e-7`` is a number and never a rounded one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from modicum.core.canonical import Plain
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.core.exact import number_text, parse_number

if TYPE_CHECKING:
    from ruamel.yaml.nodes import Node as YamlNode
    from ruamel.yaml.nodes import ScalarNode

#: Larger texts are refused before they are parsed.
TEXT_BYTES_MAX = 8 * 1024 * 1024
#: Deeper nesting is refused; no policy or release needs a tenth of it.
DEPTH_MAX = 24
#: More nodes are refused; aliases count once for each use.
NODES_MAX = 400_000


class Kind(Enum):
    """What a plain scalar is under the YAML 1.2 core schema."""

    TEXT = "text"
    NUMBER = "a number"
    BOOLEAN = "true or false"
    NULL = "nothing"


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value without parts.

    Attributes:
        kind: What it is.
        text: Its text as written, without quotes.
        quoted: Whether it stood in quotes (and so is text, whatever it says).
        mark: Where it stands.
    """

    kind: Kind
    text: str
    quoted: bool
    mark: Mark | None


@dataclass(frozen=True, slots=True)
class Items:
    """An ordered list of nodes."""

    items: tuple[Node, ...]
    mark: Mark | None


@dataclass(frozen=True, slots=True)
class Entries:
    """An ordered mapping; keys are scalars and differ in kind or text."""

    entries: tuple[tuple[Scalar, Node], ...]
    mark: Mark | None


Node: TypeAlias = Scalar | Items | Entries


def describe(node: Node) -> str:
    """Return what a node is, for a message: ``a list``, ``text "x"``."""
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
    """Return the tree as plain data in which order and exact values are kept.

    Mappings become lists of pairs, because the order of a policy's rules is part
    of what it says; numbers become their canonical text, marked as numbers. Two
    texts have the same plain form exactly if they say the same.
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


# --- from text ---------------------------------------------------------------


def read_document(data: bytes, file: str) -> Node:
    """Return the marked tree of a YAML or JSON text.

    Args:
        data: The bytes of the file, UTF-8, at most `TEXT_BYTES_MAX`.
        file: Its name, for messages.

    Raises:
        InputError: If the bytes are not text, the text is not one YAML document,
            or it uses what a reviewable file should not (tags, merge keys,
            duplicate keys, recursion).
    """
    text = _decode(data, file)
    return _Reader(text, file).read()


def _decode(data: bytes, file: str) -> str:
    if len(data) > TEXT_BYTES_MAX:
        problem = Problem(
            Code.TOO_LARGE,
            f"the file has {len(data)} bytes, more than {TEXT_BYTES_MAX}",
            Mark(file, 1, 1),
        )
        raise InputError(problem)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", errors="replace")
        raise InputError(_not_text(file, before, "it is not UTF-8")) from error
    control = re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]", text)
    if control is not None:
        raise InputError(
            _not_text(file, text[: control.start()], "it holds a control character")
        )
    return text


def _not_text(file: str, before: str, why: str) -> Problem:
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    return Problem(
        Code.NOT_TEXT,
        "the file is not text",
        Mark(file, line, column),
        notes=(f"{why} at this place",),
        help="give a YAML or JSON text in UTF-8",
    )


# YAML 1.2.2, section 10.3.2 (core schema).
_NUMBER = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
    r"|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
_BOOLEANS = frozenset({"true", "True", "TRUE", "false", "False", "FALSE"})
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_STANDARD_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("map", "seq", "str", "int", "float", "bool", "null", "timestamp")
)


def _plain_kind(text: str) -> Kind:
    if text in _NULLS:
        return Kind.NULL
    if text in _BOOLEANS:
        return Kind.BOOLEAN
    if _NUMBER.fullmatch(text):
        return Kind.NUMBER
    return Kind.TEXT


class _Reader:
    """Turns ruamel.yaml's composed nodes into ours, under the limits above."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._lines = text.splitlines()
        self._nodes = 0

    def read(self) -> Node:
        # Imported here: `modicum --help` reads no YAML.
        from ruamel.yaml import YAML
        from ruamel.yaml.error import MarkedYAMLError, YAMLError
        from ruamel.yaml.reader import ReaderError

        self._refuse_depth()
        yaml = YAML(typ="safe", pure=True)
        try:
            root: YamlNode | None = yaml.compose(self._text)
        except ReaderError as error:
            before = self._text[: error.position or 0]
            raise InputError(
                _not_text(self._file, before, "it holds a character YAML forbids")
            ) from error
        except MarkedYAMLError as error:
            raise InputError(self._syntax(error)) from error
        except (YAMLError, RecursionError, ValueError, IndexError) as error:
            problem = Problem(
                Code.YAML_SYNTAX, "this is not YAML", Mark(self._file, 1, 1)
            )
            raise InputError(problem) from error
        if root is None:
            problem = Problem(
                Code.EMPTY_DOCUMENT, "the file is empty", Mark(self._file, 1, 1)
            )
            raise InputError(problem)
        return self._node(root, ())

    def _refuse_depth(self) -> None:
        """Refuse nesting that would exhaust the parser's own recursion."""
        depth = 0
        for place, character in enumerate(self._text):
            if character in "[{":
                depth += 1
                if depth > 8 * DEPTH_MAX:
                    raise InputError(self._too_deep(self._mark_at(place)))
            elif character in "]}":
                depth = max(0, depth - 1)

    def _mark_at(self, place: int) -> Mark:
        before = self._text[:place]
        line = before.count("\n")
        return self._mark(line, place - (before.rfind("\n") + 1), 1)

    def _too_deep(self, mark: Mark | None) -> Problem:
        return Problem(
            Code.TOO_LARGE, f"nesting is deeper than {DEPTH_MAX} levels", mark
        )

    def _mark(self, line: int, column: int, length: int) -> Mark:
        source = self._lines[line] if line < len(self._lines) else ""
        return Mark(self._file, line + 1, column + 1, max(1, length), source)

    def _syntax(self, error: object) -> Problem:
        place = getattr(error, "problem_mark", None) or getattr(
            error, "context_mark", None
        )
        what = getattr(error, "problem", None) or getattr(error, "context", None)
        context = getattr(error, "context", None)
        code = Code.YAML_SYNTAX
        if context and "expected a single document" in context:
            code, what = Code.YAML_FEATURE, "the file holds more than one document"
        mark = Mark(self._file, 1, 1)
        if place is not None:
            mark = self._mark(place.line, place.column, 1)
        return Problem(code, " ".join(str(what or "this is not YAML").split()), mark)

    def _node(self, node: YamlNode, above: tuple[int, ...]) -> Node:
        from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

        start, end = node.start_mark, node.end_mark
        length = end.column - start.column if end.line == start.line else 1
        if not isinstance(node, ScalarNode) and end.line != start.line:
            length = 1
        mark = self._mark(start.line, start.column, length)
        self._nodes += 1
        if self._nodes > NODES_MAX:
            problem = Problem(
                Code.TOO_LARGE, f"more than {NODES_MAX} values in one file", mark
            )
            raise InputError(problem)
        if len(above) > DEPTH_MAX or id(node) in above:
            raise InputError(self._too_deep(mark))
        self._refuse_tag(node, mark)
        path = (*above, id(node))
        if isinstance(node, ScalarNode):
            return self._scalar(node, mark)
        if isinstance(node, SequenceNode):
            return Items(tuple(self._node(item, path) for item in node.value), mark)
        if isinstance(node, MappingNode):
            return Entries(tuple(self._entries(node, path)), mark)
        raise InputError(Problem(Code.YAML_SYNTAX, "this is not YAML", mark))

    def _refuse_tag(self, node: YamlNode, mark: Mark) -> None:
        tag = str(node.tag)
        explicit = self._source_at(mark).startswith("!")
        if explicit or tag not in _STANDARD_TAGS:
            raise InputError(
                Problem(
                    Code.YAML_FEATURE,
                    "tags (`!…`) and merge keys (`<<`) are not part of the format",
                    mark,
                    help="write the value out",
                )
            )

    def _source_at(self, mark: Mark) -> str:
        return mark.source[mark.column - 1 :]

    def _scalar(self, node: ScalarNode, mark: Mark) -> Scalar:
        quoted = node.style is not None
        text = str(node.value)
        if any("\ud800" <= character <= "\udfff" for character in text):
            text = self._join_surrogates(text, mark)
        return Scalar(Kind.TEXT if quoted else _plain_kind(text), text, quoted, mark)

    def _join_surrogates(self, text: str, mark: Mark) -> str:
        """Join the two escapes that JSON writes one character as; refuse a half."""
        try:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError as error:
            problem = Problem(
                Code.NOT_TEXT, "half of a surrogate pair is not a character", mark
            )
            raise InputError(problem) from error

    def _entries(
        self, node: YamlNode, path: tuple[int, ...]
    ) -> Iterator[tuple[Scalar, Node]]:
        seen: dict[str, Scalar] = {}
        for key_node, value_node in node.value:
            key = self._node(key_node, path)
            if not isinstance(key, Scalar):
                problem = Problem(
                    Code.WRONG_TYPE,
                    f"a key must be text, got {describe(key)}",
                    key.mark,
                )
                raise InputError(problem)
            if key.text in seen:
                first = seen[key.text].mark
                raise InputError(
                    Problem(
                        Code.DUPLICATE_KEY,
                        f"the key `{key.text}` stands twice",
                        key.mark,
                        notes=(f"first at {first}",),
                    )
                )
            seen[key.text] = key
            yield key, self._node(value_node, path)


# --- from Python values ------------------------------------------------------


def from_python(value: object) -> Node:
    """Return the tree of a Python value, read as if it stood in a file.

    A float means its shortest decimal text: ``0.1`` is one tenth.

    Raises:
        InputError: If the value holds something a file could not hold.
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
            return Scalar(Kind.TEXT, value, quoted=True, mark=None)
        case Mapping():
            return Entries(tuple(_pairs(value, depth)), None)
        case Sequence():
            items = tuple(_from_python(item, depth + 1) for item in value)
            return Items(items, None)
        case _:
            raise InputError(_no_value(value))


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
                Code.DUPLICATE_KEY, f"the key `{scalar.text[:60]}` stands twice"
            )
            raise InputError(problem)
        seen.add(scalar.text)
        yield scalar, _from_python(item, depth + 1)


def _no_value(value: object) -> Problem:
    return Problem(
        Code.WRONG_TYPE,
        f"a value of type `{type(value).__name__}` cannot stand in a release",
    )


def _key(key: object) -> Scalar:
    if isinstance(key, str):
        return Scalar(Kind.TEXT, key, quoted=True, mark=None)
    if isinstance(key, int | float | Decimal) and not isinstance(key, bool):
        return Scalar(Kind.NUMBER, _number_text(key), quoted=False, mark=None)
    problem = Problem(
        Code.WRONG_TYPE, f"a key must be text or a number, got {type(key).__name__}"
    )
    raise InputError(problem)
