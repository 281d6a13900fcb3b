"""The lines of a text of SQL, and places on them."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from modicum.core.errors import Mark

if TYPE_CHECKING:
    from sqlglot import Token

#: Tokens that are values of the data, perhaps; no message repeats them.
VALUES: Final = frozenset(
    [
        "STRING",
        "NUMBER",
        "BIT_STRING",
        "HEX_STRING",
        "BYTE_STRING",
        "NATIONAL_STRING",
        "RAW_STRING",
        "HEREDOC_STRING",
        "UNICODE_STRING",
    ]
)


class Lines:
    """The lines of a text."""

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self._source = source
        self._lines = text.split("\n")
        ends = accumulate(len(line) + 1 for line in self._lines)
        self._starts = [0, *ends]

    def mark(self, start: int, end: int) -> Mark:
        """Return the place from one character to before another, on its first line."""
        line = bisect_right(self._starts, start)
        begin = self._starts[line - 1]
        written = self._lines[line - 1].rstrip("\r")
        length = max(1, min(end - start, len(written) - (start - begin)))
        return Mark(self._source, line, start - begin + 1, length, written)

    def text_of(self, token: Token) -> str:
        """Return a token as it is written, on one line; nothing for a value."""
        if token.token_type.name in VALUES:
            return ""
        return " ".join(self._text[token.start : token.end + 1].split())
