"""Which groups an answer has, and how a change is spread over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import product
from typing import Final

from modicum.query.aggregates import column_of
from modicum.query.bounding import UNBOUNDED, Moves
from modicum.query.model import Grain, Key
from modicum.query.sensitivity import Shape
from modicum.query.statistics import Cap, KeyValue
from modicum.query.tables import Tables
from modicum.release.parts import FIRST_DAY, LAST_DAY, Part, Span
from modicum.release.periods import nests
from modicum.release.units import Unit

#: An answer has so many groups at most.
GROUPS_MAX: Final = 1_000_000


def values_of(key: Key, tables: Tables, part: Part) -> tuple[KeyValue, ...] | None:
    """Return every value of a key that is public, in order; None if they are not.

    Args:
        key: The key.
        tables: The tables; a column may have public values.
        part: The part that is read; a period of time lies on its days.
    """
    grain = grain_of(key, tables)
    if grain is not None:
        clock = key.column.column in tables.clocks  # A part names days of no other.
        return _periods(grain, part.periods) if clock else None
    values = column_of(key.column, tables).values
    if values is None:
        return None
    return tuple(one if isinstance(one, str | bool) else int(one) for one in values)


def grain_of(key: Key, tables: Tables) -> Grain | None:
    """Return the period that a key is; the day of a date that tells time.

    Args:
        key: The key.
        tables: The tables.
    """
    if key.grain is None and key.column.column in tables.clocks:
        column = column_of(key.column, tables)
        return "day" if column.type == "date" and column.values is None else None
    return key.grain


def groups_of(
    keys: Sequence[Key], tables: Tables, part: Part
) -> Iterator[tuple[KeyValue, ...]]:
    """Yield the groups of an answer whose keys are all public, in order.

    Args:
        keys: The keys.
        tables: The tables.
        part: The part that is read.
    """
    public = [values_of(key, tables, part) or () for key in keys]
    yield from product(*public)


def number_of_groups(keys: Sequence[Key], tables: Tables, part: Part) -> int:
    """Return how many groups there are; `UNBOUNDED` if that is not public.

    Args:
        keys: The keys; without any, there is one group.
        tables: The tables.
        part: The part that is read.
    """
    number = 1
    for key in keys:
        values = values_of(key, tables, part)
        if values is None:
            return UNBOUNDED
        number = min(number * len(values), UNBOUNDED)
    return number


def shape_of(
    moves: Moves,
    unit: Unit,
    keys: Sequence[Key],
    caps: Sequence[Cap],
    units: Mapping[str, Unit],
    groups: int,
) -> Shape:
    """Return how the rows that move with one change may lie in the groups.

    A key that tells periods apart parts the rows of one id: no group has more of them
    than a cap keeps of one such period, or of a longer one.

    Args:
        moves: The rows that move.
        unit: The unit that changes.
        keys: The keys.
        caps: The caps.
        units: The units by name.
        groups: How many groups there are.
    """
    together = UNBOUNDED
    if moves.one_id:
        for cap in caps:
            other = units[cap.unit]
            if other.id == unit.id and any(_parts(key, other) for key in keys):
                together = min(together, cap.rows)
    return Shape(groups, together)


def _parts(key: Key, unit: Unit) -> bool:
    """Return whether all rows of one id in a group lie in one instance of a unit."""
    if unit.period is None:
        return True
    same_clock = unit.column == key.column.column
    return key.grain is not None and same_clock and nests(key.grain, unit.period)


def _periods(grain: Grain, days: tuple[Span, ...] | None) -> tuple[str, ...] | None:
    """Return the first days of all periods that some days lie in; None if too many."""
    if days is None or days[0][0] == FIRST_DAY or days[-1][1] == LAST_DAY:
        return None
    if sum(last - first + 1 for first, last in days) > GROUPS_MAX:
        return None
    found = dict.fromkeys(
        first_day(day, grain) for first, last in days for day in range(first, last + 1)
    )
    return tuple(date.fromordinal(day).isoformat() for day in found)


def first_day(day: int, grain: Grain) -> int:
    """Return the first day of the period that a day lies in; weeks begin on Monday.

    Args:
        day: The day, as an ordinal.
        grain: The kind of period.
    """
    if grain == "day":
        return day
    if grain == "week":
        return day - (day - 1) % 7  # Day 1 was a Monday.
    then = date.fromordinal(day)
    length = {"month": 1, "quarter": 3, "year": 12}[grain]
    return then.replace(month=then.month - (then.month - 1) % length, day=1).toordinal()
