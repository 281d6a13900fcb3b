"""From bytes to a marked tree: YAML 1.2 (core schema) and JSON, read strictly.

libyaml scans and parses; this module builds the tree from its events, so that nesting,
tags and aliases are under our own limits and every node has its place.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from modicum.core.document import (
    DEPTH_MAX,
    Entries,
    Items,
    Kind,
    Node,
    Scalar,
    describe,
)
from modicum.core.errors import Code, InputError, Mark, Problem, UsageError

if TYPE_CHECKING:
    from modicum.core.surrogates import Halves

#: An event or a place of libyaml, whose binding has no types.
Event: TypeAlias = Any
Spot: TypeAlias = Any

#: Larger texts are refused before they are parsed.
TEXT_BYTES_MAX = 8 * 1024 * 1024
#: Maximum number of nodes; an alias counts like its target.
NODES_MAX = 400_000
#: After so many nodes a reader that is shared with others may pause.
TICK_NODES: Final = 256

_LINE_BREAK = re.compile(r"\r\n|\r|\n")
# Control characters, line breaks that only some programs recognize, and bidirectional
# controls: a reviewer would not see the real content.
_FORBIDDEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e"
    r"\u2066-\u2069\ufeff\ufffe\uffff]"
)

# YAML 1.2.2, section 10.3.2 (core schema).
_NUMBER = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
    r"|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
#: What may stand behind an anchor's name.
_AFTER_ANCHOR = frozenset({"", *" \t\r\n,]}"})
_BOOLEANS = frozenset({"true", "True", "TRUE", "false", "False", "FALSE"})
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
#: What all others than texts begin with.
_SPECIAL = frozenset("+-.0123456789~nNtTfF")


def read_document(
    data: bytes,
    file: str,
    nodes: int = NODES_MAX,
    tick: Callable[[], None] = lambda: None,
) -> Node:
    """Return the marked tree of a YAML or JSON text.

    Args:
        data: The bytes of the file, UTF-8, at most `TEXT_BYTES_MAX`.
        file: Its name, for messages.
        nodes: How many values and keys it may hold. They are counted as they are
            scanned, and the first that is too much ends that.
        tick: Called after each `TICK_NODES` of them; it may pause.

    Raises:
        InputError: If the bytes are not text, the text is not one YAML document,
            or it uses what a reviewable file should not (tags, merge keys,
            duplicate keys, recursion, deep nesting).
        UsageError: If PyYAML was built without libyaml.
    """
    return _Builder(decode_text(data, file), file, nodes, tick).build()


def decode_text(data: bytes, file: str) -> str:
    """Return the text of a file, without a byte order mark.

    Raises:
        InputError: If it is too large, not UTF-8, or contains control characters.
    """
    if len(data) > TEXT_BYTES_MAX:
        problem = Problem(
            Code.TOO_LARGE,
            f"the file has more than {TEXT_BYTES_MAX} bytes",
            Mark(file, 1, 1),
        )
        raise InputError(problem)
    try:
        text = data.removeprefix(BOM_UTF8).decode()  # `utf-8-sig` is slower.
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8", errors="replace")
        raise InputError(_not_text(file, before, "it is not UTF-8")) from error
    forbidden = _FORBIDDEN.search(text)
    if forbidden is not None:
        raise InputError(
            _not_text(
                file, text[: forbidden.start()], "it contains a control character"
            )
        )
    return text


def _not_text(file: str, before: str, why: str) -> Problem:
    lines = _LINE_BREAK.split(before)
    return Problem(
        Code.NOT_TEXT,
        "the file is not text",
        Mark(file, len(lines), len(lines[-1]) + 1),
        notes=(f"{why} at this place",),
        help="use YAML or JSON in UTF-8",
    )


def plain_kind(text: str) -> Kind:
    """Return the type of an unquoted scalar in the YAML 1.2 core schema."""
    if text and text[0] not in _SPECIAL:
        return Kind.TEXT
    if text in _NULLS:
        return Kind.NULL
    if text in _BOOLEANS:
        return Kind.BOOLEAN
    return Kind.NUMBER if _NUMBER.fullmatch(text) else Kind.TEXT


class _Anchored(Struct, frozen=True):
    """A node that aliases stand for.

    Attributes:
        node: The node.
        nodes: How many it contains, itself included.
        height: How many levels are below it.
    """

    node: Node
    nodes: int
    height: int


class _Builder:
    """Builds the tree of one text from the scanner's events."""

    def __init__(
        self, text: str, file: str, nodes_max: int, tick: Callable[[], None]
    ) -> None:
        self._text = text
        self._file = file
        self._lines = _LINE_BREAK.split(text)
        self._nodes = 0
        self._nodes_max = nodes_max
        self._most = min(nodes_max, TICK_NODES)  # Up to there nothing is to be done.
        self._tick = tick
        self._next: Callable[[], Event] = lambda: None
        self._halves: Halves | None = None
        self._anchors: dict[str, _Anchored] = {}
        self._deepest = 0  # Within the node that is being read.

    def build(self) -> Node:
        # Imported here: `modicum --help` reads no YAML.
        from yaml import MarkedYAMLError, YAMLError

        self._next = scanner(self._scanned()).get_event
        try:
            return self._document()
        except MarkedYAMLError as error:
            raise InputError(self._syntax(error)) from error
        except (YAMLError, UnicodeError) as error:  # Of bytes in a tag, for example.
            raise InputError(self._not_yaml("this is not YAML")) from error

    def _scanned(self) -> str:
        """Return the text as libyaml reads it, with the same places."""
        if "\\ud" not in self._text and "\\uD" not in self._text:
            return self._text
        from modicum.core.surrogates import without_halves

        replaced = without_halves(self._text)
        if replaced is None:
            raise InputError(self._not_yaml("too many different surrogates"))
        text, self._halves = replaced
        return text

    def _not_yaml(self, message: str) -> Problem:
        return Problem(Code.YAML_SYNTAX, message, Mark(self._file, 1, 1))

    def _document(self) -> Node:
        from yaml import DocumentStartEvent
        from yaml.parser import ParserError

        self._next()  # The beginning of the stream.
        if type(self._next()) is not DocumentStartEvent:
            problem = Problem(
                Code.EMPTY_DOCUMENT, "the file is empty", Mark(self._file, 1, 1)
            )
            raise InputError(problem)
        first = self._next()
        if getattr(first, "style", None) in ("|", ">"):
            raise self._feature(
                "a document is not a block of text",
                self._mark(first.start_mark, first.start_mark),
                "write a mapping",
            )
        root = self._node(first, 0)
        ended = self._next()
        try:
            after = self._next()
        except ParserError as error:
            if not ended.explicit:
                raise
            raise self._second(error.problem_mark, error.problem_mark) from error
        if type(after) is DocumentStartEvent:
            raise self._second(after.start_mark, after.end_mark)
        if isinstance(root, Scalar) and root.kind is Kind.NULL and not root.text:
            raise InputError(
                Problem(Code.EMPTY_DOCUMENT, "the file is empty", root.mark)
            )
        return root

    def _second(self, start: Spot, end: Spot) -> InputError:
        message = "the file contains more than one document"
        return InputError(Problem(Code.YAML_FEATURE, message, self._mark(start, end)))

    def _node(self, event: Event, depth: int) -> Node:
        kind = type(event).__name__
        self._nodes += 1
        if self._nodes > self._most or depth > DEPTH_MAX:
            self._pause(depth, event)
        if kind == "AliasEvent":
            return self._alias(event, depth)
        if event.tag is not None:
            self._refuse_tag(self._mark(event.start_mark, event.end_mark))
        counted, deepest = self._nodes, self._deepest
        self._deepest = depth
        node: Node
        if kind == "ScalarEvent":
            node = self._scalar(event)
        elif kind == "MappingStartEvent":
            entries, end = self._entries(depth)
            node = Entries(entries, self._mark(event.start_mark, end))
        else:
            items, end = self._items(depth)
            node = Items(items, self._mark(event.start_mark, end))
        if event.anchor is not None:
            self._refuse_anchor(event)
            self._anchors[event.anchor] = _Anchored(
                node, self._nodes - counted + 1, self._deepest - depth
            )
        self._deepest = max(self._deepest, deepest)
        return node

    def _pause(self, depth: int, event: Event) -> None:
        """Refuse what is too much, and otherwise let others go on."""
        if self._nodes > self._nodes_max or depth > DEPTH_MAX:
            mark = self._mark(event.start_mark, event.end_mark)
            self._refuse_size(depth, mark)
        self._most = min(self._nodes + TICK_NODES, self._nodes_max)
        self._tick()

    def _refuse_size(self, depth: int, mark: Mark) -> NoReturn:
        if self._nodes > self._nodes_max:
            problem = Problem(
                Code.TOO_LARGE,
                f"more than {self._nodes_max} values in one document",
                mark,
                notes=("aliases count each time they are used",),
                help="shorten it, or split it",
            )
            raise InputError(problem)
        problem = Problem(
            Code.TOO_LARGE,
            f"nesting is deeper than {DEPTH_MAX} levels",
            mark,
            help="close open brackets; no format here nests this deep",
        )
        raise InputError(problem)

    def _alias(self, event: Event, depth: int) -> Node:
        self._refuse_anchor(event)
        mark = self._mark(event.start_mark, event.end_mark)
        found = self._anchors.get(event.anchor)
        if found is None:
            problem = Problem(
                Code.YAML_SYNTAX,
                f"the alias `*{event.anchor}` is not defined before this place",
                mark,
            )
            raise InputError(problem)
        self._nodes += found.nodes
        depth += found.height
        if self._nodes > self._most or depth > DEPTH_MAX:
            self._pause(depth, event)
        self._deepest = max(self._deepest, depth)
        return found.node

    def _refuse_anchor(self, event: Event) -> None:
        """Refuse a name that does not end: `*a: 1` is no key to other parsers."""
        start = event.start_mark
        after = start.index + 1 + len(event.anchor)
        if self._text[after : after + 1] not in _AFTER_ANCHOR:
            message = f"no space follows the anchor `{event.anchor[:60]}`"
            mark = self._mark(start, start)
            raise self._feature(message, mark, "write a space after it")

    def _items(self, depth: int) -> tuple[tuple[Node, ...], Spot]:
        """Return the items of a list, and where it ends."""
        items: list[Node] = []
        while type(event := self._next()).__name__ != "SequenceEndEvent":
            items.append(self._node(event, depth + 1))
        return tuple(items), event.end_mark

    def _entries(self, depth: int) -> tuple[tuple[tuple[Scalar, Node], ...], Spot]:
        """Return the entries of a mapping, and where it ends."""
        entries: list[tuple[Scalar, Node]] = []
        seen: dict[str, Mark | None] = {}
        while type(event := self._next()).__name__ != "MappingEndEvent":
            key = self._key(self._node(event, depth + 1), seen)
            value = self._node(self._next(), depth + 1)
            if isinstance(value, Scalar) and value.kind is Kind.NULL and not value.text:
                value = replace(value, mark=key.mark)  # An absent value has none.
            entries.append((key, value))
        return tuple(entries), event.end_mark

    def _key(self, key: Node, seen: dict[str, Mark | None]) -> Scalar:
        """Return a key that is not among those before it, and now is."""
        if not isinstance(key, Scalar):
            problem = Problem(
                Code.WRONG_TYPE, f"a key must be text, got {describe(key)}", key.mark
            )
            raise InputError(problem)
        if key.text == "<<" and not key.quoted:
            raise self._feature(
                "merge keys (`<<`) are not part of the format", key.mark
            )
        if not key.text and not key.quoted:  # To some parsers it is no key at all.
            raise self._feature("a key is missing", key.mark, "write it before `:`")
        if key.text in seen:
            problem = Problem(
                Code.DUPLICATE_KEY,
                f"the key `{key.text[:60]}` is given twice",
                key.mark,
                notes=(f"first at {seen[key.text]}",),
            )
            raise InputError(problem)
        seen[key.text] = key.mark
        return key

    def _refuse_tag(self, mark: Mark) -> NoReturn:
        written = mark.source[mark.column - 1 :][: mark.length]
        remedy = "write the value out"
        if re.match(r"![\w.]*\(", written) and "'" not in written:
            remedy = f"write  '{written}'  instead of  {written}"
        raise self._feature("tags (`!…`) are not part of the format", mark, remedy)

    def _scalar(self, event: Event) -> Scalar:
        start, end = event.start_mark, event.end_mark
        mark = self._mark(start, end)
        value: str = event.value
        if self._halves is not None:
            value = _joined(self._halves.back(value, event.style), mark)
        quoted = bool(event.style)
        kind = Kind.TEXT if quoted else plain_kind(value)
        lines = self._lines_of(event) if end.line != start.line else ()
        return Scalar(kind, value, quoted, mark, lines)

    # --- places ---

    def _mark(self, start: Spot, end: Spot) -> Mark:
        """Return a place, up to another if that is on its line."""
        line, column = start.line, start.column
        if line == end.line < len(self._lines):
            source = self._lines[line]
            return Mark(
                self._file, line + 1, column + 1, (end.column - column) or 1, source
            )
        line, column = self._spot(start)
        last, after = self._spot(end)
        return self._place(line, column, after - column if last == line else 1)

    def _spot(self, mark: Spot) -> tuple[int, int]:
        if mark.line < len(self._lines):
            return mark.line, mark.column
        # libyaml ends the last line where the text does not.
        return len(self._lines) - 1, len(self._lines[-1])

    def _lines_of(self, event: Event) -> tuple[Mark, ...]:
        """Return the positions of the lines of a text with several."""
        begin, column = self._spot(event.start_mark)
        end, _ = self._spot(event.end_mark)
        if begin == end:
            return ()
        block = event.style in ("|", ">")  # It begins below its sign.
        lines = [] if block else [self._place(begin, column, 1)]
        for line in range(begin + 1, end + 1):
            indent = len(self._lines[line]) - len(self._lines[line].lstrip())
            lines.append(self._place(line, indent, 1))
        return tuple(lines)

    def _place(self, line: int, column: int, length: int) -> Mark:
        source = self._lines[line]
        return Mark(self._file, line + 1, column + 1, max(1, length), source)

    def _feature(
        self, message: str, mark: Mark | None, remedy: str = "write the value out"
    ) -> InputError:
        return InputError(Problem(Code.YAML_FEATURE, message, mark, help=remedy))

    def _syntax(self, error: Any) -> Problem:
        """Return the problem of invalid YAML, with the likely intention."""
        from modicum.core.yaml_hints import Complaint, explained

        what = error.problem or error.context or "not YAML"
        start = error.context_mark and self._spot(error.context_mark)
        spot = self._spot(error.problem_mark) if error.problem_mark else start
        complaint = Complaint(error.context or "", start, what, spot or (0, 0))
        slip = explained(complaint, self._lines)
        opened = slip.opened
        notes: tuple[str, ...] = ()
        if opened is not None:
            notes = (f"opened at {self._file}:{opened[0] + 1}:{opened[1] + 1}",)
        return Problem(
            Code.YAML_SYNTAX,
            slip.message,
            self._place(*slip.spot, 1),
            label=slip.label,
            notes=notes,
            help=slip.help,
        )


def scanner(text: str) -> Any:
    """Return libyaml's scanner of a text: `get_event` or `get_token` gives the next.

    Where PyYAML lacks libyaml, no other takes its place: two could read one text
    differently.

    Raises:
        UsageError: If PyYAML lacks it.
    """
    try:
        from yaml.cyaml import CParser
    except ImportError as error:
        problem = Problem(
            Code.NOT_SUPPORTED,
            "PyYAML is installed without libyaml",
            help="install one of its wheels, or build it where libyaml's headers are",
        )
        raise UsageError(problem) from error
    return CParser(text)


def _joined(value: str, mark: Mark) -> str:
    """Join the two escapes that JSON writes one character as; refuse a half."""
    from modicum.core.surrogates import joined

    whole = joined(value)
    if whole is None:
        problem = Problem(
            Code.NOT_TEXT, "an unpaired surrogate is not a character", mark
        )
        raise InputError(problem)
    return whole
