"""Laplace noise on the integers."""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.argument_ranges import (
    require_above_zero,
    require_at_least_zero,
)
from modicum.accounting.curves import EPS_LARGE, NOTHING, Curve, pure_curve, pure_mu2
from modicum.accounting.decimals import precise, to_decimal
from modicum.accounting.mechanisms.kind import Kind, Noise, noise_size, whole_number
from modicum.accounting.mechanisms.laplace import SLIPS
from modicum.accounting.privacy_loss.pairs import discrete_laplace_pair

# 1 - exp(-1/scale) loses as many digits as the scale has; this many are added.
_DIGITS_MAX = 500


@lru_cache(maxsize=4096)
@precise
def discrete_laplace(*, sensitivity_l1: int, scale: Fraction) -> Curve:
    """Return the curve of adding discrete Laplace (two-sided geometric) noise.

    Args:
        sensitivity_l1: Largest L1 change of the integer answers between neighbors,
            in steps of the noise, an integer >= 0.
        scale: The noise is k with a probability proportional to exp(-abs(k)/scale);
            in steps of the noise, > 0.

    Returns:
        Every measure; delta is 0. The Renyi curve and rho are exact.

    Raises:
        InputError: If the sensitivity is negative or the scale is not above 0.

    Neighboring relation:
        That of `sensitivity_l1`.

    Source:
        Ghosh, Roughgarden & Sundararajan 2009 (arXiv:0811.2841) for the mechanism.
        The curve sums its geometric pieces; that rho is the curve's limit at order
        1 is proven beside the code. mu as for any pure mechanism.

    Examples:
        >>> curve = discrete_laplace(sensitivity_l1=1, scale=Fraction(1))
        >>> curve.loss().coordinates[:2]
        (1000000000000, 462117157261)
    """
    require_at_least_zero("the sensitivity", sensitivity_l1)
    require_above_zero("the scale", scale)
    eps = sensitivity_l1 / scale
    if eps == 0:
        return NOTHING
    digits = len(str(scale.numerator // scale.denominator))
    if eps > EPS_LARGE or digits > _DIGITS_MAX:
        return pure_curve(eps)

    # Let P be the noise, Q the noise shifted by s, t = exp(-1/scale), e = s/scale.
    # Left of 0, right of s and between, the summands of E_Q[(P/Q)^a] are geometric:
    #     E = p exp((a-1) e) + r exp(-a e),   p + r = 1,   p, r >= 0,
    #     r = t (1 - t^(2a-2)) / ((1 + t)(1 - t^(2a-1))).
    # p and r do not depend on s, so ln E is convex in s and 0 at s = 0: it rises
    # with s, and several coordinates cost at most as much as one with their sum.
    def renyi(order: Fraction) -> Decimal:
        with decimal.localcontext() as context:
            context.prec += digits
            return _divergence(to_decimal(eps), 1 / to_decimal(scale), order)

    with decimal.localcontext() as context:
        context.prec += digits
        rho = _divergence_at_one(to_decimal(eps), 1 / to_decimal(scale))
    return Curve(eps, rho, pure_mu2(to_decimal(eps)), renyi)


def _divergence(e: Decimal, step: Decimal, order: Fraction) -> Decimal:
    a = to_decimal(order)
    t = (-step).exp()
    falls = t * (1 - (-(2 * a - 2) * step).exp())
    falls /= (1 + t) * (1 - (-(2 * a - 1) * step).exp())
    return e + (1 - falls + falls * (-(2 * a - 1) * e).exp()).ln() / (a - 1)


def _divergence_at_one(e: Decimal, step: Decimal) -> Decimal:
    """Return the Kullback-Leibler divergence, which is also the least rho.

    Write D_a = K(a-1)/(a-1) and m = a - 1/2. exp(K) is a positive multiple of
    M(m) = x (z^s + z^-s) + sum of z^(s-2k) over 0 < k < s, with z = exp(m/scale)
    and x = 1/(1-t) >= 1. As a polynomial in y = z^2, times y - 1, it vanishes where
    y^s (x y - (x-1)) = x - (x-1) y. Since abs(x y - (x-1)) exceeds, equals or is
    below abs(x - (x-1) y) as abs(y) exceeds, equals or is below 1, all zeros have
    abs(y) = 1, so that m is imaginary. Then M, an even entire function of order 1,
    is M(0) times a product of factors 1 + m^2/c with c > 0 (Hadamard), and K is
    concave as a function of m^2. K is 0 at m^2 = 1/4, and its slope there is the
    divergence at order 1; so K(a-1) is at most that divergence times m^2 - 1/4
    = a (a-1), which says D_a <= a * D_1.
    """
    t = (-step).exp()
    return e - 2 * t * step / (1 - t * t) * (1 - (-e).exp())


KINDS = (
    Kind(
        "discrete-laplace",
        (
            noise_size("scale", "scale of the noise"),
            whole_number("sensitivity", "largest L1 change of the integer answers"),
        ),
        lambda v: discrete_laplace(
            sensitivity_l1=int(v["sensitivity"]), scale=v["scale"]
        ),
        norm="l1",
        measure="eps",
        slips=SLIPS,
        noise=Noise("laplace", "scale"),
        pairs=lambda v: discrete_laplace_pair(int(v["sensitivity"]), v["scale"]),
    ),
)
