"""Functions of dates and timestamps.

A date outside of the years 1 to 9999 is NULL in an expression: engines read and write
others differently. Days are counted, so that no engine's calendar decides.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any, Final, NamedTuple, get_args

from modicum.query.expressions.facts import TIMES, Facts, number
from modicum.query.expressions.function import (
    Function,
    Term,
    call,
    cast,
    needs,
    pair,
    whole,
)
from modicum.query.model import Grain
from modicum.query.tables import ColumnType

_DATE: Final = Facts("date")
#: The number of days between the first and the last.
_DAYS_MAX: Final = (date.max - date.min).days


class _Part(NamedTuple):
    """A part of a time: its limits, and its value."""

    low: int
    high: int
    of: Callable[[Any], int]
    words: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    clock: bool = False


#: Engines know those with a name by that name.
_PARTS: Final[dict[str, _Part]] = {
    "year": _Part(1, 9999, lambda one: one.year, ("YEAR",), ("Year",)),
    "quarter": _Part(
        1, 4, lambda one: (one.month + 2) // 3, ("QUARTER",), ("Quarter",)
    ),
    "month": _Part(1, 12, lambda one: one.month, ("MONTH",), ("Month",)),
    "week": _Part(
        1,
        53,
        lambda one: one.isocalendar()[1],
        ("WEEK", "WEEKOFYEAR"),
        ("Week", "WeekOfYear"),
    ),
    "day": _Part(
        1, 31, lambda one: one.day, ("DAY", "DAYOFMONTH"), ("Day", "DayOfMonth")
    ),
    "dayofyear": _Part(
        1, 366, lambda one: one.timetuple().tm_yday, ("DAYOFYEAR",), ("DayOfYear",)
    ),
    "dayofweek": _Part(
        0, 6, lambda one: one.isoweekday() % 7, ("DAYOFWEEK", "WEEKDAY"), ("DayOfWeek",)
    ),
    "isodow": _Part(1, 7, lambda one: one.isoweekday(), ("ISODOW",), ("DayOfWeekIso",)),
    "hour": _Part(0, 23, lambda one: one.hour, ("HOUR",), ("Hour",), clock=True),
    "minute": _Part(
        0, 59, lambda one: one.minute, ("MINUTE",), ("Minute",), clock=True
    ),
    "second": _Part(
        0, 59, lambda one: one.second, ("SECOND",), ("Second",), clock=True
    ),
}
#: What EXTRACT and DATE_PART call the parts.
EXTRACTED: Final[dict[str, str]] = {
    **{name.upper(): name for name in _PARTS},
    "DOW": "dayofweek",
    "DOY": "dayofyear",
}


def _typed_part(name: str, part: _Part) -> Callable[..., Facts]:
    kinds: tuple[ColumnType, ...] = ("timestamp",) if part.clock else TIMES

    def typed(one: Facts) -> Facts:
        needs(name.upper(), kinds, one)
        return number(Fraction(1), part.low, part.high, whole=True)

    return typed


def _written_part(name: str) -> Callable[..., Any]:
    known = "WEEKOFYEAR" if name == "week" else name.upper()

    def written(x: Any, _out: Facts, one: Term) -> Any:
        return cast(x, call(x, known, one.sql), "bigint")

    return written


def _weekday(shift: int, first: int) -> Callable[..., Any]:
    """Return the SQL of a day of the week.

    Args:
        shift: The number of the first Monday, from 0.
        first: The number of the first day of a week.
    """

    def written(x: Any, _out: Facts, one: Term) -> Any:
        since = _days(x, _day(x, date.min), cast(x, one.sql, "date"))  # A Monday.
        rest = pair(x, "Mod", pair(x, "Add", since, whole(x, shift)), whole(x, 7))
        return pair(x, "Add", rest, whole(x, first))

    return written


def _day(x: Any, day: date) -> Any:
    return cast(x, x.Literal.string(day.isoformat()), "date")


def _days(x: Any, begin: Any, end: Any) -> Any:
    """Return the number of days from one date to another."""
    between = x.DateDiff(this=end, expression=begin, unit=x.var("DAY"))
    return cast(x, between, "bigint")


def _part_of(name: str, part: _Part) -> Function:
    written = _written_part(name)
    if name == "dayofweek":
        written = _weekday(1, 0)
    if name == "isodow":
        written = _weekday(0, 1)
    typed = _typed_part(name, part)
    return Function(typed, written, part.of, part.words, nodes=part.nodes)


# --- periods --------------------------------------------------------------------------


def _period(grain: Grain) -> Function:
    def typed(one: Facts) -> Facts:
        needs("DATE_TRUNC", TIMES, one)
        return _DATE

    def written(x: Any, _out: Facts, one: Term) -> Any:
        day = cast(x, one.sql, "date")
        if grain == "day":
            return day
        unit = x.Literal.string(grain.upper())
        return cast(x, x.DateTrunc(this=day, unit=unit), "date")

    return Function(typed, written, lambda one: start_of(one, grain))


def start_of(moment: date, grain: Grain) -> date:
    """Return the first day of the period of a time; weeks begin on Monday."""
    day = moment.date() if isinstance(moment, datetime) else moment
    if grain == "day":
        return day
    if grain == "week":
        return day - timedelta(days=day.weekday())
    length = {"month": 1, "quarter": 3, "year": 12}[grain]
    return day.replace(month=day.month - (day.month - 1) % length, day=1)


def period_name(grain: Grain) -> str:
    """Return the name of the function of a period."""
    return f"first_of_{grain}"


# --- others ---------------------------------------------------------------------------


def _between_typed(begin: Facts, end: Facts) -> Facts:
    needs("DATE_DIFF", TIMES, begin, end)
    return number(Fraction(1), -_DAYS_MAX, _DAYS_MAX, whole=True)


def _between(x: Any, _out: Facts, begin: Term, end: Term) -> Any:
    return _days(x, cast(x, begin.sql, "date"), cast(x, end.sql, "date"))


def _between_meant(begin: date, end: date) -> int:
    return (start_of(end, "day") - start_of(begin, "day")).days


def _moment_typed(one: Facts) -> Facts:
    needs("CAST to timestamp", TIMES, one)
    return Facts("timestamp")


def _moment(x: Any, _out: Facts, one: Term) -> Any:
    return cast(x, one.sql, "timestamp")


def _moment_meant(one: date) -> datetime:
    if isinstance(one, datetime):
        return one
    return datetime.fromisoformat(one.isoformat())


TIME_FUNCTIONS: Final[dict[str, Function]] = {
    **{name: _part_of(name, part) for name, part in _PARTS.items()},
    **{period_name(grain): _period(grain) for grain in get_args(Grain)},
    "days_between": Function(_between_typed, _between, _between_meant),
    "timestamp": Function(_moment_typed, _moment, _moment_meant),
}
#: Those that look at the day of a time only.
DAYS_DECIDE: Final = frozenset(TIME_FUNCTIONS) - {
    "timestamp",
    *(name for name, part in _PARTS.items() if part.clock),
}
