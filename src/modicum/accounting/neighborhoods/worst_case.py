"""What a search for the worst move returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from modicum.accounting.grid import COORDINATES, INFINITE
from modicum.accounting.losses import Loss, Total
from modicum.accounting.neighborhoods.line_sweep import Integers, integers
from modicum.accounting.neighborhoods.moves import Move


@dataclass(frozen=True, slots=True)
class Worst:
    """The largest cost of a move in one measure.

    Attributes:
        units: The cost, in ledger units; `INFINITE` if it is infinite.
        move: Makes the costliest move that was found.
        exact: Whether the move attains it; else it is an upper bound.
    """

    units: int
    move: Callable[[], Move]
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Candidates:
    """Moves of which one is the worst, whatever measures are looked at together.

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
        """Return what a move costs."""
        return Total(
            tuple(int(units) for units in self.finite[row]),
            tuple(int(count) for count in self.infinite[row]),
        )


def split(losses: Sequence[Loss], *, times: int = 1) -> tuple[Integers, Integers]:
    """Return losses as finite numbers, with 0 for infinity, and infinity as 1.

    Args:
        losses: The losses.
        times: How often each may be added up; no such sum overflows.

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
