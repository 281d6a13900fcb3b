"""Values in the text of a query, as values of the column compared with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from modicum.core.errors import Code, InputError, Mark
from modicum.core.rationals import parse_number
from modicum.query.expressions.facts import A
from modicum.query.model import Literal
from modicum.query.parser.sql_text import SqlText, only
from modicum.query.refusals import Reason, refused
from modicum.query.tables import Column, ColumnType, Value

if TYPE_CHECKING:
    from sqlglot import exp

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?", re.ASCII
)
#: Integers of a column lie within 64 bits.
_INTEGER_MAX: Final = 2**63 - 1
#: Number of digits before and after the point that every engine supports.
_DIGITS_MAX: Final = 18


class _Wrong(Exception):  # noqa: N818 - it never leaves this module
    """A value does not fit; contains the reason and the remedy."""

    def __init__(self, why: str, remedy: str = "") -> None:
        super().__init__(why)
        self.reason = Reason(why, remedy)


def read_value(node: exp.Expr, column: Column, sql: SqlText) -> Value:
    """Return the value that a node is, for a column.

    Raises:
        InputError: If it is no literal, or none of the column's type.
    """
    from sqlglot import exp

    if type(node) is exp.Column:
        raise name_for_value(node, sql)
    if type(node) is exp.Date:
        raise sql.unread(node, Reason("", "write DATE '2026-11-30'"))
    try:
        if type(node) is exp.Cast:
            return _typed(node, column, sql)
        if type(node) is exp.Boolean:
            return _truth(node, column)
        if type(node) is exp.Literal and node.is_string:
            _spend(node, sql)
            return _TEXTS[column.type](node.name)
        number = read_number(node, sql)
        return _NUMBERS[column.type](number)
    except _Wrong as wrong:
        raise _unfit(column, sql.mark_of(node), wrong.reason) from None


def is_value(node: exp.Expr) -> bool:
    """Return whether a node is a value that is written in the query."""
    from sqlglot import exp

    while type(node) is exp.Neg:
        node = node.this
    if type(node) is exp.Cast or type(node) is exp.Date:
        inner, to = node.this, node.args.get("to")
        of_time = to is None or getattr(to.this, "name", "") in _TIMES
        return of_time and type(inner) is exp.Literal and inner.is_string
    return type(node) in (exp.Literal, exp.Boolean, exp.Null)


def read_literal(node: exp.Expr, sql: SqlText) -> Literal:
    """Return the value that a node is, of the type that it is written in.

    Raises:
        InputError: If it is no literal, or has too many digits.
    """
    from sqlglot import exp

    if type(node) is exp.Null:
        return Literal(None, "text")
    if type(node) is exp.Boolean:
        return Literal(bool(node.this), "boolean")
    if type(node) is exp.Literal and node.is_string:
        _spend(node, sql)
        return Literal(node.name, "text")
    if type(node) is exp.Cast:
        kind: ColumnType = "date" if spend_type(node, sql) == "date" else "timestamp"
        _spend(node.this, sql)
        return time_value(node.this.name, kind, node, sql)
    number = read_number(node, sql)
    kind = "integer" if number.denominator == 1 else "number"
    try:
        return Literal(_NUMBERS[kind](number), kind)
    except _Wrong as wrong:
        message, mark = "the number is too long", sql.mark_of(node)
        raise refused(Code.DOES_NOT_FIT, message, mark, reason=wrong.reason) from None


def time_value(text: str, kind: ColumnType, node: exp.Expr, sql: SqlText) -> Literal:
    """Return a text as a date or a timestamp.

    Raises:
        InputError: If it is none.
    """
    try:
        return Literal(_TEXTS[kind](text), kind)
    except _Wrong as wrong:
        message = f"the value is not {A[kind]}"
        mark = sql.mark_of(node)
        raise refused(Code.DOES_NOT_FIT, message, mark, reason=wrong.reason) from None


def name_for_value(node: exp.Expr, sql: SqlText) -> InputError:
    """Return the error for a name where a value should be, ready to be raised.

    The name is not repeated: a text in the wrong quotes may be a value of the data.
    """
    quoted = node.this.args.get("quoted")
    return refused(
        Code.NOT_IN_SUBSET,
        f"a name{' in double quotes' if quoted else ''} is in the place of a value",
        sql.mark_of(node),
        reason=Reason(
            "texts need single quotes; names are bare or in double quotes",
            "write single quotes around the text: '…'",
        ),
    )


def _unfit(column: Column, mark: Mark, reason: Reason) -> InputError:
    message = f"the value does not fit `{column.name}`, which is {A[column.type]}"
    return refused(Code.DOES_NOT_FIT, message, mark, reason=reason)


def read_number(node: exp.Expr, sql: SqlText) -> Fraction:
    """Return the exact number that a node is.

    Raises:
        InputError: If it is something else.
    """
    from sqlglot import exp

    sign = 1
    while type(node) is exp.Neg:
        only(sql, node, ("this",))
        node, sign = node.this, -sign
    if type(node) is exp.Null:
        reason = Reason("no value is equal to NULL", "write IS NULL or IS NOT NULL")
        raise refused(
            Code.NOT_IN_SUBSET, "NULL is not a value", sql.mark_of(node), reason=reason
        )
    if type(node) is not exp.Literal or node.is_string:
        raise sql.unread(node)
    value = parse_number(node.name)
    if value is None:
        reason = Reason("a number has at most 64 digits, and a power of at most 400")
        raise refused(
            Code.NOT_IN_SUBSET,
            "invalid number",
            sql.mark_of(node),
            reason=reason,
        )
    _spend(node, sql)
    return sign * value


def _spend(node: exp.Expr, sql: SqlText) -> None:
    only(sql, node, ("this", "is_string"))
    if not sql.spend_node(node, "STRING", "NUMBER"):
        raise sql.unread(node)


# --- values with a type before or behind them -----------------------------------------


def _typed(node: exp.Expr, column: Column, sql: SqlText) -> Value:
    """Return the value of DATE '…', TIMESTAMP '…', CAST('…' AS DATE) or '…'::DATE."""
    from sqlglot import exp

    literal = node.this
    if type(literal) is not exp.Literal or not literal.is_string:
        raise sql.unread(node, Reason("", "write the value without a CAST"))
    kind = spend_type(node, sql)
    _spend(literal, sql)
    if kind == "date" and column.type in ("date", "timestamp"):
        return _TEXTS[column.type](_iso_date(literal.name))
    if kind == "timestamp" and column.type == "timestamp":
        return _iso_time(literal.name)
    message = f"this is a {kind}"
    raise _Wrong(message)


#: The types of times, as sqlglot calls them.
_TIMES: Final[Mapping[str, str]] = {
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPNTZ": "timestamp",
}


def spend_type(node: exp.Expr, sql: SqlText) -> str:
    """Return the type of a cast to DATE or TIMESTAMP, and note that it was understood.

    Raises:
        InputError: If it is of another type.
    """
    only(sql, node, ("this", "to", "_type"))
    name = str(getattr(node.args["to"].this, "name", ""))
    first, last = sql.first(node.this), sql.last(node.this)
    kind = _TIMES.get(name)
    only(sql, node.args["to"], ("this", "nested"))
    if kind is None or first is None or last is None:
        raise sql.unread(node, Reason("values and times are cast to dates only"))
    word = kind.upper()
    if [sql.word(one) for one in (first - 2, first - 1)] == ["CAST", "("]:
        wanted = {first - 2: "CAST", last + 1: "AS", last + 2: word}
    elif sql.kind(last + 1) == "DCOLON":
        wanted = {last + 1: "::", last + 2: word}
    else:
        wanted = {first - 1: word}
    if any(sql.word(place) != text for place, text in wanted.items()):
        raise sql.unread(node, Reason("", f"write {word} '…'"))
    sql.spend(*wanted)
    return kind


# --- by the type of the column --------------------------------------------------------


def _truth(node: exp.Expr, column: Column) -> bool:
    if column.type != "boolean":
        raise _Wrong("this is a boolean")
    return node.this is True


def _text(text: str) -> str:
    return text


def _iso_date(text: str) -> str:
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text).isoformat()
    except ValueError:
        pass
    raise _Wrong("invalid date", "write it like '2026-11-30'")


def _iso_time(text: str) -> str:
    try:
        if _TIME.fullmatch(text):
            # A part of a second has three or six digits, for Python.
            whole, point, part = text.partition(".")
            digits = part.ljust(6, "0") if point else ""
            return datetime.fromisoformat(whole + point + digits).isoformat()
    except ValueError:
        pass
    raise _Wrong(
        "a timestamp is a date and a time without a zone",
        "write it like '2026-11-30 13:45:00'",
    )


def _no_text(_text: str) -> Value:
    raise _Wrong("this is a text", "leave the quotes out")


def _no_number(_number: Fraction) -> Value:
    raise _Wrong("this is a number", "put it in quotes")


def _no_truth_of_number(_number: Fraction) -> Value:
    raise _Wrong("this is a number", "write TRUE or FALSE")


def _no_truth_of_text(_text: str) -> Value:
    raise _Wrong("this is a text", "write TRUE or FALSE")


def _integer(number: Fraction) -> int:
    if number.denominator != 1:
        raise _Wrong("it is not an integer", "write an integer")
    if abs(number) > _INTEGER_MAX:
        raise _Wrong("an integer has at most 64 bits")
    return number.numerator


def _decimal(number: Fraction) -> Fraction:
    scaled = number * 10**_DIGITS_MAX
    if scaled.denominator != 1 or abs(number) >= 10**_DIGITS_MAX:
        raise _Wrong(
            f"a number has at most {_DIGITS_MAX} digits before its point and as many"
            " after it"
        )
    return number


_TEXTS: Final[Mapping[ColumnType, Callable[[str], Value]]] = {
    "text": _text,
    "integer": _no_text,
    "number": _no_text,
    "boolean": _no_truth_of_text,
    "date": _iso_date,
    "timestamp": _iso_time,
}
_NUMBERS: Final[Mapping[ColumnType, Callable[[Fraction], Value]]] = {
    "text": _no_number,
    "integer": _integer,
    "number": _decimal,
    "boolean": _no_truth_of_number,
    "date": _no_number,
    "timestamp": _no_number,
}
