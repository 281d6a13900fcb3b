"""The Renyi divergence of one step of DP-SGD: Gaussian noise on a Poisson sample."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.amounts import INFINITY, Amount, least
from modicum.accounting.amplification.bounds import (
    between_integers,
    growth,
    log_mean_power,
)
from modicum.accounting.argument_ranges import (
    require_above_zero,
    require_probability,
)
from modicum.accounting.curves import NOTHING, Curve, concentrated
from modicum.accounting.decimals import pi, precise, to_decimal

# The powers of Gaussian noise are cheap: the maximum number of terms of its sums.
_ORDER_MAX = 4096
# More points than this cost more than they are worth.
_POINTS_MAX = 1200


@lru_cache(maxsize=1024)
@precise
def poisson_gaussian(*, sampling_rate: Fraction, noise_multiplier: Fraction) -> Curve:
    """Return the curve of one step of DP-SGD.

    Each instance of the unit is in the sample with the same probability,
    independently of all others; what each contributes is clipped; the sum gets
    Gaussian noise. Steps on fresh samples are composed; steps on one sample are not
    (see `shared_sample`).

    Args:
        sampling_rate: Probability that an instance is in the sample, from 0 to 1.
        noise_multiplier: Standard deviation of the noise, in units of the clipping
            norm of one instance; > 0.

    Returns:
        The exact Renyi divergence at integer orders, and at others by quadrature
        with a proven error, added; where it is too costly, an upper bound. rho
        and mu are those of the noise without sampling: nothing better is proven
        (limit theorems about composed steps are no bounds). Pure eps is infinite.

    Raises:
        InputError: If an argument is out of range.

    Neighboring relation:
        Add/remove of one whole instance of the unit that is sampled.

    Source:
        Mironov, Talwar & Zhang 2019, Sec. 3.3 (arXiv:1908.10530); of the two
        directions theirs is the larger one (Thm 5, and `poisson_sampling`).

    Examples:
        >>> step = poisson_gaussian(
        ...     sampling_rate=Fraction(1, 100), noise_multiplier=Fraction(1)
        ... )
        >>> f"{step.at(Fraction(2)):.9g}"
        '0.000171813422'
    """
    require_probability("the sampling rate", sampling_rate)
    require_above_zero("the noise multiplier", noise_multiplier)
    if sampling_rate == 0:
        return NOTHING
    mu2 = 1 / noise_multiplier**2
    unsampled = concentrated(mu2 / 2, mu2=mu2)
    if sampling_rate == 1:
        return unsampled

    def renyi(order: Fraction) -> Amount:
        return _divergence(sampling_rate, noise_multiplier, order)

    return Curve(unsampled.eps, unsampled.rho, unsampled.mu2, renyi)


@lru_cache(maxsize=4096)
@precise
def _divergence(rate: Fraction, noise: Fraction, order: Fraction) -> Amount:
    def at_integer(n: int) -> Amount:
        return _at_integer(rate, noise, n)

    bound = between_integers(at_integer, order, _ORDER_MAX)
    if order.denominator == 1 or order > _ORDER_MAX:
        return bound
    return least(bound, _by_quadrature(rate, noise, order))


@lru_cache(maxsize=4096)
@precise
def _at_integer(rate: Fraction, noise: Fraction, order: int) -> Amount:
    """Return ln(sum of C(n,k) (1-q)^(n-k) q^k exp(k(k-1) / (2 s^2))) / (n-1)."""
    per_pair = 1 / noise**2
    if growth(order * (order - 1) * per_pair / 2) == INFINITY:
        return INFINITY
    return log_mean_power(rate, order, _gaussian_growths(per_pair, order))


def _gaussian_growths(per_pair: Fraction, order: int) -> Iterator[Decimal]:
    """Yield exp(k(k-1)/2 * per_pair) for k = 2, 3, ... by multiplication."""
    step = factor = value = growth(per_pair)
    for _ in range(2, order + 1):
        yield value
        factor *= step
        value *= factor


def _by_quadrature(rate: Fraction, noise: Fraction, order: Fraction) -> Amount:
    """Return the divergence at any order by the trapezoid rule, rounded up.

    E is the integral of f(x) = phi(x) g(x)^a, where phi is the density of N(0, s^2)
    and g(x) = 1 - q + q exp((2x-1) / (2 s^2)).

    Quadrature: f is analytic for abs(Im x) < pi s^2, where g has no zero. On the
    line Im x = b, abs(g) is at most its value at Re x, and abs(phi) is exp(b^2/(2
    s^2)) times that at Re x. So the trapezoid rule with step h errs by at most
    2 exp(b^2/(2 s^2)) / (exp(2 pi b/h) - 1) * E (Trefethen & Weideman 2014, Thm
    5.1); h below makes that less than 1e-40 * E.

    Left of -14 s: g <= 1, so the points left out weigh less than the normal tail.
    Right of R: f(x) <= exp(a(a-1)/(2 s^2)) phi(x - a), which falls, so they weigh
    less than its integral. Mills' ratio puts both below 1e-42 in all.
    """
    s, a, q = to_decimal(noise), to_decimal(order), to_decimal(rate)
    s2 = s * s
    height = min(3 * s2, Decimal("13.7") * s)
    h = 2 * pi(60) * height / (height * height / (2 * s2) + 94)
    left = -14 * s
    right = a + (196 * s2 + a * (a - 1)).sqrt()
    points = (right - left) / h
    if points > _POINTS_MAX:
        return INFINITY

    ratio, step = ((2 * left - 1) / (2 * s2)).exp(), (h / s2).exp()
    x, total = left, Decimal(0)
    for _ in range(int(points) + 2):
        total += (a * (1 - q + q * ratio).ln() - x * x / (2 * s2)).exp()
        x += h
        ratio *= step
    mean = total * h / (s * (2 * pi(60)).sqrt())
    return ((mean + Decimal("1e-42")) * (1 + Decimal("1e-40"))).ln() / (a - 1)
