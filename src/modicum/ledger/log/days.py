"""Days of the log: those of the Gregorian calendar, in UTC."""

from __future__ import annotations

from datetime import date
from functools import lru_cache


@lru_cache(maxsize=64)
def day_named(text: str) -> int:
    """Return a day as an ordinal.

    Raises:
        ValueError: If there is no such day.
    """
    return date.fromisoformat(text).toordinal()


def day_of(at: str) -> int:
    """Return the day of a time, as an ordinal of the Gregorian calendar in UTC.

    Raises:
        ValueError: If there is no such day.

    Examples:
        >>> day_of("0001-01-02T23:59:59.999999Z")
        2
    """
    return day_named(at[:10])
