"""Curves: everything that is proven about a mechanism, before it is rounded.

A ledger stores losses at a few fixed orders; whatever needs other orders (groups,
subsampling, the best order for a delta) works on the curve and rounds afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.amounts import (
    INFINITY,
    ZERO,
    Amount,
    decimal_of,
    is_infinite,
    least,
    plus,
    times,
    units,
)
from modicum.accounting.decimals import normal_tail, pi, precise, to_decimal
from modicum.accounting.grid import COORDINATES, INFINITE, ORDERS
from modicum.accounting.losses import Loss
from modicum.core.rationals import DELTA_UNIT, ceil_units


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Upper bounds of a mechanism's loss, in every measure.

    All bounds hold between any two neighbors, in both directions, under one neighboring
    relation. With a delta, they hold for a mechanism from which this one differs by an
    event of that probability (as in Kairouz, Oh & Viswanath 2015), and `eps` with
    `delta` is a guarantee by itself.

    Attributes:
        eps: Pure epsilon.
        rho: zCDP.
        mu2: The square of mu in Gaussian DP.
        renyi: The Renyi divergence at an order, a rational above 1; not falling.
        delta: At least 0, at most 1.
    """

    eps: Amount
    rho: Amount
    mu2: Amount
    renyi: Callable[[Fraction], Amount] = field(repr=False)
    delta: Fraction = ZERO

    @precise
    def at(self, order: Fraction) -> Amount:
        """Return the Renyi divergence at an order above 1, by the best bound known."""
        return _divergence(self, order, _slope(self))

    def loss(self) -> Loss:
        """Return the curve in the ledger's coordinates, rounded up."""
        return _projected(self)


def _slope(curve: Curve) -> Amount:
    """Return by what zCDP and Gaussian DP bound the divergence: it, times the order."""
    return least(curve.rho, times(Fraction(1, 2), curve.mu2))


def _divergence(curve: Curve, order: Fraction, slope: Amount) -> Amount:
    bounds = (curve.renyi(order), curve.eps, times(order, slope))
    return min((one for one in bounds if not is_infinite(one)), default=INFINITY)


@lru_cache(maxsize=8192)
@precise
def _projected(curve: Curve) -> Loss:
    if curve.delta >= 1:
        return Loss((*(INFINITE,) * (COORDINATES - 1), DELTA_UNIT))
    pure, slope = units(curve.eps), _slope(curve)
    return Loss(
        (
            pure,
            min(units(curve.rho), pure),
            units(curve.mu2),
            *(min(units(_divergence(curve, order, slope)), pure) for order in ORDERS),
            min(ceil_units(curve.delta, DELTA_UNIT), DELTA_UNIT),
        )
    )


#: The cost of a mechanism whose output does not depend on the data.
NOTHING = Curve(ZERO, ZERO, ZERO, lambda _: ZERO)

#: The cost of a mechanism about which nothing is proven.
UNKNOWN = Curve(INFINITY, INFINITY, INFINITY, lambda _: INFINITY, Fraction(1))

# Beyond this, every smooth formula equals eps to more digits than are stored.
EPS_LARGE = Fraction(10**7)
# Up to this eps the normal quantile is computed; beyond it, bounded.
_EPS_QUANTILE_MAX = Decimal(200)


@precise
def composed(parts: Iterable[tuple[Curve, int]]) -> Curve:
    """Return the curve of several mechanisms together, each with a number of runs.

    Args:
        parts: Curves under one neighboring relation, each with a count >= 0. The
            mechanisms may be chosen after seeing earlier answers, as long as the
            curves are fixed beforehand.

    Source:
        Bun & Steinke 2016, Lemma 1.7 (arXiv:1605.02065); Mironov 2017, Prop. 1
        (arXiv:1702.07476); Dong, Roth & Su 2022, Cor. 3.3 (arXiv:1905.02383).

    Examples:
        >>> from modicum.accounting.mechanisms import gaussian
        >>> composed([(gaussian(rho=Fraction(1, 10)), 3)]).rho
        Fraction(3, 10)
    """
    kept = [(curve, count) for curve, count in parts if count]
    if not kept:
        return NOTHING

    def summed(amounts: Iterable[tuple[Amount, int]]) -> Amount:
        total: Amount = ZERO
        for amount, count in amounts:
            total = plus(total, times(count, amount))
        return total

    return Curve(
        eps=summed((curve.eps, count) for curve, count in kept),
        rho=summed((curve.rho, count) for curve, count in kept),
        mu2=summed((curve.mu2, count) for curve, count in kept),
        renyi=lambda order: summed((curve.at(order), n) for curve, n in kept),
        delta=min(Fraction(1), sum((curve.delta * n for curve, n in kept), ZERO)),
    )


@precise
def interpolated(points: Mapping[Fraction, Amount], *, eps: Amount = INFINITY) -> Curve:
    """Return the curve through a divergence known at some orders only.

    Args:
        points: Divergences, >= 0, at orders above 1; at least one.
        eps: A pure epsilon, if one is proven.

    Returns:
        Below the first order, its divergence; between two orders, the line between
        the values of (order - 1) * divergence; above the last order, `eps`.

    Source:
        (order - 1) * divergence is convex and the divergence does not fall: van
        Erven & Harremoes 2014, Thm 3 and Cor. 2 (arXiv:1206.2459).

    Examples:
        >>> known = {Fraction(2): Fraction("0.5"), Fraction(4): Fraction("1.2")}
        >>> interpolated(known).at(Fraction(3))
        Fraction(41, 40)
    """
    orders = sorted(points)

    def between(order: Fraction) -> Amount:
        if order <= orders[0]:
            return points[orders[0]]
        if order > orders[-1]:
            return eps
        above = next(i for i, known in enumerate(orders) if known >= order)
        low, high = orders[above - 1], orders[above]
        width = (high - low) * (order - 1)
        line = plus(
            times((high - order) * (low - 1) / width, points[low]),
            times((order - low) * (high - 1) / width, points[high]),
        )
        return least(line, points[high])

    return Curve(eps=eps, rho=eps, mu2=INFINITY, renyi=between)


# --- implications of one proven number ----------------------------------------------


@precise
def pure_curve(eps: Amount, delta: Fraction = Fraction(0)) -> Curve:
    """Return the curve of any (eps, delta)-DP mechanism, for any amount eps.

    Examples:
        >>> curve = pure_curve(Fraction(1))
        >>> f"{curve.rho:.6f} {curve.at(Fraction(2)):.6f}"
        '0.462117 0.735326'
    """
    if eps == 0:
        return Curve(NOTHING.eps, NOTHING.rho, NOTHING.mu2, NOTHING.renyi, delta)
    if eps > EPS_LARGE:
        return Curve(eps, eps, times(8, eps), lambda _: eps, delta)
    e = decimal_of(eps)
    return Curve(eps, pure_rho(e), pure_mu2(e), lambda a: _pure_rdp(e, a), delta)


def concentrated(rho: Amount, *, mu2: Amount) -> Curve:
    """Return the curve of rho-zCDP, with GDP where that is proven too.

    Examples:
        >>> curve = concentrated(Fraction(1, 2), mu2=INFINITY)
        >>> curve.eps, curve.at(Fraction(8))
        (Decimal('Infinity'), Fraction(4, 1))
    """
    if rho == 0:
        return NOTHING
    return Curve(INFINITY, rho, mu2, UNKNOWN.renyi)


def pure_rho(eps: Decimal) -> Decimal:
    """Eps * tanh(eps/2), written so that nothing overflows.

    Examples:
        >>> f"{pure_rho(Decimal(1)):.6f}"
        '0.462117'
        >>> f"{pure_rho(Decimal(10**6)):.6f}"
        '1000000.000000'
    """
    shrink = (-eps).exp()
    return eps * (1 - shrink) / (1 + shrink)


def _pure_rdp(e: Decimal, order: Fraction) -> Decimal:
    a = to_decimal(order)
    upper = (1 + (-(2 * a - 1) * e).exp()).ln()
    lower = (1 + (-e).exp()).ln()
    return e + (upper - lower) / (a - 1)


def pure_mu2(eps: Decimal) -> Decimal:
    """Return an upper bound of mu**2 for mu = 2 * quantile(e^eps / (1 + e^eps)).

    Newton's method on ln P(Z > x) starts right of the root; the function is
    concave and falling, so every iterate stays right of it: an upper bound.

    Source:
        mu is tight for pure DP: the trade-off function of an eps-DP mechanism lies
        above the chord of the Gaussian one through its fixed point.

    Examples:
        >>> f"{precise(pure_mu2)(Decimal(1)):.6f}"
        '1.517911'
    """
    if eps == 0:
        return eps
    ln_tail = -eps - (1 + (-eps).exp()).ln()  # ln of 1 / (1 + e^eps)
    # P(Z > x) <= exp(-x^2/2)/2 gives a first x, and a sound one.
    start_squared = 2 * (-ln_tail - Decimal(2).ln())
    if eps > _EPS_QUANTILE_MAX or start_squared <= Decimal("1e-40"):
        return 4 * max(start_squared, Decimal(0))
    x = start_squared.sqrt()
    root_two_pi = (2 * pi(60)).sqrt()
    for _ in range(60):
        tail = normal_tail(x)
        density = (-x * x / 2).exp() / root_two_pi
        step = (tail.ln() - ln_tail) * tail / density
        x += step
        if abs(step) < Decimal("1e-32"):
            break
    return 4 * x * x
