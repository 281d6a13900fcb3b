"""Pieces of SQL that mean the same in every engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from fractions import Fraction
from typing import Final

from sqlglot import exp

from modicum.core.errors import check
from modicum.query.model import Grain
from modicum.query.tables import Column, ColumnType, Value
from modicum.release.periods import Period

#: Exact sums of whole numbers, however many.
SUM_TYPE: Final = "decimal(38, 0)"
#: Number of hex digits of a hash that sorts rows. Few, so that an engine stores them
#: beside the row; ties are broken by the row's id.
ORDER_DIGITS: Final = 12
#: The digits of 60 bits.
SAMPLE_DIGITS: Final = 15
#: The range of whole steps of numbers; a float holds them all.
STEPS_MAX: Final = 2**53
#: The range of integers in any column.
_LITERAL_MAX: Final = 10**30

_TYPES: dict[ColumnType, str] = {
    "text": "text",
    "integer": "bigint",
    "number": "double",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
}


def sql_type(column_type: ColumnType) -> exp.DataType:
    """Return the SQL type that values of a declared type have."""
    return exp.DataType.build(_TYPES[column_type])


def named(name: str, table: str | None = None) -> exp.Column:
    """Return a column by its exact name."""
    return exp.column(name, table=table, quoted=True)


def text(value: str) -> exp.Expression:
    """Return a text literal."""
    return exp.Literal.string(value)


def whole(value: int) -> exp.Expression:
    """Return a literal of an integer.

    Args:
        value: The number; far outside of the range of columns, any such number
            suffices.
    """
    value = min(max(value, -_LITERAL_MAX), _LITERAL_MAX)
    number = exp.Literal.number(abs(value))
    return exp.Neg(this=number) if value < 0 else number


def double(value: Fraction | int) -> exp.Expression:
    """Return a literal of the float nearest to a number."""
    try:
        written = repr(float(value) + 0.0)
    except OverflowError:
        written = "Infinity" if value > 0 else "-Infinity"
    return exp.cast(text(written), "double")


def literal(value: Value, kind: ColumnType) -> exp.Expression:
    """Return a value of a column as a literal of its type."""
    if kind == "boolean":
        return exp.true() if value else exp.false()
    if kind == "number":
        check(not isinstance(value, str), "a number is compared with a number")
        return double(Fraction(value))
    if kind == "integer":
        number = Fraction(value)
        check(number.denominator == 1, "an integer is compared with an integer")
        return whole(int(number))
    check(isinstance(value, str), "texts and times are compared with texts")
    if kind == "date":
        return day(date.fromisoformat(str(value)))
    if kind == "timestamp":
        moment = datetime.fromisoformat(str(value))
        return exp.cast(text(moment.isoformat(sep=" ")), "timestamp")
    return text(str(value))


def day(value: date) -> exp.Expression:
    """Return a literal of a day."""
    return exp.cast(text(value.isoformat()), "date")


def first_day(value: exp.Expression, period: Period | Grain) -> exp.Expression:
    """Return the first day of the period in which a date or timestamp lies.

    Args:
        value: The date or timestamp.
        period: The kind of period; weeks begin on Monday.
    """
    the_day = exp.cast(value, "date")
    if period == "day":
        return the_day
    start = exp.DateTrunc(this=the_day, unit=text(period.upper()))  # type: ignore[no-untyped-call]
    return exp.cast(start, "date")


def on_days(
    value: exp.Expression, kind: ColumnType, first: date, last: date
) -> exp.Expression:
    """Return whether a time lies on some days, in a form that can use an index."""
    if kind == "date":
        return between(value, day(first), day(last))
    return between(value, _moment(first, "00:00:00"), _moment(last, "23:59:59.999999"))


def _moment(the_day: date, time: str) -> exp.Expression:
    return exp.cast(text(f"{the_day.isoformat()} {time}"), "timestamp")


def between(
    value: exp.Expression, low: exp.Expression, high: exp.Expression
) -> exp.Expression:
    """Return whether a value lies between two others, both included."""
    return exp.Between(this=value, low=low, high=high)


def any_of(parts: Iterable[exp.Expression]) -> exp.Expression:
    """Return whether any of some conditions holds; at least one is given."""
    return exp.paren(exp.or_(*parts, copy=False), copy=False)


def all_of(parts: Iterable[exp.Expression]) -> exp.Expression:
    """Return whether all of some conditions hold; at least one is given."""
    return exp.paren(exp.and_(*parts, copy=False), copy=False)


def is_known(value: exp.Expression) -> exp.Expression:
    """Return whether a value is not NULL."""
    return exp.Not(this=exp.Is(this=value, expression=exp.null()))


def in_steps(
    value: exp.Expression, column: Column, low: int, high: int
) -> exp.Expression:
    """Return a number or integer as whole steps of its column, bounded.

    NULL stays NULL. Bounds are compared before anything is computed, so that nothing
    overflows.
    """
    step = column.step
    if column.counted or (column.type == "integer" and step == 1):
        return bounded(value, low, high)
    value = exp.cast(value, "double")
    if (1 / step).denominator == 1:
        steps: exp.Expression = exp.Mul(this=value.copy(), expression=double(1 / step))
    else:
        steps = exp.Div(this=value.copy(), expression=double(step))
    nearest = exp.Floor(this=exp.Add(this=steps, expression=double(Fraction(1, 2))))
    ends = double(low * step), double(high * step)
    # Values between the ends are rounded to a step between them: for numbers below
    # 2**32, a product is off by far less than half a step.
    return _bounded(value, ends, (low, high), exp.cast(nearest, "bigint"))


def bounded(value: exp.Expression, low: int, high: int) -> exp.Expression:
    """Return an integer, bounded; NULL stays NULL."""
    return _bounded(value, (whole(low), whole(high)), (low, high), value.copy())


def _bounded(
    value: exp.Expression,
    ends: tuple[exp.Expression, exp.Expression],
    limits: tuple[int, int],
    inside: exp.Expression,
) -> exp.Expression:
    low, high = map(whole, limits)
    below = exp.LTE(this=value.copy(), expression=ends[0])
    above = exp.GTE(this=value.copy(), expression=ends[1])
    bounded = exp.Case().when(below, low, copy=False).when(above, high, copy=False)
    bounded = bounded.else_(inside, copy=False)
    return exp.cast(bounded, "bigint", copy=False)


def hashed(key: str, parts: Sequence[exp.Expression], digits: int) -> exp.Expression:
    """Return the first hex digits of the keyed hash of some texts.

    Each text is written with its length before it, so that no two lists of texts are
    written alike.

    Args:
        key: The key, in hex.
        parts: The texts; NULL is written as no text is.
        digits: How many digits.
    """
    joined: exp.Expression = text(f"{key}:")
    for part in parts:
        length = exp.cast(exp.Length(this=part.copy()), "text")
        sized = exp.DPipe(
            this=exp.DPipe(this=length, expression=text(":")), expression=part
        )
        written = exp.Coalesce(this=sized, expressions=[text("-:")])
        joined = exp.DPipe(this=joined, expression=written)
    digest = exp.SHA2(this=joined, length=exp.Literal.number(256))
    return exp.Substring(
        this=digest, start=exp.Literal.number(1), length=exp.Literal.number(digits)
    )


def numbered(
    within: Sequence[exp.Expression], order: Sequence[exp.Expression]
) -> exp.Expression:
    """Return the number of a row within its partition, in an order.

    Args:
        within: The partition keys.
        order: The sort keys; NULLs come last.
    """
    ordered = [exp.Ordered(this=one, desc=False, nulls_first=False) for one in order]
    return exp.Window(
        this=exp.RowNumber(),
        partition_by=list(within),
        order=exp.Order(expressions=ordered),
    )
