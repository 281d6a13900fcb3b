"""Quantiles from noisy trees: what their ranges promise, and how often they keep it."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from budget import counted, examples, seed
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.noise_laws import drawn

from modicum.query.estimates import Quantile, Tree, tree_of
from modicum.query.request import Noise
from modicum.query.statistics import KeyValue, Statistic

BINS = Statistic("q", "histogram", low=-5, high=25, bin=2)  # 16 bins, 4 levels.
SHARES = [Fraction(n, 20) for n in (0, 1, 5, 10, 15, 19, 20)]


def exact_tree(values: list[int], statistic: Statistic) -> list[list[int]]:
    """Return the counts of all nodes, value by value."""
    tree = [[0] * 2**level for level in range(1, statistic.levels + 1)]
    for value in values:
        place = (value - statistic.low) // statistic.bin
        for level in range(1, statistic.levels + 1):
            tree[level - 1][place >> (statistic.levels - level)] += 1
    return tree


def below(tree: Tree, border: int) -> int:
    """Return what nodes say lies below a border: the largest that fit, one by one."""
    total, start, levels = 0, 0, len(tree)
    for level in range(1, levels + 1):
        size = 2 ** (levels - level)
        if start + size <= border:
            total += tree[level - 1][start // size]
            start += size
    return total


def above(tree: Tree, border: int) -> int:
    return below([counts[::-1] for counts in tree], 2 ** len(tree) - border)


def quantiles(values: list[int], share: Fraction) -> tuple[Fraction, ...]:
    """Return a quantile by several definitions."""
    ordered, n = sorted(values), len(values)
    at = share * (n - 1)
    left = ordered[math.floor(at)]
    right = ordered[math.ceil(at)]
    middle = left + (right - left) * (at - math.floor(at))
    inverse = ordered[max(math.ceil(share * n) - 1, 0)]
    return Fraction(left), Fraction(right), Fraction(middle), Fraction(inverse)


@settings(max_examples=examples(300), deadline=None)
@given(
    values=st.lists(st.integers(-5, 25), min_size=1, max_size=60),
    share=st.sampled_from(SHARES),
    noise=st.lists(st.integers(-4, 4), min_size=30, max_size=30),
    scale=st.sampled_from([Fraction(1, 4), Fraction(1), Fraction(3)]),
)
def test_a_range_holds_the_quantile_if_noise_stays_where_it_should(
    values: list[int], share: Fraction, noise: list[int], scale: Fraction
) -> None:
    quantile = Quantile(BINS, share, "gaussian", scale, Fraction(1, 20))
    exact, left = exact_tree(values, BINS), list(noise)
    tree = [[one + left.pop() for one in counts] for counts in exact]
    found = quantile.of(tree)
    if found is None:
        return
    assert found.low <= found.value <= found.high
    stray = {}
    for border in range(1, 16):
        up = below(tree, border) - below(exact, border)
        down = above(tree, border) - above(exact, border)
        moved = (1 - share) * up - share * down
        stray[border] = abs(moved) <= quantile.strays[border - 1]
    true = quantiles(values, share)
    first = (math.floor(min(true)) + 5) // 2
    last = (math.floor(max(true)) + 5) // 2
    if stray.get(first + 1, True):
        assert found.low <= min(true)
    if stray.get(last, True):
        assert max(true) <= found.high


@pytest.mark.parametrize("share", SHARES)
def test_without_noise_the_range_is_the_bin_of_the_quantile(share: Fraction) -> None:
    quantile = Quantile(BINS, share, "laplace", Fraction(1, 10**6), Fraction(1, 20))
    assert max(quantile.strays) < Fraction(1, 1000)
    rng = random.Random(seed())
    for _ in range(50):
        values = [rng.randint(-5, 25) for _ in range(rng.randint(40, 200))]
        found = quantile.of(exact_tree(values, BINS))
        assert found is not None
        true = quantiles(values, share)
        assert found.low <= min(true)
        assert max(true) <= found.high
        ordered, rank = sorted(values), share * len(values) - share
        assert found.low == step_of(ordered[math.floor(rank)])
        last = min(math.ceil(rank + 2) - 1, len(values))
        assert found.high == min(step_of(ordered[last - 1]) + 1, 25)


def step_of(value: int) -> int:
    """Return the first step of the bin of a value."""
    return -5 + (value + 5) // 2 * 2


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(9, 10)])
def test_ranges_hold_as_often_as_they_say(noise: Noise, share: Fraction) -> None:
    statistic = Statistic("q", "histogram", low=0, high=63, bin=1)
    rng = np.random.default_rng(int(seed()))
    values = [int(one) for one in np.clip(rng.normal(30, 9, 900), 0, 63)]
    quantile = Quantile(statistic, share, noise, Fraction(8), Fraction(1, 5))
    exact = exact_tree(values, statistic)
    rounds, missed, wide = counted(300), 0, 0
    true = quantiles(values, share)
    for _ in range(rounds):
        tree = [
            [
                one + int(extra)
                for one, extra in zip(
                    counts, drawn(noise, Fraction(8), len(counts), rng), strict=True
                )
            ]
            for counts in exact
        ]
        found = quantile.of(tree)
        assert found is not None
        missed += not (found.low <= min(true) and max(true) <= found.high)
        wide += found.high - found.low > 18
    # Chernoff's bound is careful: it misses less often than one in five.
    assert missed <= rounds / 5
    assert wide <= rounds / 10


def test_nothing_is_said_of_groups_that_may_be_empty() -> None:
    quantile = Quantile(BINS, Fraction(1, 2), "gaussian", Fraction(10), Fraction(1, 20))
    assert quantile.of(exact_tree([], BINS)) is None
    assert quantile.of(exact_tree([3] * 20, BINS)) is None
    assert quantile.of(exact_tree([3] * 90, BINS)) is not None


def test_bins_beyond_the_bounds_are_cut_off() -> None:
    odd = Statistic("q", "histogram", low=0, high=4, bin=1)  # 5 bins in 8 leaves.
    quantile = Quantile(odd, Fraction(1), "gaussian", Fraction(1), Fraction(1, 20))
    tree = [[5, 40], [0, 5, 5, 35], [0, 0, 5, 0, 5, 0, 0, 35]]
    found = quantile.of(tree)
    assert found is not None
    assert found.value == found.high == 4


def test_a_node_that_is_empty_by_noise_tells_its_middle() -> None:
    quantile = Quantile(BINS, Fraction(1, 2), "gaussian", Fraction(9), Fraction(1, 20))
    tree = [[100, -5], [-3, 110, 0, 0], [0] * 8, [0] * 16]
    found = quantile.of(tree)
    assert found is not None
    assert found.value == -5 + (4 * 2 + 8 * 2 - 1) // 2


def test_a_tree_is_found_by_its_group() -> None:
    cells: dict[tuple[KeyValue, ...], int] = {
        (group, level, node): 100 * level + node + (1000 if group == "b" else 0)
        for group in ("a", "b")
        for level in range(1, 5)
        for node in range(2**level)
    }
    tree = tree_of(BINS, cells, ("b",))
    assert [len(counts) for counts in tree] == [2, 4, 8, 16]
    assert tree[2][5] == 1305
