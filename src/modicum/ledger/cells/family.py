"""The cells of one privacy unit: the charge of each rule in each segment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from modicum.accounting import Loss
from modicum.core.errors import check
from modicum.ledger.cells.axes import Box, Region, Space
from modicum.ledger.cells.partition import Booleans, Integers
from modicum.ledger.cells.segments import Overlay, Segments
from modicum.ledger.cells.sums import Amounts, Sums, added, nothing, of_loss

#: Maximum number of cached rule sets.
REMEMBERED_MAX = 10_000


class Cost:
    """The cost of a mechanism for a unit. Equality is identity.

    Args:
        loss: The loss within the part it reads.
        moved: The loss where only one of a pair of points lies in it.

    Attributes:
        loss: The first, as one line.
        moved: The second.
        greater: The greater of the two.
    """

    __slots__ = ("greater", "loss", "moved")

    def __init__(self, loss: Loss, moved: Loss) -> None:
        self.loss = self.moved = self.greater = of_loss(loss)
        if moved is not loss:
            self.moved = of_loss(moved)
            most = tuple(map(max, loss.coordinates, moved.coordinates))
            self.greater = of_loss(Loss(most))


class MechanismCost(NamedTuple):
    """The cost of a mechanism for a unit, and its regions.

    Attributes:
        regions: One region; two, if points are pairs.
        cost: The cost.
        everywhere: Whether it reads everything.
    """

    regions: tuple[Region, ...]
    cost: Cost
    everywhere: bool


class Charge(NamedTuple):
    """The request of a release to rules that the same mechanisms match.

    Attributes:
        numbers: The numbers of the rules.
        rows: Their rows in the family.
        places: Which pieces of the overlay cost something.
        alone: The cost of each of these.
        everywhere: Whether all of these mechanisms read everything.
    """

    numbers: tuple[int, ...]
    rows: Integers
    places: Integers
    alone: Amounts
    everywhere: bool

    @property
    def first(self) -> Amounts:
        """The cost of the first piece: that of all, if everything is read."""
        return Amounts(self.alone.table[0])


class ReleaseCosts(NamedTuple):
    """A release in the numbers of a family.

    Attributes:
        overlay: The regions of its mechanisms, laid over the segments.
        charges: Its requests to the rules.
        regions: The regions themselves.
    """

    overlay: Overlay
    charges: tuple[Charge, ...]
    regions: tuple[Region, ...] = ()


class Spent(NamedTuple):
    """The charges of some cells; valid until the next charge.

    Attributes:
        sums: All sums.
        everywhere: By rule, the line of its charge everywhere; None if no rule has one.
        lines: By rule and piece, the line of the additional charge there.
    """

    sums: Sums
    everywhere: Integers | None
    lines: Integers

    def of(self, rules: Integers | slice) -> Spent:
        """Return the same for some of the rules."""
        everywhere = None if self.everywhere is None else self.everywhere[rules]
        return Spent(self.sums, everywhere, self.lines[rules])

    def within(self, pieces: Integers | Booleans) -> Spent:
        """Return the same for some of the pieces."""
        return Spent(self.sums, self.everywhere, self.lines[:, pieces])

    def units(self, column: int) -> tuple[Integers | int, Integers]:
        """Return a coordinate of both; `INFINITE` where it is infinite."""
        elsewhere = self.sums.units(self.lines, column)
        if self.everywhere is None:
            return 0, elsewhere
        return self.sums.units(self.everywhere, column), elsewhere

    def charged(self) -> Booleans:
        """Return, by rule and piece, whether anything was charged there."""
        found: Booleans = (self.sums[self.lines].table != 0).max(axis=-1)
        if self.everywhere is not None:
            everywhere = (self.sums[self.everywhere].table != 0).max(axis=-1)
            found = found | everywhere[:, None]
        return found

    def at(self, pieces: Integers) -> Amounts:
        """Return, by rule, the total charge of one of its pieces."""
        lines = self.lines
        if lines.shape[1] == 1:
            found = self.sums[lines.ravel()]
        else:
            found = self.sums[lines[np.arange(len(lines)), pieces]]
        if self.everywhere is None:
            return found
        return added(found, self.sums[self.everywhere])


class Family:
    """All cells of one unit.

    Mutable, and owned by one caller.

    Args:
        space: The space of the unit.
        segments_max: The maximum number of segments.

    Attributes:
        space: The space of the unit.
        segments: How they are divided.
        sums: The charges; line 0 is zero.
        rounded: Whether something was charged to more than it reads.
    """

    def __init__(self, space: Space, segments_max: int) -> None:
        self.space = space
        self.segments = Segments(space.extent, segments_max=segments_max)
        self.rounded = False
        self.sums = Sums()
        self._rows: dict[int, int] = {}
        self._rows_of: dict[tuple[int, ...], Integers] = {}
        #: By row, the line of its charge everywhere; and by segment, that of its
        #: additional charge there. 0 means none.
        self._everywhere: Integers = np.zeros(16, dtype=np.int64)
        self._has_everywhere = False
        self._lines: Integers = np.zeros((16, 16), dtype=np.int64)

    @property
    def numbers(self) -> list[int]:
        """The numbers of the rules that have a row, in the order of the rows."""
        return list(self._rows)

    def table(self) -> tuple[Integers, Amounts]:
        """Return the lines of the sums by row, everywhere first; and all of them."""
        rows = len(self._rows)
        lines = self._lines[:rows, : self.segments.count]
        table = np.concatenate([self._everywhere[:rows, None], lines], axis=1)
        return table, self.sums[np.arange(self.sums.count)]

    def restore(
        self, numbers: list[int], lines: Integers, sums: Amounts, *, rounded: bool
    ) -> None:
        """Restore the result of `table`, after the segments."""
        if lines.size and not 0 <= lines.min() <= lines.max() < len(sums.table):
            raise ValueError("a cell has no sum")
        self._rows = {number: row for row, number in enumerate(numbers)}
        self._everywhere, self._lines = lines[:, 0].copy(), lines[:, 1:].copy()
        self._has_everywhere = bool(self._everywhere.any())
        self.sums, self.rounded = Sums(sums), rounded
        self._make_room()

    def rows(self, numbers: tuple[int, ...]) -> Integers:
        """Return the rows of rules; rules without one get one."""
        rows = self._rows_of.get(numbers)
        if rows is None:
            found = self._rows
            for number in numbers:
                found.setdefault(number, len(found))
            self._make_room()
            rows = np.array([found[number] for number in numbers], dtype=np.int64)
            if len(self._rows_of) >= REMEMBERED_MAX:
                self._rows_of.clear()
            self._rows_of[numbers] = rows
        return rows

    def inquiry(
        self,
        readings: Sequence[MechanismCost],
        requested: Sequence[tuple[tuple[int, ...], tuple[int, ...]]],
    ) -> ReleaseCosts:
        """Return the cost of a release, by cell. Changes nothing.

        Args:
            readings: The cost and regions of each of its mechanisms.
            requested: Positions of mechanisms, and the numbers of the rules that they
                match.
        """
        regions = tuple(region for one in readings for region in one.regions)
        overlay = self.segments.overlay(regions)
        charges = []
        for about, numbers in requested:
            places, alone = _alone(overlay, readings, about)
            everywhere = False not in [readings[one].everywhere for one in about]
            charges.append(
                Charge(numbers, self.rows(numbers), places, alone, everywhere)
            )
        return ReleaseCosts(overlay, tuple(charges), regions)

    def spent(self, inquiry: ReleaseCosts, charge: Charge) -> Spent:
        """Return the present charges of the cells of a request."""
        segments = inquiry.overlay.segments[charge.places]
        lines: Integers = self._lines[charge.rows[:, None], segments]
        everywhere = self._everywhere[charge.rows] if self._has_everywhere else None
        return Spent(self.sums, everywhere, lines)

    def charge(self, inquiry: ReleaseCosts) -> None:
        """Cut the segments of a release, and add its cost to its cells."""
        segments = self._cut(inquiry.overlay)
        for charge in inquiry.charges:
            if charge.everywhere:
                lines = self._begun(self._everywhere, charge.rows)
                self.sums.add(lines, charge.first)
                self._has_everywhere = True
            else:
                place = charge.rows[:, None], segments[charge.places]
                self.sums.add(self._begun(self._lines, place), charge.alone)

    def take_back(self, inquiry: ReleaseCosts) -> None:
        """Undo `charge` for a release that was canceled.

        Raises:
            InvariantError: If it was never charged.
        """
        check(not inquiry.overlay.pieces, "LED-7: only what was charged is taken back")
        for charge in inquiry.charges:
            if charge.everywhere:
                self.sums.take_back(self._everywhere[charge.rows], charge.first)
            else:
                lines = self.spent(inquiry, charge).lines
                self.sums.take_back(lines, charge.alone)

    def _begun(self, table: Integers, place: Any) -> Integers:
        """Return the lines at a place of a table; new ones where there was none."""
        lines: Integers = table[place]
        if np.count_nonzero(lines) < lines.size:
            empty = lines == 0
            lines[empty] = self.sums.begin(int(np.count_nonzero(empty)))
            table[place] = lines
        return lines

    def note(self, regions: Sequence[Region]) -> None:
        """Cut segments as `charge` would for a release that does not count."""
        self._cut(self.segments.overlay(regions))

    def cells(self, number: int) -> tuple[Amounts, list[int | None]]:
        """Return the charge of each cell of a rule, and its segment.

        Cells without a charge are combined into one, without a segment.
        """
        row = self._rows.get(number)
        if row is None:
            return nothing(1), [None]
        lines = self._lines[row, : self.segments.count]
        charged = np.flatnonzero(lines)
        segments: list[int | None] = list(charged.tolist())
        lines = lines[charged]
        if len(charged) < self.segments.count:
            segments.insert(0, None)
            lines = np.insert(lines, 0, 0)  # Line 0 is nothing.
        everywhere = self.sums[self._everywhere[row : row + 1]]
        return added(self.sums[lines], everywhere), segments

    def box(self, segment: int) -> Box:
        """Return a box of a segment."""
        return self.segments.then().boxes(segment)[0]

    def _cut(self, overlay: Overlay) -> Integers:
        """Cut segments; the charge of one is copied to all its parts."""
        self.rounded |= overlay.rounded
        before = self.segments.count
        numbers = self.segments.cut(overlay)
        if self.segments.count > before:
            self._make_room()
            new = numbers >= before
            parents, children = overlay.segments[new], numbers[new]
            lines = self._lines[: len(self._rows), parents]
            charged = np.argwhere(lines)
            copies = self.sums.copy(lines[charged[:, 0], charged[:, 1]])
            self._lines[charged[:, 0], children[charged[:, 1]]] = copies
        return numbers

    def _make_room(self) -> None:
        rows, segments = len(self._rows), self.segments.count
        has_rows, has_segments = self._lines.shape
        if rows > has_rows or segments > has_segments:
            more_rows = 0 if rows <= has_rows else max(rows, 2 * has_rows) - has_rows
            more = (
                0
                if segments <= has_segments
                else max(segments, 2 * has_segments) - has_segments
            )
            self._lines = np.pad(self._lines, ((0, more_rows), (0, more)))
            self._everywhere = np.pad(self._everywhere, (0, more_rows))


def _alone(
    overlay: Overlay, readings: Sequence[MechanismCost], about: tuple[int, ...]
) -> tuple[Integers, Amounts]:
    """Return the pieces in which some mechanisms cost something, and how much."""
    sides = len(readings[0].regions)
    if len(about) == 1 and sides == 1:
        places = overlay.inside_any(about)
        loss = readings[about[0]].cost.loss
        return places, loss if len(places) == 1 else loss.taken(np.zeros_like(places))
    columns = [sides * one + side for one in about for side in range(sides)]
    places = overlay.inside_any(tuple(columns))
    alone = nothing(len(places))
    for one in about:
        within = overlay.inside[places, sides * one : sides * (one + 1)]
        cost = readings[one].cost
        alone = added(alone, _by_side(within, cost, rounded=overlay.rounded))
    return places, alone


def _by_side(within: Booleans, cost: Cost, *, rounded: bool) -> Amounts:
    """Return the cost of a mechanism for pieces inside, half inside, or outside."""
    none = nothing(1)
    # A side may only have been rounded in: the greater of both is due.
    loss = cost.greater if rounded else cost.loss
    table = Amounts(np.concatenate([none.table, cost.moved.table, loss.table]))
    kinds = np.where(within.all(axis=1), 2, np.where(within.any(axis=1), 1, 0))
    return table.taken(kinds)
