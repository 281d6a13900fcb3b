"""The canonical text of a policy: equal policies have equal bytes.

Its SHA-256 names the version of a policy, so no rule here may ever change; nor may one
depend on tables that grow, such as those of Unicode. The rules:

- Keys of the format have a fixed order; names given by the author keep theirs. Lists
  keep their order.
- A number is written as a plain decimal from 0.001 to below 1e9, and as `1.5e-7`
  beyond.
- A text is unquoted if it is a word that begins with a letter; otherwise, and always if
  it is a predicate, it is in double quotes, or in single quotes if it contains a double
  quote or a backslash. A text with line breaks or other control characters is in double
  quotes, for their escapes.
- A mapping or list is on one line where it fits 88 columns and contains no comment;
  sections, attributes and settings have a line for each entry. In a section, an item of
  several lines is separated from its neighbors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from modicum.core.document import Entries, Items, Kind, Node, Scalar
from modicum.core.errors import check
from modicum.core.rationals import number_spelled, parse_number
from modicum.core.yaml_reader import read_document
from modicum.policy.document.comments import (
    NO_COMMENTS,
    Comments,
    comments_of,
    place_of,
)
from modicum.policy.document.layout import POLICY, VALUE, Shape

#: No mapping or list is written on one line that is longer.
COLUMNS = 88

#: Top-level keys without an empty line between them.
_HEAD = frozenset({"modicum", "include", "name"})

# A letter or `_`, then also digits and `.+-/@`; characters from U+00A1 count as letters
# here, whatever they are. The complement compiles much faster.
_WORD = re.compile(r"[^\x00-@\[-^`{-\xa0][^\x00-*,:-?\[-^`{-\xa0]*")
# Texts that YAML reads, or once read, as another type.
_TAKEN = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
# Control characters, line breaks, byte order marks, and bidirectional controls.
_ESCAPED = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    r"\ufeff\ufffe\uffff]"
)


def formatted(node: Node, comments: Comments = NO_COMMENTS) -> str:
    """Return the canonical text of a policy.

    Args:
        node: The tree of the policy.
        comments: The author's comments, written above their subjects. The text that
            defines a version has none.
    """
    return _Writer(comments).text(node)


def reformatted(data: bytes, file: str) -> str:
    """Return a policy's text in canonical layout, with its comments.

    Raises:
        InputError: If the bytes are not one YAML document.
    """
    node = read_document(data, file)
    comments = comments_of(data.decode("utf-8-sig"), node)
    text = formatted(node, comments)
    again = read_document(text.encode(), file)
    check(
        formatted(again) == formatted(node)
        and comments_of(text, again).texts() == comments.texts(),
        "POL-6: a new layout has the same meaning",
    )
    return text


class _Writer:
    """Writes one tree; every comment is written once."""

    def __init__(self, comments: Comments) -> None:
        self._comments = comments
        self._above = dict(comments.above)

    def text(self, node: Node) -> str:
        lines = [*self._comments.header]
        if isinstance(node, Entries) and node.entries:
            for place, (key, value) in enumerate(POLICY.ordered(node)):
                if place and key.text not in _HEAD:
                    lines.append("")
                lines += self._entry(key, value, POLICY.below(key.text), COLUMNS)
        else:
            lines.append(_on_one_line(node, POLICY))
        footer = self._comments.footer
        lines.extend(("", *footer) if footer else ())
        return "\n".join(lines) + "\n"

    def _entry(self, key: Scalar, value: Node, shape: Shape, columns: int) -> list[str]:
        lines = self._take_above(key)
        head = f"{_spelled(key)}:"
        if self._is_short(value, shape, columns - len(head) - 1):
            return [*lines, f"{head} {_on_one_line(value, shape)}"]
        below = self._block(value, shape, columns - 2)
        return [*lines, head, *_indented(below)]

    def _item(self, node: Node, shape: Shape, columns: int) -> list[str]:
        lines = self._take_above_item(node, shape)
        if self._is_short(node, shape, columns - 2):
            return [*lines, f"- {_on_one_line(node, shape)}"]
        below = self._block(node, shape, columns - 2)
        return [*lines, f"- {below[0]}", *_indented(below[1:])]

    def _block(self, node: Node, shape: Shape, columns: int) -> list[str]:
        shape = shape.at(node)
        lines: list[str] = []
        if isinstance(node, Entries):
            for key, value in shape.ordered(node):
                lines.extend(self._entry(key, value, shape.below(key.text), columns))
        elif isinstance(node, Items):
            each = shape.each or VALUE
            items = [self._item(item, each, columns) for item in node.items]
            for place, item in enumerate(items):
                apart = place and max(len(item), len(items[place - 1])) > 1
                lines.extend(("", *item) if shape.open and apart else item)
        return lines

    def _is_short(self, node: Node, shape: Shape, columns: int) -> bool:
        if isinstance(node, Scalar) or not _parts(node):
            return True
        return (
            not _has_open_part(node, shape)
            and not (self._above and self._is_remarked(node))
            and len(_on_one_line(node, shape)) <= columns
        )

    def _is_remarked(self, node: Node) -> bool:
        """Return whether a comment is waiting for a part of a node."""
        if isinstance(node, Entries):
            return any(
                place_of(key) in self._above or self._is_remarked(value)
                for key, value in node.entries
            )
        return isinstance(node, Items) and any(
            place_of(item) in self._above or self._is_remarked(item)
            for item in node.items
        )

    def _take_above_item(self, node: Node, shape: Shape) -> list[str]:
        """Take the comments above an item and above the value behind its dash."""
        lines = self._take_above(node)
        if isinstance(node, Entries) and node.entries:
            lines += self._take_above(shape.at(node).ordered(node)[0][0])
        elif isinstance(node, Items) and node.items:
            lines += self._take_above_item(node.items[0], shape.each or VALUE)
        return lines

    def _take_above(self, node: Node) -> list[str]:
        place = place_of(node)
        return [] if place is None else list(self._above.pop(place, ()))


def _indented(lines: list[str]) -> Iterator[str]:
    return (f"  {line}" if line else "" for line in lines)


def _parts(node: Node) -> tuple[object, ...]:
    match node:
        case Items(items=items):
            return items
        case Entries(entries=entries):
            return entries
        case Scalar():
            return ()


def _has_open_part(node: Node, shape: Shape) -> bool:
    shape = shape.at(node)
    if shape.open and _parts(node):
        return True
    if isinstance(node, Entries):
        return any(
            _has_open_part(value, shape.below(key.text)) for key, value in node.entries
        )
    if isinstance(node, Items):
        return any(_has_open_part(item, shape.each or VALUE) for item in node.items)
    return False


def _on_one_line(node: Node, shape: Shape) -> str:
    shape = shape.at(node)
    match node:
        case Scalar():
            return _spelled(node, predicate=shape.predicate)
        case Items(items=items):
            each = shape.each or VALUE
            return f"[{', '.join(_on_one_line(item, each) for item in items)}]"
        case Entries():
            pairs = (
                f"{_spelled(key)}: {_on_one_line(value, shape.below(key.text))}"
                for key, value in shape.ordered(node)
            )
            return f"{{{', '.join(pairs)}}}"


# --- scalars -----------------------------------------------------------------


def _spelled(scalar: Scalar, *, predicate: bool = False) -> str:
    match scalar.kind:
        case Kind.NUMBER:
            value = parse_number(scalar.text)
            return scalar.text if value is None else number_spelled(value)
        case Kind.BOOLEAN:
            return scalar.text.lower()
        case Kind.NULL:
            return "null"
        case Kind.TEXT:
            return scalar.text if _is_plain(scalar, predicate) else _quoted(scalar.text)


def _is_plain(scalar: Scalar, predicate: bool) -> bool:  # noqa: FBT001 - private
    return (
        not predicate
        and _WORD.fullmatch(scalar.text) is not None
        and _ESCAPED.search(scalar.text) is None
        and scalar.text.lower() not in _TAKEN
    )


def _quoted(text: str) -> str:
    if _ESCAPED.search(text) is None:
        if '"' not in text and "\\" not in text:
            return f'"{text}"'
        return "'" + text.replace("'", "''") + "'"
    # JSON's escapes are YAML's, too.
    return _ESCAPED.sub(
        lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False)
    )
