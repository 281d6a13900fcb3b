"""Real functions in 60-digit decimals, so that rounding has a known direction.

`decimal` rounds ``exp``, ``ln`` and ``sqrt`` correctly, on every platform alike:
the same numbers give the same integers everywhere. Sixty digits leave an absolute
error below 1e-45 for every value met here; `GUARD` exceeds it by far.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

from modicum.accounting.grid import INFINITE
from modicum.core.rationals import LOSS_UNIT

P = ParamSpec("P")
R = TypeVar("R")

#: Added to a loss before it is rounded up, subtracted from a limit before it is rounded
#: down. Covers the error of every formula by many orders of magnitude.
GUARD = Decimal("1e-30")

_EXPONENT_LIMIT = 10**12

# Up to here the normal tail is a series, beyond a continued fraction so long.
_SERIES_MAX = 40
_CONVERGENTS = 40

_TRAPS = [
    decimal.InvalidOperation,
    decimal.DivisionByZero,
    decimal.Overflow,
]


@lru_cache(maxsize=64)  # `localcontext` copies it.
def _context(digits: int) -> decimal.Context:
    return decimal.Context(
        prec=digits,
        rounding=decimal.ROUND_HALF_EVEN,
        Emin=-_EXPONENT_LIMIT,
        Emax=_EXPONENT_LIMIT,
        capitals=1,
        clamp=0,
        flags=[],
        traps=_TRAPS,
    )


def precise(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function compute in 60 digits, whatever the caller's context.

    Examples:
        >>> precise(lambda: Decimal(2) / 3)()
        Decimal('0.666666666666666666666666666666666666666666666666666666666667')
    """

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        with decimal.localcontext(_context(60)):
            return function(*args, **kwargs)

    return wrapper


def to_decimal(value: Fraction) -> Decimal:
    """Return a rational as a decimal of the current precision.

    Examples:
        >>> to_decimal(Fraction(1, 8))
        Decimal('0.125')
        >>> precise(to_decimal)(Fraction(2, 3))
        Decimal('0.666666666666666666666666666666666666666666666666666666666667')
    """
    return Decimal(value.numerator) / Decimal(value.denominator)


@precise
def loss_units(value: Decimal) -> int:
    """Return a computed loss in ledger units, rounded up, infinite if too large.

    A value of 0 up to the error of the computation may be a tiny loss: one unit. Only a
    clearly negative bound, as a conversion may give, is 0.

    Examples:
        >>> [loss_units(Decimal(x)) for x in ("0.1", "0", "-1")]
        [100000000001, 1, 0]
    """
    if value < -GUARD:
        return 0
    scaled = (value + GUARD) * LOSS_UNIT
    return saturate(int(scaled.to_integral_value(rounding=decimal.ROUND_CEILING)))


@precise
def limit_units(value: Decimal) -> int:
    """Return a computed limit in ledger units, rounded down; negative if negative.

    Examples:
        >>> [limit_units(Decimal(x)) for x in ("0.1", "0", "-1")]
        [99999999999, -1, -1000000000001]
    """
    scaled = (value - GUARD) * LOSS_UNIT
    floor = int(scaled.to_integral_value(rounding=decimal.ROUND_FLOOR))
    return min(floor, INFINITE - 1)


def saturate(units: int) -> int:
    """Return the loss itself, or infinity if it does not fit a coordinate.

    Examples:
        >>> saturate(7), saturate(2**70) == INFINITE
        (7, True)
    """
    return min(units, INFINITE)


def lowest(
    function: Callable[[Decimal], Decimal],
    low: Decimal,
    high: Decimal,
    *,
    within: Decimal = Decimal("1e-9"),
) -> Decimal:
    """Return an approximate minimizer of a unimodal function.

    The callers evaluate a bound that is valid at *every* point, so a point that
    is not quite the best costs a little tightness and never soundness.

    Args:
        function: Falls, then rises, on the interval.
        low: The lower end.
        high: The upper end.
        within: The maximum distance from the minimum.

    Source:
        Brent 1973, Algorithms for Minimization without Derivatives, ch. 5.

    Examples:
        >>> f"{lowest(lambda x: (x - 2) ** 2, Decimal(0), Decimal(9)):.6f}"
        '2.000000'
    """
    with decimal.localcontext(_context(30)):
        golden = (3 - Decimal(5).sqrt()) / 2
        least = within / 2
        best = second = third = low + golden * (high - low)
        at_best = at_second = at_third = function(best)
        step = earlier = Decimal(0)
        while max(best - low, high - best) > within:
            # The bottom of the parabola through the three best points, if steps shrink.
            right = (best - second) * (at_best - at_third)
            left = (best - third) * (at_best - at_second)
            above = (best - second) * right - (best - third) * left
            below = 2 * (left - right)
            shrinks = 2 * abs(above) < abs(below * earlier)
            if shrinks and low < best + above / below < high:
                earlier, step = step, above / below
                if min(best + step - low, high - best - step) < within:
                    step = least if 2 * best < low + high else -least
            else:
                earlier = (low if 2 * best >= low + high else high) - best
                step = golden * earlier
            point = best + (step if abs(step) >= least else least.copy_sign(step))
            at_point = function(point)
            if at_point <= at_best:
                low, high = (best, high) if point >= best else (low, best)
                second, third, best = best, second, point
                at_second, at_third, at_best = at_best, at_second, at_point
                continue
            low, high = (point, high) if point < best else (low, point)
            if at_point <= at_second or second == best:
                second, third = point, second
                at_second, at_third = at_point, at_second
            elif at_point <= at_third or third in {best, second}:
                third, at_third = point, at_point
        return best


def exp_bounds(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Return whole numbers around exp(-exponent) * 2**bits, at most 3 apart.

    Args:
        exponent: At least 0.
        bits: The number of binary digits after the point.

    Returns:
        A number not above it, at least 0, and one above it.

    Source:
        Let u be half a unit in the last of `digits` digits. The quotient, its
        exponential and the product with 2**bits are rounded once each, which moves
        exp(-x) by less than (x + 2) * exp(-x) * u * 1.01 <= 2.02 * u, and the product
        by less than 2**bits * 10**(2 - digits) < 1.

    Examples:
        >>> exp_bounds(Fraction(1), 10)  # exp(-1) * 2**10 is 376.7...
        (375, 378)
        >>> exp_bounds(Fraction(10) ** 400, 10)
        (0, 1)
    """
    if exponent >= bits:
        return 0, 1  # exp(-bits) < 2**-bits
    digits = bits * 31 // 100 + 5
    with decimal.localcontext(_context(digits)):
        near = int((-to_decimal(exponent)).exp() * 2**bits)
    return max(near - 1, 0), near + 2


def normal_tail(x: Decimal) -> Decimal:
    """Return P(Z > x) of a standard normal, to 40 digits.

    Below 0 it is one less the other tail, and right to 40 digits after the point.

    Source:
        Up to 40: Abramowitz & Stegun 26.2.11: all terms are positive, so the only
        cancellation is the last subtraction; the working precision pays for it.
        Beyond: `mills_ratio`.

    Examples:
        >>> f"{normal_tail(Decimal('1.96')):.12f}"
        '0.024997895148'
        >>> f"{normal_tail(Decimal(100)):.6e}"  # far below the least float
        '1.344179e-2174'
    """
    if x < 0:
        return 1 - normal_tail(-x)
    if x > _SERIES_MAX:
        return normal_density(x) * mills_ratio(x)
    cancelled = int(x * x / 4) + 20
    with decimal.localcontext(_context(60 + cancelled)):
        term = total = x
        n = 1
        tiny = Decimal(10) ** -(60 + cancelled)
        while term > tiny * total:
            n += 2
            term = term * x * x / n
            total += term
        density = (-x * x / 2).exp() / (2 * pi(60 + cancelled)).sqrt()
        return Decimal("0.5") - density * total


def normal_density(x: Decimal) -> Decimal:
    """Return the density of a standard normal; 0 where no exponent is small enough.

    Examples:
        >>> f"{normal_density(Decimal(0)):.12f}"  # 1 / sqrt(2 pi)
        '0.398942280401'
    """
    return (-x * x / 2).exp() / (2 * pi(60)).sqrt()


def mills_ratio(x: Decimal) -> Decimal:
    """Return P(Z > x) over the density at x, for x >= 0, to 40 digits.

    Source:
        Beyond 40, Laplace's continued fraction 1/(x + 1/(x + 2/(x + 3/(x + ...)))),
        Abramowitz & Stegun 26.2.14. Its convergents lie above and below the ratio in
        turn, and the n-th differs from the next by at most n! / x**(2n + 1), since
        each denominator is at least x times the one before: 1e-80 for n = 40.

    Examples:
        >>> f"{mills_ratio(Decimal(0)):.12f}"  # sqrt(pi / 2)
        '1.253314137316'
        >>> f"{mills_ratio(Decimal(1000)):.15f}"  # below 1 / 1000
        '0.000999999000003'
    """
    if x <= _SERIES_MAX:
        return normal_tail(x) / normal_density(x)
    ratio = x
    for n in range(_CONVERGENTS, 0, -1):
        ratio = x + n / ratio
    return 1 / ratio


def significant(value: Decimal | Fraction, digits: int, *, up: bool) -> Fraction:
    """Return a number above 0 in this many significant digits, rounded up or down.

    Examples:
        >>> significant(Fraction(1, 3), 2, up=True)
        Fraction(17, 50)
    """
    exact = Fraction(value)
    if exact == 0:
        return exact
    last = Fraction(10) ** (to_decimal(exact).adjusted() + 1 - digits)
    return (-(-exact // last) if up else exact // last) * last


@lru_cache(maxsize=512)
def pi(digits: int) -> Decimal:
    """Return pi to `digits` digits, by Machin's formula.

    Examples:
        >>> f"{pi(50):.30f}"
        '3.141592653589793238462643383280'
    """
    with decimal.localcontext(_context(digits + 10)):
        return 4 * (4 * _arctan_inverse(5) - _arctan_inverse(239))


def _arctan_inverse(n: int) -> Decimal:
    power = total = Decimal(1) / n
    k, sign = 1, 1
    while power > Decimal(10) ** -(decimal.getcontext().prec + 2):
        power /= n * n
        k, sign = k + 2, -sign
        total += sign * power / k
    return total
