"""A YAML text of several documents, as texts of one each that know their lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import structs

from modicum.core.document import Entries, Items, Node, Scalar
from modicum.core.errors import InputError, Mark
from modicum.core.yaml_reader import read_document

# YAML forbids a line that begins so anywhere within a document, also in quotes.
_START = re.compile(rb"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_LINE_BREAK = re.compile(rb"\r\n|\r|\n")
# A line that is blank, a comment, or a document marker.
_NOTHING = re.compile(rb"((---|\.\.\.)(?=[ \t]|\Z))?[ \t]*(#.*)?")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Piece:
    """The text of one document.

    Attributes:
        text: The text.
        file: The name of the file that it is from, for messages.
        before: The number of lines before it in the file.
    """

    text: bytes
    file: str
    before: int = 0

    def read(self) -> Node:
        """Return it as a tree that knows its places in the file."""
        try:
            node = read_document(self.text, self.file)
        except InputError:
            # Parsed again in its place, so that positions are right.
            read_document(b"\n" * self.before + self.text, self.file)
            raise
        return _moved(node, self.before, {}) if self.before else node


def pieces(data: bytes, file: str) -> Iterator[Piece]:
    """Yield the documents of a YAML text, without empty ones unless that is all."""
    data = data.removeprefix(_BYTE_ORDER_MARK)
    begin = before = 0
    found = False
    for end in (*(match.start() for match in _START.finditer(data)), len(data)):
        text = data[begin:end]
        filled = _has_content(text)
        if filled:
            found = True
            yield Piece(text, file, before)
        if filled or _START.search(text):  # Otherwise it belongs to the next one.
            before += len(_LINE_BREAK.findall(text))
            begin = end
    if not found:
        yield Piece(b"", file)


def _has_content(text: bytes) -> bool:
    """Return whether a text contains more than comments, directives and markers."""
    prefix = not text.startswith(b"---")  # Directives may precede it.
    return any(
        not _NOTHING.fullmatch(line) and not (prefix and line.startswith(b"%"))
        for line in text.splitlines()
    )


def _moved(node: Node, lines: int, known: dict[int, Node]) -> Node:
    """Return a tree some lines further down; aliases stay shared."""
    found = known.get(id(node))
    if found is not None:
        return found
    moved: Node
    match node:
        case Scalar(mark=mark, lines=several):
            own = tuple(_below(each, lines) for each in several)
            moved = structs.replace(node, mark=mark and _below(mark, lines), lines=own)
        case Items(items=items, mark=mark):
            inner = tuple(_moved(each, lines, known) for each in items)
            moved = Items(inner, mark and _below(mark, lines))
        case Entries(entries=entries, mark=mark):
            pairs = tuple(
                (_key(key, lines), _moved(value, lines, known))
                for key, value in entries
            )
            moved = Entries(pairs, mark and _below(mark, lines))
    known[id(node)] = moved
    return moved


def _key(key: Scalar, lines: int) -> Scalar:
    return structs.replace(key, mark=key.mark and _below(key.mark, lines))


def _below(mark: Mark, lines: int) -> Mark:
    return structs.replace(mark, line=mark.line + lines)
