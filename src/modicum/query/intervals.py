"""The tails of discrete noise: widths with a given error probability.

All of it is public: it depends on the noise, never on what it was added to. The widths
are for the discrete distributions that are sampled, in whole steps, and never too
small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from math import isqrt
from typing import Final

from msgspec import Struct

from modicum.accounting.decimals import lowest, normal_tail, precise, to_decimal
from modicum.query.request import Noise

# Every formula here has terms of one sign, so that its relative error is below this.
_ERROR: Final = 1 + Decimal("1e-30")

# Up to this σ the law is summed term by term; beyond it, a normal tail bounds it.
_SUMMED_MAX: Final = 8

# The remainder of a sum with terms this small is below its error.
_NOTHING: Final = Decimal("1e-50")
#: Less than π.
_PI: Final = Decimal("3.14159265358979323846")


@lru_cache(maxsize=1024)
@precise
def width(noise: Noise, scale: Fraction, error: Fraction) -> int:
    """Return the least w such that noise exceeds it with at most a given probability.

    Args:
        noise: The kind of noise.
        scale: Of the noise, in steps.
        error: The maximum probability, above 0.

    Returns:
        A whole number of steps. For Gaussian noise of a large σ it may be 1 more than
        the least.

    Examples:
        >>> width("gaussian", Fraction(100), Fraction(1, 20))
        196
        >>> width("laplace", Fraction(100), Fraction(1, 20))
        300
    """
    most = to_decimal(error)
    below, reaches = -1, 1
    while beyond(noise, scale, reaches) > most:
        below, reaches = reaches, 2 * reaches
    while reaches - below > 1:
        middle = (below + reaches) // 2
        if beyond(noise, scale, middle) > most:
            below = middle
        else:
            reaches = middle
    return reaches


@precise
def beyond(noise: Noise, scale: Fraction, within: int) -> Decimal:
    """Return how probable it is, at most, that noise lies outside -within to within.

    Args:
        noise: The kind of noise.
        scale: Of the noise, in steps.
        within: A whole number of steps, at least 0.
    """
    if noise == "laplace":
        # Each tail is a geometric series: step**(within + 1) / (1 + step).
        step = (-1 / to_decimal(scale)).exp()
        tail = (-(within + 1) / to_decimal(scale)).exp() / (1 + step)
    elif scale <= _SUMMED_MAX:
        tail = _summed_tail(to_decimal(scale), within)
    else:
        tail = _normal_tail(to_decimal(scale), within)
    return min(Decimal(1), 2 * tail * _ERROR)


def _summed_tail(sigma: Decimal, within: int) -> Decimal:
    """Return the upper tail of the discrete Gaussian distribution, by its terms.

    Terms are left out once they fall by a constant factor each and are far below the
    allowed error.
    """
    every = 2 * _sum_from(sigma, 1) + 1
    return _sum_from(sigma, within + 1) / every


@lru_cache(maxsize=1024)
def _sum_from(sigma: Decimal, place: int) -> Decimal:
    total = last = _density(sigma, place)
    while last > total * _NOTHING:
        place += 1
        last = _density(sigma, place)
        total += last
    return total


def _normal_tail(sigma: Decimal, within: int) -> Decimal:
    """Return a bound of the upper tail of the discrete Gaussian law.

    By Poisson's summation, its terms sum to at least σ·sqrt(2π). Beyond σ the density
    is convex, so that each term is at most the integral from half a step before to half
    a step after it; and anywhere it falls, at most that over the step before it.
    """
    half = Decimal("0.5") if within + Decimal("0.5") >= sigma else Decimal(0)
    return normal_tail((within + half) / sigma)


def _density(sigma: Decimal, place: int) -> Decimal:
    return (-Decimal(place * place) / (2 * sigma * sigma)).exp()


# --- sums of several draws ------------------------------------------------------------

#: Variances of the noise that makes a sum of draws nearly normal in an argument, and
#: how far, in its standard deviations, it may move a sum. The best pair is taken.
_SMOOTH: Final = (Decimal("0.3"), Decimal("0.5"), Decimal(1))
_MOVED: Final = (Decimal(1), Decimal(2), Decimal(3))
#: Of more different draws, products of scale and weight are rounded up and joined.
_DRAWS_MAX: Final = 32


class Draws(Struct, frozen=True):
    """Some independent draws of noise in a sum.

    Attributes:
        scale: Of each.
        weight: Of each in the sum, at least 0.
        number: How many there are.
    """

    scale: Fraction
    weight: Fraction
    number: int


@lru_cache(maxsize=65536)
@precise
def width_of_sum(noise: Noise, draws: tuple[Draws, ...], error: Fraction) -> Fraction:
    """Return a one-sided bound on a weighted sum of independent draws.

    By Chernoff's bound: for every t > 0, a sum of log-moments k(t) reaches x with a
    probability of at most exp(k(t) - t x). That holds for any t; the search finds a
    good one. For Gaussian noise, see also `_nearly_normal`.

    Args:
        noise: The kind of noise.
        draws: What is added up.
        error: The maximum probability that the sum is larger, above 0.

    Examples:
        >>> draws = (Draws(Fraction(100), Fraction(1, 2), 8),)
        >>> strays = width_of_sum("gaussian", draws, Fraction(1, 40))
        >>> round(float(strays), 3)
        280.43
    """
    weighted = [
        (to_decimal(one.scale) * to_decimal(one.weight), to_decimal(one.weight), one)
        for one in draws
        if one.weight and one.number
    ]
    if not weighted or error >= 1:
        return Fraction(0)
    rare = -to_decimal(error).ln()
    if noise == "gaussian":
        # Discrete Gaussian noise has no larger moments than continuous noise.
        squared = sum(
            (one.number * strays * strays for strays, _, one in weighted), Decimal(0)
        )
        chernoff = (2 * squared * rare).sqrt()
        weights = sum(
            (one.number * weight * weight for _, weight, one in weighted), Decimal(0)
        )
        number = sum(one.number for _, _, one in weighted)
        least = min(to_decimal(one.scale) for _, _, one in weighted)
        found = (
            _nearly_normal(squared, weights, number, least, to_decimal(error), pair)
            for pair in product(_SMOOTH, _MOVED)
        )
        return _up(min(chernoff, *found))
    if len(weighted) > _DRAWS_MAX:
        terms = _joined((strays, one.number) for strays, _, one in weighted)
    else:
        terms = [
            (strays, one.number, partial(_log_moment, to_decimal(one.scale), weight))
            for strays, weight, one in weighted
        ]
    largest = max(strays for strays, _, _ in terms)

    def reached(share: Decimal) -> Decimal:
        t = share / largest
        moments = sum(number * moment(t) for _, number, moment in terms)
        return (moments + rare) / t

    tiny = Decimal("1e-6")
    return _up(reached(lowest(reached, tiny, 1 - tiny, within=Decimal("1e-4"))))


def _joined(
    draws: Iterable[tuple[Decimal, int]],
) -> list[tuple[Decimal, int, Callable[[Decimal], Decimal]]]:
    """Return draws of Laplace noise as few kinds, with bounds on their log-moments.

    Discrete noise has no larger moments than continuous noise of the same scale b, of
    which they are -ln(1 - (b t)²): sinh(x) / x rises.
    """
    found: dict[Decimal, int] = {}
    context = Context(prec=3, rounding=ROUND_CEILING)
    for strays, number in draws:
        rounded = context.plus(strays)
        found[rounded] = found.get(rounded, 0) + number

    def moment(strays: Decimal, t: Decimal) -> Decimal:
        return -(1 - strays * strays * t * t).ln()

    return [(one, number, partial(moment, one)) for one, number in found.items()]


def _nearly_normal(
    squared: Decimal,
    weights: Decimal,
    number: int,
    least: Decimal,
    error: Decimal,
    added: tuple[Decimal, Decimal],
) -> Decimal:
    """Return a one-sided bound on a sum of draws of discrete Gaussian noise.

    Add to each draw continuous Gaussian noise of a variance v. By Poisson's summation
    formula the density of the result is at most 1 + h times the normal one of variance
    σ² + v, where h = 2 Σ exp(-2π² s² k²) and 1/s² = 1/σ² + 1/v. So the sum S of all,
    with a sum G of what was added, exceeds x at most (1 + h)ⁿ times as often as a
    normal number. Where S exceeds x and G does not fall below -d, S + G exceeds x - d;
    these two are independent.

    Args:
        squared: The sum of the squared products of weight and σ.
        weights: The sum of the squared weights.
        number: How many draws there are.
        least: The least σ.
        error: The maximum probability that the sum is larger.
        added: The variance v, and the distance d in standard deviations of G.
    """
    smooth, moved = added
    shared = least * least * smooth / (least * least + smooth)
    ripple = (-2 * _PI * _PI * shared).exp()
    excess = (1 + 2 * ripple / (1 - ripple)) ** number / (1 - normal_tail(moved))
    # Of few digits, so that most sums of one query share it.
    rare = Context(prec=3, rounding=ROUND_FLOOR).plus(error / (excess * _ERROR))
    normal = _normal_width(rare) * (squared + smooth * weights).sqrt()
    return normal + moved * (smooth * weights).sqrt()


@lru_cache(maxsize=1024)
@precise
def _normal_width(error: Decimal) -> Decimal:
    """Return what a standard normal number exceeds with at most a given probability."""
    low, high = Decimal(0), Decimal(60)
    if normal_tail(high) > error:
        return Decimal("Infinity")
    while high - low > Decimal("1e-6"):
        middle = (low + high) / 2
        low, high = (middle, high) if normal_tail(middle) > error else (low, middle)
    return high


def _log_moment(scale: Decimal, weight: Decimal, t: Decimal) -> Decimal:
    """Return ln E exp(w t Z) of discrete Laplace noise, for w t below 1 / scale."""
    t *= weight
    step = (-1 / scale).exp()
    up, down = 1 - (t - 1 / scale).exp(), 1 - (-t - 1 / scale).exp()
    return 2 * (1 - step).ln() - up.ln() - down.ln()


def _up(value: Decimal) -> Fraction:
    """Return a width, rounded up to whole millionths of a step."""
    millionths = (value * _ERROR * 10**6).to_integral_value(rounding=ROUND_CEILING)
    return Fraction(int(millionths), 10**6)


#: Number of binary digits of a scale, so that a float holds it exactly.
SCALE_BITS: Final = 20


def gaussian_scale(l2_squared: int, rho: Fraction) -> Fraction:
    """Return a σ with which Gaussian noise costs at most ρ, and hardly less.

    Args:
        l2_squared: The square of the sensitivity in the L2 norm, above 0.
        rho: The loss, above 0.

    Returns:
        The scale: σ² >= l2² / (2 ρ); a float holds it.

    Examples:
        >>> float(gaussian_scale(100, Fraction("0.015")))
        57.7350463867...
    """
    squared = l2_squared / (2 * rho)
    shift = 4**64
    return rounded_up(Fraction(isqrt(int(squared * shift)) + 1, 2**64), squared)


def laplace_scale(l1: int, eps: Fraction) -> Fraction:
    """Return a scale with which Laplace noise costs at most ε, and hardly less.

    Args:
        l1: The sensitivity in the L1 norm, above 0.
        eps: The loss, above 0.
    """
    return rounded_up(l1 / eps)


def rounded_up(value: Fraction, squared: Fraction | None = None) -> Fraction:
    """Return the least number of `SCALE_BITS` binary digits that is not smaller.

    Args:
        value: A number above 0; not below the intended one.
        squared: The square of the intended number, if it is no fraction.
    """
    power = value.numerator.bit_length() - value.denominator.bit_length() - SCALE_BITS
    step = Fraction(2) ** power
    if value > step * 2**SCALE_BITS:
        step *= 2
    steps = -(-value // step)
    below = (steps - 1) * step
    if squared is not None and below * below >= squared:
        steps -= 1  # The input was slightly above the intended number.
    return steps * step
