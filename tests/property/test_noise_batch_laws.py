"""Noise in batches against its law, by very many draws; faults must be found.

Nobody can seed the sampler, so that a sound one may fail here by bad luck: with a
probability below one in a million for all tests of a run together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from budget import examples
from numpy.typing import NDArray
from oracle.noise_laws import law
from scipy.special import ndtr  # type: ignore[import-untyped]
from scipy.stats import binomtest, chi2  # type: ignore[import-untyped]

from modicum.engines.noise_batches import NoiseBatches

pytestmark = pytest.mark.soak

Draws = NDArray[np.int64]
Numbers = NDArray[np.float64]

NOISES = ("laplace", "gaussian")
#: Tiny, small, ordinary, of cells of 2, large, and very large.
SCALES = tuple(map(Fraction, (0.1, 0.7, 57.735, 131.25, 10.0**6, 2.0**40)))
#: A soak draws ten million.
DRAWS = 1_000_000
#: A sound sampler fails a test with this probability at most; there are 40 tests.
LUCK = 1e-6 / 40
#: Fewer draws are expected in no class: there, chi-square is as good as exact.
_EXPECTED_MIN = 200


def drawn(noise: str, scale: Fraction, number: int) -> Draws:
    found = [one for batch in NoiseBatches(noise, scale).draws(number) for one in batch]
    return np.array(found, dtype=np.int64)


def up_to(noise: str, scale: Fraction, borders: Draws) -> Numbers:
    """Return the probabilities of noise up to some numbers.

    The sum over a large Gaussian is its integral but for 1 / (24 scale²): the formula
    of Euler and Maclaurin.
    """
    size = np.where(borders < 0, -borders - 1, borders)
    if noise == "laplace":
        t = float(scale)
        tail = np.exp(-(size + 1) / t) / (1 + math.exp(-1 / t))
    elif scale < 10**5:
        most, chances = law(noise, scale)
        tails = np.append(np.cumsum(chances[::-1])[::-1], 0)
        tail = tails[np.minimum(size + 1 + most, 2 * most + 1)]
    else:
        tail = ndtr(-(size + 0.5) / float(scale))
    return np.where(borders < 0, tail, 1 - tail)


def fits(found: Draws, chances: Numbers) -> float:
    """Return how probable it is that counts are as far from their chances."""
    expected = chances * found.sum()
    assert expected.min() >= _EXPECTED_MIN
    moved = float(((found - expected) ** 2 / expected).sum())
    return float(chi2.sf(moved, len(found) - 1)) if len(found) > 1 else 1.0


def classes(noise: str, scale: Fraction, least: float) -> Draws:
    """Return borders of classes that have at least this probability."""
    t = float(scale)
    steps = np.arange(-800, 801) / 100 if t > 50 else np.arange(-60, 61) / t
    borders = np.unique(np.round(steps * t).astype(np.int64))
    kept: list[int] = []
    reached, below = 0.0, up_to(noise, scale, borders)
    for border, chance in zip(borders.tolist(), below.tolist(), strict=True):
        if chance - reached >= least and 1 - chance >= least:
            kept.append(border)
            reached = chance
    return np.array(kept, dtype=np.int64)


def law_fits(noise: str, scale: Fraction, draws: Draws) -> float:
    borders = classes(noise, scale, _EXPECTED_MIN / len(draws))
    chances = np.diff(up_to(noise, scale, borders), prepend=0, append=1)
    places = np.searchsorted(borders, draws, side="left")
    return fits(np.bincount(places, minlength=len(borders) + 1), chances)


def zeros_fit(noise: str, scale: Fraction, draws: Draws) -> float:
    """Return how well the number of zeros fits, exactly."""
    before, here = up_to(noise, scale, np.array([-1, 0], dtype=np.int64))
    hits = int((draws == 0).sum())
    return float(binomtest(hits, len(draws), here - before).pvalue)


def pairs_fit(noise: str, scale: Fraction, draws: Draws) -> float:
    """Return how well pairs of successive draws fit to independent ones."""
    pairs = len(draws) // 2
    borders = classes(noise, scale, (_EXPECTED_MIN / pairs) ** 0.5)
    chances = np.diff(up_to(noise, scale, borders), prepend=0, append=1)
    places = np.searchsorted(borders, draws[: 2 * pairs], side="left")
    both = places[::2] * len(chances) + places[1::2]
    together = np.outer(chances, chances).ravel()
    return fits(np.bincount(both, minlength=len(together)), together)


def low_digits_fit(draws: Draws) -> float:
    """Return how well the last digits of far more widely spread draws are uniform."""
    return fits(np.bincount(draws & 63, minlength=64), np.full(64, 1 / 64))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("scale", SCALES)
def test_very_many_draws_follow_the_law(noise: str, scale: Fraction) -> None:
    draws = drawn(noise, scale, examples(DRAWS))
    assert law_fits(noise, scale, draws) > LUCK
    assert zeros_fit(noise, scale, draws) > LUCK
    assert pairs_fit(noise, scale, draws) > LUCK
    if scale > 10**5:
        assert low_digits_fit(draws) > LUCK


# --- faults ---------------------------------------------------------------------------

Fault = Callable[[Draws], Draws]


def _mostly_even(draws: Draws) -> Draws:
    hit = np.arange(len(draws)) % 10 == 0
    return np.where(hit, draws & ~1, draws)


def _too_far(draws: Draws) -> Draws:
    return np.round(draws * 1.03).astype(np.int64)


def _moved(draws: Draws) -> Draws:
    return draws + 3


def _repeated(draws: Draws) -> Draws:
    return np.repeat(draws[: len(draws) // 2], 2)


@pytest.mark.parametrize("noise", NOISES)
def test_faults_do_not_fit(noise: str) -> None:
    ordinary, large = SCALES[2], SCALES[4]
    draws, far = drawn(noise, ordinary, DRAWS), drawn(noise, large, DRAWS)
    assert law_fits(noise, ordinary, _moved(draws)) < LUCK
    assert law_fits(noise, ordinary, _mostly_even(draws)) < LUCK
    assert law_fits(noise, large, _too_far(far)) < LUCK
    assert zeros_fit(noise, ordinary, _mostly_even(draws)) < LUCK
    assert pairs_fit(noise, ordinary, _repeated(draws)) < LUCK
    assert low_digits_fit(_mostly_even(far)) < LUCK
