"""Widths of noise, against its laws summed term by term."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.noise_laws import of_sum, outside

from modicum.query import intervals
from modicum.query.intervals import Draws, beyond, width, width_of_sum
from modicum.query.request import Noise

ERRORS = [Fraction(1, n) for n in (2, 4, 10, 20, 100, 1000, 10**6)]
NOISES: list[Noise] = ["gaussian", "laplace"]


@settings(max_examples=examples(150), deadline=None)
@given(
    noise=st.sampled_from(NOISES),
    scale=st.integers(1, 4000).map(lambda n: Fraction(n, 64)),
    error=st.fractions(Fraction(1, 10**6), Fraction(9, 10)),
)
def test_a_width_is_the_least(noise: Noise, scale: Fraction, error: Fraction) -> None:
    found = width(noise, scale, error)
    assert outside(noise, scale, found) <= float(error) * (1 + 1e-9)
    # A normal tail bounds large noise, and may be one step wider.
    spare = 1 if noise == "gaussian" and scale > 8 else 0
    if found > spare:
        assert outside(noise, scale, found - 1 - spare) > float(error) * (1 - 1e-9)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(
    "scale", [Fraction(1, 2), Fraction(7), Fraction(9), Fraction(60)]
)
def test_a_tail_is_never_told_too_small(noise: Noise, scale: Fraction) -> None:
    for within in range(int(5 * scale)):
        result, true = (
            float(beyond(noise, scale, within)),
            outside(noise, scale, within),
        )
        assert result >= true * (1 - 1e-9)
        if noise == "laplace" or scale <= 8:
            assert result <= true * (1 + 1e-9)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("error", ERRORS)
def test_tiny_and_huge_noise(noise: Noise, error: Fraction) -> None:
    assert width(noise, Fraction(1, 2**40), error) == 0
    huge, large = (
        width(noise, Fraction(2**50), error),
        width(noise, Fraction(2**20), error),
    )
    assert abs(huge / 2**30 - large) <= 2


def test_a_normal_width_is_that_of_the_tables() -> None:
    assert abs(width("gaussian", Fraction(10**6), Fraction(1, 20)) - 1_959_964) <= 1


@settings(max_examples=examples(60), deadline=None)
@given(
    noise=st.sampled_from(NOISES),
    scale=st.integers(1, 24).map(lambda n: Fraction(n, 4)),
    ones=st.integers(0, 4),
    heavy=st.integers(0, 3),
    weight=st.integers(2, 3),
    error=st.sampled_from(ERRORS),
)
def test_a_sum_strays_farther_more_rarely(
    noise: Noise, scale: Fraction, ones: int, heavy: int, weight: int, error: Fraction
) -> None:
    draws = (Draws(scale, Fraction(1), ones), Draws(scale, Fraction(weight), heavy))
    strays = width_of_sum(noise, draws, error)
    if ones + heavy == 0:
        assert strays == 0
        return
    most, chances = of_sum(noise, scale, [1] * ones + [weight] * heavy)
    values = np.arange(-most, most + 1)
    assert chances[values > float(strays)].sum() <= float(error) * (1 + 1e-9) + 1e-13
    # And it is of use: standard deviations away, as Chernoff's bound has it.
    deviation = sqrt(float(chances @ (values.astype(float) ** 2)))
    rare = -np.log(float(error))
    bound = sqrt(2 * rare) + (1.5 * rare if noise == "laplace" else 0)
    if scale >= 1:
        assert float(strays) <= 1.05 * deviation * bound + 1e-3


def test_of_one_draw_a_sum_is_not_narrower_than_its_tail() -> None:
    for noise in NOISES:
        draw = (Draws(Fraction(50), Fraction(1), 1),)
        one = width_of_sum(noise, draw, Fraction(1, 40))
        assert one >= width(noise, Fraction(50), Fraction(1, 20))


def test_many_kinds_of_draws_are_joined_without_a_narrower_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draws = tuple(
        Draws(Fraction(9 * number + 1), Fraction(1, number + 7), number % 3 + 1)
        for number in range(40)
    )
    error = Fraction(1, 40)
    joined = width_of_sum("laplace", draws, error)
    monkeypatch.setattr(intervals, "_DRAWS_MAX", len(draws))
    width_of_sum.cache_clear()
    each = width_of_sum("laplace", draws, error)
    width_of_sum.cache_clear()
    assert each <= joined <= each * Fraction(102, 100)
