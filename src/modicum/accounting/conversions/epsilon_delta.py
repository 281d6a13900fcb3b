"""The best epsilon or delta that is proven for a curve, or for a composed loss.

As with `decimals.lowest`, the callers evaluate a bound that is valid at every point: a
point that is not quite the best costs a little tightness and never soundness.

Every method is a complete guarantee, so the least of them is one too: pure epsilon,
zCDP, the exact Gaussian profile of mu, and the Renyi curve at its best real order. All
are valid for parameters fixed in advance; for an adaptive history they are information,
and the filter decides (see `modicum.accounting.filters.budget`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from msgspec import Struct

from modicum.accounting.amounts import INFINITY, Amount, decimal_of, is_infinite, units
from modicum.accounting.conversions.moments import (
    Epsilon,
    ln_delta_bound,
    pure_delta,
    pure_epsilon,
    renyi_delta,
    renyi_offset,
    zcdp_delta,
    zcdp_rational,
)
from modicum.accounting.conversions.profiles import (
    check_delta,
    check_eps,
    gaussian_delta,
    gaussian_epsilon,
)
from modicum.accounting.curves import Curve, interpolated
from modicum.accounting.decimals import (
    GUARD,
    loss_units,
    precise,
    significant,
    to_decimal,
)
from modicum.accounting.grid import DELTA, EPS, FIRST_ORDER, INFINITE, MU2, ORDERS, RHO
from modicum.accounting.losses import Total
from modicum.core.rationals import DELTA_UNIT, LOSS_UNIT, brief

_STEPS_MAX = 60


def bottom_of_valley(
    bound: Callable[[Decimal], Decimal],
    around: tuple[Decimal, Decimal, Decimal],
    least: Decimal,
    within: Decimal,
) -> Decimal:
    """Return an approximate minimizer of a unimodal function, in few evaluations.

    Each parabola through the three lowest points proposes the next point; where that
    is no progress, the longer side is divided.

    Args:
        bound: Decreasing, then increasing; may be infinite.
        around: A low end, a point where the function is less than at either end, and
            a high end.
        least: The function at that point.
        within: The distance of the ends at which the search stops.

    Examples:
        >>> around = Decimal(0), Decimal(1), Decimal(9)
        >>> within = Decimal("1e-6")
        >>> at = bottom_of_valley(lambda x: (x - 2) ** 2, around, Decimal(1), within)
        >>> f"{at:.4f}"
        '2.0000'
    """
    low, middle, high = around
    lows: list[tuple[Decimal, Decimal]] = [(middle, least)]
    for step in range(_STEPS_MAX):
        if high - low < within:
            break
        there = None if step % 4 == 3 else _vertex(lows[:3])
        if there is None or not low < there < high:
            there = _divided(low, middle, high)
        if abs(there - middle) < within / 4:
            there = middle + (
                within / 4 if high - middle > middle - low else -within / 4
            )
        value = bound(there)
        lows = sorted([*lows, (there, value)], key=lambda point: point[1])
        if value < least:
            low, high = (middle, high) if there > middle else (low, middle)
            middle, least = there, value
        elif there > middle:
            high = there
        else:
            low = there
    return middle


def _divided(low: Decimal, middle: Decimal, high: Decimal) -> Decimal:
    share = Decimal("0.381966")
    if high - middle > middle - low:
        return middle + share * (high - middle)
    return middle - share * (middle - low)


def _vertex(points: list[tuple[Decimal, Decimal]]) -> Decimal | None:
    """Return where the parabola through three points is lowest, if it is."""
    if len(points) < 3 or any(value.is_infinite() for _, value in points):
        return None
    (a, at_a), (b, at_b), (c, at_c) = points
    first, second = (b - a) * (at_b - at_c), (b - c) * (at_b - at_a)
    if first == second:
        return None
    return b - ((b - a) * first - (b - c) * second) / (2 * (first - second))


# alpha - 1 is searched from e^-40 to e^45 where a formula is cheap.
_SEARCH_LOW = Decimal(-40)
_SEARCH_HIGH = Decimal(45)
# Precision of ln(alpha - 1) between two orders of the grid; the bound is flat at its
# minimum, so that the error is the square of this.
_WITHIN = Decimal("1e-5")
_ORDER_DIGITS = 6

#: The answer where the mechanisms' own deltas leave nothing.
NO_DELTA = "none: the mechanisms' own delta is larger"


class Delta(Struct, frozen=True):
    """A delta at some epsilon, and how it was obtained.

    Attributes:
        value: At most 1, in 20 significant digits, rounded up.
        method: As in `Epsilon`.
    """

    value: Fraction
    method: str


# --- the best of all methods ----------------------------------------------------


@precise
def curve_epsilon(curve: Curve, delta: Fraction) -> Epsilon:
    """Return the least epsilon that is proven for a curve at `delta`.

    Args:
        curve: Bounds under one neighboring relation, of parameters fixed in advance.
        delta: Strictly between 0 and 1; the curve's own delta is subtracted from it.

    Returns:
        The least of ``pure``, ``zcdp``, ``gaussian-exact`` and ``rdp(order)``, the
        order being the best real one that was found.

    Raises:
        InputError: If `delta` is out of range.

    Neighboring relation:
        That of the curve.

    Source:
        Canonne, Kamath & Steinke 2020, Prop. 12 and Cor. 13 (arXiv:2004.00010);
        Dong, Roth & Su 2022, Cor. 2.13 (arXiv:1905.02383).

    Examples:
        >>> from modicum.accounting.mechanisms import gaussian
        >>> found = curve_epsilon(gaussian(rho=Fraction(1, 10)), Fraction(1, 10**6))
        >>> found.units, found.method
        (1994526900697, 'gaussian-exact')
    """
    check_delta(delta)
    left = delta - curve.delta
    if left < 0:
        return Epsilon(INFINITE, NO_DELTA)
    best = Epsilon(pure_epsilon(curve.eps, left), "pure")
    if left == 0 or best.units == 0:
        return best
    return min((best, *_epsilons(curve, left)), key=lambda found: found.units)


def _epsilons(curve: Curve, delta: Fraction) -> Iterator[Epsilon]:
    if not is_infinite(curve.mu2):
        exact = gaussian_epsilon(_rational(curve.mu2), delta)
        yield Epsilon(units(exact), "gaussian-exact")
    if not is_infinite(curve.rho):
        rho = _rational(curve.rho)
        yield Epsilon(loss_units(zcdp_rational(rho, delta)), "zcdp")
    yield _renyi_epsilon(curve, delta)


def _renyi_epsilon(curve: Curve, delta: Fraction) -> Epsilon:
    def at(order: Fraction) -> Decimal:
        return decimal_of(curve.at(order)) + renyi_offset(order, delta)

    order = _best_order(at)
    found = at(order)
    return Epsilon(INFINITE if found.is_infinite() else loss_units(found), _name(order))


@precise
def curve_delta(curve: Curve, eps: Fraction) -> Delta:
    """Return the least delta that is proven for a curve at `eps`.

    Args:
        curve: Bounds under one neighboring relation, of parameters fixed in advance.
        eps: >= 0.

    Returns:
        The least of the same methods as `curve_epsilon`, and the curve's own delta on
        top of it.

    Raises:
        InputError: If `eps` is negative.

    Neighboring relation:
        That of the curve.

    Source:
        As for `curve_epsilon`; for ``pure``, as for `pure_delta`.

    Examples:
        >>> from modicum.accounting.mechanisms import gaussian
        >>> found = curve_delta(gaussian(rho=Fraction(1, 10)), Fraction(2))
        >>> f"{float(found.value):.6g}", found.method
        ('9.448e-07', 'gaussian-exact')
    """
    check_eps(eps)
    best = Delta(pure_delta(curve.eps, eps), "pure")
    if best.value:
        best = min((best, *_deltas(curve, eps)), key=lambda found: found.value)
    return Delta(min(Fraction(1), best.value + curve.delta), best.method)


def _deltas(curve: Curve, eps: Fraction) -> Iterator[Delta]:
    if not is_infinite(curve.mu2):
        yield Delta(gaussian_delta(_rational(curve.mu2), eps), "gaussian-exact")
    if not is_infinite(curve.rho):
        yield Delta(zcdp_delta(_rational(curve.rho), eps), "zcdp")
    yield _renyi_delta(curve, eps)


def _renyi_delta(curve: Curve, eps: Fraction) -> Delta:
    e = to_decimal(eps)

    def at(order: Fraction) -> Decimal:
        return ln_delta_bound(to_decimal(order), decimal_of(curve.at(order)), e)

    order = _best_order(at)
    return Delta(renyi_delta(order, curve.at(order), eps), _name(order))


@precise
def renyi_best_epsilon(curve: Curve, delta: Fraction) -> Amount:
    """Return epsilon at `delta` by the best order of a curve alone, rounded up.

    It is infinite if it does not fit the ledger.

    Args:
        curve: At least one divergence is finite.
        delta: Strictly between 0 and 1.

    Examples:
        >>> from modicum.accounting.mechanisms import gaussian
        >>> eps = renyi_best_epsilon(gaussian(rho=Fraction(1, 2)), Fraction(1, 10**6))
        >>> f"{float(eps):.9g}"
        '5.22153444'
    """
    found = _renyi_epsilon(curve, delta).units
    return INFINITY if found >= INFINITE else Fraction(found, LOSS_UNIT)


@precise
def renyi_best_delta(curve: Curve, eps: Fraction) -> Fraction:
    """Return delta at `eps` by the best order of a curve alone, rounded up.

    Examples:
        >>> from modicum.accounting.mechanisms import gaussian
        >>> delta = renyi_best_delta(gaussian(rho=Fraction(1, 2)), Fraction(5))
        >>> f"{float(delta):.9g}"
        '2.89612281e-06'
    """
    return _renyi_delta(curve, eps).value


def _rational(amount: Amount) -> Fraction:
    """Return a finite amount as a rational that is not below it."""
    return amount if isinstance(amount, Fraction) else Fraction(amount + GUARD)


def _name(order: Fraction) -> str:
    return f"rdp({brief(order)})"


def _best_order(bound: Callable[[Fraction], Decimal]) -> Fraction:
    """Return the order at which a bound is (nearly) least; any order is sound.

    (order - 1) * divergence is convex, so the bound has one valley. It is looked for
    between the neighbors of the best order of the grid.
    """
    at_grid = [bound(order) for order in ORDERS]
    best = min(range(len(ORDERS)), key=at_grid.__getitem__)
    if at_grid[best].is_infinite():
        return ORDERS[best]
    low = (to_decimal(ORDERS[best - 1]) - 1).ln() if best else _SEARCH_LOW
    last = best + 1 == len(ORDERS)
    high = _SEARCH_HIGH if last else (to_decimal(ORDERS[best + 1]) - 1).ln()
    middle = (to_decimal(ORDERS[best]) - 1).ln()
    u = bottom_of_valley(
        lambda u: bound(_order_at(u)), (low, middle, high), at_grid[best], _WITHIN
    )
    between = _order_at(u)
    return between if bound(between) < at_grid[best] else ORDERS[best]


def _order_at(u: Decimal) -> Fraction:
    return 1 + significant(u.exp(), _ORDER_DIGITS, up=False)


# --- composed losses ------------------------------------------------------------


@lru_cache(maxsize=4096)
def best_epsilon(total: Total, delta: Fraction) -> Epsilon:
    """Return the least epsilon that is proven for a composed loss at `delta`.

    Valid as a guarantee when the parameters of all mechanisms were fixed before the
    first output (sequential composition), and whatever the neighboring relation under
    which each loss was proven, as long as it is the same.

    Args:
        total: The composed loss.
        delta: The whole delta, strictly between 0 and 1; the mechanisms' own deltas are
            subtracted from it.

    Returns:
        As `curve_epsilon`; between two orders of the grid, (order - 1) * divergence
        is bounded by the line between the stored values.

    Raises:
        InputError: If `delta` is out of range.

    Source:
        As for `curve_epsilon`. mu**2 adds up (Dong, Roth & Su 2022, Cor. 3.3), so
        the exact Gaussian profile holds for the sum.

    Examples:
        >>> from modicum.accounting.losses import total_of
        >>> from modicum.accounting.mechanisms import gaussian
        >>> two = total_of([gaussian(rho=Fraction("0.012012")).loss()] * 2)
        >>> best_epsilon(two, Fraction(1, 10**7)).method
        'gaussian-exact'
    """
    return curve_epsilon(curve_of(total), delta)


@lru_cache(maxsize=4096)
def best_delta(total: Total, eps: Fraction) -> Delta:
    """Return the least delta that a composed loss is known to have at `eps`.

    Args:
        total: The composed loss.
        eps: >= 0.

    Returns:
        As `curve_delta`, under the conditions of `best_epsilon`.

    Raises:
        InputError: If `eps` is negative.

    Examples:
        >>> best_delta(Total(), Fraction(1))
        Delta(value=Fraction(0, 1), method='pure')
    """
    return curve_delta(curve_of(total), eps)


def curve_of(total: Total) -> Curve:
    """Return the bounds of a composed loss, as a curve.

    Between two orders of the grid, (order - 1) * divergence is below the line
    between its values there.

    Examples:
        >>> from modicum.accounting.losses import total_of
        >>> from modicum.accounting.mechanisms import gaussian
        >>> curve = curve_of(total_of([gaussian(rho=Fraction(1, 10)).loss()] * 3))
        >>> curve.rho, curve.eps
        (Fraction(3, 10), Decimal('Infinity'))
        >>> curve.renyi(Fraction(7)), curve.at(Fraction(7))
        (Fraction(43, 20), Fraction(21, 10))
    """

    def amount(index: int) -> Amount:
        found = total.units(index)
        return INFINITY if found >= INFINITE else Fraction(found, LOSS_UNIT)

    eps = amount(EPS)
    stored = {order: amount(i) for i, order in enumerate(ORDERS, FIRST_ORDER)}
    known = {order: value for order, value in stored.items() if not is_infinite(value)}
    between = interpolated(known, eps=eps).renyi if known else lambda _: eps
    own = min(Fraction(1), Fraction(total.units(DELTA), DELTA_UNIT))
    return Curve(eps, amount(RHO), amount(MU2), between, own)
