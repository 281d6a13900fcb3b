"""Sums by several sets of keys: least squares, their noise, and what is measured."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import prod, sqrt

import numpy as np
import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize  # type: ignore[import-untyped]

from modicum.query.marginals import (
    SHARES,
    Marginals,
    may_be_measured,
    set_of,
    shares_of,
    subsets,
)
from modicum.query.request import Noise

NOISES: list[Noise] = ["laplace", "gaussian"]
SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)


def summing(sizes: Sequence[int], keys: int) -> np.ndarray:
    """The matrix that adds up a table by some of its keys, cell by cell."""
    places = [place for place in range(len(sizes)) if keys >> place & 1]
    groups = list(product(*(range(sizes[place]) for place in places)))
    cells = list(product(*map(range, sizes)))
    found = np.zeros((len(groups), len(cells)))
    for column, cell in enumerate(cells):
        found[groups.index(tuple(cell[place] for place in places)), column] = 1
    return found


@st.composite
def some_marginals(draw: st.DrawFn) -> Marginals:
    """Measured sets, one of all keys among them or above each component."""
    sizes = draw(SIZES)
    every = (1 << len(sizes)) - 1
    measured = {every} | draw(st.sets(st.integers(0, every)))
    scales = {one: Fraction(draw(st.integers(1, 60)), 4) for one in sorted(measured)}
    return Marginals(sizes, draw(st.sampled_from(NOISES)), scales, {})


def estimated(
    made: Marginals, keys: int, tables: Mapping[int, Sequence[int]]
) -> list[Fraction]:
    return list(made.estimate(keys, tables))


@settings(max_examples=examples(60), deadline=None)
@given(made=some_marginals(), dice=st.randoms(use_true_random=False))
def test_estimates_are_those_of_weighted_least_squares(
    made: Marginals, dice: random.Random
) -> None:
    tables = {
        one: [dice.randint(-50, 50) for _ in range(made.cells(one))]
        for one in made.scales
    }
    rows = [
        summing(made.sizes, one) / float(scale) for one, scale in made.scales.items()
    ]
    told = [np.array(tables[one]) / float(made.scales[one]) for one in made.scales]
    best = np.linalg.pinv(np.vstack(rows)) @ np.concatenate(told)
    for keys in range(1 << len(made.sizes)):
        found = [float(one) for one in estimated(made, keys, tables)]
        assert found == pytest.approx(summing(made.sizes, keys) @ best, abs=1e-3)


@settings(max_examples=examples(60), deadline=None)
@given(made=some_marginals(), dice=st.randoms(use_true_random=False))
def test_parts_add_up_to_their_totals_and_truth_is_kept(
    made: Marginals, dice: random.Random
) -> None:
    noisy = {
        one: [dice.randint(-(2**70), 2**70) for _ in range(made.cells(one))]
        for one in made.scales
    }
    every = (1 << len(made.sizes)) - 1
    cells = list(product(*map(range, made.sizes)))
    finest = dict(zip(cells, estimated(made, every, noisy), strict=True))
    for keys in range(every + 1):
        places = [place for place in range(len(made.sizes)) if keys >> place & 1]
        sums: dict[tuple[int, ...], Fraction] = {}
        for cell, number in finest.items():
            group = tuple(cell[place] for place in places)
            sums[group] = sums.get(group, Fraction(0)) + number
        assert list(sums.values()) == estimated(made, keys, noisy)
    # Without noise, estimates are what they estimate.
    table = np.array([dice.randint(-9, 9) for _ in cells])
    exact = {
        one: [int(n) for n in summing(made.sizes, one) @ table]
        for one in range(every + 1)
    }
    for keys in range(every + 1):
        assert estimated(made, keys, exact) == exact[keys]


@settings(max_examples=examples(60), deadline=None)
@given(made=some_marginals(), dice=st.randoms(use_true_random=False))
def test_the_noise_of_an_estimate_is_that_of_these_draws(
    made: Marginals, dice: random.Random
) -> None:
    keys = dice.randrange(1 << len(made.sizes))
    cell = dice.randrange(made.cells(keys))
    wanted: dict[tuple[Fraction, Fraction], int] = {}
    none = {one: [0] * made.cells(one) for one in made.scales}
    for one, scale in made.scales.items():
        for place in range(made.cells(one)):
            unit = {**none, one: [int(place == n) for n in range(made.cells(one))]}
            weight = abs(estimated(made, keys, unit)[cell])
            if weight:
                wanted[scale, weight] = wanted.get((scale, weight), 0) + 1
    found: dict[tuple[Fraction, Fraction], int] = {}
    for draws in made.draws(keys):
        kind = draws.scale, draws.weight
        found[kind] = found.get(kind, 0) + draws.number
    assert found == wanted


def test_one_measured_set_strays_as_its_own_noise() -> None:
    made = Marginals((3,), "gaussian", {1: Fraction(10)}, {})
    assert made.width(1, Fraction(1, 20)) == 20
    assert 17 * sqrt(3) < made.width(0, Fraction(1, 20)) < 28 * sqrt(3)


# --- which sets are measured ----------------------------------------------------------


def mean_variance(
    sizes: Sequence[int],
    asked: Sequence[int],
    moved: Mapping[int, float],
    noise: Noise,
    shares: Mapping[int, float],
) -> float:
    """The mean variance of the asked sets, if the loss is 1, by matrices."""
    information = np.zeros((prod(sizes), prod(sizes)))
    for one, share in shares.items():
        precision = (
            share / moved[one] if noise == "gaussian" else (share / moved[one]) ** 2
        )
        matrix = summing(sizes, one)
        information += precision * matrix.T @ matrix
    covariance = np.linalg.pinv(information, hermitian=True, rcond=1e-12)
    found = 0.0
    for one in asked:
        matrix = summing(sizes, one)
        found += float(np.mean(np.diag(matrix @ covariance @ matrix.T))) / len(asked)
    return found


@st.composite
def some_asked(
    draw: st.DrawFn, least: int = 2
) -> tuple[tuple[int, ...], list[int], dict[int, float]]:
    sizes = draw(st.lists(st.integers(least, 4), min_size=1, max_size=2).map(tuple))
    every = (1 << len(sizes)) - 1
    asked = sorted(draw(st.sets(st.integers(0, every), min_size=2, max_size=3)))
    moved = {one: float(draw(st.integers(1, 6))) for one in may_be_measured(asked)}
    return sizes, asked, moved


@settings(max_examples=examples(40), deadline=None)
@given(given_=some_asked(), noise=st.sampled_from(NOISES))
def test_shares_are_a_loss_divided_and_no_worse_than_obvious_ones(
    given_: tuple[tuple[int, ...], list[int], dict[int, float]], noise: Noise
) -> None:
    sizes, asked, moved = given_
    shares = shares_of(sizes, asked, moved, noise)
    assert all(one > 0 and (one * SHARES).denominator == 1 for one in shares.values())
    assert Fraction(99, 100) < sum(shares.values()) <= 1
    for one in asked:  # Whatever is asked follows from what is measured.
        assert any(measured & one == one for measured in shares)
    plain = {one: float(share) for one, share in shares.items()}
    found = mean_variance(sizes, asked, moved, noise, plain)
    union = set_of(
        place for place in range(3) if any(one >> place & 1 for one in asked)
    )
    for other in (dict.fromkeys(asked, 1 / len(asked)), {union: 1.0}):
        assert found <= mean_variance(sizes, asked, moved, noise, other) * 1.001


@settings(max_examples=examples(40), deadline=None)
@given(given_=some_asked(least=1), noise=st.sampled_from(NOISES))
def test_keys_with_one_value_are_keys(
    given_: tuple[tuple[int, ...], list[int], dict[int, float]], noise: Noise
) -> None:
    sizes, asked, moved = given_
    shares = shares_of(sizes, asked, moved, noise)
    scales = {one: 1 / share for one, share in shares.items()}
    made = Marginals(sizes, noise, scales, {})
    for one in asked:
        tables = {each: [7] * made.cells(each) for each in shares}
        assert len(estimated(made, one, tables)) == made.cells(one)
        assert made.width(one, Fraction(1, 20)) > 0


@settings(max_examples=examples(8), deadline=None)
@given(given_=some_asked())
def test_gaussian_shares_are_nearly_the_best_of_all(
    given_: tuple[tuple[int, ...], list[int], dict[int, float]],
) -> None:
    sizes, asked, moved = given_
    shares = shares_of(sizes, asked, moved, "gaussian")
    plain = {one: float(share) for one, share in shares.items()}
    found = mean_variance(sizes, asked, moved, "gaussian", plain)
    sets = list(moved)

    def variance(given_: np.ndarray) -> float:
        chosen = np.abs(given_) + 1e-9
        total = float(chosen.sum())
        divided = {one: float(n) / total for one, n in zip(sets, chosen, strict=True)}
        return mean_variance(sizes, asked, moved, "gaussian", divided)

    best = min(
        minimize(variance, start, method="Nelder-Mead", options={"maxiter": 400}).fun
        for start in (np.ones(len(sets)), [plain.get(one, 0.0) for one in sets])
    )
    assert found <= best * 1.02


def test_all_subsets_are_tried_unless_there_are_many_keys() -> None:
    assert may_be_measured([3, 4]) == list(subsets(7))
    many = [set_of(range(7)), 1]
    assert may_be_measured(many) == [127, 1]
