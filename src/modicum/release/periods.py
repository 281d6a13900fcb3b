"""Periods of the calendar: how they lie on each other, always and within some days."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import date
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

from modicum.release.parts import LAST_DAY, Span

Period: TypeAlias = Literal["day", "week", "month", "quarter", "year"]
PERIODS: tuple[Period, ...] = get_args(Period)

#: Maximum number of the second period that one of the first touches, whichever day
#: weeks begin on.
_TOUCHED: Mapping[tuple[Period, Period], int] = MappingProxyType(
    {
        ("week", "day"): 7,
        ("month", "day"): 31,
        ("quarter", "day"): 92,
        ("year", "day"): 366,
        ("quarter", "month"): 3,
        ("year", "month"): 12,
        ("year", "quarter"): 4,
        ("month", "week"): 6,
        ("quarter", "week"): 14,
        ("year", "week"): 54,
        ("week", "month"): 2,
        ("week", "quarter"): 2,
        ("week", "year"): 2,
    }
)

#: How many periods of one kind a period of another kind touches at most, on some days;
#: the same with those counted twice that have some of the days outside it; and how many
#: have some outside. Each may be the maximum of another period.
Overlap: TypeAlias = tuple[int, int, int]

#: The overlaps of every two kinds of periods; the kind None is all of time.
Overlaps: TypeAlias = tuple[tuple[tuple[Period | None, Period | None], Overlap], ...]

#: Longer stretches of days are not looked at one by one.
DAYS_MAX = 1100


def nests(small: Period, large: Period) -> bool:
    """Return whether every `small` period lies in one `large` one.

    Args:
        small: A period.
        large: Another one, or the same.

    Examples:
        >>> nests("day", "week"), nests("week", "month"), nests("year", "month")
        (True, False, False)
    """
    # Only periods that cross each other touch several of each other.
    crossing = (small, large) in _TOUCHED
    return small == large or ((large, small) in _TOUCHED and not crossing)


def touches(one: Period, other: Period) -> int:
    """Return how many of the `other` periods one of the `one` touches at most.

    Args:
        one: A period.
        other: Another one, or the same.

    Examples:
        >>> touches("month", "week"), touches("week", "month"), touches("day", "week")
        (6, 2, 1)
    """
    return _TOUCHED.get((one, other), 1)


@lru_cache(maxsize=256)
def overlaps(
    kinds: tuple[Period | None, ...], days: tuple[Span, ...]
) -> Overlaps | None:
    """Return how periods lie on each other where only some days count.

    Args:
        kinds: The kinds of periods; None for all of time.
        days: The days, as ordinals of the Gregorian calendar. Weeks begin on Monday.

    Returns:
        Nothing if there are too many days to look at.

    Examples:
        >>> november = ((739921, 739950),)
        >>> dict(overlaps(("month", "week"), november))["month", "week"]
        (6, 6, 0)
        >>> dict(overlaps(("month", "day"), november))["month", "day"]
        (30, 30, 0)
    """
    if sum(last - first + 1 for first, last in days) > DAYS_MAX:
        return None
    return tuple((pair, _overlap(*pair, days)) for pair in product(kinds, kinds))


def _overlap(
    one: Period | None, other: Period | None, days: tuple[Span, ...]
) -> Overlap:
    touched: defaultdict[int, set[int]] = defaultdict(set)
    touching: defaultdict[int, set[int]] = defaultdict(set)
    for here, there in _pieces(one, other, days):
        touched[here].add(there)
        touching[there].add(here)
    sizes = [
        (len(found), sum(len(touching[there]) > 1 for there in found))
        for found in touched.values()
    ]
    return (
        max(size for size, _ in sizes),
        max(size + partly for size, partly in sizes),
        max(partly for _, partly in sizes),
    )


def _pieces(
    one: Period | None, other: Period | None, days: tuple[Span, ...]
) -> Iterator[tuple[int, int]]:
    """Yield all pairs of periods that have a day in common, each by its last day."""
    for first, last in days:
        day = first
        while day <= last:
            ends = _last_day(day, one), _last_day(day, other)
            yield ends
            day = min(ends) + 1


def _last_day(day: int, period: Period | None) -> int:
    """Return the last day of the period that a day lies in."""
    if period is None:
        return LAST_DAY
    if period == "day":
        return day
    if period == "week":
        return min(day + -day % 7, LAST_DAY)  # Day 7 was a Sunday.
    length = {"month": 1, "quarter": 3, "year": 12}[period]
    then = date.fromordinal(day)
    months = then.month - 1 - (then.month - 1) % length + length
    if (then.year, months) == (date.max.year, 12):
        return LAST_DAY
    return date(then.year + months // 12, months % 12 + 1, 1).toordinal() - 1
