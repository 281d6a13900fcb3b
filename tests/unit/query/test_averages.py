"""Averages and spreads from ranges, against every number that the ranges allow."""

from __future__ import annotations

import statistics
from fractions import Fraction
from itertools import product

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.query.averages import Range, average, deviation, noisy, variance

COUNTS, WIDTHS, SUMS = st.integers(-3, 8), st.integers(0, 3), st.integers(-30, 30)


def within(number: int, width: int) -> range:
    return range(number - width, number + width + 1)


@settings(max_examples=examples(300), deadline=None)
@given(rows=COUNTS, loose=WIDTHS, total=SUMS, looser=WIDTHS)
def test_an_average_has_the_range_of_all_that_it_could_be(
    rows: int, loose: int, total: int, looser: int
) -> None:
    found = average(noisy(rows, loose), noisy(total, looser), -4, 5)
    if rows - loose <= 0:
        assert found is None
        return
    assert found is not None
    possible = [
        min(max(Fraction(t, r), Fraction(-4)), Fraction(5))
        for r, t in product(within(rows, loose), within(total, looser))
    ]
    assert (found.low, found.high) == (min(possible), max(possible))
    assert found.value == min(max(Fraction(total, rows), Fraction(-4)), Fraction(5))


@settings(max_examples=examples(300), deadline=None)
@given(
    rows=COUNTS,
    total=SUMS,
    squares=st.integers(-20, 120),
    loose=st.tuples(WIDTHS, WIDTHS, WIDTHS),
    population=st.booleans(),
)
def test_a_variance_has_the_range_of_all_that_it_could_be(
    rows: int, total: int, squares: int, loose: tuple[int, int, int], population: bool
) -> None:
    found = variance(
        noisy(rows, loose[0]),
        noisy(total, loose[1]),
        noisy(squares, loose[2]),
        9,
        population=population,
    )
    fewest = 0 if population else 1
    if rows - loose[0] <= fewest:
        assert found is None
        return
    assert found is not None
    assert 0 <= found.low <= found.value <= found.high
    most = Fraction(81, 4)
    for r, t, s in product(
        within(rows, loose[0]), within(total, loose[1]), within(squares, loose[2])
    ):
        spread = Fraction(s, r) - Fraction(t, r) ** 2
        if 0 <= spread <= most:
            true = spread if population else spread * Fraction(r, r - 1)
            assert found.low <= true <= found.high


@settings(max_examples=examples(200), deadline=None)
@given(values=st.lists(st.integers(-4, 5), min_size=2, max_size=12))
def test_without_noise_they_are_what_they_are_called(values: list[int]) -> None:
    rows, total = noisy(len(values), 0), noisy(sum(values), 0)
    squares = noisy(sum(one * one for one in values), 0)
    mean = average(rows, total, -4, 5)
    whole = variance(rows, total, squares, 9, population=True)
    sample = variance(rows, total, squares, 9, population=False)
    assert mean is not None
    assert whole is not None
    assert sample is not None
    exact = [Fraction(one) for one in values]
    for found, true in (
        (mean, statistics.mean(exact)),
        (whole, statistics.pvariance(exact)),
        (sample, statistics.variance(exact)),
    ):
        assert (found.low, found.value, found.high) == (true, true, true)


def test_a_variance_beyond_what_bounds_allow_is_moved_to_it() -> None:
    found = variance(noisy(4, 0), noisy(0, 0), noisy(900, 0), spread=4, population=True)
    assert found == Range(Fraction(4), Fraction(4), Fraction(4))


@settings(max_examples=examples(100), deadline=None)
@given(value=st.fractions(0, 10**9))
def test_roots_are_rounded_outward(value: Fraction) -> None:
    found = deviation(Range(value, value, value))
    assert found.low**2 <= value <= found.high**2
    assert found.high - found.low <= Fraction(1, 2**64)


@settings(max_examples=examples(100), deadline=None)
@given(
    value=st.fractions(-(10**9), 10**9),
    less=st.fractions(0, 10),
    more=st.fractions(0, 10),
)
def test_few_digits_never_make_a_range_narrower(
    value: Fraction, less: Fraction, more: Fraction
) -> None:
    before = Range(value, value - less, value + more)
    after = before.rounded()
    assert after.low <= before.low <= before.high <= after.high
    assert after.low <= after.value <= after.high
    for one, other in ((before.value, after.value), (before.low, after.low)):
        assert abs(one - other) <= abs(one) / 10**11


@pytest.mark.parametrize("step", [Fraction(1, 100), Fraction(5)])
def test_units(step: Fraction) -> None:
    assert noisy(10, 2).times(step) == Range(10 * step, 8 * step, 12 * step)
    assert noisy(10, 2, step) == noisy(10, 2).times(step)
