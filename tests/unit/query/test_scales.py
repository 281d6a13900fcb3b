"""Scales of noise: the least of twenty binary digits that a loss allows."""

from __future__ import annotations

from fractions import Fraction

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.query.intervals import (
    SCALE_BITS,
    gaussian_scale,
    laplace_scale,
    rounded_up,
)

LOSSES = st.fractions(Fraction(1, 10**9), 10**3, max_denominator=10**12)


def digits(value: Fraction) -> int:
    """Return how many binary digits a number has, zeros at its ends apart."""
    number = value.numerator
    while number % 2 == 0:
        number //= 2
    return number.bit_length()


def below(value: Fraction) -> Fraction:
    """Return the next smaller number of twenty binary digits, slowly."""
    step = Fraction(1)
    while value / step >= 2**SCALE_BITS:
        step *= 2
    while value / step < 2 ** (SCALE_BITS - 1):
        step /= 2
    assert (value / step).denominator == 1
    if value / step == 2 ** (SCALE_BITS - 1):
        step /= 2
    return value - step


@settings(max_examples=examples(300), deadline=None)
@given(st.integers(1, 10**20), LOSSES)
def test_noise_costs_what_is_allowed_and_hardly_less(
    moved: int, loss: Fraction
) -> None:
    sigma = gaussian_scale(moved, loss)
    assert moved / (2 * sigma * sigma) <= loss
    assert moved / (2 * below(sigma) ** 2) > loss
    scale = laplace_scale(moved, loss)
    assert moved / scale <= loss
    assert moved / below(scale) > loss
    for one in (sigma, scale):
        assert digits(one) <= SCALE_BITS
        assert Fraction(float(one)) == one


@settings(max_examples=examples(300), deadline=None)
@given(st.fractions(Fraction(1, 10**30), 10**30))
def test_rounding_up_takes_the_least_number(value: Fraction) -> None:
    found = rounded_up(value)
    assert found >= value > below(found)
    assert digits(found) <= SCALE_BITS


@pytest.mark.parametrize("root", [1, 3, 2**10, 2**SCALE_BITS - 1])
def test_a_root_that_is_exact_is_not_rounded(root: int) -> None:
    assert gaussian_scale(root * root, Fraction(1, 2)) == root
    assert laplace_scale(root, Fraction(1)) == root


def test_the_scale_of_the_worked_example() -> None:
    sigma = gaussian_scale(100, Fraction("0.015"))
    assert 0 <= sigma**2 - Fraction(100) / Fraction("0.03") < Fraction(1, 100)
