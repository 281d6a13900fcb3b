"""Periods of the calendar as people write them: 2026-11-03, 2026-11, 2026-W14."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date

from modicum.release.parts import LAST_DAY, Span

#: The forms of a period, as text, for messages.
FORMS = "2026-11-03, 2026-11, 2026-W14, 2026-Q4 or 2026"


def days_of(word: str) -> Span | None:
    """Return the first and the last day of a period, or None if it is not one.

    Args:
        word: A day, a month, an ISO week (starting on Monday), a quarter or a year.

    Raises:
        ValueError: If it has the form of a period, and the calendar has none such.

    Examples:
        >>> first, last = days_of("2026-Q1")
        >>> date.fromordinal(first).isoformat(), date.fromordinal(last).isoformat()
        ('2026-01-01', '2026-03-31')
        >>> days_of("2026-02-30")
        Traceback (most recent call last):
        ValueError: day is out of range for month
        >>> days_of("in spring") is None
        True
    """
    for form, read in _FORMS:
        match = form.fullmatch(word)
        if match is not None:
            return read(*map(int, match.groups()))
    return None


def _day(year: int, month: int, day: int) -> Span:
    ordinal = date(year, month, day).toordinal()
    return ordinal, ordinal


def _week(year: int, week: int) -> Span:
    monday = date.fromisocalendar(year, week, 1).toordinal()
    return monday, min(monday + 6, LAST_DAY)


def _quarter(year: int, quarter: int) -> Span:
    if not 1 <= quarter <= 4:
        raise ValueError("a year has quarters 1 to 4")
    return _months(year, 3 * quarter - 2, 3 * quarter)


def _month(year: int, month: int) -> Span:
    return _months(year, month, month)


def _year(year: int) -> Span:
    return _months(year, 1, 12)


def _months(year: int, first: int, last: int) -> Span:
    begin = date(year, first, 1).toordinal()
    return begin, date(year, last, monthrange(year, last)[1]).toordinal()


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


_FORMS: tuple[tuple[re.Pattern[str], Callable[..., Span]], ...] = (
    (_form(r"(\d{4})-(\d\d)-(\d\d)"), _day),
    (_form(r"(\d{4})-(\d\d)"), _month),
    (_form(r"(\d{4})-W(\d\d)"), _week),
    (_form(r"(\d{4})-Q(\d)"), _quarter),
    (_form(r"(\d{4})"), _year),
)
