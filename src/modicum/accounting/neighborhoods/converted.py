"""The worst epsilon at a delta: moves are converted first, then the worst is taken."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from modicum.accounting.conversions.epsilon_delta import best_epsilon
from modicum.accounting.conversions.moments import Epsilon, renyi_epsilon
from modicum.accounting.grid import DELTA, EPS, FIRST_ORDER, INFINITE, ORDERS
from modicum.accounting.neighborhoods.worst_case import Candidates
from modicum.core.rationals import DELTA_UNIT, floor_units

#: How many moves are converted to epsilon before an upper bound is given.
_CONVERSIONS_MAX = 200
# An amount that makes any offset positive.
_LARGE = 10**18


def worst_epsilon(table: Candidates, delta: Fraction) -> tuple[Epsilon, int, bool]:
    """Return the largest epsilon of some moves.

    A quick upper bound sorts them; what is no more than the best so far, or no more
    than a move that has been converted in every coordinate, need not be converted.

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
    # What the moves' own deltas leave, of those that it can be converted at.
    left = delta - Fraction(max(own[fits].tolist(), default=0), DELTA_UNIT)
    if left > 0:
        for index, order in enumerate(ORDERS, FIRST_ORDER):
            # Rounding up a sum with whole units: the offset may be rounded first.
            offset = renyi_epsilon(order, _LARGE, left) - _LARGE
            converted = np.maximum(table.finite[:, index] + offset, 0)
            finite = (table.infinite[:, index] == 0) & (converted < INFINITE)
            best = np.where(finite, np.minimum(best, converted), best)
    return [min(int(units), INFINITE) for units in np.where(fits, best, INFINITE)]
