"""The allocator that keeps a price over the rounds."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from budget import examples, seed
from oracle.planning import violations
from samples.planned import LARGE, SMALL, dpk, numbers, some_problem, world_of

from modicum.accounting.filters.unlock_schedule import AtOnce, Schedule, Unlocking
from modicum.planner.allocation.numba_kernel import NumbaEngine
from modicum.planner.allocation.numpy_kernel import NumpyEngine
from modicum.planner.allocation.problem import Problem
from modicum.planner.allocation.reserve_price import (
    RESERVE,
    Steady,
    beyond_price,
    fluid,
    reserve_under,
    uses,
)


def drawn(name: str, count: int) -> list[Problem]:
    rng = Random(f"{seed()}/steady/{name}")
    return [some_problem(rng, SMALL) for _ in range(count)]


@pytest.mark.spec("PLAN-8")
def test_without_a_reserve_it_is_dpk() -> None:
    for problem in drawn("dpk", examples(150)):
        accepted = Steady(12, 0)(problem, NumpyEngine(problem))
        assert accepted.tolist() == dpk(problem, NumpyEngine).tolist()


def test_what_it_accepts_fits_and_engines_agree() -> None:
    large = Random(f"{seed()}/steady/large")
    turned_away = 0
    for problem in [
        *drawn("fits", examples(150)),
        *(some_problem(large, LARGE) for _ in range(examples(2))),
    ]:
        accepted = Steady(3)(problem, NumpyEngine(problem))
        assert accepted.tolist() == Steady(3)(problem, NumbaEngine(problem)).tolist()
        assert not violations(world_of(problem), numbers(accepted))
        fits = NumpyEngine(problem).greedy(np.flatnonzero(accepted))
        assert fits.tolist() == accepted.tolist()
        turned_away += dpk(problem, NumpyEngine).sum() > accepted.sum()
    assert turned_away, "nothing was ever kept for later"


@pytest.mark.spec("PLAN-8")
def test_it_accepts_nothing_below_the_price() -> None:
    rng = Random(f"{seed()}/steady/price")
    priced = 0
    for _ in range(examples(150)):
        problem = some_problem(rng, replace(SMALL, coordinates=1))
        accepted = Steady(3, 0.7)(problem, NumpyEngine(problem))
        use = uses(problem)[:, 0]
        _, price = fluid(problem.weights, use, 1 / 3)
        if price:
            worth = problem.weights[accepted]
            assert (worth > 0.7 * price * use[accepted]).all()
            priced += 1
    assert priced


@pytest.mark.spec("PLAN-8")
@pytest.mark.parametrize(
    ("schedule", "part"),
    [
        (Unlocking(12, Fraction(0)), 0),
        (Unlocking(12, Fraction(2, 5)), Fraction(2, 5)),
        (Unlocking(12, Fraction(1)), 1),
        (AtOnce(12), 1),
        (AtOnce(1), 0),
    ],
    ids=["even steps", "some slack", "all slack", "nothing locked", "one round"],
)
def test_the_reserve_grows_with_what_can_be_kept(
    schedule: Schedule, part: Fraction
) -> None:
    assert reserve_under(schedule) == pytest.approx(RESERVE * float(part))


def test_who_is_worth_nothing_gets_nothing_at_a_price() -> None:
    weights = np.array([0, 5, 5, 5])
    use = np.array([0.0, 0.0, np.inf, 5.0])
    assert beyond_price(weights, use, 1.0).tolist() == [0, 1, 0, 0]
    assert beyond_price(weights, use, 0.0).tolist() == [1, 1, 1, 1]


@pytest.mark.spec("PLAN-8")
def test_a_request_that_is_tried_again_is_no_second_request() -> None:
    """The flow is what arrives, not what waits."""
    for problem in drawn("again", examples(40)):
        old = np.zeros(problem.requests, np.bool_)
        again = replace(problem, fresh=old)
        steady, once = Steady(12), Steady(12)
        steady(problem, NumpyEngine(problem))
        once(problem, NumpyEngine(problem))
        steady(again, NumpyEngine(again))
        assert np.concatenate(steady._weights).tolist() == problem.weights.tolist()
