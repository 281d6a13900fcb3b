"""Guarantees without a mechanism: what a proven number implies about anything."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.amounts import INFINITY, Amount, decimal_of, least, times
from modicum.accounting.curves import NOTHING, Curve, interpolated
from modicum.accounting.decimals import normal_tail, pi, precise, to_decimal
from modicum.accounting.mechanisms.argument_ranges import (
    require_at_least_zero,
    require_order,
    require_some,
)

# Beyond this, every smooth formula equals eps to more digits than are stored.
EPS_LARGE = Fraction(10**7)
# Up to this eps the normal quantile is computed; beyond it, bounded.
_EPS_QUANTILE_MAX = Decimal(200)


@lru_cache(maxsize=4096)
def declared_pure(*, eps: Fraction, delta: Fraction = Fraction(0)) -> Curve:
    """Return the curve of any mechanism known to be (eps, delta)-DP.

    Args:
        eps: >= 0.
        delta: At least 0 and below 1; kept as a coordinate of its own.

    Returns:
        The curve of binary randomized response, which every eps-DP mechanism is a
        post-processing of; with delta > 0, that holds but for an event of
        probability delta, which is why delta adds up separately.

    Neighboring relation:
        The one the guarantee holds under.

    Source:
        Kairouz, Oh & Viswanath 2015 (arXiv:1311.0776) and Murtagh & Vadhan 2016
        (arXiv:1507.03113); Bun & Steinke 2016, Prop. 3.3 (arXiv:1605.02065).

    Examples:
        >>> declared_pure(eps=Fraction(1)).loss().coordinates[:2]
        (1000000000000, 462117157261)
    """
    return pure_curve(eps, delta)


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


@lru_cache(maxsize=4096)
def declared_zcdp(*, rho: Fraction) -> Curve:
    """Return the curve of any mechanism known to be rho-zCDP.

    Args:
        rho: >= 0.

    Returns:
        rho and alpha*rho; eps and mu are infinite, since zCDP implies neither.

    Neighboring relation:
        The one the guarantee holds under.

    Source:
        Bun & Steinke 2016, Def. 1.1 (arXiv:1605.02065).

    Examples:
        >>> declared_zcdp(rho=Fraction(1, 2)).at(Fraction(3))
        Fraction(3, 2)
    """
    return concentrated(rho, mu2=INFINITY)


@lru_cache(maxsize=4096)
def declared_gdp(*, mu: Fraction) -> Curve:
    """Return the curve of any mechanism known to be mu-GDP.

    Args:
        mu: >= 0.

    Returns:
        mu**2, rho = mu**2/2 and alpha*rho; pure eps is infinite.

    Neighboring relation:
        The one the guarantee holds under.

    Source:
        Dong, Roth & Su 2022, Cor. B.6 (arXiv:1905.02383).

    Examples:
        >>> declared_gdp(mu=Fraction(1)).rho
        Fraction(1, 2)
    """
    return concentrated(mu * mu / 2, mu2=mu * mu)


@precise
def declared_renyi(
    points: Mapping[Fraction, Fraction], *, eps: Fraction | None = None
) -> Curve:
    """Return the curve of any mechanism with known Renyi divergences.

    Args:
        points: Order, above 1, to an upper bound of the divergence, >= 0; at least
            one.
        eps: A pure epsilon, if one is proven, >= 0.

    Returns:
        Each order's divergence, and between two orders what convexity proves.
        Without eps: infinite above the last order, and rho and mu infinite, since
        divergences at some orders imply neither.

    Raises:
        InputError: If there are no points, or one is out of its range.

    Neighboring relation:
        The one the divergences hold under.

    Source:
        van Erven & Harremoes 2014, Thm 3 and Cor. 2 (arXiv:1206.2459).

    Examples:
        >>> declared_renyi({Fraction(2): Fraction(1, 2)}).at(Fraction(3, 2))
        Fraction(1, 2)
    """
    require_some("divergences", points)
    for order, divergence in points.items():
        require_order(order)
        require_at_least_zero("a divergence", divergence)
    require_at_least_zero("eps", eps or 0)
    # A divergence bounds those at all lower orders, too: the curve does not fall.
    lowest = {o: min(points[b] for b in points if b >= o) for o in points}
    pure = None if eps is None else pure_curve(eps)
    known = interpolated(lowest, eps=INFINITY if eps is None else eps)
    if pure is None:
        return known
    return Curve(
        pure.eps, pure.rho, pure.mu2, lambda a: least(known.renyi(a), pure.renyi(a))
    )


def concentrated(rho: Amount, *, mu2: Amount) -> Curve:
    """Return the curve of rho-zCDP, with GDP where that is proven too.

    Examples:
        >>> curve = concentrated(Fraction(1, 2), mu2=INFINITY)
        >>> curve.eps, curve.at(Fraction(8))
        (Decimal('Infinity'), Fraction(4, 1))
    """
    if rho == 0:
        return NOTHING
    return Curve(INFINITY, rho, mu2, lambda order: times(order, rho))


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
