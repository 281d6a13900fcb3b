"""Noise for private choices, from OpenDP."""

from __future__ import annotations

from fractions import Fraction

from modicum.core.rationals import brief
from modicum.engines.noise import SCALE_MAX, NoiseSampler
from modicum.risk.arguments import argument, mistake


class OpenDpDraws:
    """Draws by OpenDP's discrete Laplace sampler; a `Draws` of `modicum.risk`."""

    def __init__(self) -> None:
        self._sampler = NoiseSampler()

    def laplace(self, scale: Fraction) -> int:
        """Return a fresh draw of discrete Laplace noise."""
        must_be_drawable(scale)
        return self._sampler.add("laplace", _held(scale), [0])[0]


def must_be_drawable(scale: Fraction) -> None:
    """Refuse noise that is too large to be drawn."""
    if scale > SCALE_MAX:
        raise mistake(
            f"noise of scale {brief(scale)} is too large to be drawn; the largest is"
            f" {SCALE_MAX}",
            f"give a larger {argument('eps_select')}",
        )


def _held(scale: Fraction) -> Fraction:
    """Return the least float that is not below a number."""
    import math

    nearest = float(scale)
    up = nearest if Fraction(nearest) >= scale else math.nextafter(nearest, math.inf)
    return Fraction(up)
