"""The worst move between cells of any shape: branch and bound, exact or refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modicum.accounting.neighborhoods.cells import Cell, holding
from modicum.accounting.neighborhoods.line_sweep import Integers, Pair, integers


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

    Cells are taken from the costliest down. Two cells cost no more together than
    the sum of both, and `over` more where staying costs more than leaving and
    entering; what cannot beat the best so far is skipped.

    Args:
        held: Shape (cells, entries), of 0 and 1; at least one cell.
        u: What each entry costs when a record comes or goes, >= 0.
        b: What each costs when a record stays and changes, >= 0.
        at_most: How many pairs times entries to work out before giving up.

    Returns:
        The exact maximum, or None if it took too long.

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
