"""Filters of one coordinate, each by one theorem, as plain values.

A limit fixed before the first answer; for each further loss, whether the limit still
holds. `budget` converts budgets to filters of the same kind.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

from modicum.accounting.amounts import units
from modicum.accounting.conversions.moments import renyi_cap
from modicum.accounting.curves import Curve
from modicum.accounting.decimals import precise
from modicum.accounting.grid import DELTA, EPS, INFINITE, MU2, ORDERS, RHO, order_index
from modicum.accounting.losses import Loss, Total
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import DELTA_UNIT, brief, floor_units, number_text


@dataclass(frozen=True, slots=True)
class CoordinateFilter:
    """A filter that sums one coordinate, by one theorem.

    Each loss may be chosen after seeing earlier answers, but must be known when it
    is charged. While every loss was admitted, all answers together have at most the
    limit in that coordinate, and an event of probability `delta_cap` besides.

    Neighboring relation:
        The one the losses hold under, the same for all.

    Attributes:
        index: Which coordinate of a loss.
        cap: The most that it may sum to, in units of 1e-12.
        delta_cap: The most that the mechanisms' own deltas may sum to, in 1e-18.
        theorem: The theorem that makes it sound, and its conditions.
        total: The sum so far.
    """

    index: int
    cap: int
    delta_cap: int
    theorem: str
    total: Total = field(default_factory=Total)

    @property
    def spent(self) -> int:
        """The sum so far, in units of 1e-12; `INFINITE` if nothing is proven."""
        return self.total.units(self.index)

    @property
    def holds(self) -> bool:
        """Whether everything added so far is within the limits."""
        within = self.total.units(DELTA) <= self.delta_cap
        return within and self.spent <= min(self.cap, INFINITE - 1)

    def admits(self, loss: Loss) -> bool:
        """Return whether one more loss is within the limits."""
        return self.after(loss).holds

    def after(self, loss: Loss) -> CoordinateFilter:
        """Return the filter with one more loss added, admitted or not."""
        return replace(self, total=self.total.plus(loss))


def basic_filter(*, eps: Fraction, delta: Fraction = Fraction(0)) -> CoordinateFilter:
    """Return the filter of basic composition: eps and delta add up.

    Args:
        eps: > 0.
        delta: For the mechanisms' own deltas: at least 0, below 1.

    Returns:
        A filter whose answers together are (eps, delta)-differentially private.

    Raises:
        InputError: If a number is out of range.

    Neighboring relation:
        The one the losses hold under.

    Source:
        Rogers, Roth, Ullman & Vadhan 2016 (arXiv:1605.08294).

    Examples:
        >>> from modicum.accounting.mechanisms import declared_pure
        >>> loss = declared_pure(eps=Fraction("0.6")).loss()
        >>> limit = basic_filter(eps=Fraction(1))
        >>> limit.admits(loss), limit.after(loss).admits(loss)
        (True, False)
    """
    return _filter(
        EPS, eps, delta, "Rogers et al. 2016: sum eps_i <= eps, sum delta_i <= delta"
    )


def zcdp_filter(*, rho: Fraction, delta: Fraction = Fraction(0)) -> CoordinateFilter:
    """Return the filter of zCDP: rho and delta add up.

    Args:
        rho: > 0.
        delta: For the mechanisms' own deltas: at least 0, below 1.

    Returns:
        A filter whose answers together are delta-approximately rho-zCDP.

    Raises:
        InputError: If a number is out of range.

    Neighboring relation:
        The one the losses hold under.

    Source:
        Whitehouse, Ramdas, Rogers & Wu 2023 (arXiv:2203.05481).

    Examples:
        >>> from modicum.accounting.mechanisms import gaussian
        >>> zcdp_filter(rho=Fraction(1)).admits(gaussian(rho=Fraction(1)).loss())
        True
    """
    return _filter(
        RHO,
        rho,
        delta,
        "Whitehouse et al. 2023: sum rho_i <= rho, sum delta_i <= delta",
    )


def renyi_filter(*, order: Fraction, limit: Fraction) -> CoordinateFilter:
    """Return the filter of one Renyi order: the divergences add up.

    Args:
        order: On the ledger's grid, and fixed before the first answer.
        limit: The most divergence of that order, > 0.

    Returns:
        A filter whose answers together have at most that divergence.

    Raises:
        InputError: If the order is not on the grid, or the limit not above 0.

    Neighboring relation:
        The one the losses hold under.

    Source:
        Feldman & Zrnic 2021 (arXiv:2008.11193).

    Examples:
        >>> from modicum.accounting.mechanisms import gaussian
        >>> one = renyi_filter(order=Fraction(8), limit=Fraction(1))
        >>> one.admits(gaussian(rho=Fraction(1, 7)).loss())
        False
    """
    theorem = f"Feldman & Zrnic 2021: sum r_i({number_text(order)}) <= limit, one order"
    return _filter(grid_index(order), limit, Fraction(0), theorem)


def gdp_filter(*, mu: Fraction) -> CoordinateFilter:
    """Return the filter of Gaussian differential privacy: the squares of mu add up.

    Args:
        mu: > 0.

    Raises:
        InputError: If mu is not above 0.

    Neighboring relation:
        The one the losses hold under.

    Source:
        Smith & Thakurta 2022 (arXiv:2210.17520); Koskela, Tobaben & Honkela 2023
        (arXiv:2209.15596).

    Examples:
        >>> from modicum.accounting.mechanisms import declared_gdp
        >>> gdp_filter(mu=Fraction(2)).after(declared_gdp(mu=Fraction(1)).loss()).spent
        1000000000000
    """
    theorem = "Smith & Thakurta 2022: sum mu_i^2 <= mu^2, each step truly mu_i-GDP"
    return _filter(MU2, mu * abs(mu), Fraction(0), theorem)


def _filter(
    index: int, limit: Fraction, delta: Fraction, theorem: str
) -> CoordinateFilter:
    if limit <= 0 or not 0 <= delta < 1:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"no such filter: limit {brief(limit)}, delta {brief(delta)}",
                help="the limit is greater than 0, and 0 <= delta < 1",
            )
        )
    cap = min(floor_units(limit), INFINITE - 1)
    return CoordinateFilter(index, cap, floor_units(delta, DELTA_UNIT), theorem)


def grid_index(order: Fraction) -> int:
    """Return the coordinate of a Renyi order.

    Raises:
        InputError: If the ledger does not keep the order.

    Examples:
        >>> grid_index(Fraction(8))
        12
        >>> grid_index(Fraction(7))
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: the ledger does not store the Renyi order 7
    """
    if order not in ORDERS:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"the ledger does not store the Renyi order {number_text(order)}",
                help="it keeps " + ", ".join(map(number_text, ORDERS)),
            )
        )
    return order_index(order)


@dataclass(frozen=True, slots=True)
class OrderFilter:
    """Stops before the divergences of one order, fixed beforehand, exceed a cap.

    Attributes:
        order: The order, above 1.
        cap: The most that they may sum to, in ledger units.
        spent: Their sum.

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
        """Return the filter with a mechanism charged for this many runs."""
        cost = _cost(curve, self.order)
        total = INFINITE if cost >= INFINITE else self.spent + times * cost
        return replace(self, spent=min(INFINITE, total) if times else self.spent)

    def admits(self, curve: Curve) -> bool:
        """Return whether a mechanism may run: only then its sum stays within."""
        charged = self.after(curve)
        return charged.spent < INFINITE and charged.holds()

    def holds(self) -> bool:
        """Return whether the sum is within the cap."""
        return self.spent <= min(self.cap, INFINITE - 1)


@precise
def _cost(curve: Curve, order: Fraction) -> int:
    # A mechanism with a delta has no finite divergence.
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
