"""Casts: which values become which others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from modicum.core.errors import Code
from modicum.query.expressions.facts import TIMES, A
from modicum.query.expressions.times import period_name
from modicum.query.model import Expression, IsNull, Literal
from modicum.query.parser.arguments import fitted
from modicum.query.parser.scope import Scope
from modicum.query.refusals import CASTS, refused

if TYPE_CHECKING:
    from sqlglot import exp

_WHOLE: Final = ("INTEGER", "INT", "BIGINT")
_NUMBERS: Final = ("DOUBLE", "FLOAT", "REAL", "DECIMAL", "NUMERIC")
_TEXTS: Final = ("TEXT", "VARCHAR", "STRING")


def converted(value: Expression, node: exp.Expr, scope: Scope) -> Expression:
    """Return a value as another type; no row makes it fail.

    Args:
        value: The value.
        node: The cast.
        scope: The tables that are read.

    Raises:
        InputError: If no such cast is read.
    """
    sql = scope.sql
    to = sql.spend_cast(node)
    kind = scope.facts(value).type
    if to in ("DATE", "TIMESTAMP") and kind in TIMES:
        name = period_name("day") if to == "DATE" else "timestamp"
        return fitted(name, [value], node, scope)
    if to in _WHOLE and kind == "boolean":
        one, none, zero = (Literal(number, "integer") for number in (1, None, 0))
        return fitted("case", (value, one, IsNull(value), none, zero), node, scope)
    if to in _TEXTS and kind in ("integer", "text"):
        return fitted("text", [value], node, scope)
    if to in _TEXTS and kind == "date":
        form = Literal("%Y-%m-%d", "text")
        return fitted("strftime", [value, form], node, scope)
    if to in _WHOLE and kind == "number":
        return fitted("round", [value], node, scope)
    same = (
        (to in _WHOLE and kind == "integer")
        or (to in _NUMBERS and kind in ("integer", "number"))
        or (to in ("BOOLEAN", "BOOL") and kind == "boolean")
    )
    if same:
        return value
    remedy = ""
    if isinstance(value, Literal):
        remedy = "write the value without a cast"
    elif kind == "timestamp" and to in _TEXTS:
        remedy = "write STRFTIME(column, '%Y-%m')"
    raise refused(
        Code.NOT_IN_SUBSET,
        f"a cast of {A[kind]} to {to} is not read",
        sql.mark_of(node),
        reason=CASTS._replace(remedy=remedy),
    )
