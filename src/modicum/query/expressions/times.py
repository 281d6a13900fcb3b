"""Functions of dates and timestamps.

A date outside of the years 1 to 9999 is NULL in an expression: engines read and write
others differently. Days are counted, so that no engine's calendar decides.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any, Final, NamedTuple, get_args

from modicum.query.expressions.facts import TIMES, Facts, Misfit, number, of_text
from modicum.query.expressions.function import (
    Function,
    Term,
    call,
    cast,
    constant,
    needs,
    pair,
    text,
    whole,
)
from modicum.query.model import Grain
from modicum.query.tables import ColumnType

_DATE: Final = Facts("date")
#: The number of days between the first and the last.
_DAYS_MAX: Final = (date.max - date.min).days
_MONTHS: Final = 12 * date.max.year
#: The seconds of a century: engines take no longer interval of them.
_SECONDS_MAX: Final = 86_400 * 36_525


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


#: The periods by the names of their functions.
GRAINS: Final[dict[str, Grain]] = {period_name(one): one for one in get_args(Grain)}


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


# --- some time later ------------------------------------------------------------------


def _days_later(one: date, count: int) -> date | None:
    """Return the same time some days later; None if it is none of our years."""
    return _shifted(one, timedelta(days=count))


def _seconds_later(one: date, count: int) -> date | None:
    return _shifted(one, timedelta(seconds=count))


def _shifted(one: date, by: timedelta) -> date | None:
    try:
        return one + by
    except OverflowError:
        return None


def _months_later(one: date, count: int) -> date | None:
    """Return the same day of another month, or its last day."""
    month = 12 * (one.year - 1) + one.month - 1 + count
    if not 0 <= month < _MONTHS:
        return None
    first = one.replace(year=month // 12 + 1, month=month % 12 + 1, day=1)
    return first.replace(day=min(one.day, monthrange(first.year, first.month)[1]))


def _later(unit: str, meant: Callable[[date, int], date | None], most: int) -> Function:
    """Return the function that adds some constant number of units to a time.

    Args:
        unit: The name of the unit.
        meant: Its value in Python.
        most: The largest number of them.
    """
    name, kinds = f"an INTERVAL of {unit.lower()}s", TIMES
    if unit == "SECOND":
        kinds = ("timestamp",)

    def typed(one: Facts, count: Facts) -> Facts:
        needs(name, kinds, one)
        if abs(constant(name, count, "integer")) > most:
            raise Misfit(f"{name} is too long")
        return Facts(one.type)

    def written(x: Any, out: Facts, one: Term, count: Term) -> Any:
        by = count.facts.low
        first, last = _limits(meant, by)
        limits = [
            cast(x, text(x, end.isoformat(sep=" ")), "timestamp")
            for end in (first, last)
        ]
        near = x.Between(this=one.sql.copy(), low=limits[0], high=limits[1])
        interval = x.Interval(this=text(x, str(by)), unit=x.var(unit))
        moved = pair(x, "Add", one.sql, interval)
        return x.paren(x.Case().when(near, cast(x, moved, out.type), copy=False))

    return Function(typed, written, meant, copies=(2, 1))


def _limits(
    meant: Callable[[date, int], date | None], by: int
) -> tuple[datetime, datetime]:
    """Return the first and the last time that stay within our years when moved."""
    first, last = (_moment_meant(end) for end in (date.min, date.max))
    last += timedelta(days=1) - timedelta.resolution
    if by < 0:
        return datetime.fromisoformat(str(meant(first, -by))), last
    if meant is not _months_later:
        return first, datetime.fromisoformat(str(meant(last, -by)))
    month = _MONTHS - 1 - by
    day = monthrange(month // 12 + 1, month % 12 + 1)[1]
    return first, last.replace(year=month // 12 + 1, month=month % 12 + 1, day=day)


# --- as a text ------------------------------------------------------------------------

#: By directive of STRFTIME: from which place of an ISO text, and how many characters.
_DIRECTIVES: Final = {
    "%Y": (1, 4), "%m": (6, 2), "%d": (9, 2), "%H": (12, 2), "%M": (15, 2),
    "%S": (18, 2),
}  # fmt: skip
_CLOCK_DIRECTIVES: Final = frozenset({"%H", "%M", "%S"})
_FORMAT: Final = re.compile(r"%.?|[^%]+", re.DOTALL)
_DIRECTIVES_MAX: Final = 6


def _pieces(form: str) -> list[str]:
    """Return the directives of a format, and the texts between them."""
    return _FORMAT.findall(form)


def of_days(form: str) -> bool:
    """Return whether a format shows the day of a time only."""
    return _CLOCK_DIRECTIVES.isdisjoint(_pieces(form))


def _formatted_typed(one: Facts, form: Facts) -> Facts:
    needs("STRFTIME", TIMES, one)
    pieces = _pieces(constant("STRFTIME", form, "text"))
    directives = [piece for piece in pieces if piece[0] == "%"]
    if not _DIRECTIVES.keys() >= {*directives}:
        raise Misfit(
            "this format of STRFTIME is not read",
            "engines name days and count weeks differently",
            "write %Y, %m, %d, %H, %M and %S only: STRFTIME(t, '%Y-%m')",
        )
    if not 0 < len(directives) <= _DIRECTIVES_MAX:
        message = f"STRFTIME takes a format with 1 to {_DIRECTIVES_MAX} parts of a time"
        raise Misfit(message, "", "write %Y, %m, %d, %H, %M or %S")
    return of_text(0, sum(max(4, len(piece)) for piece in pieces))


def _formatted(x: Any, _out: Facts, one: Term, form: Term) -> Any:
    """Return the SQL of a format: pieces of the text that a timestamp is."""
    iso = cast(x, cast(x, one.sql, "timestamp"), "text")
    found: Any = None
    for piece in _pieces(str(form.facts.value)):
        ends = map(x.Literal.number, _DIRECTIVES.get(piece, ()))
        is_text = piece not in _DIRECTIVES
        made = text(x, piece) if is_text else call(x, "SUBSTRING", iso.copy(), *ends)
        found = made if found is None else x.DPipe(this=found, expression=made)
    return x.paren(found, copy=False)


def _formatted_meant(one: date, form: str) -> str:
    iso = _moment_meant(one).isoformat(sep=" ")
    ends = ((piece, _DIRECTIVES.get(piece)) for piece in _pieces(form))
    return "".join(
        piece if place is None else iso[place[0] - 1 : sum(place) - 1]
        for piece, place in ends
    )


TIME_FUNCTIONS: Final[dict[str, Function]] = {
    **{name: _part_of(name, part) for name, part in _PARTS.items()},
    **{name: _period(grain) for name, grain in GRAINS.items()},
    "days_between": Function(_between_typed, _between, _between_meant),
    "timestamp": Function(_moment_typed, _moment, _moment_meant),
    "days_later": _later("DAY", _days_later, _DAYS_MAX),
    "months_later": _later("MONTH", _months_later, _MONTHS - 1),
    "seconds_later": _later("SECOND", _seconds_later, _SECONDS_MAX),
    "strftime": Function(
        _formatted_typed,
        _formatted,
        _formatted_meant,
        ("STRFTIME",),
        nodes=("TimeToStr",),
        parts=("this", "format"),
        copies=(_DIRECTIVES_MAX, 1),
    ),
}
#: Those that look at the day of a time only.
DAYS_DECIDE: Final = frozenset(TIME_FUNCTIONS) - {
    "timestamp",
    "days_later",
    "months_later",
    "seconds_later",
    "strftime",
    *(name for name, part in _PARTS.items() if part.clock),
}
