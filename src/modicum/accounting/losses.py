"""A loss as the ledger stores it, and exact sums of losses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from modicum.accounting.grid import COORDINATES, INFINITE
from modicum.core.errors import check


class Loss(Struct, frozen=True):
    """The loss of one mechanism for one instance of one privacy unit.

    Attributes:
        coordinates: `COORDINATES` integers in the order of `grid-v1`, each from 0
            to `INFINITE`, which means that no finite bound is proven.
    """

    coordinates: tuple[int, ...]

    def __post_init__(self) -> None:
        check(
            len(self.coordinates) == COORDINATES,
            f"ACC-1: a loss has {COORDINATES} coordinates",
        )
        check(
            all(0 <= value <= INFINITE for value in self.coordinates),
            "ACC-1: a coordinate lies between 0 and infinity",
        )


class Total(Struct, frozen=True):
    """An exact sum of losses, coordinate by coordinate.

    Infinite entries are counted beside the finite sum, so that taking one back
    restores the sum. The order of additions does not matter.

    Attributes:
        finite: Sums of the finite entries; `COORDINATES` integers.
        infinite: Numbers of infinite entries; `COORDINATES` integers.
    """

    finite: tuple[int, ...] = (0,) * COORDINATES
    infinite: tuple[int, ...] = (0,) * COORDINATES

    def plus(self, loss: Loss) -> Total:
        """Return the sum with one loss more."""
        return self._moved(loss, 1)

    def minus(self, loss: Loss) -> Total:
        """Return the sum without a loss that was added before.

        Raises:
            InvariantError: If a sum or a count would fall below 0.
        """
        return self._moved(loss, -1)

    def joined(self, other: Total) -> Total:
        """Return the sum of two sums."""
        return Total(
            tuple(a + b for a, b in zip(self.finite, other.finite, strict=True)),
            tuple(a + b for a, b in zip(self.infinite, other.infinite, strict=True)),
        )

    def units(self, index: int) -> int:
        """Return one coordinate of the sum, or `INFINITE`."""
        if self.infinite[index] or self.finite[index] >= INFINITE:
            return INFINITE
        return self.finite[index]

    def _moved(self, loss: Loss, sign: int) -> Total:
        pairs = list(zip(self.finite, self.infinite, loss.coordinates, strict=True))
        moved = Total(
            tuple(f if c == INFINITE else f + sign * c for f, _, c in pairs),
            tuple(n + sign if c == INFINITE else n for _, n, c in pairs),
        )
        if sign < 0:
            check(
                min(moved.finite) >= 0 and min(moved.infinite) >= 0,
                "ACC-3: only what was added is taken back",
            )
        return moved


def total_of(losses: Iterable[Loss]) -> Total:
    """Return the exact sum of losses; of none, zero.

    A repeated loss, as one object, is multiplied, not added.

    Examples:
        >>> from fractions import Fraction
        >>> from modicum.accounting.grid import RHO
        >>> from modicum.accounting.mechanisms import gaussian
        >>> loss = gaussian(rho=Fraction(1, 3)).loss()
        >>> total_of([loss, loss, loss]).units(RHO)  # each was rounded up
        1000000000002
    """
    kept = list(losses)
    times = Counter(map(id, kept))
    distinct = {id(loss): loss for loss in kept}
    return total_of_counted((distinct[key], count) for key, count in times.items())


def total_of_counted(losses: Iterable[tuple[Loss, int]]) -> Total:
    """Return the exact sum of losses with multiplicities.

    Args:
        losses: Losses, each with a count >= 0.

    Examples:
        >>> from fractions import Fraction
        >>> from modicum.accounting.grid import RHO
        >>> from modicum.accounting.mechanisms import gaussian
        >>> loss = gaussian(rho=Fraction(1, 10)).loss()
        >>> total_of_counted([(loss, 3)]).units(RHO)
        300000000000
    """
    finite, infinite = [0] * COORDINATES, [0] * COORDINATES
    for loss, count in losses:
        for index, units in enumerate(loss.coordinates):
            if units < INFINITE:
                finite[index] += count * units
            else:
                infinite[index] += count
    return Total(tuple(finite), tuple(infinite))
