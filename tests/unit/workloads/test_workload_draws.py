"""Random draws: distributed as said, in streams of their own, the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import mpmath
import numpy as np
import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.core.errors import Code, InputError
from modicum.workloads.random_draws import (
    BETAS,
    SEED_MAX,
    UNIFORMS_PER_WIDTH,
    Reals,
    beta_quarters,
    numbers_below,
    stream,
    waits,
)

COUNT = 20_000
#: The distance of a sample of this size exceeds it once in ten million times.
KS_MOST = 2.9 / COUNT**0.5
SEEDS = st.integers(0, SEED_MAX)


def distance(sample: Reals, below: Callable[[float], float]) -> float:
    """Return the Kolmogorov-Smirnov distance of a sample from a distribution."""
    ordered = np.sort(sample)
    steps = np.linspace(0, 1, 101)
    checked = ordered[(steps * (len(ordered) - 1)).astype(int)]
    expected = np.array([float(below(float(x))) for x in checked])
    at_most = np.searchsorted(ordered, checked, side="right") / len(ordered)
    return float(np.abs(at_most - expected).max())


def beta(a: float, b: float, x: float) -> float:
    return float(mpmath.betainc(a, b, 0, x, regularized=True))


@pytest.mark.parametrize(
    ("name", "a", "b"), [("1,10", 1, 10), ("1,1/2", 1, 0.5), ("2,2", 2, 2)]
)
def test_widths_have_their_distribution(name: str, a: float, b: float) -> None:
    uniforms = stream(1, 2, "test").random((COUNT, UNIFORMS_PER_WIDTH))
    sample = BETAS[name](uniforms)
    assert distance(sample, partial(beta, a, b)) < KS_MOST
    assert distance(sample, partial(beta, a, b * 1.1)) > KS_MOST  # It would show.


def test_appreciation_has_its_distribution() -> None:
    sample = beta_quarters(stream(3, 0, "test"), COUNT)
    assert ((sample >= 0) & (sample <= 1)).all()
    assert distance(sample, partial(beta, 0.25, 0.25)) < KS_MOST
    assert distance(sample, partial(beta, 0.25, 0.3)) > KS_MOST


def test_waits_have_their_distribution() -> None:
    mean = 1_200_000_000
    sample = waits(stream(4, 0, "test").random(COUNT), mean)
    assert sample.min() >= 0
    assert distance(sample.astype(float), lambda x: -np.expm1(-x / mean)) < KS_MOST


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 10**12))
@settings(max_examples=examples(200), deadline=None)
def test_a_number_is_below_its_bound(uniform: float, bound: int) -> None:
    (found,) = numbers_below(np.array([uniform]), bound)
    assert 0 <= found < bound


def test_numbers_are_equally_likely() -> None:
    counts = np.bincount(numbers_below(stream(5, 0, "test").random(COUNT), 6))
    expected = COUNT / 6
    assert ((counts - expected) ** 2 / expected).sum() < 40  # Chi-square, 5 degrees.


@given(SEEDS, SEEDS, st.text(max_size=9))
@settings(max_examples=examples(60), deadline=None)
def test_a_stream_is_the_same_again(seed: int, repetition: int, role: str) -> None:
    one, again = (stream(seed, repetition, role).random(5) for _ in range(2))
    assert one.tolist() == again.tolist()
    others = [
        stream(seed ^ 1, repetition, role),
        stream(seed, repetition ^ 1, role),
        stream(seed, repetition, role + "s"),
    ]
    assert all(other.random() != one[0] for other in others)


def test_numbers_of_different_lengths_make_different_streams() -> None:
    drawn = {stream(*key, "x").random() for key in [(1, 11), (11, 1), (111, 0)]}
    assert len(drawn) == 3


@given(SEEDS, st.integers(0, 300), st.integers(0, 300))
@settings(max_examples=examples(60), deadline=None)
def test_more_numbers_begin_with_fewer(seed: int, few: int, more: int) -> None:
    short = beta_quarters(stream(seed, 0, "x"), few)
    long = beta_quarters(stream(seed, 0, "x"), few + more)
    assert long[:few].tolist() == short.tolist()


def test_the_generator_is_the_one_that_never_changes() -> None:
    """NumPy promises the same bits for PCG64; here they are, as numbers below 1."""
    drawn = stream(42, 0, "golden").random(3).tolist()
    assert drawn == [0.0399951490386945, 0.35183530766525095, 0.8029532704451926]


@pytest.mark.parametrize("numbers", [(-1, 0), (0, -1), (SEED_MAX + 1, 0)])
def test_a_seed_out_of_its_range_is_refused(numbers: tuple[int, int]) -> None:
    with pytest.raises(InputError) as caught:
        stream(*numbers, "x")
    assert caught.value.code is Code.OUT_OF_RANGE
