"""How many of the rows that are kept change, if one instance of a unit does.

Caps keep at most so many rows of each instance of their units: the first in an order of
all possible rows, fixed by a keyed hash. So what a cap does to one instance depends on
the rows of that instance only, and little: if a rows come and d rows go, then of those
that are kept at most max(a, d) come and at most max(a, d) go. (A row that moves up into
the kept ones stands behind all that were kept, one that is pushed out before all that
were not; so nothing moves up where something is pushed out.)

A cap of a larger unit lets the change of a smaller one move rows of others: what comes
pushes out as much. Adding a day to a full month is a substitution in that month.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from modicum.query.statistics import Cap
from modicum.release.periods import Overlaps
from modicum.release.units import Reaches, Unit, larger

#: More rows than any table has: no bound. Sums and products of it stay as large.
UNBOUNDED: Final = 2**62


@dataclass(frozen=True, slots=True)
class Moves:
    """How many of the rows that are kept come and go with one change of a unit.

    Whichever way the change goes: what comes in one direction goes in the other.

    Attributes:
        coming: How many come at most.
        going: How many go at most, none or not more than come.
        one_id: Whether all of them have the id of the instance that changes.
    """

    coming: int
    going: int
    one_id: bool = True

    @property
    def bounded(self) -> bool:
        """Whether there is a bound at all."""
        return self.coming < UNBOUNDED


def in_order(caps: Iterable[Cap], units: Mapping[str, Unit]) -> tuple[Cap, ...]:
    """Return caps in the order in which they cut: those of smaller units first.

    Args:
        caps: The caps, of one unit at most one.
        units: The units by name.
    """
    covers = larger(units)
    below = {name: sum(name in found for found in covers.values()) for name in units}
    return tuple(sorted(caps, key=lambda cap: (below[cap.unit], cap.unit)))


def moves(
    unit: str,
    caps: Sequence[Cap],
    units: Mapping[str, Unit],
    within: Overlaps | None = None,
) -> Moves:
    """Return how many kept rows move with one change of a unit, at most.

    Args:
        unit: The unit that changes, under its own neighboring relation.
        caps: The caps, in the order in which they cut.
        units: The units by name.
        within: How periods lie on each other on the days that are read; None if all
            days may be read.

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
    return Moves(change.coming, change.going, change.one_id)


class _Change:
    """A change of one instance, followed through caps.

    All that moves lies in some instances of a unit: at first in the one that changes,
    of which `coming` and `going` bound all rows, after and before.
    """

    def __init__(
        self, units: Mapping[str, Unit], reaches: Reaches, unit: str, *, whole: bool
    ) -> None:
        self._units = units
        self._reaches = reaches
        self._changed = units[unit]
        self._unit, self._count = unit, 1
        self._caps: list[Cap] = []
        self.coming, self.going = UNBOUNDED, 0 if whole else UNBOUNDED
        self.one_id = True
        self.spread = False

    def cut(self, cap: Cap) -> None:
        """Follow the change through one cap."""
        too_many = self._most_rows(cap.unit) - cap.rows
        self._caps.append(cap)
        if too_many <= 0:
            return  # Caps of smaller units left nothing to cut.
        touched, inside = self._touched(cap.unit)
        kept = min(touched * cap.rows, UNBOUNDED)
        if inside:
            self.coming, self.going = min(self.coming, kept), min(self.going, kept)
            return
        most = max(self.coming, self.going)
        both = most if touched == 1 else min(self.coming + self.going, UNBOUNDED)
        pushed = both if self.going else min(both, touched * too_many)
        self.coming, self.going = min(kept, both), min(kept, pushed)
        self._unit, self._count, self.spread = cap.unit, touched, True
        self.one_id = self.one_id and self._is_of_the_id(cap.unit)

    def _touched(self, unit: str) -> tuple[int, bool]:
        """Return in how many instances of a unit rows move, and if no others are there.

        Before and after, different ones may be touched, unless their keys are fixed.
        """
        if self.spread and self.one_id and self._is_all_of_the_id(unit):
            return 1, False
        both = self.spread or self.going > 0
        size, inside = UNBOUNDED, False
        for reach in self._reaches.of(self._unit, unit):
            factor = 1 if reach.fixed or not both else 2
            size = min(size, reach.size * factor)
            inside = inside or not reach.partly
        return min(size * self._count, UNBOUNDED), inside and not self.spread

    def _most_rows(self, unit: str) -> int:
        """Return how many rows caps before leave of one instance of a unit, at most."""
        return min(
            (
                reach.size * cap.rows
                for cap in self._caps
                for reach in self._reaches.of(unit, cap.unit)
            ),
            default=UNBOUNDED,
        )

    def _is_of_the_id(self, unit: str) -> bool:
        return self._units[unit].id == self._changed.id

    def _is_all_of_the_id(self, unit: str) -> bool:
        return self._is_of_the_id(unit) and self._units[unit].period is None
