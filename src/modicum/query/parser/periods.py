"""Periods of a column with a time: DATE_TRUNC, and casts to dates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, get_args

from modicum.core.errors import Code
from modicum.query.expressions.facts import TIMES
from modicum.query.model import Grain
from modicum.query.parser.literals import spend_type
from modicum.query.parser.scope import ResolvedColumn, Scope
from modicum.query.parser.sql_text import SqlText, only
from modicum.query.refusals import Reason, refused

if TYPE_CHECKING:
    from sqlglot import exp

_GRAINS: Final[tuple[Grain, ...]] = get_args(Grain)


def read_period(node: exp.Expr, scope: Scope) -> tuple[ResolvedColumn, Grain] | None:
    """Return the column and the period of a node; None for something else.

    Args:
        node: DATE_TRUNC('day', column), CAST(column AS DATE), column::DATE or
            DATE(column), perhaps.
        scope: The tables that are read.

    Raises:
        InputError: If it is one of these, and not as it is read.
    """
    found = _period(node, scope)
    return None if found is None or found[0].reference is None else found


def _period(node: exp.Expr, scope: Scope) -> tuple[ResolvedColumn, Grain] | None:
    from sqlglot import exp

    sql = scope.sql
    if type(node.args.get("this")) is not exp.Column:
        return None
    if type(node) is exp.TimestampTrunc or type(node) is exp.DateTrunc:
        only(sql, node, ("this", "unit"))
        sql.spend_call(node, ("DATE_TRUNC",))
        grain = read_grain(node, sql)
        return _timed(needed(node, "this", sql), scope), grain
    if type(node) is exp.Date:
        only(sql, node, ("this",))
        sql.spend_call(node, ("DATE",))
        return _timed(needed(node, "this", sql), scope), "day"
    if type(node) is exp.Cast:
        if node.args["to"].this.name != "DATE":
            return None
        found = _timed(needed(node, "this", sql), scope)
        spend_type(node, sql)
        return found, "day"
    return None


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


def _timed(node: exp.Expr, scope: Scope) -> ResolvedColumn:
    found = scope.column(node)
    if found.column.type not in TIMES:
        raise refused(
            Code.DOES_NOT_FIT,
            f"`{found.column.name}` is not a time: it is of type {found.column.type}",
            found.mark,
            reason=Reason(),
        )
    return found


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
