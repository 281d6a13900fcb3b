"""The verifier lets every sound plan pass, and none of a thousand corrupted ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from budget import counted, examples, seed
from oracle.planning import World, violations
from samples.planned import (
    ENGINES,
    LARGE,
    SMALL,
    dpk,
    dpk_order,
    integers,
    numbers,
    some_problem,
    world_of,
)

from modicum.accounting.grid import INFINITE
from modicum.planner.allocation.numba_kernel import NumbaEngine
from modicum.planner.allocation.problem import Integers, Problem
from modicum.planner.verification import Overspent, verify

pytestmark = pytest.mark.soak

Corruption = Callable[[Problem, Random], list[int]]


def plan(problem: Problem) -> list[int]:
    """Return whom DPK accepts."""
    return sorted(numbers(dpk(problem, NumbaEngine)))


# --- corruptions of a plan ------------------------------------------------------------


def one_more(problem: Problem, rng: Random) -> list[int]:
    accepted = plan(problem)
    rejected = sorted(set(range(problem.requests)) - set(accepted))
    return accepted + rng.sample(rejected, min(1, len(rejected)))


def another_instead(problem: Problem, rng: Random) -> list[int]:
    accepted = one_more(problem, rng)
    if len(accepted) > 1:
        accepted.remove(rng.choice(accepted[:-1]))
    return accepted


def everybody(problem: Problem, rng: Random) -> list[int]:
    del rng
    return list(range(problem.requests))


# --- plans of a corrupted problem -----------------------------------------------------


def cheaper(problem: Problem, rng: Random) -> list[int]:
    costs = problem.costs.copy()
    costs[rng.randrange(len(costs))] //= 2
    return plan(replace(problem, costs=costs))


def coordinates_exchanged(problem: Problem, rng: Random) -> list[int]:
    order = list(range(problem.coordinates))
    rng.shuffle(order)
    return plan(replace(problem, costs=problem.costs[:, order]))


def costs_of_others(problem: Problem, rng: Random) -> list[int]:
    order = list(range(problem.requests))
    rng.shuffle(order)
    return plan(replace(problem, costs=problem.costs[order]))


def rows_forgotten(problem: Problem, rng: Random) -> list[int]:
    row = rng.randrange(len(problem.left))
    after = np.searchsorted(problem.row_first, row, side="right")
    first = problem.row_first.copy()
    first[after:] -= 1
    return plan(
        replace(
            problem,
            row_first=first,
            left=np.delete(problem.left, row, axis=0),
            block=np.delete(problem.block, row),
        )
    )


def rows_of_others(problem: Problem, rng: Random) -> list[int]:
    order = list(range(len(problem.left)))
    rng.shuffle(order)
    return plan(replace(problem, left=problem.left[order]))


def unlocked_too_much(problem: Problem, rng: Random) -> list[int]:
    return plan(replace(problem, left=problem.left + rng.randint(1, 12)))


def history_forgotten(problem: Problem, rng: Random) -> list[int]:
    del rng
    return plan(replace(problem, left=problem.full[problem.block]))


def shorter_runs(problem: Problem, rng: Random) -> list[int]:
    stop = problem.run_stop.copy()
    run = rng.randrange(len(stop))
    stop[run] = problem.run_start[run] + 1
    return plan(replace(problem, run_stop=stop))


CORRUPTIONS: tuple[Corruption, ...] = (
    one_more,
    another_instead,
    everybody,
    cheaper,
    coordinates_exchanged,
    costs_of_others,
    rows_forgotten,
    rows_of_others,
    unlocked_too_much,
    history_forgotten,
    shorter_runs,
)


def overspent(problem: Problem, accepted: list[int]) -> set[int]:
    """Return the rows that the verifier objects to."""
    found = verify(problem, accepted)
    assert all(isinstance(one, Overspent) for one in found)
    return {one.row for one in found if isinstance(one, Overspent)}


def wrong_rows(world: World, accepted: list[int]) -> set[int]:
    """Return the rows that the oracle objects to."""
    return {element[2] for (element, _) in violations(world, accepted)}


def rounds() -> Iterator[tuple[Problem, Random]]:
    """Yield rounds that somebody asks something of."""
    number = 0
    while True:
        rng = Random(f"{seed()}/corrupted/{number}")
        problem = some_problem(rng, SMALL)
        number += 1
        if problem.requests and len(problem.left):
            yield problem, rng


@pytest.mark.spec("PLAN-5")
def test_a_thousand_corrupted_plans_are_rejected() -> None:
    rejected = dict.fromkeys(CORRUPTIONS, 0)
    for problem, rng in rounds():
        world = world_of(problem)
        for corruption in CORRUPTIONS:
            accepted = corruption(problem, rng)
            wrong = wrong_rows(world, accepted)
            assert overspent(problem, accepted) == wrong
            rejected[corruption] += bool(wrong)
        if sum(rejected.values()) >= counted(1000):
            break
    assert min(rejected.values()) >= counted(10), rejected


@pytest.mark.spec("PLAN-5")
def test_any_set_of_requests_is_rejected_exactly_if_it_is_too_much() -> None:
    seen = {True: 0, False: 0}
    for number, (problem, rng) in enumerate(rounds()):
        accepted = [i for i in range(problem.requests) if rng.random() < 0.5]
        rng.shuffle(accepted)
        wrong = wrong_rows(world_of(problem), accepted)
        assert overspent(problem, accepted) == wrong
        seen[bool(wrong)] += 1
        if number >= examples(300):
            break
    assert min(seen.values()) > examples(30)


@pytest.mark.spec("PLAN-5")
def test_every_plan_of_every_engine_is_accepted() -> None:
    for number, (problem, _) in enumerate(rounds()):
        for engine_of in ENGINES:
            engine = engine_of(problem)
            for order in (np.arange(problem.requests), dpk_order(problem, engine)):
                accepted = np.flatnonzero(engine.greedy(order))
                assert verify(problem, accepted) == ()
        if number >= examples(150):
            break
    for number in range(examples(3)):
        problem = some_problem(Random(f"{seed()}/sound/{number}"), LARGE, full=True)
        assert verify(problem, plan(problem)) == ()
        assert verify(problem, everybody(problem, Random()))


@pytest.mark.spec("PLAN-5")
def test_sums_beyond_64_bits_are_exact() -> None:
    """Costs and balances of any size, of which few bits decide."""
    seen = {True: 0, False: 0}
    for number in range(examples(200)):
        rng = Random(f"{seed()}/wide/{number}")
        costs = [INFINITE - rng.randint(0, 2) for _ in range(rng.randint(1, 9))]
        if rng.random() < 0.7:
            costs = [rng.randrange(INFINITE // len(costs) + 2) for _ in costs]
        total = sum(costs)
        left = min(max(total + rng.randint(-1, 1), 0), INFINITE - 1)
        problem = _one_row(costs, left)
        fits = total <= left and INFINITE not in costs
        found = verify(problem, list(range(len(costs))))
        assert bool(found) == (not fits)
        if found:
            assert isinstance(found[0], Overspent)
            assert found[0].charged == (min(total, INFINITE),)
        seen[fits] += 1
    assert min(seen.values()) > examples(20)


def _one_row(costs: list[int], left: int) -> Problem:
    count = len(costs)
    return Problem(
        weights=integers([1] * count),
        costs=integers(costs, count, 1),
        run_first=np.arange(count + 1),
        run_start=np.zeros(count, np.int64),
        run_stop=np.ones(count, np.int64),
        row_first=integers([0, 1]),
        left=integers([[left]]),
        block=integers([0]),
        line=integers([0]),
        full=_row_of_infinity(),
    )


def _row_of_infinity() -> Integers:
    return integers([[INFINITE - 1]])
