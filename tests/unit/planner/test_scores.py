"""In which order requests are tried: scores, their sums, and ties."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
import pytest
from budget import examples, seed
from samples.planned import ENGINES, LARGE, integers, places_of, some_problem

from modicum.planner.allocation.greedy import by_score, efficiencies, per_run
from modicum.planner.allocation.problem import Problem


def one_row_each(
    left: list[int], requests: list[tuple[int, int, tuple[int, int]]]
) -> Problem:
    """Return a problem of one coordinate; asks are (weight, cost, run)."""
    weights, costs, runs = zip(*requests, strict=True)
    return Problem(
        weights=integers(weights),
        costs=integers(costs, len(requests), 1),
        run_first=np.arange(len(requests) + 1),
        run_start=integers([start for start, _ in runs]),
        run_stop=integers([stop for _, stop in runs]),
        row_first=np.arange(len(left) + 1),
        left=integers(left, len(left), 1),
        block=np.zeros(len(left), np.int64),
        line=np.zeros(len(left), np.int64),
        full=integers([[max(left)]]),
    )


def scores(problem: Problem) -> list[float]:
    """Return the DPK scores if everybody is alive."""
    engine = ENGINES[0](problem)
    alive = np.ones(problem.requests, np.bool_)
    contests = engine.contests(alive)
    found: list[float] = efficiencies(
        problem, contests, engine.favored(contests, alive)
    ).tolist()
    return found


def test_sums_over_runs_are_those_of_fractions() -> None:
    """Also where one price is a million million times another."""
    for n in range(examples(20)):
        rng = Random(f"{seed()}/sums/{n}")
        problem = some_problem(rng, LARGE)
        price = np.array(
            [[1 / rng.randint(1, 10 ** rng.choice((1, 12)))] * 2 for _ in problem.line]
        )
        price[:, 1] = [rng.randint(0, 2) for _ in problem.line]
        found = per_run(problem, price)
        assert found.shape == (problem.requests, 2)
        for request, (sum_, count) in enumerate(found.tolist()):
            places = places_of(problem, request)
            true = sum((Fraction(price[place, 0]) for place in places), Fraction(0))
            assert abs(Fraction(sum_) - true) <= true / 10**14
            assert count == sum(price[place, 1] for place in places)


@pytest.mark.spec("PLAN-4")
def test_what_is_nearly_used_up_does_not_blur_what_is_not() -> None:
    whole = 10**12
    requests = [(1, 3, (0, 1)), (1, 3, (0, 1))]
    requests += [(1, 6 * whole // 10, (1, 2))] * 2 + [(1, 6 * whole // 10, (2, 3))] * 2
    found = scores(one_row_each([3, whole, whole + 10_000], requests))
    assert found[2] == pytest.approx(10 / 6, rel=1e-15)
    assert found[4] == pytest.approx(10 / 6 * (1 + 1e-8), rel=1e-15)
    assert by_score(np.array(found)).tolist() == [4, 5, 2, 3, 0, 1]


@pytest.mark.spec("PLAN-4")
def test_who_takes_nothing_scarce_is_first_and_who_is_hopeless_last() -> None:
    requests = [
        (5, 3, (0, 1)),
        (0, 3, (0, 1)),
        (1, 0, (0, 1)),
        (7, 1, (1, 2)),
        (9, 1, (0, 3)),
        (2, 0, (2, 3)),
    ]
    found = scores(one_row_each([4, 1, 0], requests))
    # Place 0 has 4 of 7 that are asked for, place 1 has 1 of 2, place 2 has 0 of 1.
    assert found == [5 / (3 / 4), 0, np.inf, 7, 0, np.inf]
    assert by_score(np.array(found)).tolist() == [2, 5, 3, 0, 1, 4]


def test_nobody_competes() -> None:
    assert scores(one_row_each([9, 9], [(0, 1, (0, 2)), (3, 4, (1, 2))])) == [
        np.inf,
        np.inf,
    ]


def test_equal_scores_keep_the_order_of_arrival() -> None:
    third = np.array(
        [1 / 3, 0.1 + 0.2, np.nextafter(1 / 3, 1), 0.3, 0.0, np.inf, np.inf]
    )
    assert by_score(third).tolist() == [5, 6, 0, 2, 1, 3, 4]
    assert by_score(np.array([1.0, 1 + 1e-9])).tolist() == [1, 0]
    assert by_score(np.array([])).tolist() == []
