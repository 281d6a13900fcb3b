"""The laws of discrete noise, term by term, and draws from them that can be repeated.

Slow and obvious: probabilities are summed in floats over all values that matter. Nobody
may use these draws for privacy: they are seeded, and floats are not exact.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Draws = NDArray[np.int64]


@lru_cache(maxsize=64)
def law(noise: str, scale: Fraction) -> tuple[int, list[float]]:
    """Return the largest value that matters, and the probabilities of -it to it."""
    b = float(scale)
    most = math.ceil(b * (50 if noise == "laplace" else 12)) + 10

    def weight(k: int) -> float:
        return math.exp(-abs(k) / b if noise == "laplace" else -k * k / (2 * b * b))

    weights = [weight(k) for k in range(-most, most + 1)]
    whole = math.fsum(weights)
    return most, [one / whole for one in weights]


def outside(noise: str, scale: Fraction, within: int) -> float:
    """Return the probability that noise lies outside -within to within."""
    most, chances = law(noise, scale)
    return math.fsum(chances[: max(0, most - within)]) * 2


def drawn(noise: str, scale: Fraction, number: int, rng: np.random.Generator) -> Draws:
    """Return draws from a law, by its distribution function."""
    most, chances = law(noise, scale)
    up_to = np.cumsum(chances)
    places = np.searchsorted(up_to, rng.random(number) * up_to[-1], side="right")
    found: Draws = np.minimum(places, 2 * most).astype(np.int64) - most
    return found


def of_sum(
    noise: str, scale: Fraction, weights: list[int]
) -> tuple[int, NDArray[np.float64]]:
    """Return the largest value of a sum of weighted draws, and its probabilities."""
    most, chances = law(noise, scale)
    found, total = np.array([1.0]), 0
    for weight in weights:
        spread = np.zeros(2 * most * weight + 1)
        spread[::weight] = chances
        found, total = np.convolve(found, spread), total + most * weight
    return total, found
