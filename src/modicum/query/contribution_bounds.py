"""The maximum number of kept rows that change with one instance of a unit.

Caps keep at most a fixed number of rows of each instance of their units: the first in
an order of all possible rows, fixed by a keyed hash. So the effect of a cap on one
instance depends on the rows of that instance only, and is small: if a rows come and d
rows go, then of the kept ones at most max(a, d) come and at most max(a, d) go. (A row
that moves up into the kept ones ranks after all that were kept, one that is pushed out
before all that were not; so nothing moves up where something is pushed out.)

A cap of a larger unit lets the change of a smaller one move rows of others: what comes
pushes out as much. Adding a day to a full month is a substitution in that month. Three
things keep rows where they are:

- A cap of a unit that the changed one covers moves no rows of others. An instance in
  which a row changes lies in the change whole, in the table that has the row; what else
  it had in the other table would be outside the change, and so be in both.
- For the same reason all that moves stays in the instances of each larger unit in which
  it moved before, if this unit covers the one that is capped.
- If rows only come, and each cap's instances lie in those of the next, rows of others
  only go. For up to any place in the order, the number of kept rows does not fall: that
  holds when rows come, for the sum of several instances, and for what a cap leaves of
  it. So no one finds more room than before.

A table with one row for each id needs no explicit cap; the engine enforces it all the
same, so that the price holds for any data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from modicum.query.model import Query
from modicum.query.request import QueryRequest
from modicum.query.statistics import Cap
from modicum.query.tables import Table, Tables
from modicum.release.periods import Overlaps
from modicum.release.units import Reaches, Unit, larger

#: More rows than any table has: no bound. Sums and products of it stay as large.
UNBOUNDED: Final = 2**62


class Moves(Struct, frozen=True):
    """The maximum number of kept rows that come and go with one change of a unit.

    In both directions of the change: an addition in one is a removal in the other.

    Attributes:
        coming: The maximum number that come.
        going: The maximum number that go, none or not more than come.
        ids: By column of ids, how many different ones they have at most, in both
            tables; they may have any number of those that are not named.
        apart: Whether the rows that come belong to the instance that changes, and those
            that go to others; or the other way round.
        touched: By unit, the maximum number of its instances that contain them, in both
            tables; for a unit not listed it is unbounded.
    """

    coming: int
    going: int
    ids: Mapping[str, int] = field(default_factory=dict)
    apart: bool = False
    touched: Mapping[str, int] = field(default_factory=dict)

    @property
    def bounded(self) -> bool:
        """Whether there is a bound at all."""
        return self.coming < UNBOUNDED


def in_order(caps: Iterable[Cap], units: Mapping[str, Unit]) -> tuple[Cap, ...]:
    """Return caps in the order in which they cut: those of smaller units first."""
    covers = larger(units)
    below = {name: sum(name in found for found in covers.values()) for name in units}
    return tuple(sorted(caps, key=lambda cap: (below[cap.unit], cap.unit)))


def moves(
    unit: str,
    caps: Sequence[Cap],
    units: Mapping[str, Unit],
    within: Overlaps | None = None,
) -> Moves:
    """Return the maximum number of kept rows that move with one change of a unit.

    Args:
        unit: The unit that changes, under its own neighboring relation.
        caps: The caps, in the order in which they cut.
        units: The units by name.
        within: How periods overlap on the days that are read; None if all days may be
            read.

    Returns:
        The number of rows; not `bounded` where nothing is proven.
    """
    whole = units[unit].neighbors == "add-remove"
    if within is not None and units[unit].neighbors == "substitute":
        whole = False  # On some days an instance may come, go or be replaced.
    reaches = Reaches(units, None if within is None else dict(within))
    change = _Change(units, reaches, unit, whole=whole)
    for cap in caps:
        change.cut(cap)
    return Moves(
        change.coming, change.going, change.ids(), change.apart, change.touched
    )


def most_rows(unit: str, caps: Iterable[Cap], reaches: Reaches) -> int:
    """Return how many rows caps leave of one instance of a unit, at most.

    Args:
        unit: The unit.
        caps: The caps.
        reaches: How instances of the unit lie on those that are capped.
    """
    return min(
        (
            min(reach.size * cap.rows, UNBOUNDED)
            for cap in caps
            for reach in reaches.of(unit, cap.unit)
        ),
        default=UNBOUNDED,
    )


class _Change:
    """A change of one instance, followed through caps.

    `coming` and `going` bound the rows that move, and `touched` the number of instances
    of each unit that contain them. Initially these are the rows of the instance that
    changes, all of those after and before.
    """

    def __init__(
        self, units: Mapping[str, Unit], reaches: Reaches, unit: str, *, whole: bool
    ) -> None:
        self._units = units
        self._reaches = reaches
        self._covers = larger(units)
        self._unit, self._id, self._one_id = unit, units[unit].id, True
        self._caps: list[Cap] = []
        self._spread: str | None = None
        self.coming, self.going = UNBOUNDED, 0 if whole else UNBOUNDED
        self.apart = whole
        self.touched = {name: self._reached(unit, name, alone=whole) for name in units}

    def cut(self, cap: Cap) -> None:
        """Follow the change through one cap."""
        too_many = most_rows(cap.unit, self._caps, self._reaches) - cap.rows
        self._caps.append(cap)
        if too_many <= 0:
            return  # Caps of smaller units left nothing to cut.
        kept = min(self.touched[cap.unit] * cap.rows, UNBOUNDED)
        shared = self._shared(cap.unit)
        if shared == 0:
            self.coming, self.going = min(self.coming, kept), min(self.going, kept)
            return
        moving = self._moving(cap.unit)
        pushed = moving if self.going else shared * min(too_many, cap.rows)
        self.coming, self.going = min(kept, moving), min(kept, moving, pushed)
        self._spread_in(cap.unit)

    def ids(self) -> dict[str, int]:
        """Return how many ids of each kind the rows have; an instance has one."""
        found = {self._id: 1} if self._one_id else {}
        for name, one in self._units.items():
            found[one.id] = min(found.get(one.id, UNBOUNDED), self.touched[name])
        return found

    def _shared(self, unit: str) -> int:
        """Return how many instances with rows that move may also have rows of others.

        None has if the unit that changes covers it: what is outside the change is the
        same before and after, so it cannot lie in the instance.
        """
        if self._spread is not None:
            return self.touched[unit]
        if self._unit in self._covers[unit]:
            return 0
        partly = [reach.partly for reach in self._reaches.of(self._unit, unit)]
        return min(partly, default=UNBOUNDED)

    def _moving(self, unit: str) -> int:
        """Return the maximum number of rows that come or go, over a unit's instances.

        For each instance the larger of what comes and what goes counts.
        """
        most = max(self.coming, self.going)
        if self.touched[unit] == 1:
            return most
        if self._spread is not None and self._determines(self._spread, unit):
            return most  # The maximum, summed over smaller instances.
        return min(self.coming + self.going, UNBOUNDED)

    def _spread_in(self, unit: str) -> None:
        """Note that now any rows of the touched instances may move.

        Whatever covers these instances contains their other rows, too.
        """
        wide = [
            name
            for name in self._units
            if name in self._covers[unit] or self._determines(unit, name)
        ]
        self.touched |= {
            name: min(
                min(self.touched[one] * self._reached(one, name), UNBOUNDED)
                for one in wide
            )
            for name in self._units.keys() - wide
        }
        if self._spread is not None and not self._determines(self._spread, unit):
            self.apart = False
        self._one_id = self._one_id and self._units[unit].id == self._id
        self._spread = unit

    def _determines(self, one: str, other: str) -> bool:
        """Return whether the key of an instance determines the one that contains it."""
        reaches = self._reaches.of(one, other)
        return any(reach.fixed and reach.size == 1 for reach in reaches)

    def _reached(self, one: str, other: str, *, alone: bool = False) -> int:
        """Return the maximum number of instances of another unit that one has rows in.

        Before and after, they may differ, unless their keys are fixed.
        """
        return min(
            (
                reach.size * (1 if reach.fixed or alone else 2)
                for reach in self._reaches.of(one, other)
            ),
            default=UNBOUNDED,
        )


def main_table(query: Query, tables: Tables) -> Table:
    """Return the table whose rows are read; of others, a row joins at most one row.

    Args:
        query: The query.
        tables: The declarations; of several tables, at most one may have many rows per
            id that they are joined on.
    """
    read = [tables.by_name[name] for name in query.tables]
    many = [one for one in read if one.one_per != query.joined_on]
    return (many or read)[0]


def caps_of(request: QueryRequest, units: Mapping[str, Unit]) -> tuple[Cap, ...]:
    """Return the caps of a query: the lowest one of each unit, in no order."""
    caps = {one.unit: one for one in _declared(request, units)}
    for one in request.caps:
        declared = caps.get(one.unit, one)
        caps[one.unit] = min(one, declared, key=lambda cap: cap.rows)
    return tuple(caps.values())


def _declared(request: QueryRequest, units: Mapping[str, Unit]) -> Iterator[Cap]:
    """Yield one row for the largest units of the id that a table has one row for."""
    found = main_table(request.query, request.tables).one_per
    same_id = {name: one for name, one in units.items() if one.id == found}
    for name, covers in larger(same_id).items():
        if covers == {name}:
            yield Cap(name, 1)
