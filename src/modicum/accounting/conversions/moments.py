"""Conversions of a composed loss to epsilon at a given delta.

Valid for parameters fixed in advance; for an adaptive history they are
information, and the filter decides (see `modicum.accounting.filters.budget`).
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from msgspec import Struct

from modicum.accounting.amounts import Amount, decimal_of, is_infinite, units
from modicum.accounting.conversions.profiles import check_eps, delta_above
from modicum.accounting.decimals import (
    GUARD,
    limit_units,
    loss_units,
    lowest,
    precise,
    to_decimal,
)
from modicum.accounting.grid import (
    DELTA,
    EPS,
    FIRST_ORDER,
    INFINITE,
    ORDERS,
    RHO,
    coordinate_name,
)
from modicum.accounting.losses import Total
from modicum.core.rationals import DELTA_UNIT, LOSS_UNIT

# alpha - 1 is searched between e^-40 and e^45: wider than any optimum for rho from
# 1e-12 to 1e6 and delta from 1e-18 to almost 1.
_SEARCH_LOW = Decimal(-40)
_SEARCH_HIGH = Decimal(45)


class Epsilon(Struct, frozen=True):
    """An epsilon at some delta, and how it was obtained.

    Attributes:
        units: Epsilon in units of 1e-12, rounded up; `INFINITE` if there is none.
        method: ``pure``, ``zcdp``, or the Renyi order, such as ``rdp(8)``.
    """

    units: int
    method: str


@lru_cache(maxsize=65536)
@precise
def renyi_offset(order: Fraction | Decimal, delta: Fraction) -> Decimal:
    """Return the term to add to a Renyi divergence to get epsilon at `delta`.

    Args:
        order: The order alpha, > 1.
        delta: Strictly between 0 and 1.

    Returns:
        ln((alpha-1)/alpha) - (ln delta + ln alpha)/(alpha-1), to 45 digits. May be
        negative; epsilon itself is clipped at 0 by the caller.

    Source:
        Canonne, Kamath & Steinke 2020, Prop. 12 (arXiv:2004.00010); also Balle et
        al. 2020, Thm 21 (arXiv:1905.09982).

    Examples:
        >>> f"{renyi_offset(Fraction(2), Fraction(1, 10**6)):.6f}"
        '12.429216'
    """
    alpha = order if isinstance(order, Decimal) else to_decimal(order)
    ln_alpha = alpha.ln()
    return (
        (alpha - 1).ln() - ln_alpha - (to_decimal(delta).ln() + ln_alpha) / (alpha - 1)
    )


@lru_cache(maxsize=65536)
@precise
def zcdp_epsilon(rho_units: int, delta: Fraction) -> int:
    """Return epsilon at `delta` of a zCDP loss, by the best real order.

    Args:
        rho_units: rho in units of 1e-12, >= 0.
        delta: Strictly between 0 and 1.

    Returns:
        min over alpha > 1 of rho*alpha + `renyi_offset`, in units of 1e-12,
        rounded up, at least 0; `INFINITE` if rho is.

    Source:
        Canonne, Kamath & Steinke 2020, Cor. 13 (arXiv:2004.00010).

    Examples:
        >>> zcdp_epsilon(500_000_000_000, Fraction(1, 10**6))
        5221534444531
    """
    if rho_units == 0:
        return 0
    if rho_units >= INFINITE:
        return INFINITE
    return loss_units(_zcdp(Decimal(rho_units) / LOSS_UNIT, to_decimal(delta).ln()))


@precise
def zcdp_rational(rho: Fraction, delta: Fraction) -> Decimal:
    """Return the result of `zcdp_epsilon` for any rational rho > 0, before rounding.

    It may be negative where epsilon is 0.

    Examples:
        >>> f"{zcdp_rational(Fraction(1, 2), Fraction(1, 10**6)):.15f}"
        '5.221534444530169'
        >>> f"{zcdp_rational(Fraction(1, 10**9), Fraction(1, 2)):.6f}"
        '-0.693147'
    """
    return _zcdp(to_decimal(rho), to_decimal(delta).ln())


def _zcdp(rho: Decimal, ln_delta: Decimal) -> Decimal:
    def at(u: Decimal) -> Decimal:
        less_one = u.exp()
        alpha = less_one + 1
        ln_alpha = alpha.ln()
        return rho * alpha + u - ln_alpha - (ln_delta + ln_alpha) / less_one

    return at(lowest(at, _SEARCH_LOW, _SEARCH_HIGH))


@lru_cache(maxsize=4096)
@precise
def zcdp_cap(eps: Fraction, delta: Fraction) -> int:
    """Return the largest rho that implies (`eps`, `delta`)-DP; undoes `zcdp_epsilon`.

    Args:
        eps: > 0.
        delta: Strictly between 0 and 1.

    Returns:
        max over alpha > 1 of (eps - `renyi_offset`)/alpha, in units of 1e-12,
        rounded down; never negative.

    Examples:
        >>> delta = Fraction(1, 10**6)
        >>> zcdp_cap(Fraction(1), delta)
        24355970359
        >>> zcdp_epsilon(zcdp_cap(Fraction(1), delta), delta) <= LOSS_UNIT
        True
    """
    epsilon = to_decimal(eps)
    ln_delta = to_decimal(delta).ln()

    def negated(u: Decimal) -> Decimal:
        less_one = u.exp()
        alpha = less_one + 1
        ln_alpha = alpha.ln()
        return (u - ln_alpha - (ln_delta + ln_alpha) / less_one - epsilon) / alpha

    return max(0, limit_units(-negated(lowest(negated, _SEARCH_LOW, _SEARCH_HIGH))))


@lru_cache(maxsize=4096)
@precise
def renyi_cap(order: Fraction, eps: Fraction, delta: Fraction) -> int:
    """Return the largest divergence at `order` that implies (`eps`, `delta`)-DP.

    Returns:
        eps - `renyi_offset` in units of 1e-12, rounded down; negative if no loss
        at all, not even 0, can be admitted at this order.

    Examples:
        >>> delta = Fraction(1, 10**6)
        >>> [renyi_cap(Fraction(order), Fraction(1), delta) for order in (8, 32)]
        [-543049895417, 697884999760]
    """
    return limit_units(to_decimal(eps) - renyi_offset(order, delta))


@lru_cache(maxsize=65536)
@precise
def renyi_epsilon(order: Fraction, units: int, delta: Fraction) -> int:
    """Return epsilon at `delta` of a Renyi divergence, rounded up, at least 0.

    Examples:
        >>> renyi_epsilon(Fraction(32), LOSS_UNIT, Fraction(1, 10**6))
        1302115000240
        >>> renyi_epsilon(Fraction(32), 0, Fraction(1, 2))
        0
    """
    if units >= INFINITE:
        return INFINITE
    return loss_units(Decimal(units) / LOSS_UNIT + renyi_offset(order, delta))


def tightest_epsilon(total: Total, delta: Fraction) -> Epsilon:
    """Return the least epsilon that is proven for a composed loss at `delta`.

    Valid as a guarantee when the parameters of all mechanisms were fixed before
    the first output (sequential composition), and whatever the neighboring
    relation under which each loss was proven, as long as it is the same.

    Args:
        total: The composed loss.
        delta: The whole delta, > 0; the mechanisms' own deltas are subtracted from it.

    Returns:
        The least of pure, zCDP (over real orders) and Renyi (over the grid).

    Examples:
        >>> from modicum.accounting.losses import total_of
        >>> from modicum.accounting.mechanisms import gaussian
        >>> total = total_of([gaussian(rho=Fraction(1, 10)).loss()])
        >>> tightest_epsilon(total, Fraction(1, 10**6))
        Epsilon(units=2141938928386, method='zcdp')
    """
    left = delta - Fraction(total.units(DELTA), DELTA_UNIT)
    if left < 0:
        return Epsilon(INFINITE, "none: the mechanisms' own delta is larger")
    best = Epsilon(total.units(EPS), "pure")
    if left == 0 or best.units == 0:
        return best
    candidates = [best, Epsilon(zcdp_epsilon(total.units(RHO), left), "zcdp")]
    for index, order in enumerate(ORDERS, FIRST_ORDER):
        units = renyi_epsilon(order, total.units(index), left)
        candidates.append(Epsilon(units, coordinate_name(index)))
    return min(candidates, key=lambda candidate: candidate.units)


# --- delta at an epsilon ------------------------------------------------------


@precise
def renyi_delta(order: Fraction, divergence: Amount, eps: Fraction) -> Fraction:
    """Return delta at `eps` of a Renyi divergence, rounded up.

    Args:
        order: The order alpha, > 1.
        divergence: >= 0.
        eps: >= 0.

    Returns:
        e**((alpha-1)(divergence-eps)) / (alpha-1) * (1 - 1/alpha)**alpha, in 20
        significant digits, at most 1.

    Source:
        Canonne, Kamath & Steinke 2020, Prop. 12 (arXiv:2004.00010), solved for delta.

    Examples:
        >>> found = renyi_delta(Fraction(8), Fraction(1, 2), Fraction(2))
        >>> f"{float(found):.12g}"
        '1.35168135803e-06'
    """
    if is_infinite(divergence):
        return Fraction(1)
    ln_delta = ln_delta_bound(
        to_decimal(order), decimal_of(divergence), to_decimal(eps)
    )
    return Fraction(1) if ln_delta >= 0 else delta_above(ln_delta.exp())


def ln_delta_bound(alpha: Decimal, divergence: Decimal, eps: Decimal) -> Decimal:
    """Return ln delta of a divergence, and more on top than it may err by.

    Examples:
        >>> bound = precise(ln_delta_bound)(Decimal(2), Decimal(1), Decimal(10))
        >>> f"{bound:.6f}"  # 1 - 10 - 2 ln 2
        '-10.386294'
    """
    less_one = alpha - 1
    ln_less_one = less_one.ln()
    exponent = less_one * (divergence + 2 * GUARD - eps)
    return exponent - ln_less_one + alpha * (ln_less_one - alpha.ln()) + GUARD


@lru_cache(maxsize=4096)
@precise
def zcdp_delta(rho: Fraction, eps: Fraction) -> Fraction:
    """Return delta at `eps` of a zCDP guarantee, by the best real order.

    Args:
        rho: >= 0.
        eps: >= 0.

    Returns:
        The least over alpha > 1 of `renyi_delta` for alpha*rho, in 20 significant
        digits, rounded up.

    Source:
        Canonne, Kamath & Steinke 2020, Cor. 13 (arXiv:2004.00010).

    Examples:
        >>> found = zcdp_delta(Fraction(1, 10), Fraction(2))
        >>> f"{float(found):.12g}"
        '4.32521086909e-06'
    """
    check_eps(eps)
    if rho == 0:
        return Fraction(0)
    r, e = to_decimal(rho), to_decimal(eps)

    def at(u: Decimal) -> Decimal:
        alpha = 1 + u.exp()
        return ln_delta_bound(alpha, r * alpha, e)

    least = at(lowest(at, _SEARCH_LOW, _SEARCH_HIGH))
    return Fraction(1) if least >= 0 else delta_above(least.exp())


@precise
def pure_epsilon(eps0: Amount, delta: Fraction) -> int:
    """Return the least epsilon at `delta` of a pure guarantee, in ledger units.

    Args:
        eps0: The pure epsilon, >= 0.
        delta: At least 0, below 1.

    Returns:
        eps0 + ln(1 - delta (1 + e**-eps0)) in units of 1e-12, rounded up, at least 0
        and at most eps0.

    Source:
        The inverse of `pure_delta`.

    Examples:
        >>> pure_epsilon(Fraction(1), Fraction(1, 1000))
        998631184158
    """
    most = units(eps0)
    if delta == 0 or most in {0, INFINITE}:
        return most
    e, d = decimal_of(eps0), to_decimal(delta)
    kept = 1 - d * (1 + (-e).exp())
    if kept <= (-e).exp():
        return 0
    return min(most, loss_units(e + kept.ln()))


def pure_delta(eps0: Amount, eps: Fraction) -> Fraction:
    """Return the least delta at `eps` of a pure guarantee `eps0`, rounded up.

    Source:
        Kairouz, Oh & Viswanath 2015 (arXiv:1311.0776): the worst eps0-DP
        mechanism is binary randomized response; (e**eps0 - e**eps)/(1 + e**eps0).

    Examples:
        >>> found = pure_delta(Fraction(1), Fraction(0))
        >>> f"{float(found):.12g}"
        '0.46211715726'
    """
    if eps0 <= eps:
        return Fraction(0)
    if is_infinite(eps0):
        return Fraction(1)
    return _pure_share(decimal_of(eps0), to_decimal(eps))


@precise
def _pure_share(eps0: Decimal, eps: Decimal) -> Fraction:
    # Divided by e^eps0, so that nothing overflows.
    share = (1 - (eps - eps0).exp()) / (1 + (-eps0).exp())
    return delta_above(share + GUARD)
