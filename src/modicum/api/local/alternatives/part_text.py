"""Parts of the data in the syntax of a release file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from modicum.ledger.cells.calendar import period_name, period_of
from modicum.release import Span
from modicum.release.parts import FIRST_DAY, LAST_DAY, Box, Values
from modicum.release.period_text import days_of
from modicum.release.periods import PERIODS


def where_of(boxes: Sequence[Box]) -> Any:
    """Return boxes in the syntax of `where`."""
    found = [{name: _values(values) for name, values in box} for box in boxes]
    return found[0] if len(found) == 1 else found


def periods_of(days: Sequence[Span]) -> Any:
    """Return days in the syntax of `periods`."""
    found = [_period(*span) for span in days]
    return found[0] if len(found) == 1 else found


def box_text(box: Box) -> str:
    """Return a box for display, such as ``country CH, age 18 to 30``."""
    return ", ".join(f"{name} {_values_text(values)}" for name, values in box)


def days_text(first: int, last: int) -> str:
    """Return a span of days for display, such as ``2026-11``."""
    period = _period(first, last)
    if isinstance(period, str):
        return period
    ends = [f"{end} {period[end]}" for end in ("from", "to") if end in period]
    return " ".join(ends) or "all of time"


def _values(values: Values) -> Any:
    found = [one if isinstance(one, str) else _span(*one) for one in values]
    return found[0] if len(found) == 1 else found


def _span(low: int, high: int) -> Any:
    return low if low == high else {"from": low, "to": high}


def _values_text(values: Values) -> str:
    return " or ".join(
        one if isinstance(one, str) else _span_text(*one) for one in values
    )


def _span_text(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _period(first: int, last: int) -> Any:
    """Return a span of days as one period if it is one, else by its ends."""
    for period in PERIODS:
        name = period_name(period_of(first, period), period)
        if days_of(name) == (first, last):
            return name
    return dict(_ends(first, last))


def _ends(first: int, last: int) -> Iterator[tuple[str, str]]:
    """Yield the ends that are not open, by month where both are month boundaries."""
    months = [period_name(period_of(day, "month"), "month") for day in (first, last)]
    begins = first == FIRST_DAY or _of(months[0])[0] == first
    ends = last == LAST_DAY or _of(months[1])[1] == last
    whole = begins and ends
    if first != FIRST_DAY:
        yield "from", months[0] if whole else period_name(first, "day")
    if last != LAST_DAY:
        yield "to", months[1] if whole else period_name(last, "day")


def _of(word: str) -> Span:
    days = days_of(word)
    assert days is not None
    return days
