"""Conversions of a composed loss to epsilon at a given delta.

Valid for parameters fixed in advance; for an adaptive history they are
information, and the filter decides (see `modicum.accounting.filters`).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.decimals import (
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
from modicum.core.exact import DELTA_UNIT, LOSS_UNIT

# alpha - 1 is searched between e^-40 and e^45: wider than any optimum for rho from
# 1e-12 to 1e6 and delta from 1e-18 to almost 1.
_SEARCH_LOW = Decimal(-40)
_SEARCH_HIGH = Decimal(45)


@dataclass(frozen=True, slots=True)
class Epsilon:
    """An epsilon at some delta, and how it was obtained.

    Attributes:
        units: Epsilon in units of 1e-12, rounded up; `INFINITE` if there is none.
        method: ``pure``, ``zcdp``, or the Renyi order, such as ``rdp(8)``.
    """

    units: int
    method: str


@precise
def renyi_offset(order: Fraction | Decimal, delta: Fraction) -> Decimal:
    """Return what to add to a Renyi divergence to get epsilon at `delta`.

    Args:
        order: The order alpha, > 1.
        delta: Strictly between 0 and 1.

    Returns:
        ln((alpha-1)/alpha) - (ln delta + ln alpha)/(alpha-1), to 45 digits. May be
        negative; epsilon itself is clipped at 0 by the caller.

    Source:
        Canonne, Kamath & Steinke 2020, Prop. 12 (arXiv:2004.00010); also Balle et
        al. 2020, Thm 21 (arXiv:1905.09982).
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
    """
    if rho_units == 0:
        return 0
    if rho_units >= INFINITE:
        return INFINITE
    rho = Decimal(rho_units) / LOSS_UNIT
    ln_delta = to_decimal(delta).ln()

    def at(u: Decimal) -> Decimal:
        less_one = u.exp()
        alpha = less_one + 1
        ln_alpha = alpha.ln()
        return rho * alpha + u - ln_alpha - (ln_delta + ln_alpha) / less_one

    return loss_units(at(lowest(at, _SEARCH_LOW, _SEARCH_HIGH)))


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
    """
    return limit_units(to_decimal(eps) - renyi_offset(order, delta))


@lru_cache(maxsize=65536)
@precise
def renyi_epsilon(order: Fraction, units: int, delta: Fraction) -> int:
    """Return epsilon at `delta` of a Renyi divergence, rounded up, at least 0."""
    if units >= INFINITE:
        return INFINITE
    return loss_units(Decimal(units) / LOSS_UNIT + renyi_offset(order, delta))


def tightest_epsilon(total: Total, delta: Fraction) -> Epsilon:
    """Return the least epsilon that a composed loss is known to have at `delta`.

    Valid as a guarantee when the parameters of all mechanisms were fixed before
    the first output (sequential composition), and whatever the neighboring
    relation under which each loss was proven, as long as it is the same.

    Args:
        total: The composed loss.
        delta: The whole delta, > 0; the mechanisms' own deltas are taken from it.

    Returns:
        The least of pure, zCDP (over real orders) and Renyi (over the grid).
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
