"""Periods of a time, and arguments that must be there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, get_args

from modicum.core.errors import Code
from modicum.query.model import Grain
from modicum.query.parser.sql_text import SqlText
from modicum.query.refusals import Reason, refused

if TYPE_CHECKING:
    from sqlglot import exp

_GRAINS: Final[tuple[Grain, ...]] = get_args(Grain)


def read_grain(node: exp.Expr, sql: SqlText) -> Grain:
    """Return the quoted word after the bracket of DATE_TRUNC."""
    place = (sql.first(node) or 0) + 2
    written = sql.tokens[place].text.lower()
    if sql.kind(place) != "STRING" or written not in _GRAINS:
        mark = sql.mark(sql.tokens[place])
        raise refused(
            Code.NOT_IN_SUBSET,
            "DATE_TRUNC supports days, weeks, months, quarters and years",
            mark,
            reason=Reason("", "write DATE_TRUNC('day', column)"),
        )
    sql.spend(place)
    return written


def needed(node: exp.Expr, key: str, sql: SqlText) -> exp.Expr:
    """Return a required argument of a function."""
    argument: exp.Expr | None = node.args.get(key)
    if argument is None:
        raise refused(
            Code.NOT_IN_SUBSET,
            "an argument of the function is missing",
            sql.mark_of(node),
            reason=Reason(),
        )
    return argument
