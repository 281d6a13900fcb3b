"""Results of a search for the worst move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from modicum.accounting.conversions.epsilon_delta import best_epsilon
from modicum.accounting.conversions.moments import Epsilon, renyi_epsilon
from modicum.accounting.grid import (
    COORDINATES,
    DELTA,
    EPS,
    FIRST_ORDER,
    INFINITE,
    ORDERS,
)
from modicum.accounting.losses import Loss, Total
from modicum.accounting.neighborhoods.line_sweep import Integers, integers
from modicum.accounting.neighborhoods.moves import Move
from modicum.core.rationals import DELTA_UNIT, floor_units


@dataclass(frozen=True, slots=True)
class Worst:
    """The largest cost of a move in one measure.

    Attributes:
        units: The cost, in ledger units; `INFINITE` if it is infinite.
        move: Builds the costliest move that was found.
        exact: Whether the move attains it; else it is an upper bound.
    """

    units: int
    move: Callable[[], Move]
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Candidates:
    """Moves of which one is the worst, for any combination of measures.

    Attributes:
        finite: Shape (moves, `COORDINATES`): sums of the finite costs.
        infinite: Same shape: how many costs are infinite.
        exact: Whether each row is the cost of one move, not a bound of several.
        move: Makes the move of a row.
    """

    finite: Integers
    infinite: Integers
    exact: bool
    move: Callable[[int], Move]

    def __len__(self) -> int:
        return len(self.finite)

    def total(self, row: int) -> Total:
        """Return the cost of a move."""
        return Total(
            tuple(int(units) for units in self.finite[row]),
            tuple(int(count) for count in self.infinite[row]),
        )


def split(losses: Sequence[Loss], *, times: int = 1) -> tuple[Integers, Integers]:
    """Return losses as finite numbers, with 0 for infinity, and infinity as 1.

    Args:
        losses: The losses.
        times: The maximum number of additions of each; no such sum overflows.

    Returns:
        Two arrays of shape (losses, `COORDINATES`).

    Examples:
        >>> from fractions import Fraction
        >>> from modicum.accounting.mechanisms import gaussian
        >>> finite, infinite = split([gaussian(rho=Fraction(1, 2)).loss()])
        >>> finite[0, :2].tolist(), infinite[0, :2].tolist()
        ([0, 500000000000], [1, 0])
    """
    rows = [loss.coordinates for loss in losses]
    finite = [[c if c < INFINITE else 0 for c in row] for row in rows]
    largest = max((sum(column) for column in zip(*finite, strict=True)), default=0)
    table = integers([c for row in finite for c in row], bound=times * largest)
    infinite = np.array([[int(c >= INFINITE) for c in row] for row in rows], dtype=int)
    shape = (len(rows), COORDINATES)
    return table.reshape(shape), infinite.reshape(shape)


#: Maximum number of moves converted to epsilon before an upper bound is returned.
_CONVERSIONS_MAX = 200
# An amount that makes any offset positive.
_LARGE = 10**18


def worst_epsilon(table: Candidates, delta: Fraction) -> tuple[Epsilon, int, bool]:
    """Return the largest epsilon of some moves.

    A fast upper bound sorts them; a move that is no more than the best so far, or no
    more than a converted move in every coordinate, need not be converted.

    Args:
        table: At least one move.
        delta: Strictly between 0 and 1.

    Returns:
        The epsilon, the row of the move, and whether that move has just this epsilon.

    Examples:
        >>> from modicum.accounting.mechanisms import gaussian
        >>> from modicum.accounting.neighborhoods.moves import Move
        >>> from modicum.accounting.neighborhoods.worst_case import split
        >>> losses = [gaussian(rho=Fraction(n, 10)).loss() for n in (1, 5, 2)]
        >>> table = Candidates(*split(losses), True, lambda row: Move(f"{row}"))
        >>> worst_epsilon(table, Fraction(1, 10**6))
        (Epsilon(units=4886554117463, method='gaussian-exact'), 1, True)
    """
    bounds = _quick_bounds(table, delta)
    left = np.argsort([-bound for bound in bounds], kind="stable").tolist()
    best, best_row = Epsilon(-1, "pure"), 0
    for _ in range(_CONVERSIONS_MAX):
        if not left or bounds[left[0]] <= best.units:
            break
        row = left.pop(0)
        found = best_epsilon(table.total(row), delta)
        if found.units > best.units:
            best, best_row = found, row
        left = [other for other in left if not _covers(table, row, other)]
    if left and bounds[left[0]] > best.units:
        return Epsilon(bounds[left[0]], "bound"), left[0], False
    return best, best_row, table.exact


def _covers(table: Candidates, row: int, other: int) -> bool:
    return bool(
        np.all(table.finite[other] <= table.finite[row])
        and np.all(table.infinite[other] <= table.infinite[row])
    )


def _quick_bounds(table: Candidates, delta: Fraction) -> list[int]:
    """Return an epsilon for each move by pure DP or the grid's orders alone."""
    own, allowed = table.finite[:, DELTA], floor_units(delta, DELTA_UNIT)
    fits = (own <= allowed) & (table.infinite[:, DELTA] == 0)
    best = np.where(table.infinite[:, EPS] > 0, INFINITE, table.finite[:, EPS])
    # The remainder of delta after the moves' own deltas, where conversion is possible.
    left = delta - Fraction(max(own[fits].tolist(), default=0), DELTA_UNIT)
    if left > 0:
        for index, order in enumerate(ORDERS, FIRST_ORDER):
            # Rounding up a sum with whole units: the offset may be rounded first.
            offset = renyi_epsilon(order, _LARGE, left) - _LARGE
            converted = np.maximum(table.finite[:, index] + offset, 0)
            finite = (table.infinite[:, index] == 0) & (converted < INFINITE)
            best = np.where(finite, np.minimum(best, converted), best)
    return [min(int(units), INFINITE) for units in np.where(fits, best, INFINITE)]
