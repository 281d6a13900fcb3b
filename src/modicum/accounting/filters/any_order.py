"""A filter of one Renyi order of the caller's choice, on or off the ledger's grid."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from modicum.accounting.amounts import units
from modicum.accounting.conversions.moments import renyi_cap
from modicum.accounting.curves import Curve
from modicum.accounting.decimals import precise
from modicum.accounting.grid import INFINITE


@dataclass(frozen=True, slots=True)
class OrderFilter:
    """Stops before the divergences of one order, fixed beforehand, exceed a cap.

    Attributes:
        order: The order, above 1.
        cap: The most that they may sum to, in ledger units.
        spent: What they sum to.

    Neighboring relation:
        That of the curves, the same for all.

    Source:
        Feldman & Zrnic 2021 (arXiv:2008.11193): the sum at one fixed order is a
        filter, however the mechanisms are chosen.
    """

    order: Fraction
    cap: int
    spent: int = 0

    def after(self, curve: Curve, times: int = 1) -> OrderFilter:
        """Return the filter with a mechanism charged, run so many times."""
        cost = _cost(curve, self.order)
        total = INFINITE if cost >= INFINITE else self.spent + times * cost
        return replace(self, spent=min(INFINITE, total) if times else self.spent)

    def admits(self, curve: Curve) -> bool:
        """Return whether a mechanism may run: only then its sum stays within."""
        charged = self.after(curve)
        return charged.spent < INFINITE and charged.holds()

    def holds(self) -> bool:
        """Return whether what was spent is within the cap."""
        return self.spent <= min(self.cap, INFINITE - 1)


@precise
def _cost(curve: Curve, order: Fraction) -> int:
    # A mechanism with a delta of its own is not within any divergence.
    return INFINITE if curve.delta else units(curve.at(order))


def order_filter(*, order: Fraction, eps: Fraction, delta: Fraction) -> OrderFilter:
    """Return the filter of one order whose cap implies (eps, delta)-DP.

    Args:
        order: The order, above 1, fixed before the first output.
        eps: >= 0.
        delta: Strictly between 0 and 1: all of it is for this order.

    Neighboring relation:
        That of the curves that are charged.

    Source:
        As for `OrderFilter` and `conversions.moments.renyi_cap`.

    Examples:
        >>> from modicum.accounting.mechanisms import gaussian
        >>> nine = order_filter(
        ...     order=Fraction(9), eps=Fraction(2), delta=Fraction(1, 10**6)
        ... )
        >>> nine.admits(gaussian(rho=Fraction(1, 20)))
        True
        >>> nine.after(gaussian(rho=Fraction(1, 20))).admits(gaussian(rho=Fraction(1)))
        False
    """
    return OrderFilter(order, renyi_cap(order, eps, delta))
