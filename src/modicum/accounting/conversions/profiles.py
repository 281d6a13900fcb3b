"""Exact privacy profiles: the least delta at each epsilon, and the other way around.

A profile knows the mechanism, so no conversion is tighter. Every delta is rounded up;
every epsilon and every amount of noise is checked against the rounded delta before it
is returned. There is no approximation by the central limit theorem here: it bounds
nothing.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.decimals import (
    GUARD,
    mills_ratio,
    normal_density,
    normal_tail,
    precise,
    saturate,
    significant,
    to_decimal,
)
from modicum.accounting.grid import INFINITE
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import LOSS_UNIT, brief

#: Upper bound of the relative error of the two tails of a Gaussian profile, to the
#: larger one: `normal_tail` and `mills_ratio` have 40 digits.
_TAIL_ERROR = Decimal("1e-38")
#: A delta that is not 0 is at least this: exact numbers below it would have more digits
#: than anyone can wait for, and a power of e may have fallen below every exponent.
LEAST_DELTA = Decimal("1e-100")
_DELTA_DIGITS = 20
_NOISE_DIGITS = 13
_STEPS_MAX = 200


def delta_above(value: Decimal | Fraction) -> Fraction:
    """Return a delta above 0 in 20 significant digits, rounded up, at most 1.

    Examples:
        >>> delta_above(Fraction(1, 3))
        Fraction(16666666666666666667, 50000000000000000000)
        >>> delta_above(Fraction(2))
        Fraction(1, 1)
    """
    if value < LEAST_DELTA:
        return Fraction(LEAST_DELTA)
    return min(significant(value, _DELTA_DIGITS, up=True), Fraction(1))


@precise
def loss_above(value: Decimal) -> Fraction:
    """Return a computed loss as a multiple of 1e-12, rounded up, at least 0.

    Unlike a coordinate of the ledger it may have any size: nothing is cut off.

    Examples:
        >>> loss_above(Decimal("0.1"))
        Fraction(100000000001, 1000000000000)
        >>> loss_above(Decimal(-1))
        Fraction(0, 1)
    """
    scaled = Fraction(value + GUARD) * LOSS_UNIT
    return Fraction(max(0, -(-scaled.numerator // scaled.denominator)), LOSS_UNIT)


def check_eps(eps: Fraction) -> None:
    """Refuse an epsilon below 0.

    Raises:
        InputError: If `eps` is negative.

    Examples:
        >>> check_eps(Fraction(-1, 2))
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: epsilon -0.5 is negative
    """
    if eps < 0:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"epsilon {brief(eps)} is negative",
                help="give an epsilon of at least 0",
            )
        )


def check_delta(delta: Fraction) -> None:
    """Refuse a delta at which nothing can be converted.

    Raises:
        InputError: If `delta` is not between 0 and 1, or as small as `LEAST_DELTA`.

    Examples:
        >>> check_delta(Fraction(1))
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: delta 1 is not between 0 and 1
    """
    if not LEAST_DELTA < delta < 1:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"delta {brief(delta)} is not between 0 and 1",
                help="give a delta above 1e-100 and below 1, such as 1e-6",
            )
        )


# --- Gaussian -------------------------------------------------------------------


@lru_cache(maxsize=4096)
@precise
def gaussian_delta(mu2: Fraction, eps: Fraction) -> Fraction:
    """Return the least delta of Gaussian noise, or of anything mu-GDP, at an epsilon.

    Args:
        mu2: The square of mu, >= 0; for Gaussian noise (sensitivity/sigma)**2.
        eps: >= 0.

    Returns:
        P(Z > a) - e**eps P(Z > b) for a, b = eps/mu -+ mu/2, in 20 significant
        digits, rounded up.

    Raises:
        InputError: If `eps` is negative.

    Neighboring relation:
        That of mu.

    Source:
        Balle & Wang 2018, Thm 8 (arXiv:1805.06530); Dong, Roth & Su 2022, Cor. 2.13
        (arXiv:1905.02383).

    Examples:
        >>> found = gaussian_delta(Fraction(1), Fraction(1))
        >>> f"{float(found):.12g}"
        '0.126936737507'
    """
    check_eps(eps)
    if mu2 == 0:
        return Fraction(0)
    return delta_above(_gaussian(to_decimal(mu2).sqrt(), to_decimal(eps))[0])


def _gaussian(mu: Decimal, eps: Decimal) -> tuple[Decimal, Decimal]:
    """Return an upper bound of delta, and how fast delta falls with eps.

    e**eps times the density at b is the density at a: no power of e overflows.
    """
    a, b = eps / mu - mu / 2, eps / mu + mu / 2
    tail = normal_tail(a)
    falling = normal_density(a) * mills_ratio(b)
    return max(tail - falling + tail * _TAIL_ERROR, LEAST_DELTA), falling


@lru_cache(maxsize=4096)
@precise
def gaussian_epsilon(mu2: Fraction, delta: Fraction) -> Fraction:
    """Return the least epsilon of Gaussian noise, or of anything mu-GDP, at a delta.

    Args:
        mu2: The square of mu, >= 0.
        delta: Strictly between 0 and 1.

    Returns:
        Epsilon, a multiple of 1e-12, such that `gaussian_delta` there is at most
        `delta`.

    Raises:
        InputError: If `delta` is out of range.

    Neighboring relation:
        That of mu.

    Source:
        The inverse of `gaussian_delta`.

    Examples:
        >>> found = gaussian_epsilon(Fraction(1), Fraction(1, 10**5))
        >>> f"{float(found):.12g}"
        '4.37717809568'
    """
    check_delta(delta)
    if gaussian_delta(mu2, Fraction(0)) <= delta:
        return Fraction(0)
    mu, wanted = to_decimal(mu2).sqrt(), to_decimal(delta).ln()
    # From the right. ln delta is concave in eps (a convolution of log-concave
    # functions), so Newton's steps stay right of the root; it is checked anyway.
    eps = mu * mu / 2 + mu * (-2 * wanted).sqrt()
    for _ in range(_STEPS_MAX):
        bound, falling = _gaussian(mu, eps)
        step = (bound.ln() - wanted) * bound / falling
        eps = max(eps + step, Decimal(0))
        if abs(step) < Decimal("1e-16"):
            break
    found, more = loss_above(eps), Fraction(1, LOSS_UNIT)
    while gaussian_delta(mu2, found) > delta:
        found, more = found + more, 2 * more
    return found


@lru_cache(maxsize=65536)
def gaussian_epsilon_units(mu2_units: int, delta: Fraction) -> int:
    """Return `gaussian_epsilon` in ledger units.

    Args:
        mu2_units: The square of mu, in units of 1e-12, >= 0.
        delta: Strictly between 0 and 1.

    Returns:
        Epsilon in units of 1e-12, rounded up; `INFINITE` if mu is.

    Examples:
        >>> gaussian_epsilon_units(LOSS_UNIT, Fraction(1, 10**6))
        4886554117463
    """
    if mu2_units >= INFINITE:
        return INFINITE
    eps = gaussian_epsilon(Fraction(mu2_units, LOSS_UNIT), delta)
    return saturate(int(eps * LOSS_UNIT))


@lru_cache(maxsize=4096)
@precise
def gaussian_mu2_cap(eps: Fraction, delta: Fraction) -> int:
    """Return the largest square of mu that implies (`eps`, `delta`)-DP.

    Args:
        eps: >= 0.
        delta: Strictly between 0 and 1.

    Returns:
        mu**2 in units of 1e-12, rounded down, at least 0, such that
        `gaussian_delta` there is at most `delta`.

    Raises:
        InputError: If an argument is out of range.

    Neighboring relation:
        That of mu.

    Source:
        The inverse of `gaussian_delta`, which rises with mu.

    Examples:
        >>> gaussian_mu2_cap(Fraction(1), Fraction(1, 10**5))
        71851404654
    """
    mu = _largest_mu(eps, delta)
    units, less = int(mu * mu * LOSS_UNIT), 1
    while units > 0 and gaussian_delta(Fraction(units, LOSS_UNIT), eps) > delta:
        units, less = max(0, units - less), 2 * less
    return min(units, INFINITE - 1)


@lru_cache(maxsize=4096)
@precise
def gaussian_sigma_for(
    eps: Fraction, delta: Fraction, sensitivity: Fraction = Fraction(1)
) -> Fraction:
    """Return the least standard deviation of Gaussian noise for (`eps`, `delta`)-DP.

    Args:
        eps: >= 0.
        delta: Strictly between 0 and 1.
        sensitivity: Largest L2 change of the answer between neighbors, in units of
            the answer, > 0.

    Returns:
        Sigma in units of the answer, in 13 significant digits, such that
        `gaussian_delta` there is at most `delta`.

    Raises:
        InputError: If an argument is out of range.

    Neighboring relation:
        That of `sensitivity`.

    Source:
        Balle & Wang 2018, Alg. 1 (arXiv:1805.06530).

    Examples:
        >>> gaussian_sigma_for(Fraction(1), Fraction(1, 10**5))
        Fraction(29145559647, 7812500000)
    """
    if sensitivity <= 0:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"the sensitivity {brief(sensitivity)} is not positive",
                help="an answer that never changes needs no noise",
            )
        )
    sigma = to_decimal(sensitivity) / _largest_mu(eps, delta)
    found = significant(sigma, _NOISE_DIGITS, up=True)
    while gaussian_delta((sensitivity / found) ** 2, eps) > delta:
        found = significant(to_decimal(found) * _NUDGE, _NOISE_DIGITS, up=True)
    return found


_NUDGE = 1 + Decimal("1e-13")


def _largest_mu(eps: Fraction, delta: Fraction) -> Decimal:
    """Return (nearly) the largest mu with a given delta: the caller checks.

    Newton's method on delta in ln mu, held between two bounds: below, delta is at most
    mu/sqrt(2 pi), and mu-GDP is mu**2/2-zCDP; the upper one is found by doubling.
    """
    check_eps(eps)
    check_delta(delta)
    e, goal = to_decimal(eps), to_decimal(delta)
    log = -goal.ln()
    low = max(Decimal(2).sqrt() * ((log + e).sqrt() - log.sqrt()), goal * 2)
    high = 2 * low
    while _gaussian(high, e)[0] <= goal:
        low, high = high, 2 * high
    mu = low
    for _ in range(_STEPS_MAX):
        bound = _gaussian(mu, e)[0]
        low, high = (mu, high) if bound <= goal else (low, mu)
        slope = normal_density(e / mu - mu / 2) * mu / bound
        power = (goal.ln() - bound.ln()) / slope if slope > GUARD else Decimal(9)
        guess = mu * power.exp() if abs(power) < 2 else low
        mu = guess if low < guess < high else (low + high) / 2
        if high - low < low * Decimal("1e-20") or abs(power) < Decimal("1e-18"):
            break
    return mu


# --- Laplace --------------------------------------------------------------------


@precise
def laplace_delta(eps_of_laplace: Fraction, eps: Fraction) -> Fraction:
    """Return the least delta of Laplace noise on one number, at an epsilon.

    Args:
        eps_of_laplace: sensitivity/scale, its pure epsilon, >= 0. One number: for a
            vector with that L1 sensitivity, nothing is claimed.
        eps: >= 0.

    Returns:
        1 - e**((eps - eps_of_laplace)/2), or 0 if that is negative, in 20
        significant digits, rounded up.

    Raises:
        InputError: If `eps` is negative.

    Neighboring relation:
        That of the sensitivity.

    Source:
        Balle, Barthe & Gaboardi 2018, Thm 3 (arXiv:1807.01647).

    Examples:
        >>> found = laplace_delta(Fraction(1), Fraction(1, 2))
        >>> f"{float(found):.12g}"
        '0.221199216929'
    """
    check_eps(eps)
    if eps >= eps_of_laplace:
        return Fraction(0)
    kept = (to_decimal(eps - eps_of_laplace) / 2).exp()
    return delta_above(1 - kept + _TAIL_ERROR)


@precise
def laplace_epsilon(eps_of_laplace: Fraction, delta: Fraction) -> Fraction:
    """Return the least epsilon of Laplace noise on one number, at a delta.

    Args:
        eps_of_laplace: sensitivity/scale, its pure epsilon, >= 0, of one number.
        delta: At least 0, below 1.

    Returns:
        eps_of_laplace + 2 ln(1 - delta), at least 0: a multiple of 1e-12, rounded
        up, and never more than the pure epsilon.

    Raises:
        InputError: If `delta` is out of range.

    Neighboring relation:
        That of the sensitivity.

    Source:
        The inverse of `laplace_delta`.

    Examples:
        >>> found = laplace_epsilon(Fraction(1), Fraction(1, 10))
        >>> f"{float(found):.12g}"
        '0.789278968685'
    """
    if delta == 0:
        return eps_of_laplace
    check_delta(delta)
    eps = to_decimal(eps_of_laplace) + 2 * (1 - to_decimal(delta)).ln()
    return min(loss_above(eps), eps_of_laplace)
