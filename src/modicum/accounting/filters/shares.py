"""How a named filter divides the delta of a budget among its coordinates."""

from __future__ import annotations

from fractions import Fraction

from modicum.accounting.conversions.moments import (
    renyi_cap,
    renyi_epsilon,
    zcdp_cap,
    zcdp_epsilon,
)
from modicum.accounting.conversions.profiles import (
    gaussian_epsilon_units,
    gaussian_mu2_cap,
)
from modicum.accounting.grid import EPS, MU2, ORDERS, RHO, order_index
from modicum.accounting.losses import Total
from modicum.core.rationals import DELTA_UNIT, floor_units
from modicum.core.record import dataclass


@dataclass(frozen=True, slots=True)
class Shares:
    """How a named filter divides the delta of a budget; the shares sum to at most 1.

    Attributes:
        mechanisms: For the deltas that mechanisms bring along.
        rho: For the zCDP coordinate; 0 if the filter has none.
        orders: For each Renyi order it watches.
        mu2: For the Gaussian coordinate; 0 if the filter has none.
    """

    mechanisms: Fraction
    rho: Fraction
    orders: tuple[tuple[Fraction, Fraction], ...]
    mu2: Fraction = Fraction(0)

    def caps(self, eps: Fraction, delta: Fraction) -> list[tuple[int, int]]:
        """Return coordinates and their caps, rounded down; negative admits nothing."""
        caps = [(EPS, floor_units(eps))]
        if self.rho:
            caps.append((RHO, zcdp_cap(eps, self.rho * delta)))
        if self.mu2:
            caps.append((MU2, gaussian_mu2_cap(eps, self.mu2 * delta)))
        return caps + [
            (order_index(order), renyi_cap(order, eps, share * delta))
            for order, share in self.orders
        ]

    def figure(self, total: Total, delta: Fraction) -> int:
        """Return the least eps for which the caps would admit a total."""
        figures = [total.units(EPS)]
        if self.rho:
            figures.append(zcdp_epsilon(total.units(RHO), self.rho * delta))
        if self.mu2:
            figures.append(gaussian_epsilon_units(total.units(MU2), self.mu2 * delta))
        figures += [
            renyi_epsilon(order, total.units(order_index(order)), share * delta)
            for order, share in self.orders
        ]
        return min(figures)

    def delta_cap(self, delta: Fraction) -> int:
        """Return the most that the mechanisms' own deltas may sum to, in 1e-18."""
        return floor_units(self.mechanisms * delta, DELTA_UNIT)

    def is_sound(self) -> bool:
        """Return whether the shares sum to at most 1, over orders of the grid."""
        each = [self.mechanisms, self.rho, self.mu2]
        each += [share for _, share in self.orders]
        known = all(order in ORDERS for order, _ in self.orders)
        return known and min(each) >= 0 and sum(each) <= 1
