"""Gaussian noise on the integers."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from modicum.accounting.amounts import INFINITY
from modicum.accounting.argument_ranges import (
    require_above_zero,
    require_at_least_zero,
)
from modicum.accounting.curves import Curve, concentrated
from modicum.accounting.mechanisms.gaussian import SLIPS, gaussian_rho
from modicum.accounting.mechanisms.kind import Kind, Noise, change, noise_size
from modicum.accounting.privacy_loss.pairs import discrete_gaussian_pair


@lru_cache(maxsize=4096)
def discrete_gaussian(*, sensitivity_l2: Fraction, sigma: Fraction) -> Curve:
    """Return the curve of adding discrete Gaussian noise to integers.

    Args:
        sensitivity_l2: Largest L2 change of the integer answers between neighbors,
            in steps of the noise, >= 0.
        sigma: The noise is k with a probability proportional to
            exp(-k**2 / (2 sigma**2)), independently in each coordinate; in steps of
            the noise, > 0.

    Returns:
        rho = sensitivity_l2**2 / (2 sigma**2), as for continuous noise, and
        alpha*rho at each order. mu is infinite: discrete Gaussian noise is not
        known to be Gaussian-DP. Pure eps is infinite.

    Raises:
        InputError: If the sensitivity is negative or sigma is not above 0.

    Neighboring relation:
        That of the L2 sensitivity.

    Source:
        Canonne, Kamath & Steinke 2020, Thm 4 (arXiv:2004.00010), for any integer
        shift; the divergences of independent coordinates add up.

    Examples:
        >>> curve = discrete_gaussian(sensitivity_l2=Fraction(1), sigma=Fraction(10))
        >>> curve.rho, curve.mu2
        (Fraction(1, 200), Decimal('Infinity'))
    """
    require_at_least_zero("the sensitivity", sensitivity_l2)
    require_above_zero("sigma", sigma)
    rho = gaussian_rho(sensitivity_l2=sensitivity_l2, sigma=sigma)
    return concentrated(rho, mu2=INFINITY)


KINDS = (
    Kind(
        "discrete-gaussian",
        (noise_size("sigma", "parameter of the noise"), change("L2")),
        lambda v: discrete_gaussian(sensitivity_l2=v["sensitivity"], sigma=v["sigma"]),
        norm="l2",
        measure="rho",
        target="sigma",
        slips=SLIPS,
        noise=Noise("gaussian", "sigma"),
        pairs=lambda v: discrete_gaussian_pair(v["sensitivity"], v["sigma"]),
    ),
)
