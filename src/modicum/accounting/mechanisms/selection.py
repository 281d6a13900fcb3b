"""Mechanisms that choose one candidate, or the first one above a threshold."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from modicum.accounting.amounts import Amount, least, plus
from modicum.accounting.curves import NOTHING, Curve, composed
from modicum.accounting.decimals import precise, to_decimal
from modicum.accounting.mechanisms.argument_ranges import (
    require_above_zero,
    require_at_least_zero,
)
from modicum.accounting.mechanisms.declared_guarantee import (
    EPS_LARGE,
    pure_curve,
    pure_mu2,
    pure_rho,
)
from modicum.accounting.mechanisms.laplace_gaussian import laplace
from modicum.core.errors import Code, InputError, Problem

# Below this eps, alpha * eps**2 / 8 is the same number as the exact curve to more
# digits than are stored, and the exact one would lose too many.
_EPS_SMALL = Fraction(1, 10**12)


@lru_cache(maxsize=4096)
@precise
def exponential(*, eps: Fraction) -> Curve:
    """Return the curve of the exponential mechanism.

    Args:
        eps: The parameter: a candidate of score q has a probability proportional to
            exp(eps * q / (2 * sensitivity of the score)); >= 0.

    Returns:
        Every measure; delta is 0. The Renyi curve is the largest that any mechanism
        of bounded range `eps` has; rho is the lesser of eps**2/8 and that of any
        pure mechanism.

    Raises:
        InputError: If eps is negative.

    Neighboring relation:
        The one the score's sensitivity holds under.

    Source:
        McSherry & Talwar 2007 for eps. The mechanism has bounded range: Durfee &
        Rogers 2019 (arXiv:1905.04273); Dong, Durfee & Rogers 2020
        (arXiv:1909.13830). rho: Cesar & Rogers 2021 (arXiv:2004.07223). The Renyi
        curve is derived beside the code.

    Examples:
        >>> exponential(eps=Fraction(1)).loss().coordinates[:2]
        (1000000000000, 125000000000)
    """
    require_at_least_zero("eps", eps)
    if eps == 0:
        return NOTHING
    if eps > EPS_LARGE:
        return pure_curve(eps)
    e = to_decimal(eps)
    square = eps * eps / 8
    renyi = (
        (lambda order: order * square)
        if eps < _EPS_SMALL
        else (lambda order: _bounded_range_rdp(e, order))
    )
    return Curve(eps, least(square, pure_rho(e)), pure_mu2(e), renyi)


def _bounded_range_rdp(e: Decimal, order: Fraction) -> Decimal:
    # All ratios P/Q lie in [h/E, h] for some h, where E = exp(eps), and average to
    # 1 under Q. x^a is convex, so E_Q[(P/Q)^a] is largest if only both ends occur:
    #     h^(a-1) (A - B h) / C,  A = 1 - E^-a,  B = 1/E - E^-a,  C = 1 - 1/E.
    # Over all h, that is largest at h = (a-1) A / (a B), where A - B h = A/a.
    # Both ends occur in an actual pair, so the curve is tight for the class.
    a = to_decimal(order)
    near = 1 - (-a * e).exp()
    shrink = 1 - (-(a - 1) * e).exp()
    ends = 1 - (-e).exp()
    ln_h = e + ((a - 1) * near / (a * shrink)).ln()
    return ln_h + (near / (a * ends)).ln() / (a - 1)


@precise
def report_noisy_max(
    *, eps: Fraction, noise: Literal["gumbel", "exponential", "laplace"]
) -> Curve:
    """Return the curve of naming the candidate with the largest noisy score.

    Args:
        eps: The noise has scale 2 * (sensitivity of one score) / eps; >= 0.
        noise: ``gumbel`` is the exponential mechanism. ``exponential`` (which is
            permute-and-flip) and ``laplace`` have no bounded range: pure DP only.

    Returns:
        Every measure; delta is 0. Only the name is published, never the score.

    Raises:
        InputError: If eps is negative or the noise is none of these.

    Neighboring relation:
        The one the scores' sensitivity holds under.

    Source:
        Durfee & Rogers 2019 (arXiv:1905.04273) for Gumbel noise; McKenna & Sheldon
        2020 (arXiv:2010.12603) and Ding et al. 2021 (arXiv:2105.07260) for
        exponential noise; Dwork & Roth 2014, Claim 3.9, for Laplace noise, at twice
        the scale that counts need.

    Examples:
        >>> report_noisy_max(eps=Fraction(1), noise="gumbel").rho
        Fraction(1, 8)
        >>> report_noisy_max(eps=Fraction(1), noise="laplace").rho > Fraction(2, 5)
        True
    """
    require_at_least_zero("eps", eps)
    if noise == "gumbel":
        return exponential(eps=eps)
    if noise in ("exponential", "laplace"):
        return pure_curve(eps)
    raise InputError(
        Problem(
            Code.UNKNOWN_CHOICE,
            f"the noise is {noise!r}",
            help="the noise is gumbel, exponential or laplace",
        )
    )


@lru_cache(maxsize=4096)
@precise
def sparse_vector(
    *, eps_threshold: Fraction, eps_queries: Fraction, positives: int
) -> Curve:
    """Return the curve of the sparse vector technique with fresh thresholds.

    Args:
        eps_threshold: The threshold's noise is Laplace of scale
            sensitivity / eps_threshold, drawn anew after each positive; > 0.
        eps_queries: The queries' noise is Laplace of scale
            2 * sensitivity / eps_queries; > 0.
        positives: The largest number of positive answers before it stops, >= 1. All
            of them are charged, whether they come or not.

    Returns:
        `positives` times the loss up to the first positive; delta is 0. Negative
        answers cost nothing, however many.

    Raises:
        InputError: If an argument is not above 0.

    Neighboring relation:
        The one each query's sensitivity holds under.

    Source:
        Lyu, Su & Li 2017, Thm 4 (arXiv:1603.01699), for pure eps. Renyi: shifting
        the threshold by one sensitivity keeps every negative answer as likely and
        costs the positive one exp(eps_queries); what remains is a post-processing
        of the noisy threshold (as in Zhu & Wang 2020).

    Examples:
        >>> half = Fraction(1, 2)
        >>> curve = sparse_vector(eps_threshold=half, eps_queries=half, positives=3)
        >>> curve.eps
        Fraction(3, 1)
    """
    require_above_zero("eps of the threshold", eps_threshold)
    require_above_zero("eps of the queries", eps_queries)
    require_above_zero("the number of positives", positives)
    threshold = laplace(sensitivity_l1=eps_threshold, scale=Fraction(1))
    pure = pure_curve(eps_threshold + eps_queries)

    def renyi(order: Fraction) -> Amount:
        return least(plus(threshold.at(order), eps_queries), pure.at(order))

    one = Curve(pure.eps, pure.rho, pure.mu2, renyi)
    return composed([(one, positives)])


@lru_cache(maxsize=4096)
def sparse_vector_one_threshold(
    *, eps_threshold: Fraction, eps_queries: Fraction
) -> Curve:
    """Return the curve of the sparse vector technique with one threshold for all.

    Args:
        eps_threshold: The threshold's noise is Laplace of scale
            sensitivity / eps_threshold, drawn once; > 0.
        eps_queries: The queries' noise is Laplace of scale
            2 * positives * sensitivity / eps_queries, for the largest number of
            positive answers before it stops; > 0.

    Returns:
        The curve of any pure mechanism, at the sum of both; nothing better is
        proven. delta is 0.

    Raises:
        InputError: If an argument is not above 0.

    Neighboring relation:
        The one each query's sensitivity holds under.

    Source:
        Lyu, Su & Li 2017, Thm 4 (arXiv:1603.01699).

    Examples:
        >>> half = Fraction(1, 2)
        >>> sparse_vector_one_threshold(eps_threshold=half, eps_queries=half).eps
        Fraction(1, 1)
    """
    require_above_zero("eps of the threshold", eps_threshold)
    require_above_zero("eps of the queries", eps_queries)
    return pure_curve(eps_threshold + eps_queries)
