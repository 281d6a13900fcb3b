"""Poisson samples: every instance is in with the same probability, independently.

Below, P and Q are the output's distributions with and without the instance, L is
P/Q, and g = 1 - q + q L is the ratio after sampling at rate q. Sampling turns the
pair (P, Q) into (g Q, Q). Both directions count. Adding, E_Q[g^a], is a sum over
powers of L. Removing, E_Q[g^(1-a)], is bounded by it for every pair that a mirror
swaps, such as a noise density and its shift:

    Then h(L) = f(L) + L f(1/L) with f = g^a - g^(1-a) has E_Q[h(L)] = 2 E_Q[f(L)],
    so it is enough that h >= 0; and as h(1/L) = h(L)/L, only L > 1 matters. Let
    u = 1/g(1/L), F(x) = x^a - x^(1-a). F is convex for x >= 1 and F(1) = 0, so
    F(x)/(x-1) does not fall. As u <= L^q <= g by the weighted means of 1 and L,
    F(g)/F(u) >= (g-1)/(u-1) = L/u, which says f(L) >= -L f(1/L).
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.amounts import Amount, decimal_of, least, times
from modicum.accounting.amplification.bounds import (
    ORDER_MAX,
    amplified,
    between_integers,
    growth,
    log_mean_power,
)
from modicum.accounting.argument_ranges import (
    require_at_least_zero,
    require_probability,
)
from modicum.accounting.curves import EPS_LARGE, Curve, composed
from modicum.accounting.decimals import precise, to_decimal

# Maximum number of digits of a rate, beyond which it is rounded up.
_RATE_BITS = 256
_RATE_DIGITS = Decimal("1e-40")


@lru_cache(maxsize=256)
@precise
def poisson(base: Curve, *, sampling_rate: Fraction) -> Curve:
    """Return the curve of any mechanism on a Poisson sample.

    Args:
        base: The mechanism's curve under add/remove.
        sampling_rate: Probability that an instance of the unit is in the sample,
            the same for all, each independently; from 0 to 1.

    Returns:
        The least of the bounds by all Renyi orders, by pure eps, and without
        sampling. delta is the rate times that of `base`.

    Raises:
        InputError: If the rate is not a probability.

    Neighboring relation:
        Add/remove, before and after. For substitution see `poisson_substitute`.

    Source:
        Zhu & Wang 2019, Thm 5 (ICML, PMLR 97), for integer orders from 2; Balle,
        Barthe & Gaboardi 2018, Thm 8 (arXiv:1807.01647); sampling never hurts, by
        joint quasi-convexity (van Erven & Harremoes 2014, Thm 13).

    Examples:
        >>> from modicum.accounting.mechanisms import declared_pure
        >>> tenth = Fraction(1, 10)
        >>> sampled = poisson(declared_pure(eps=Fraction(1)), sampling_rate=tenth)
        >>> f"{sampled.eps:.9g}"
        '0.158565079'
    """
    return _on_poisson_sample(base, sampling_rate, removal=3)


def _on_poisson_sample(base: Curve, rate: Fraction, *, removal: int) -> Curve:
    """Return the sampled curve; `removal` covers the direction that is not a sum.

    Zhu & Wang's theorem has the factor 3 on all powers from 3 on. It is 1 for mirrored
    pairs only, which only `laplace.poisson_laplace` uses.
    """
    require_probability("the sampling rate", rate)

    @lru_cache(maxsize=ORDER_MAX)
    def grown(power: int) -> Decimal:
        factor = 1 if power == 2 else removal
        return factor * growth(times(power - 1, base.at(Fraction(power))))

    @lru_cache(maxsize=ORDER_MAX)
    def at_integer(order: int) -> Amount:
        return log_mean_power(rate, order, map(grown, range(2, order + 1)))

    def renyi(order: Fraction) -> Amount:
        by_eps = _sampled_response(base.eps, rate, order)
        return least(by_eps, between_integers(at_integer, order))

    return amplified(base, rate, renyi)


def _sampled_response(eps: Amount, rate: Fraction, order: Fraction) -> Amount:
    """Return the divergence of randomized response on a Poisson sample.

    Every pair of an eps-DP mechanism is a post-processing of randomized response
    (Kairouz, Oh & Viswanath 2015), and so are their mixtures. A mirror swaps its
    two answers, so adding is the worse direction.
    """
    if eps == 0 or eps > EPS_LARGE:
        return eps
    e, q, a = decimal_of(eps), to_decimal(rate), to_decimal(order)
    shrink = (-e).exp()
    up = e + (q + (1 - q) * shrink).ln()
    down = (1 - q * (1 - shrink)).ln()
    # Of E_Q[g^a] = (exp(a up) + exp(e + a down)) / (1 + exp(e)), take out
    # exp((a-1) up), so that nothing overflows.
    weight_up = (up - e).exp() / (1 + shrink)
    weight_down = down.exp() / (1 + shrink)
    rest = weight_up + weight_down * ((a - 1) * (down - up)).exp()
    return up + rest.ln() / (a - 1)


@precise
def shared_sample(
    parts: Iterable[tuple[Curve, int]], *, sampling_rate: Fraction
) -> Curve:
    """Return the curve of several mechanisms that read one Poisson sample.

    They are composed first and amplified once. Amplifying each and adding up would be
    wrong: once one answer reveals that an instance is in the sample, it is known to be
    in it for all.

    Args:
        parts: Curves under add/remove, each with a count >= 0.
        sampling_rate: Probability that an instance of the unit is in the sample.

    Raises:
        InputError: If the rate is not a probability.

    Neighboring relation:
        Add/remove, before and after.

    Source:
        As for `curves.composed` and `poisson`.

    Examples:
        >>> from modicum.accounting.mechanisms import declared_pure
        >>> half = declared_pure(eps=Fraction(1, 2))
        >>> shared = shared_sample([(half, 2)], sampling_rate=Fraction(1, 10))
        >>> f"{shared.eps:.9g}"
        '0.158565079'
    """
    return poisson(composed(parts), sampling_rate=sampling_rate)


@precise
def unit_level_rate(*, row_rate: Fraction, rows: int) -> Fraction:
    """Return the probability that a sample of rows contains any row of one unit.

    A sample of rows is not a Poisson sample of units: it may contain several rows of
    one unit. The loss of one row, amplified at this rate or at that of the rows,
    says nothing about the unit. Amplify at this rate only a loss proven for any rows
    of the unit, up to all of them.

    Args:
        row_rate: Probability that a row is in the sample, each independently.
        rows: Largest number of rows of one unit, >= 0; enforced before sampling.

    Returns:
        1 - (1 - row_rate)**rows, rounded up where its digits are very many.

    Raises:
        InputError: If the rate is not a probability or `rows` is negative.

    Neighboring relation:
        Add/remove of a unit with at most `rows` rows.

    Source:
        Rows are drawn independently.

    Examples:
        >>> unit_level_rate(row_rate=Fraction(1, 10), rows=3)
        Fraction(271, 1000)
    """
    require_probability("the rate of rows", row_rate)
    require_at_least_zero("the number of rows", rows)
    if rows == 0 or row_rate in (0, 1):
        return row_rate if rows else Fraction(0)
    if row_rate.denominator.bit_length() * rows <= _RATE_BITS:
        return 1 - (1 - row_rate) ** rows
    none = (to_decimal(1 - row_rate).ln() * rows).exp()
    error = rows * Decimal("1e-55")  # The logarithm errs by less than 1e-55.
    rate = (1 - none + error).quantize(_RATE_DIGITS, ROUND_CEILING)
    return min(Fraction(1), Fraction(rate))
