"""Additive noise: Laplace and Gaussian."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.curves import NOTHING, Curve
from modicum.accounting.decimals import precise, to_decimal
from modicum.accounting.mechanisms.declared_guarantee import (
    EPS_LARGE,
    concentrated,
    pure_curve,
    pure_mu2,
)


@lru_cache(maxsize=4096)
@precise
def laplace(*, sensitivity_l1: Fraction, scale: Fraction) -> Curve:
    """Return the curve of adding Laplace noise.

    Args:
        sensitivity_l1: Largest L1 change of the answer between neighbors, in units
            of the answer, >= 0.
        scale: Scale b of the noise, in units of the answer, > 0.

    Returns:
        Every measure; delta is 0.

    Neighboring relation:
        The one `sensitivity_l1` holds under.

    Source:
        Mironov 2017, Prop. 6 (arXiv:1702.07476) for the Renyi curve; its limit at
        order 1, eps + exp(-eps) - 1, is the tight rho by Harrison & Manurangsi 2026
        (arXiv:2510.25746). For several coordinates with L1 change eps in all, both
        are convex in eps and 0 at 0, so one coordinate is the worst case. mu as for
        any pure mechanism.

    Examples:
        >>> curve = laplace(sensitivity_l1=Fraction(1), scale=Fraction(2))
        >>> curve.loss().coordinates[:2]
        (500000000000, 106530659713)
    """
    eps = sensitivity_l1 / scale
    if eps == 0:
        return NOTHING
    if eps > EPS_LARGE:
        return pure_curve(eps)
    e = to_decimal(eps)
    return Curve(
        eps, e + (-e).exp() - 1, pure_mu2(e), lambda order: _laplace_rdp(e, order)
    )


def _laplace_rdp(e: Decimal, order: Fraction) -> Decimal:
    a = to_decimal(order)
    inner = (a + (a - 1) * (-(2 * a - 1) * e).exp()) / (2 * a - 1)
    return e + inner.ln() / (a - 1)


@lru_cache(maxsize=4096)
def gaussian(*, rho: Fraction) -> Curve:
    """Return the curve of adding Gaussian noise.

    Args:
        rho: sensitivity_l2**2 / (2 sigma**2), >= 0.

    Returns:
        rho, mu**2 = 2 rho and alpha*rho at each order; pure eps is infinite.

    Neighboring relation:
        The one the L2 sensitivity holds under.

    Source:
        Bun & Steinke 2016, Prop. 1.6 (arXiv:1605.02065); Mironov 2017, Prop. 7
        (arXiv:1702.07476); Dong, Roth & Su 2022, Thm 2.7 (arXiv:1905.02383).

    Examples:
        >>> gaussian(rho=Fraction("0.5")).loss().coordinates[1:3]
        (500000000000, 1000000000000)
    """
    return concentrated(rho, mu2=2 * rho)


def gaussian_rho(*, sensitivity_l2: Fraction, sigma: Fraction) -> Fraction:
    """Return the exact rho of Gaussian noise.

    Args:
        sensitivity_l2: Largest L2 change of the answer between neighbors, in units
            of the answer, >= 0.
        sigma: Standard deviation of the noise, in units of the answer, > 0.

    Examples:
        >>> gaussian_rho(sensitivity_l2=Fraction(1), sigma=Fraction(10))
        Fraction(1, 200)
    """
    return sensitivity_l2**2 / (2 * sigma**2)
