"""Scales of noise: as little as a loss allows, exact in the numbers of a sampler."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Final

#: A scale has so many binary digits, so that a float holds it exactly.
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
        value: A number above 0; one that is not below what is meant.
        squared: The square of what is meant, if it is no fraction.
    """
    power = value.numerator.bit_length() - value.denominator.bit_length() - SCALE_BITS
    step = Fraction(2) ** power
    if value > step * 2**SCALE_BITS:
        step *= 2
    steps = -(-value // step)
    below = (steps - 1) * step
    if squared is not None and below * below >= squared:
        steps -= 1  # What was given lay a little above what is meant.
    return steps * step
