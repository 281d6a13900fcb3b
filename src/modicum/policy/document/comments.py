"""The comments of a text, each with its subject.

A comment on a separate line, or behind a dash, belongs to what follows; one behind a
value belongs to what begins on its line.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct, field

from modicum.core.document import Entries, Items, Node
from modicum.core.yaml_reader import scanner

#: Line and column, from 1.
Place: TypeAlias = tuple[int, int]

_LINE_BREAK = re.compile(r"\r\n|\r|\n")


class Comments(Struct, frozen=True):
    """An author's comments; an empty text represents an empty line.

    Attributes:
        header: At the top of the file.
        above: By the place of the key or item that it is about.
        footer: After everything.
    """

    header: tuple[str, ...] = ()
    above: Mapping[Place, tuple[str, ...]] = field(default_factory=dict)
    footer: tuple[str, ...] = ()

    def texts(self) -> list[str]:
        """Return every comment, sorted."""
        lines = [*self.header, *self.footer]
        for some in self.above.values():
            lines.extend(some)
        return sorted(line for line in lines if line)


NO_COMMENTS = Comments()


class _Comment(Struct, frozen=True):
    line: int
    column: int
    own_line: bool
    text: str


def place_of(node: Node) -> Place | None:
    """Return the start of a node; None if it is not from a file."""
    return (node.mark.line, node.mark.column) if node.mark is not None else None


def comments_of(text: str, node: Node) -> Comments:
    """Return the comments of a text."""
    owners = _owners(node)
    places = sorted(owners)
    header: list[_Comment] = []
    footer: list[_Comment] = []
    above: dict[Place, list[_Comment]] = {}
    for comment in _found(text):
        if not places or (comment.line, comment.column) < places[0]:
            header.append(comment)
        elif (owner := _owner(comment, places)) is None:
            footer.append(comment)
        else:
            above.setdefault(owners[owner], []).append(comment)
    top = _lines(header)
    if header and places and places[0][0] - header[-1].line > 1:
        top = (*top, "")
    by_place = {place: _lines(comments) for place, comments in above.items()}
    return Comments(top, by_place, _lines(footer))


def _owner(comment: _Comment, places: list[Place]) -> Place | None:
    if comment.own_line:
        after = bisect_right(places, (comment.line, comment.column))
        return places[after] if after < len(places) else None
    first = bisect_left(places, (comment.line, 0))
    if first < len(places) and places[first][0] == comment.line:
        return places[first]
    return places[first - 1]  # Behind the end of a node that began on an earlier line.


def _lines(comments: list[_Comment]) -> tuple[str, ...]:
    """Return the texts, with an empty line where there was one between two."""
    lines: list[str] = []
    last: _Comment | None = None
    for comment in comments:
        apart = last is not None and comment.line - last.line > 1
        if last is not None and apart and comment.own_line and last.own_line:
            lines.append("")
        lines.append(comment.text)
        last = comment
    return tuple(lines)


def _owners(root: Node) -> dict[Place, Place]:
    """Return, for every place where something begins, the key or item it belongs to."""
    owners: dict[Place, Place] = {}
    last: Place = (0, 0)

    def note(place: Place | None, owner: Place | None) -> None:
        nonlocal last
        # The target of an alias begins before it: it is already recorded there.
        if place is not None and owner is not None and place >= last:
            owners[place] = owner
            last = place

    def walk(node: Node) -> None:
        if isinstance(node, Entries):
            for key, value in node.entries:
                note(place_of(key), place_of(key))
                if not _children(value):
                    note(place_of(value), place_of(key))
                walk(value)
        elif isinstance(node, Items):
            for item in node.items:
                note(place_of(item), place_of(item))
                walk(item)

    walk(root)
    return owners


def _children(node: Node) -> bool:
    return bool(getattr(node, "entries", ()) or getattr(node, "items", ()))


def _found(text: str) -> Iterator[_Comment]:
    lines = zip(
        _LINE_BREAK.split(text), _LINE_BREAK.split(_without_texts(text)), strict=True
    )
    for number, (line, bare) in enumerate(lines, 1):
        start = bare.find("#")
        if start >= 0:
            own_line = not bare[:start].strip(" \t-")  # A dash alone is no content.
            yield _Comment(number, start + 1, own_line, line[start:].rstrip())


def _without_texts(text: str) -> str:
    """Return the text with an x for every character in which a # is no comment."""
    from yaml import AliasToken, AnchorToken, ScalarToken

    from modicum.core.surrogates import without_halves

    parts: list[str] = []
    done = 0
    same_places, _ = without_halves(text) or (text, None)
    next_token = scanner(same_places).get_token
    while (token := next_token()) is not None:
        if not isinstance(token, ScalarToken | AnchorToken | AliasToken):
            continue
        start, end = token.start_mark.index, token.end_mark.index
        if getattr(token, "style", None) in ("|", ">"):
            line_end = _LINE_BREAK.search(text, start)  # A header may have a comment.
            start = line_end.start() if line_end is not None else end
        parts.append(text[done:start])
        parts.append(re.sub(r"[^\r\n]", "x", text[start:end]))
        done = end
    return "".join((*parts, text[done:]))
