"""Which groups an answer has, and how a change is spread over them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import product
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from modicum.query.aggregates import column_of
from modicum.query.contribution_bounds import UNBOUNDED, Moves, most_rows
from modicum.query.expressions.public_values import public_values
from modicum.query.expressions.times import start_of
from modicum.query.model import ColumnRef, Grain, Key
from modicum.query.sensitivity import Shape
from modicum.query.statistics import Cap, KeyValue
from modicum.query.tables import Tables
from modicum.release.parts import FIRST_DAY, LAST_DAY, Part, Span
from modicum.release.periods import Overlaps
from modicum.release.units import Reaches, Unit, clocks_of

#: Maximum number of groups of an answer.
GROUPS_MAX: Final = 1_000_000
#: The name of the rows of one id in one period of a key, beside other units.
CELL: Final = ""


def values_of(key: Key, tables: Tables, part: Part) -> tuple[KeyValue, ...] | None:
    """Return every value of a key that is public, in order; None if they are not.

    Args:
        key: The key.
        tables: The tables; a column may have public values.
        part: The part that is read; a period of time lies on its days.
    """
    if not isinstance(key.value, ColumnRef):
        return public_values(key.value, tables, part.periods)
    column = column_of(key.value, tables)
    grain = grain_of(key, tables)
    if grain is None and column.dated and column.type == "date":
        grain = "day"
    if grain is not None:
        # A part names days of no other times.
        clock = column.dated or key.value.column in tables.clocks
        return _periods(grain, part.periods) if clock else None
    values = column.values
    if values is None:
        return None
    return tuple(one if isinstance(one, str | bool) else int(one) for one in values)


def grain_of(key: Key, tables: Tables) -> Grain | None:
    """Return the period of a key; the day for a date with the time of rows."""
    column = key.value
    if (
        key.grain is None
        and isinstance(column, ColumnRef)
        and column.column in tables.clocks
    ):
        declared = column_of(column, tables)
        return "day" if declared.type == "date" and declared.values is None else None
    return key.grain


def groups_of(
    keys: Sequence[Key], tables: Tables, part: Part
) -> Iterator[tuple[KeyValue, ...]]:
    """Yield the groups of an answer whose keys are all public, in order."""
    public = [values_of(key, tables, part) or () for key in keys]
    yield from product(*public)


def number_of_values(key: Key, tables: Tables, part: Part) -> int:
    """Return how many values a key has; `UNBOUNDED` if that is not public."""
    values = values_of(key, tables, part)
    return UNBOUNDED if values is None else len(values)


class Grouping(Struct, frozen=True):
    """The division of an answer into groups, and the bounds on the rows in them.

    Attributes:
        keys: The keys, a date with the time of rows with its grain.
        values: How many values each key has; `UNBOUNDED` if that is not public.
        caps: The caps.
        units: The units by name.
        within: How periods, also those of keys, overlap on the days that are read; None
            if all days may be read.
    """

    keys: Sequence[Key]
    values: Sequence[int]
    caps: Sequence[Cap]
    units: Mapping[str, Unit]
    within: Overlaps | None = None

    @property
    def groups(self) -> int:
        """The number of groups; `UNBOUNDED` if that is not public."""
        return _product(self.values)

    def by(self, places: Sequence[int]) -> Grouping:
        """Return the division by some of the keys, given by their positions."""
        keys, values = (
            [every[place] for place in places] for every in (self.keys, self.values)
        )
        return replace(self, keys=keys, values=values)

    def is_time(self, key: Key) -> bool:
        """Return whether the values of a key are periods of time, as those of units."""
        return key.grain is not None and _time_of(key) in clocks_of(self.units)

    def cells(self, key: Key, id_: str) -> Reaches:
        """Return how the periods of a key lie on the instances of units.

        The rows of one id in one period of a key are an instance of a unit like others,
        which is called `CELL`.
        """
        cell = Unit(
            CELL,
            id_,
            key.grain,
            _time_of(key),
            within=tuple(
                name
                for name, one in self.units.items()
                if one.id == id_ and one.period is None
            ),
        )
        within = None if self.within is None else dict(self.within)
        return Reaches({**self.units, CELL: cell}, within)


def _time_of(key: Key) -> str:
    """Return the column of a key that has a period."""
    assert isinstance(key.value, ColumnRef)  # Expressions have no period.
    return key.value.column


def shape_of(moves: Moves, unit: str, grouping: Grouping) -> Shape:
    """Return how the rows that move with one change may lie in the groups.

    A key that distinguishes periods divides the rows of one id: no group has more of
    them than caps keep of one such period. Rows move only in the periods of the
    instances that they move in. And what comes in periods of one instance does not meet
    what goes in others.
    """
    own = grouping.units[unit].id
    together, apart, touched = UNBOUNDED, False, list[int]()
    for key, values in zip(grouping.keys, grouping.values, strict=True):
        if not grouping.is_time(key):
            touched.append(values)
            continue
        for id_, count in moves.ids.items():
            most = most_rows(CELL, grouping.caps, grouping.cells(key, id_))
            together = min(together, count * most)
        cells = grouping.cells(key, own)
        if moves.ids.get(own) == 1:
            reaches = cells.of(CELL, unit)
            apart = apart or any(one.fixed and one.size == 1 for one in reaches)
        touched.append(min(values, _periods_touched(moves, cells)))
    return Shape(_product(touched), together, apart and moves.apart)


def _periods_touched(moves: Moves, cells: Reaches) -> int:
    """Return in how many periods of a key rows move, at most."""
    return min(
        (
            count * reach.size
            for name, count in moves.touched.items()
            for reach in cells.of(name, CELL)
        ),
        default=UNBOUNDED,
    )


def _product(numbers: Iterable[int]) -> int:
    product = 1
    for number in numbers:
        product = min(product * number, UNBOUNDED)
    return product


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
    """Return the first day of the period that a day lies in; weeks begin on Monday."""
    if grain == "day":
        return day
    if grain == "week":
        return day - (day - 1) % 7  # Day 1 was a Monday.
    return start_of(date.fromordinal(day), grain).toordinal()
