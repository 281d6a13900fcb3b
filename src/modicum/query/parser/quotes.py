"""Quotes that are none of SQL: those of letters, and of other databases."""

from __future__ import annotations

from typing import Final

from modicum.core.errors import Code
from modicum.query.parser.lines import VALUES
from modicum.query.parser.sql_text import SqlText
from modicum.query.refusals import Reason, refused

_OF_TEXTS: Final = frozenset("‘’‚‛´′「」")  # noqa: RUF001 - these are meant
_OF_BOTH: Final = frozenset("“”„‟″«»")
_OF_NAMES: Final = frozenset("`")


def refuse_odd_quotes(sql: SqlText) -> None:
    """Refuse quotes that a text editor or another database writes, outside of values.

    Args:
        sql: The text.

    Raises:
        InputError: If there is one; it is not said what stands in it.
    """
    for token in sql.tokens:
        if token.token_type.name in (*VALUES, "IDENTIFIER"):
            continue
        if not _OF_TEXTS.isdisjoint(token.text) or not _OF_BOTH.isdisjoint(token.text):
            remedy = "write ' around a text, and \" around a name"
        elif not _OF_NAMES.isdisjoint(token.text):
            remedy = "write \" around a name, and ' around a text"
        else:
            continue
        raise refused(
            Code.NOT_SQL,
            "the text is no SQL: a quote is none of those that SQL knows",
            sql.mark(token),
            reason=Reason("", remedy),
        )
