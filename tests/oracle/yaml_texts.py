"""What a YAML text means, by another scanner and parser: ruamel.yaml, in Python."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
)

from modicum.core.document import DEPTH_MAX, Entries, Items, Kind, Node, Scalar
from modicum.core.errors import Mark
from modicum.core.yaml_reader import plain_kind

_LINE_BREAK = re.compile(r"\r\n|\r|\n")


class RefusedError(Exception):
    """The text is not one that the product reads."""


def tree(text: str, file: str, nodes: int) -> Node:
    """Return the marked tree of a text without forbidden characters.

    Raises:
        RefusedError: If it is not one YAML document within the limits.
    """
    reader = _Reader(text, file, nodes)
    try:
        return reader.document(YAML(typ="safe", pure=True).parse(text))
    except (YAMLError, ValueError, OverflowError, IndexError, RecursionError) as error:
        raise RefusedError(str(error)) from error


class _Reader:
    def __init__(self, text: str, file: str, nodes: int) -> None:
        self._file = file
        self._lines = _LINE_BREAK.split(text)
        self._left = nodes
        self._anchors: dict[str, tuple[Node, int]] = {}

    def document(self, events: Iterator[Event]) -> Node:
        next(events)
        _refuse(not isinstance(next(events), DocumentStartEvent), "empty")
        root, _ = self._node(next(events), events, 0)
        next(events)
        _refuse(isinstance(next(events), DocumentStartEvent), "a second document")
        _refuse(_is_absent(root), "empty")
        return root

    def _node(
        self, event: Event, events: Iterator[Event], depth: int
    ) -> tuple[Node, int]:
        """Return a node, and how many it counts as."""
        assert isinstance(event, NodeEvent)
        _refuse(depth > DEPTH_MAX, "too deep")
        if isinstance(event, AliasEvent):
            _refuse(str(event.anchor) not in self._anchors, "undefined")
            found, count = self._anchors[str(event.anchor)]
            self._count(1 + count)
            return found, 1 + count
        self._count(1)
        _refuse(getattr(event, "tag", None) is not None, "a tag")
        node: Node
        count = 1
        if isinstance(event, ScalarEvent):
            node = self._scalar(event)
        elif isinstance(event, MappingStartEvent):
            entries: list[tuple[Scalar, Node]] = []
            seen: set[str] = set()
            while not isinstance(inner := next(events), MappingEndEvent):
                key, counted = self._node(inner, events, depth + 1)
                count += counted
                _refuse(not isinstance(key, Scalar), "a key that is no scalar")
                assert isinstance(key, Scalar)
                _refuse(key.text == "<<" and not key.quoted, "a merge key")
                _refuse(key.text in seen, "a key twice")
                seen.add(key.text)
                value, counted = self._node(next(events), events, depth + 1)
                count += counted
                if _is_absent(value):
                    assert isinstance(value, Scalar)
                    value = replace(value, mark=key.mark)
                entries.append((key, value))
            node = Entries(tuple(entries), self._mark(event, inner))
        else:
            items: list[Node] = []
            while not isinstance(inner := next(events), SequenceEndEvent):
                item, counted = self._node(inner, events, depth + 1)
                count += counted
                items.append(item)
            node = Items(tuple(items), self._mark(event, inner))
        if event.anchor is not None:
            self._anchors[str(event.anchor)] = node, count
        return node, count

    def _count(self, nodes: int) -> None:
        self._left -= nodes
        _refuse(self._left < 0, "too many")

    def _scalar(self, event: ScalarEvent) -> Scalar:
        value = event.value
        if re.search("[\ud800-\udfff]", value):
            value = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        quoted = event.style not in (None, "")
        kind = Kind.TEXT if quoted else plain_kind(value)
        return Scalar(
            kind, value, quoted, self._mark(event, event), self._several(event)
        )

    def _mark(self, first: Event, last: Event) -> Mark:
        start, end = first.start_mark, last.end_mark
        length = end.column - start.column if end.line == start.line else 1
        return self._place(start.line, start.column, length)

    def _several(self, event: ScalarEvent) -> tuple[Mark, ...]:
        start, end = event.start_mark, event.end_mark
        if end.line == start.line:
            return ()
        lines = []
        if event.style not in ("|", ">"):
            lines.append(self._place(start.line, start.column, 1))
        for line in range(start.line + 1, min(end.line + 1, len(self._lines))):
            indent = len(self._lines[line]) - len(self._lines[line].lstrip())
            lines.append(self._place(line, indent, 1))
        return tuple(lines)

    def _place(self, line: int, column: int, length: int) -> Mark:
        source = self._lines[line] if line < len(self._lines) else ""
        return Mark(self._file, line + 1, column + 1, max(1, length), source)


def _refuse(wrong: bool, why: str) -> None:
    if wrong:
        raise RefusedError(why)


def _is_absent(node: Node) -> bool:
    return isinstance(node, Scalar) and node.kind is Kind.NULL and not node.text
