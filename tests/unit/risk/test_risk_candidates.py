"""Candidates, and what is refused as a number."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from samples.influences import Silent, influence

from modicum.core.errors import Code, InputError
from modicum.risk.candidates import candidates, grid
from modicum.risk.indicator import Indicator
from modicum.risk.noise import GaussianNoise, LaplaceNoise
from modicum.risk.selection.data_independent import data_independent
from modicum.risk.selection.priorities import Priority, by_priority
from modicum.risk.selection.private_selection import private_selection
from modicum.risk.selection.published import find_from_rdr
from modicum.risk.selection.sparse_vector import PrivateSearch
from modicum.risk.selection.spread import Spread
from modicum.risk.selection.thresholds import GroupsAlike, RatioAtLeast, VarianceAtMost

COUNT = LaplaceNoise(Fraction(1))
SEEN = Indicator(influence([[1.0], []], groups={"a": [0], "b": [1]}), COUNT)


def test_candidates_rise_and_are_exact() -> None:
    found = candidates([1, "0.25", 0.1, Fraction(1, 3)])
    assert found == (Fraction(1, 10), Fraction(1, 4), Fraction(1, 3), Fraction(1))


@pytest.mark.parametrize("n", [2, 3, 7, 40])
@pytest.mark.parametrize(("low", "high"), [("0.01", 10), (1, "1.5"), ("1e-6", "1e6")])
def test_a_grid_has_equal_ratios(low: str, high: str, n: int) -> None:
    found = grid(low, high, n)
    assert len(found) == n
    assert (found[0], found[-1]) == (Fraction(low), Fraction(high))
    ratio = float(found[-1] / found[0]) ** (1 / (n - 1))
    for one, other in itertools.pairwise(found):
        assert float(other / one) == pytest.approx(ratio, rel=2.1e-3)
    wanted = [float(Fraction(low)) * ratio**i for i in range(n)]
    assert all(float(e) <= w * (1 + 1e-12) for e, w in zip(found, wanted, strict=True))


def test_powers_of_ten_are_met() -> None:
    assert grid("0.001", 10, 5) == tuple(Fraction(10) ** e for e in range(-3, 2))


WRONG: list[tuple[Callable[[], object], Code]] = [
    (lambda: candidates([]), Code.OUT_OF_RANGE),
    (lambda: candidates([0]), Code.OUT_OF_RANGE),
    (lambda: candidates([-1]), Code.OUT_OF_RANGE),
    (lambda: candidates(["one"]), Code.NOT_A_NUMBER),
    (lambda: candidates([float("nan")]), Code.NOT_A_NUMBER),
    (lambda: candidates([float("inf")]), Code.NOT_A_NUMBER),
    (lambda: candidates([True]), Code.NOT_A_NUMBER),
    (lambda: candidates([1, "1.0"]), Code.DUPLICATE_NAME),
    (lambda: grid(1, 1, 3), Code.OUT_OF_RANGE),
    (lambda: grid(1, 2, 1), Code.OUT_OF_RANGE),
    (lambda: grid("1.23456", "1.23457", 4), Code.OUT_OF_RANGE),
    (lambda: grid(1, "1.01", 300), Code.OUT_OF_RANGE),
    # Told at once: nobody waits until so many are computed.
    (lambda: grid("0.1", 1, 10**12), Code.OUT_OF_RANGE),
    (lambda: grid(1, 10, 9002), Code.OUT_OF_RANGE),
    (lambda: RatioAtLeast.of(0), Code.OUT_OF_RANGE),
    (lambda: RatioAtLeast.of("1.01"), Code.OUT_OF_RANGE),
    (lambda: VarianceAtMost.of(-1), Code.OUT_OF_RANGE),
    (lambda: GroupsAlike.of(0.5, ["a"]), Code.OUT_OF_RANGE),
    (lambda: GroupsAlike.of(0.5, ["a", "a"]), Code.OUT_OF_RANGE),
    (lambda: GroupsAlike.of(0.5, ["a", "b"], "mean"), Code.UNKNOWN_CHOICE),  # type: ignore[arg-type]
    (
        lambda: find_from_rdr(SEEN, [GroupsAlike.of(0.5, ["a", "c"])]),
        Code.UNKNOWN_CHOICE,
    ),
    (lambda: find_from_rdr(SEEN, []), Code.OUT_OF_RANGE),
    (lambda: Spread.of(1, 0), Code.OUT_OF_RANGE),
    (lambda: Spread.of(-1, 5), Code.OUT_OF_RANGE),
    (lambda: LaplaceNoise(Fraction(0)), Code.OUT_OF_RANGE),
    (lambda: LaplaceNoise(Fraction(1), 0), Code.OUT_OF_RANGE),
    (lambda: GaussianNoise(Fraction(1), Fraction(1)), Code.OUT_OF_RANGE),
    (lambda: GaussianNoise(Fraction(1), Fraction(0)), Code.OUT_OF_RANGE),
    (lambda: data_independent(COUNT, tau=0), Code.OUT_OF_RANGE),
    (lambda: data_independent(COUNT, tau=0.5, form="exact"), Code.KEYS_CONFLICT),
    (lambda: PrivateSearch.of(Silent(), 0), Code.OUT_OF_RANGE),
    (
        lambda: private_selection(
            SEEN.influence,
            COUNT,
            tau=0.5,
            allowance=-1,
            search=PrivateSearch.of(Silent(), 1),
            own_rows_only=True,
        ),
        Code.OUT_OF_RANGE,
    ),
    (lambda: by_priority(1, {}), Code.OUT_OF_RANGE),
    (lambda: by_priority(0, {"a": Priority.of(1, COUNT)}), Code.OUT_OF_RANGE),
    (lambda: by_priority("1e-13", {"a": Priority.of(1, COUNT)}), Code.OUT_OF_RANGE),
    (lambda: Priority.of(0, COUNT), Code.OUT_OF_RANGE),
]


@pytest.mark.parametrize(("wrong", "code"), WRONG)
def test_mistakes_have_a_code_and_a_remedy(
    wrong: Callable[[], object], code: Code
) -> None:
    with pytest.raises(InputError) as caught:
        wrong()
    assert caught.value.code is code
    assert all(problem.help for problem in caught.value.problems)


def test_numbers_of_numpy_are_read() -> None:
    assert candidates([np.float64(0.1)]) == (Fraction(1, 10),)
