"""Samples when an instance is replaced by another, or changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.amounts import (
    INFINITY,
    Amount,
    decimal_of,
    is_infinite,
    times,
)
from modicum.accounting.amplification.bounds import (
    ORDER_MAX,
    amplified,
    amplified_eps,
    between_integers,
    growth,
)
from modicum.accounting.argument_ranges import (
    require_at_least_zero,
    require_probability,
)
from modicum.accounting.curves import EPS_LARGE, NOTHING, Curve, pure_curve
from modicum.accounting.decimals import precise, to_decimal


@precise
def poisson_substitute(
    *,
    eps_add_remove: Fraction | None,
    eps_substitute: Fraction,
    sampling_rate: Fraction,
) -> Curve:
    """Return the curve for changing an instance that a Poisson sample may contain.

    Args:
        eps_add_remove: The mechanism's pure eps for adding or removing the sampled
            instance as a whole; None if none is proven.
        eps_substitute: Its pure eps for the change in question: another instance in
            its place, or other rows of a smaller unit inside it. More than twice
            `eps_add_remove` counts as twice.
        sampling_rate: Probability that the instance is in the sample.

    Returns:
        The curve of any mechanism with eps = ln((1 - q + q exp(u)) / (1 - q + q exp(u -
        b))), for u the first and b the second eps. Without the first, nothing is
        amplified: the mechanism may reveal that the instance is in the sample, and then
        b is lost.

    Raises:
        InputError: If an eps is negative or the rate is not a probability.

    Neighboring relation:
        The change that `eps_substitute` is proven for.

    Source:
        Derived: of x = P/Q and y = P'/Q, for Q without the instance, the constraints
        x <= exp(u), y >= exp(-u), x/y <= exp(b) leave the ratio of 1 - q + q x to
        1 - q + q y largest at x = exp(u), y = exp(u - b).

    Examples:
        >>> curve = poisson_substitute(
        ...     eps_add_remove=Fraction(1), eps_substitute=Fraction(2),
        ...     sampling_rate=Fraction(1, 100),
        ... )
        >>> f"{curve.eps:.9g}"
        '0.0233781322'
    """
    require_probability("the sampling rate", sampling_rate)
    require_at_least_zero("eps", eps_substitute)
    if sampling_rate == 0:
        return NOTHING
    if eps_add_remove is None:
        return pure_curve(eps_substitute)
    require_at_least_zero("eps", eps_add_remove)
    change = min(eps_substitute, 2 * eps_add_remove)
    if change == 0 or change > EPS_LARGE or eps_add_remove > EPS_LARGE:
        return pure_curve(change)
    q, u, b = (to_decimal(v) for v in (sampling_rate, eps_add_remove, change))
    out = (1 - q) * (-u).exp()
    return pure_curve(((out + q) / (out + q * (-b).exp())).ln())


@lru_cache(maxsize=256)
@precise
def without_replacement(base: Curve, *, sampling_rate: Fraction) -> Curve:
    """Return the curve of any mechanism on a sample of fixed size.

    Args:
        base: The mechanism's curve under substitution of one instance.
        sampling_rate: Size of the sample over the public size of the data, from 0
            to 1; every sample of that size is equally likely.

    Returns:
        The least of the bounds by all Renyi orders, by pure eps, and without
        sampling. If `base` has a delta and a finite eps, only the pure bound, with
        the rate times that delta.

    Raises:
        InputError: If the rate is not a probability.

    Neighboring relation:
        Substitution of one instance, before and after: the size stays the same.

    Source:
        Wang, Balle & Kasiviswanathan 2019, Thm 9 (arXiv:1808.00087), for integer
        orders from 2; Balle, Barthe & Gaboardi 2018, Thm 9 (arXiv:1807.01647).

    Examples:
        >>> from modicum.accounting.mechanisms import gaussian
        >>> sampled = without_replacement(
        ...     gaussian(rho=Fraction(1, 8)), sampling_rate=Fraction(1, 100)
        ... )
        >>> f"{sampled.at(Fraction(8)):.9g}"
        '0.000488393042'
    """
    require_probability("the sampling rate", sampling_rate)
    if base.delta and 0 < sampling_rate < 1:
        # The theorem compares three outputs, and a delta is known of each pair only.
        if is_infinite(base.eps):
            return amplified(base, sampling_rate, lambda _: INFINITY)
        pure = amplified_eps(base.eps, sampling_rate)
        return pure_curve(pure, sampling_rate * base.delta)
    capped = _ternary_caps(base.eps)

    @lru_cache(maxsize=ORDER_MAX)
    def grown(power: int) -> Decimal:
        divergence = base.at(Fraction(power))
        bounded = growth(times(power - 1, divergence))
        if power > 2:
            return bounded * capped(power)
        return min(4 * (bounded - 1), bounded * capped(2))

    @lru_cache(maxsize=ORDER_MAX)
    def at_integer(order: int) -> Amount:
        return _log_one_plus(sampling_rate, order, map(grown, range(2, order + 1)))

    return amplified(
        base, sampling_rate, lambda order: between_integers(at_integer, order)
    )


def _ternary_caps(eps: Amount) -> Callable[[int], Decimal]:
    """Return min(2, (exp(eps) - 1)^j) as a function of j."""
    if eps > 1:  # (exp(1) - 1)^2 exceeds 2 already.
        return lambda _: Decimal(2)
    excess = decimal_of(eps).exp() - 1
    return lambda power: min(Decimal(2), excess**power)


def _log_one_plus(rate: Fraction, order: int, summands: Iterable[Decimal]) -> Amount:
    """Return ln(1 + sum of C(n,j) q^j G(j)) / (n-1) for G(2), G(3), ..., G(n)."""
    q = to_decimal(rate)
    binomial, total = q * order, Decimal(1)
    for j, grown in zip(range(2, order + 1), summands, strict=True):
        if grown == INFINITY:
            return INFINITY
        binomial = binomial * q * (order - j + 1) / j
        total += binomial * grown
    return total.ln() / (order - 1)
