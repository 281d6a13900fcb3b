"""Odometers: the loss by a time that may depend on the answers.

A *filter* has a limit fixed before the first answer, and decides for each further loss
whether the limit still holds. An *odometer* has no limit: it returns, at a time that
may itself depend on the answers, the loss until then. Converting the sums of an
adaptively chosen history to the tightest (eps, delta) is neither: the best order, and
the moment to look, were chosen with the answers in view.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.conversions.moments import Epsilon
from modicum.accounting.decimals import loss_units, pi, precise, to_decimal
from modicum.accounting.filters.coordinates import grid_index
from modicum.accounting.grid import DELTA, EPS, INFINITE, RHO, coordinate_name
from modicum.accounting.losses import Total
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import LOSS_UNIT, brief

# The number of orders that the zCDP odometer watches. A constant, as the shares of
# delta are: 6 delta / (pi k)^2 for k = 1, 2, ... sums to less than delta.
_WATCHED_MAX = 60


def pure_odometer(total: Total) -> Epsilon:
    """Return the privacy loss so far, for any choices and stopping times.

    Returns:
        The sum of eps. It bounds the privacy loss of every sequence of answers, so it
        needs no delta; infinite if a mechanism has a delta of its own.

    Neighboring relation:
        The one the losses hold under.

    Source:
        Rogers, Roth, Ullman & Vadhan 2016 (arXiv:1605.08294).

    Examples:
        >>> pure_odometer(Total()).units
        0
    """
    spent = INFINITE if total.units(DELTA) else total.units(EPS)
    return Epsilon(spent, "pure")


def renyi_odometer(total: Total, *, order: Fraction, delta: Fraction) -> Epsilon:
    """Return a bound of the privacy loss so far that holds at all times at once.

    With probability at least 1 - delta over the answers, the privacy loss is at most
    this value at *every* time, and so at a time chosen with the answers in view.

    Args:
        total: The losses so far.
        order: On the ledger's grid; `order` and `delta` are fixed before the first
            answer, and stay the same at all times.
        delta: Strictly between 0 and 1.

    Returns:
        The sum of divergences plus ln(1/delta)/(order - 1), rounded up; infinite if a
        mechanism has a delta.

    Raises:
        InputError: If the order is not on the grid or delta is out of range.

    Neighboring relation:
        The one the losses hold under; for each of the two directions by itself.

    Source:
        exp((order-1) (privacy loss - divergences)) is a nonnegative supermartingale
        that begins at 1, since each divergence bounds the conditional moment of its
        step; Ville's inequality bounds its supremum. As in Whitehouse, Ramdas,
        Rogers & Wu 2023 (arXiv:2203.05481).

    Examples:
        >>> from modicum.accounting.mechanisms import gaussian
        >>> spent = Total().plus(gaussian(rho=Fraction(1, 100)).loss())
        >>> renyi_odometer(spent, order=Fraction(32), delta=Fraction(1, 10**6)).units
        765661630903
    """
    index = grid_index(order)
    _check_delta(delta)
    spent = total.units(index)
    if total.units(DELTA) or spent >= INFINITE:
        return Epsilon(INFINITE, coordinate_name(index))
    return Epsilon(_at_order(spent, order, delta), coordinate_name(index))


@precise
def _at_order(units: int, order: Fraction, delta: Fraction) -> int:
    spent = Decimal(units) / LOSS_UNIT
    return loss_units(spent - to_decimal(delta).ln() / to_decimal(order - 1))


def zcdp_odometer(total: Total, *, start: Fraction, delta: Fraction) -> Epsilon:
    """Return a bound of the privacy loss so far that holds at all times at once.

    It watches many orders, one for each doubling of rho from `start` on, and has paid
    for each of them with a share of delta, so that the least may be used.

    Args:
        total: The losses so far.
        start: The rho from which on it should be tight, > 0; `start` and `delta` are
            fixed before the first answer, and stay the same at all times.
        delta: Strictly between 0 and 1.

    Returns:
        min over k of a_k * rho + ln(1/delta_k)/(a_k - 1), where delta_k is 6 delta/(pi
        k)^2 and a_k is best for rho = start * 2^(k-1), rounded up; infinite if a
        mechanism has a delta.

    Raises:
        InputError: If `start` or delta is out of range.

    Neighboring relation:
        The one the losses hold under; for each of the two directions by itself.

    Source:
        `renyi_odometer` at each order a_k, to which rho-zCDP gives the divergence
        a_k * rho, and a union bound. The doubling is that of Rogers, Roth, Ullman &
        Vadhan 2016 (arXiv:1605.08294).

    Examples:
        >>> from modicum.accounting.mechanisms import gaussian
        >>> spent = Total().plus(gaussian(rho=Fraction(1, 100)).loss())
        >>> small = Fraction(1, 10**6)
        >>> zcdp_odometer(spent, start=Fraction(1, 100), delta=small).units < 10**12
        True
    """
    _check_delta(delta)
    if start <= 0:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"an odometer needs a start above 0, got {brief(start)}",
                help="give the expected total rho of the first releases",
            )
        )
    rho = total.units(RHO)
    if total.units(DELTA) or rho >= INFINITE:
        return Epsilon(INFINITE, "zcdp")
    return Epsilon(_least_line(rho, start, delta), "zcdp")


@precise
def _least_line(rho_units: int, start: Fraction, delta: Fraction) -> int:
    if rho_units == 0:
        return 0
    rho = Decimal(rho_units) / LOSS_UNIT
    return loss_units(
        min(
            less_one * rho + rho + ln / less_one
            for less_one, ln in _lines(start, delta)
        )
    )


@lru_cache(maxsize=1024)
@precise
def _lines(start: Fraction, delta: Fraction) -> tuple[tuple[Decimal, Decimal], ...]:
    """Return a_k - 1 and ln(1/delta_k) for each order that is watched.

    Any orders would do, as long as `start` and delta alone determine them. The share
    is rounded down by a billionth, so that the sum over k stays below delta whatever
    the rounding of pi.
    """
    target, first_share = to_decimal(start), to_decimal(delta) * 6 / pi(60) ** 2
    found = []
    for k in range(1, _WATCHED_MAX + 1):
        ln_inverse = -(first_share / (k * k) * (1 - Decimal("1e-9"))).ln()
        found.append(((ln_inverse / target).sqrt(), ln_inverse))
        target *= 2
    return tuple(found)


def _check_delta(delta: Fraction) -> None:
    if not 0 < delta < 1:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"delta must be strictly between 0 and 1, got {brief(delta)}",
                help="give the probability with which the bound may fail",
            )
        )
