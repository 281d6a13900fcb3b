"""From the text of a query to tokens, without writing any of it to a log."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from modicum.core.errors import Code, Mark
from modicum.core.extras import needing_extras
from modicum.query.refusals import Reason, refused

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


def cut(text: str, lines: Lines) -> Sequence[Token]:
    """Return the tokens of a text, without semicolons at its end.

    Raises:
        InputError: If a quote or a comment is not closed.
        UsageError: If sqlglot is not installed.
    """
    with needing_extras():
        from sqlglot.dialects.dialect import Dialect
        from sqlglot.errors import SqlglotError

    try:
        with quiet():
            tokens: Sequence[Token] = Dialect.get_or_raise("duckdb").tokenize(text)
    except SqlglotError:
        place = _not_closed(text)
        message = "the text is not SQL: a quote or comment is not closed"
        mark = lines.mark(place, place + 1)
        raise refused(Code.NOT_SQL, message, mark, reason=Reason()) from None
    end = len(tokens)
    while end and tokens[end - 1].token_type.name == "SEMICOLON":
        end -= 1
    return tokens[:end]


def _not_closed(text: str) -> int:
    """Return where the quote or comment begins that the text ends in, about."""
    place = 0
    for _ in range(len(text)):
        start = min(
            (at for one in _OPENERS if (at := text.find(one, place)) >= 0), default=-1
        )
        if start < 0:
            return place
        opener = next(one for one in _OPENERS if text.startswith(one, start))
        end = text.find(_OPENERS[opener], start + len(opener))
        if end < 0:
            return start
        place = end + len(_OPENERS[opener])
    return 0


_OPENERS: Final = {"'": "'", '"': '"', "/*": "*/", "--": "\n", "$$": "$$"}


_reading: ContextVar[bool] = ContextVar("_reading", default=False)


def _is_not_ours(_record: object) -> bool:
    """Return whether a record is not of a query of ours: it would repeat the text."""
    return not _reading.get()


@contextmanager
def quiet() -> Iterator[None]:
    """Keep sqlglot from logging about this text; others' texts stay as they were."""
    from sqlglot.parser import logger

    token = _reading.set(True)
    logger.addFilter(_is_not_ours)
    try:
        yield
    finally:
        _reading.reset(token)


def line_comments(text: str, source: str) -> Iterator[tuple[int, int]]:
    """Yield where each comment begins that `--` begins, and where its line ends.

    Raises:
        InputError: If a quote or a comment is not closed.
    """
    place = 0
    for token in cut(text, Lines(text, source)):
        yield from _between(text, place, token.start)
        place = token.end + 1
    yield from _between(text, place, len(text))


def _between(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the comments between two tokens, where there is nothing else."""
    place = begin
    while place < end:
        if text.startswith("--", place):
            behind = text.find("\n", place, end)
            behind = end if behind < 0 else behind
            yield place, behind
            place = behind
        elif text.startswith("/*", place):
            place = _behind_block(text, place, end)
        else:
            place += 1


def _behind_block(text: str, begin: int, end: int) -> int:
    """Return where a comment in `/* */` ends, which may hold others."""
    depth, place = 0, begin
    while place < end:
        pair = text[place : place + 2]
        step = {"/*": 1, "*/": -1}.get(pair, 0)
        depth, place = depth + step, place + (2 if step else 1)
        if depth == 0:
            break
    return place
