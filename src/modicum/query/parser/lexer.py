"""Cutting a text into tokens, without a word about it in any log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from modicum.core.errors import Code
from modicum.core.extras import needing_extras
from modicum.query.parser.lines import Lines
from modicum.query.refusals import Reason, refused

if TYPE_CHECKING:
    from sqlglot import Token


def cut(text: str, lines: Lines) -> Sequence[Token]:
    """Return the tokens of a text, without semicolons at its end.

    Args:
        text: The text.
        lines: Its lines.

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
        message = "the text is no SQL: a quote or comment is not closed"
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
