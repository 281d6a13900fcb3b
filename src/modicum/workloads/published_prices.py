"""Prices as the original evaluation of the planner computed them.

It knew Renyi divergences at fourteen orders and nothing else. On a Poisson sample it
took the exact bound for Gaussian noise, Laplace noise and votes, and a looser one for
all others; between whole orders it took the line that convexity allows.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.amounts import INFINITY, Amount, times
from modicum.accounting.amplification import poisson
from modicum.accounting.amplification.bounds import (
    between_integers,
    growth,
    log_mean_power,
)
from modicum.accounting.curves import Curve

#: The orders of the original.
ORDERS = (
    *(Fraction(text) for text in ("1.5", "1.75", "2", "2.5", "3", "4", "5", "6")),
    *(Fraction(order) for order in (8, 16, 32, 64, 10**6, 10**10)),
)

# The two orders above this represent infinity.
_WHOLE_MAX = 64


def only_published(curve: Curve) -> Curve:
    """Return a curve of which only the published orders are known.

    Args:
        curve: All that is proven.

    Returns:
        The same divergences at `ORDERS`, infinity at others and in other measures.
    """
    return _renyi_only(lambda order: curve.at(order) if order in ORDERS else INFINITY)


def at_whole_orders(curve: Curve) -> Curve:
    """Return a curve as it is known from its whole orders alone.

    Args:
        curve: All that is proven.

    Returns:
        Between whole orders, the line that convexity allows; at very large ones, the
        curve itself.
    """

    def renyi(order: Fraction) -> Amount:
        if order > _WHOLE_MAX:
            return curve.at(order)
        return between_integers(lambda whole: curve.at(Fraction(whole)), order)

    return _renyi_only(renyi)


def of_any_mechanism(base: Curve, rate: Fraction) -> Curve:
    """Return the original's curve for a mechanism on a Poisson sample.

    The exact sum for adding an instance, in which exp((k - 1) D(k)), from k = 3 on,
    is replaced by the larger exp(k D(k + 1)).

    It differs from the theorem that is proven for any mechanism (Zhu & Wang 2019, Thm
    5), which has a factor 3 instead. So it may be used only where something smaller is
    proven: pure mechanisms, and DP-SGD that samples in each step.

    Args:
        base: The mechanism on all instances, under add/remove.
        rate: Probability that an instance is in the sample, strictly between 0 and 1.

    Returns:
        At very large orders, where the sum has no end, the best bound known.
    """

    @lru_cache(maxsize=_WHOLE_MAX)
    def grown(power: int) -> Decimal:
        if power == 2:
            return growth(base.at(Fraction(2)))
        return growth(times(power, base.at(Fraction(power + 1))))

    def at_whole(order: int) -> Amount:
        return log_mean_power(rate, order, map(grown, range(2, order + 1)))

    def renyi(order: Fraction) -> Amount:
        if order > _WHOLE_MAX:
            return poisson(base, sampling_rate=rate).at(order)
        return between_integers(at_whole, order)

    return _renyi_only(renyi)


def _renyi_only(renyi: Callable[[Fraction], Amount]) -> Curve:
    return Curve(INFINITY, INFINITY, INFINITY, renyi)
