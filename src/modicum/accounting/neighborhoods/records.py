"""The worst move of a record: removed, replaced, or changed in a few attributes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from modicum.accounting.grid import COORDINATES, INFINITE
from modicum.accounting.neighborhoods.cells import Cell, Column, columns, holding
from modicum.accounting.neighborhoods.line_sweep import (
    Integers,
    Line,
    Pair,
    deepest,
    depths,
    integers,
    worst_pair,
)
from modicum.accounting.neighborhoods.move_costs import Steps
from modicum.accounting.neighborhoods.moves import Charge, Move, Place, place_text
from modicum.accounting.neighborhoods.regions import (
    Region,
    Segments,
    Span,
    described,
    holds,
    stretches,
)
from modicum.accounting.neighborhoods.worst_case import Candidates, Worst, split


def membership(cells: Sequence[Cell], entries: int) -> Integers:
    """Return which entries hold which cells.

    Returns:
        Shape (cells, entries), int64, of 0 and 1.

    Examples:
        >>> membership([Cell(0b01, ()), Cell(0b11, ())], 2).tolist()
        [[1, 0], [1, 1]]
    """
    table = np.zeros((len(cells), entries), dtype=np.int64)
    for row, cell in enumerate(cells):
        table[row, holding(cell.members)] = 1
    return table


def worst_cell(held: Integers, u: Sequence[int]) -> tuple[int, int]:
    """Return the largest sum of costs of one cell, and the cell.

    Args:
        held: Shape (cells, entries), of 0 and 1; at least one cell.
        u: The cost of every entry, >= 0.

    Examples:
        >>> held = membership([Cell(0b001, ()), Cell(0b110, ())], 3)
        >>> worst_cell(held, [4, 3, 2])
        (5, 1)
    """
    sums = held @ integers(u, bound=sum(u)) if len(u) else np.zeros(len(held), int)
    place = int(np.argmax(sums))
    return int(sums[place]), place


def worst_pair_of_cells(
    held: Integers, u: Sequence[int], b: Sequence[int], *, at_most: int
) -> Pair | None:
    """Return the costliest move between two cells, or within one.

    Cells are visited from the costliest down. Two cells cost no more together than the
    sum of both, and `over` more where staying costs more than leaving and entering;
    what cannot beat the best so far is skipped.

    Args:
        held: Shape (cells, entries), of 0 and 1; at least one cell.
        u: The cost of each entry when a record comes or goes, >= 0.
        b: The cost of each when a record stays and changes, >= 0.
        at_most: The maximum number of pairs times entries before giving up.

    Examples:
        >>> cells = membership([Cell(0b01, ()), Cell(0b10, ())], 2)
        >>> worst_pair_of_cells(cells, [1, 2], [1, 2], at_most=100).cost
        3
    """
    if not u:
        return Pair(0, 0, 0)
    bound = 2 * sum(u) + sum(b) + 1
    leave, stay = integers(u, bound=bound), integers(b, bound=bound)
    saved, over = 2 * leave - stay, int(np.sum(np.maximum(stay - 2 * leave, 0)))
    rises = held @ leave
    order = np.argsort(-rises, kind="stable")
    rises, held = rises[order], held[order]
    best, work = Pair(-1, 0, 0), 0
    for first in range(len(rises)):
        reach = best.cost - over - int(rises[first])
        # The rises fall from here on: the cells that may still beat the best.
        last = first + int(np.searchsorted(-rises[first:], -reach, side="left"))
        if last == first:
            break
        work += (last - first) * held.shape[1]
        if work > at_most:
            return None
        shared = held[first:last] @ (saved * held[first])
        costs = rises[first] + rises[first:last] - shared
        place = int(np.argmax(costs))
        if costs[place] > best.cost:
            second = first + place
            best = Pair(int(costs[place]), int(order[first]), int(order[second]))
    return best


# Pairs of cells times entries that are compared in all measures together.
_TABLE_MAX = 20_000_000
_NOT_FOUND = "unknown: there are too many places to try them all"


@dataclass(frozen=True, slots=True)
class Effort:
    """The effort of the search before an upper bound replaces the maximum.

    Attributes:
        cells: The maximum number of distinct sets of boxes.
        work: How many pairs of cells, times entries, to try in one measure.
        pairs: How many pairs of cells to compare in all measures together.
    """

    cells: int = 1_000_000
    work: int = 1_000_000_000
    pairs: int = 100_000


USUAL_EFFORT = Effort()


@dataclass(frozen=True)
class RecordScene:
    """One record, or several alike, that may move along some axes.

    Attributes:
        axes: The axes that regions use, cut.
        regions: The region of every entry.
        steps: The cost of every entry.
        free: The axes along which a record may move; None if it comes or goes.
        changed: Attributes that may change, for the explanation.
        other_changes: Whether something beside the axes may change.
        size: How many records make the same move.
        effort: How hard to look.
    """

    axes: tuple[Segments, ...]
    regions: tuple[Region, ...]
    steps: tuple[Steps, ...]
    free: frozenset[str] | None
    changed: tuple[str, ...] = ()
    other_changes: bool = True
    size: int = 1
    effort: Effort = USUAL_EFFORT

    # --- one measure -------------------------------------------------------------

    def worst(self, index: int) -> Worst:
        """Return the costliest move in one coordinate of a loss."""
        u = [steps.cross.coordinates[index] for steps in self.steps]
        b = [steps.stay.coordinates[index] for steps in self.steps]
        unbounded = self._solve(_infinite(u), _infinite(b))
        if unbounded.units:
            return Worst(INFINITE, unbounded.move, exact=unbounded.exact)
        found = self._solve(_finite(u), _finite(b))
        return Worst(min(found.units, INFINITE), found.move, exact=found.exact)

    def _solve(self, u: Sequence[int], b: Sequence[int]) -> Worst:
        if not any(u) and not any(b):
            return Worst(0, lambda: Move("any"))
        if len(self.axes) == 1:
            return self._along(self._projected[0], u, b)
        return self._across(u, b) or self._bounded(u, b)

    def _along(self, line: Line, u: Sequence[int], b: Sequence[int]) -> Worst:
        if self.free is None:
            cost, place = deepest(line, u)
            return Worst(cost, lambda: self._move((place,), None))
        if not self.free:
            cost, place = deepest(line, b)
            return Worst(cost, lambda: self._move((place,), (place,)))
        pair = worst_pair(line, u, b)
        first, second = (pair.first,), (pair.second,)
        return Worst(pair.cost, lambda: self._move(first, second))

    def _across(self, u: Sequence[int], b: Sequence[int]) -> Worst | None:
        best: tuple[int, Cell, Cell] | None = None
        for column in self._columns or ():
            pair = self._in_column(column, u, b)
            if pair is None:
                return None
            if best is None or pair.cost > best[0]:
                best = pair.cost, column.cells[pair.first], column.cells[pair.second]
        if best is None:
            return None
        cost, before, after = best
        return Worst(cost, lambda: self._move_between(before, after))

    def _in_column(
        self, column: Column, u: Sequence[int], b: Sequence[int]
    ) -> Pair | None:
        held = membership(column.cells, len(u))
        if self.free is None:
            cost, place = worst_cell(held, u)
            return Pair(cost, place, place)
        return worst_pair_of_cells(held, u, b, at_most=self.effort.work)

    def _bounded(self, u: Sequence[int], b: Sequence[int]) -> Worst:
        """Project every region on one axis: that only makes more of them meet."""
        deep = min((deepest(line, u)[0] for line in self._projected), default=sum(u))
        if self.free is not None:
            pairs = list(zip(u, b, strict=True))
            over = sum(max(0, stay - 2 * leave) for leave, stay in pairs)
            deep = min(2 * deep + over, sum(max(pair) for pair in pairs))
        return Worst(deep, lambda: Move(_NOT_FOUND), exact=False)

    # --- all measures ------------------------------------------------------------

    def candidates(self) -> Candidates | None:
        """Return the cost of every kind of move, or None if there are too many."""
        if self.size > 1:
            return None  # In all measures at once, moves to two places may be worse.
        if len(self.axes) == 1 and not self.free:
            return self._line_candidates()
        if self._columns is None:
            return None
        pairs = list(self._pairs(self._columns))
        if len(pairs) > self.effort.pairs or len(pairs) * len(self.steps) > _TABLE_MAX:
            return None
        cross, crossings = split([steps.cross for steps in self.steps], times=4)
        stay, stays = split([steps.stay for steps in self.steps], times=4)
        lefts = membership([before for before, _ in pairs], len(self.steps))
        entered = membership([after for _, after in pairs], len(self.steps))
        if self.free is None:
            entered = np.zeros_like(lefts)
        both, one = lefts & entered, lefts ^ entered
        return Candidates(
            finite=one @ cross + both @ stay,
            infinite=one @ crossings + both @ stays,
            exact=True,
            move=lambda row: self._move_between(*pairs[row]),
        )

    def _pairs(self, found: Sequence[Column]) -> Iterator[tuple[Cell, Cell]]:
        count = 0
        for column in found:
            for number, before in enumerate(column.cells):
                entered = (before,) if self.free is None else column.cells[number:]
                for after in entered:
                    yield before, after
                    count += 1
                    if count > self.effort.pairs:
                        return

    def _line_candidates(self) -> Candidates:
        line = self._projected[0]
        chosen = [s.cross if self.free is None else s.stay for s in self.steps]
        finite, infinite = split(chosen)

        def along(table: Integers) -> Integers:
            every = [depths(line, table[:, i].tolist()) for i in range(COORDINATES)]
            return np.stack(every, axis=1)

        def move(row: int) -> Move:
            return self._move((row,), None if self.free is None else (row,))

        return Candidates(along(finite), along(infinite), exact=True, move=move)

    # --- places ------------------------------------------------------------------

    @cached_property
    def _projected(self) -> tuple[Line, ...]:
        """The entries on each axis, as if it were the only one."""
        return tuple(
            Line(
                len(axis),
                tuple(
                    (left, right, number)
                    for number, region in enumerate(self.regions)
                    for left, right in stretches(axis, region)
                ),
            )
            for axis in self.axes
        )

    @cached_property
    def _columns(self) -> list[Column] | None:
        free = self.free or frozenset()
        return columns(self.axes, self.regions, free, at_most=self.effort.cells)

    # --- explanations ------------------------------------------------------------

    def _move_between(self, before: Cell, after: Cell) -> Move:
        return self._move(before.place, None if self.free is None else after.place)

    def _move(self, before: Sequence[int], after: Sequence[int] | None) -> Move:
        left = described(self.axes, before)
        entered = None if after is None else described(self.axes, after)
        return Move(
            text=self._text(left, entered),
            before=left,
            after=entered,
            changed=self.changed,
            size=self.size,
            possible=self._is_possible(before, after),
            charges=tuple(self._charges(before, after)),
        )

    def _is_possible(self, before: Sequence[int], after: Sequence[int] | None) -> bool:
        if after is None or self.other_changes or tuple(before) != tuple(after):
            return True
        pieces = [
            axis.pieces[segment]
            for axis, segment in zip(self.axes, before, strict=True)
            if self.free and axis.axis.name in self.free
        ]
        return any(isinstance(piece, Span) or len(piece) > 1 for piece in pieces)

    def _text(self, before: Place, after: Place | None) -> str:
        who = "a record" if self.size == 1 else f"{self.size} records alike"
        where = place_text(before)
        if after is None:
            return f"{who} at {where}: there or not"
        also = f"; may change: {', '.join(self.changed)}" if self.changed else ""
        if after == before:
            return f"{who} at {where}: changed, and still there{also}"
        return f"{who} at {where}: replaced by one at {place_text(after)}{also}"

    def _charges(
        self, before: Sequence[int], after: Sequence[int] | None
    ) -> Iterator[Charge]:
        gone = "there or not" if after is None else "leaves"
        for number, region in enumerate(self.regions):
            steps = self.steps[number]
            held = holds(self.axes, region, before)
            then = after is not None and holds(self.axes, region, after)
            if held and then:
                if any(steps.stay.coordinates):
                    yield Charge(number, "changes inside", steps.stay)
            elif held or then:
                yield Charge(number, gone if held else "enters", steps.cross)


def _infinite(costs: Sequence[int]) -> list[int]:
    return [int(cost >= INFINITE) for cost in costs]


def _finite(costs: Sequence[int]) -> list[int]:
    return [cost if cost < INFINITE else 0 for cost in costs]
