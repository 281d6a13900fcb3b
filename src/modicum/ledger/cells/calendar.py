"""Periods as running numbers, so that the next one is one more."""

from __future__ import annotations

from datetime import date
from typing import assert_never

from modicum.release.parts import FIRST_DAY, LAST_DAY
from modicum.release.units import Period


def period_of(day: int, period: Period) -> int:
    """Return the number of the period that a day lies in.

    Args:
        day: The day, as an ordinal of the Gregorian calendar.
        period: The kind of period. Weeks begin on Monday (ISO 8601).

    Examples:
        >>> day = date(2026, 11, 30).toordinal()
        >>> period_of(day + 1, "month") - period_of(day, "month")
        1
    """
    if period == "day":
        return day
    if period == "week":
        return (day - 1) // 7  # Day 1 was a Monday.
    then = _date(day)
    match period:
        case "month":
            return then.year * 12 + then.month - 1
        case "quarter":
            return then.year * 4 + (then.month - 1) // 3
        case "year":
            return then.year
        case _:
            assert_never(period)


def period_name(number: int, period: Period) -> str:
    """Return the display name of a period.

    Examples:
        >>> period_name(period_of(date(2026, 11, 30).toordinal(), "quarter"), "quarter")
        '2026-Q4'
    """
    match period:
        case "day":
            return _date(number).isoformat()
        case "week":
            year, week, _ = _date(number * 7 + 1).isocalendar()
            return f"{year}-W{week:02d}"
        case "month":
            return f"{number // 12:04d}-{number % 12 + 1:02d}"
        case "quarter":
            return f"{number // 4:04d}-Q{number % 4 + 1}"
        case "year":
            return f"{number:04d}"
        case _:
            assert_never(period)


def _date(day: int) -> date:
    return date.fromordinal(min(max(day, FIRST_DAY), LAST_DAY))
