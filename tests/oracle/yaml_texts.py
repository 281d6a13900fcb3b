"""From bytes to a marked tree: YAML 1.2 (core schema) and JSON, read strictly.

ruamel.yaml scans and parses; this module builds the tree from its events, so that
nesting, tags and aliases are under our own limits and every node has its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from modicum.core.document import (
    DEPTH_MAX,
    Entries,
    Items,
    Kind,
    Node,
    Scalar,
    describe,
)
from modicum.core.errors import Code, InputError, Mark, Problem

if TYPE_CHECKING:
    from ruamel.yaml.error import MarkedYAMLError, StreamMark
    from ruamel.yaml.events import Event, NodeEvent, ScalarEvent

    from modicum.core.yaml_hints import Spot

#: Larger texts are refused before they are parsed.
TEXT_BYTES_MAX = 8 * 1024 * 1024
#: Maximum number of nodes; an alias counts like its target.
NODES_MAX = 400_000

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
_BOOLEANS = frozenset({"true", "True", "TRUE", "false", "False", "FALSE"})
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


def read_document(data: bytes, file: str, nodes: int = NODES_MAX) -> Node:
    """Return the marked tree of a YAML or JSON text.

    Args:
        data: The bytes of the file, UTF-8, at most `TEXT_BYTES_MAX`.
        file: Its name, for messages.
        nodes: How many values it may hold. They are counted as they are scanned, and
            the first that is too much ends that.

    Raises:
        InputError: If the bytes are not text, the text is not one YAML document,
            or it uses what a reviewable file should not (tags, merge keys,
            duplicate keys, recursion, deep nesting).
    """
    return _Builder(decode_text(data, file), file, nodes).build()


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
        text = data.decode("utf-8-sig")
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
    if text in _NULLS:
        return Kind.NULL
    if text in _BOOLEANS:
        return Kind.BOOLEAN
    return Kind.NUMBER if _NUMBER.fullmatch(text) else Kind.TEXT


class _Builder:
    """Builds the tree of one text from the parser's events."""

    def __init__(self, text: str, file: str, nodes_max: int) -> None:
        self._text = text
        self._file = file
        self._lines = _LINE_BREAK.split(text)
        self._nodes = 0
        self._nodes_max = nodes_max
        self._end: Event | None = None  # The end of the collection built last.
        self._anchors: dict[str, tuple[Node, int]] = {}

    def build(self) -> Node:
        # Imported here: `modicum --help` reads no YAML.
        from ruamel.yaml import YAML
        from ruamel.yaml.error import MarkedYAMLError, YAMLError

        events = YAML(typ="safe", pure=True).parse(self._text)
        try:
            return self._document(events)
        except InputError:
            raise
        except MarkedYAMLError as error:
            raise InputError(self._syntax(error)) from error
        except (
            YAMLError,
            ValueError,
            OverflowError,
            IndexError,
            RecursionError,
        ) as error:
            problem = Problem(
                Code.YAML_SYNTAX, "this is not YAML", Mark(self._file, 1, 1)
            )
            raise InputError(problem) from error

    def _document(self, events: Iterator[Event]) -> Node:
        from ruamel.yaml.events import DocumentStartEvent

        next(events)  # The beginning of the stream.
        if not isinstance(next(events), DocumentStartEvent):
            problem = Problem(
                Code.EMPTY_DOCUMENT, "the file is empty", Mark(self._file, 1, 1)
            )
            raise InputError(problem)
        root = self._node(next(events), events, 0)
        next(events)  # The end of the document.
        after = next(events)
        if isinstance(after, DocumentStartEvent):
            message = "the file contains more than one document"
            raise InputError(Problem(Code.YAML_FEATURE, message, self._mark(after)))
        if isinstance(root, Scalar) and root.kind is Kind.NULL and not root.text:
            raise InputError(
                Problem(Code.EMPTY_DOCUMENT, "the file is empty", root.mark)
            )
        return root

    def _node(self, event: Event, events: Iterator[Event], depth: int) -> Node:
        from ruamel.yaml.events import (
            AliasEvent,
            MappingStartEvent,
            NodeEvent,
            ScalarEvent,
        )

        assert isinstance(event, NodeEvent)
        mark = self._mark(event)
        self._count(1, mark)
        if depth > DEPTH_MAX:
            problem = Problem(
                Code.TOO_LARGE,
                f"nesting is deeper than {DEPTH_MAX} levels",
                mark,
                help="close open brackets; no format here nests this deep",
            )
            raise InputError(problem)
        if isinstance(event, AliasEvent):
            return self._alias(event, mark)
        self._refuse_tag(event, mark)
        counted = self._nodes
        node: Node
        if isinstance(event, ScalarEvent):
            lines = self._lines_of(event)
            node = self._scalar(event.value, event.style, mark, lines)
        elif isinstance(event, MappingStartEvent):
            entries = tuple(self._entries(events, depth))
            node = Entries(entries, self._mark(event, self._end))
        else:
            items = tuple(self._items(events, depth))
            node = Items(items, self._mark(event, self._end))
        if event.anchor is not None:
            self._anchors[str(event.anchor)] = node, self._nodes - counted + 1
        return node

    def _count(self, nodes: int, mark: Mark) -> None:
        self._nodes += nodes
        if self._nodes > self._nodes_max:
            problem = Problem(
                Code.TOO_LARGE,
                f"more than {self._nodes_max} values in one document",
                mark,
                notes=("aliases count each time they are used",),
                help="shorten it, or split it",
            )
            raise InputError(problem)

    def _alias(self, event: NodeEvent, mark: Mark) -> Node:
        found = self._anchors.get(str(event.anchor))
        if found is None:
            problem = Problem(
                Code.YAML_SYNTAX,
                f"the alias `*{event.anchor}` is not defined before this place",
                mark,
            )
            raise InputError(problem)
        node, nodes = found
        self._count(nodes, mark)
        return node

    def _items(self, events: Iterator[Event], depth: int) -> Iterator[Node]:
        from ruamel.yaml.events import SequenceEndEvent

        while not isinstance(event := next(events), SequenceEndEvent):
            yield self._node(event, events, depth + 1)
        self._end = event

    def _entries(
        self, events: Iterator[Event], depth: int
    ) -> Iterator[tuple[Scalar, Node]]:
        from ruamel.yaml.events import MappingEndEvent

        seen: dict[str, Mark | None] = {}
        while not isinstance(event := next(events), MappingEndEvent):
            key = self._node(event, events, depth + 1)
            if not isinstance(key, Scalar):
                problem = Problem(
                    Code.WRONG_TYPE,
                    f"a key must be text, got {describe(key)}",
                    key.mark,
                )
                raise InputError(problem)
            if key.text == "<<" and not key.quoted:
                raise self._feature(
                    "merge keys (`<<`) are not part of the format", key.mark
                )
            if key.text in seen:
                problem = Problem(
                    Code.DUPLICATE_KEY,
                    f"the key `{key.text[:60]}` is given twice",
                    key.mark,
                    notes=(f"first at {seen[key.text]}",),
                )
                raise InputError(problem)
            seen[key.text] = key.mark
            value = self._node(next(events), events, depth + 1)
            if isinstance(value, Scalar) and value.kind is Kind.NULL and not value.text:
                value = replace(value, mark=key.mark)  # An absent value has none.
            yield key, value
        self._end = event

    def _refuse_tag(self, event: NodeEvent, mark: Mark) -> None:
        if getattr(event, "tag", None) is None:
            return
        written = mark.source[mark.column - 1 :][: mark.length]
        remedy = "write the value out"
        if re.match(r"![\w.]*\(", written) and "'" not in written:
            remedy = f"write  '{written}'  instead of  {written}"
        raise self._feature("tags (`!…`) are not part of the format", mark, remedy)

    def _scalar(
        self, value: str, style: str | None, mark: Mark, lines: tuple[Mark, ...]
    ) -> Scalar:
        quoted = style not in (None, "")
        if any("\ud800" <= character <= "\udfff" for character in value):
            value = _joined_surrogates(value, mark)
        kind = Kind.TEXT if quoted else plain_kind(value)
        return Scalar(kind, value, quoted, mark, lines)

    # --- places ---

    def _mark(self, event: Event, last: Event | None = None) -> Mark:
        """Return the place of an event, up to the end of another if on its line."""
        start, end = event.start_mark, (last or event).end_mark
        one_line = end is not None and end.line == start.line
        return self._place(
            start.line, start.column, end.column - start.column if one_line else 1
        )

    def _lines_of(self, event: ScalarEvent) -> tuple[Mark, ...]:
        """Return the positions of the lines of a text with several."""
        start, end = event.start_mark, event.end_mark
        if end is None or end.line == start.line:
            return ()
        block = event.style in ("|", ">")  # It begins below its sign.
        lines = [] if block else [self._place(start.line, start.column, 1)]
        for line in range(start.line + 1, min(end.line + 1, len(self._lines))):
            indent = len(self._lines[line]) - len(self._lines[line].lstrip())
            lines.append(self._place(line, indent, 1))
        return tuple(lines)

    def _place(self, line: int, column: int, length: int) -> Mark:
        source = self._lines[line] if line < len(self._lines) else ""
        return Mark(self._file, line + 1, column + 1, max(1, length), source)

    def _feature(
        self, message: str, mark: Mark | None, remedy: str = "write the value out"
    ) -> InputError:
        return InputError(Problem(Code.YAML_FEATURE, message, mark, help=remedy))

    def _syntax(self, error: MarkedYAMLError) -> Problem:
        """Return the problem of invalid YAML, with the likely intention."""
        from modicum.core.yaml_hints import Complaint, explained

        spot = _spot(error.problem_mark) or _spot(error.context_mark) or (0, 0)
        what = " ".join(str(error.problem or error.context or "not YAML").split())
        complaint = Complaint(
            str(error.context or ""), _spot(error.context_mark), what, spot
        )
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


def _spot(mark: StreamMark | None) -> Spot | None:
    return None if mark is None else (mark.line, mark.column)


def _joined_surrogates(value: str, mark: Mark) -> str:
    """Join the two escapes that JSON writes one character as; refuse a half."""
    try:
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError as error:
        problem = Problem(
            Code.NOT_TEXT, "an unpaired surrogate is not a character", mark
        )
        raise InputError(problem) from error
