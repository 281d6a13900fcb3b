"""Where a character of a value stands in its file: through quotes and folds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from modicum.core.document import Scalar
from modicum.core.errors import Mark

#: What stands for one character, by the quote around it.
_PIECES = {
    '"': re.compile(r"\\(?:x(..)|u(....)|U(.{8})|(.)|$)|."),
    "'": re.compile(r"''|."),
    "": re.compile(r"."),
}
#: Escapes of YAML that stand for white space.
_BLANKS = frozenset("tnvfr NLP_\t")


def place_inside(node: Scalar, line: int, column: int) -> Mark | None:
    """Return the place in the file of a character of a value.

    White space is what folding changes; so the place is found by counting all the
    other characters before it.

    Args:
        node: The value.
        line: The line of the character within the value, from 1.
        column: Its column there, from 1.

    Returns:
        A mark of one character; the value's own place if the character is not
        found, and None if the value does not come from a file.
    """
    if node.mark is None:
        return None
    before = node.text.split("\n")[:line]
    before[-1] = before[-1][: column - 1]
    wanted = sum(not character.isspace() for character in "".join(before))
    return next(islice(_characters(node, node.mark), wanted, None), node.mark)


def _characters(node: Scalar, mark: Mark) -> Iterator[Mark]:
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
