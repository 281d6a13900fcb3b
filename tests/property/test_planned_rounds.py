"""The planner accepts what the published allocator does, and never too much."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from budget import counted, examples, seed
from oracle import planning as oracle
from samples.planned import (
    ENGINES,
    LARGE,
    SMALL,
    RingLife,
    by_pair,
    dpk,
    dpk_order,
    numbers,
    some_problem,
    world_of,
)

from modicum.planner.allocation.engine import EngineOf
from modicum.planner.allocation.greedy import by_score, efficiencies
from modicum.planner.allocation.numba_kernel import NumbaEngine
from modicum.planner.allocation.numpy_kernel import NumpyEngine
from modicum.planner.allocation.problem import Problem
from modicum.planner.verification import verify

pytestmark = pytest.mark.soak


def agrees(problem: Problem, world: oracle.World) -> int:
    """Check both engines against the oracle; return how many pairs are contested."""
    alive = oracle.alone(world)
    contested = oracle.contests(world, alive)
    worth = [oracle.efficiency(world, contested, i) for i in range(len(world.asks))]
    order = oracle.dpk_order(world)
    accepted = oracle.greedy(world, order)
    for engine_of in ENGINES:
        engine = engine_of(problem)
        fits = engine.alone()
        assert numbers(fits) == alive
        contests = engine.contests(fits)
        favored = engine.favored(contests, fits)
        found = by_pair(problem, contests, favored, fits)
        assert found == {
            pair: (one.capacity, one.favored) for pair, one in contested.items()
        }
        score = efficiencies(problem, contests, favored)
        for i in alive:
            assert close(score[i], worth[i]), (i, score[i], worth[i])
        assert [i for i in by_score(score).tolist() if i in alive] == order
        assert numbers(dpk(problem, engine_of)) == accepted
    assert verify(problem, sorted(accepted)) == ()
    assert not oracle.violations(world, accepted)
    return len(contested)


def close(score: float, worth: Fraction | float) -> bool:
    """Return whether a score is what it should be, but for the rounding of floats."""
    if isinstance(worth, float) or worth == 0:
        return score == worth
    return abs(Fraction(score) - worth) <= worth / 10**12


# --- DPK ------------------------------------------------------------------------------


@pytest.mark.spec("PLAN-4")
def test_rounds_on_a_ring_are_planned_as_published() -> None:
    rounds = contested = 0
    for n in range(counted(200)):
        life = RingLife.drawn(Random(f"{seed()}/ring/{n}"))
        for _ in range(3):
            problem, world, requests, ranges = life.round(life.rng.randint(0, 7))
            contested += agrees(problem, world)
            life.close(problem, requests, ranges, dpk(problem, NumpyEngine))
            rounds += 1
    assert rounds >= 500
    assert contested > rounds / 2


@pytest.mark.spec("PLAN-4")
def test_rounds_of_any_shape_are_planned_as_published() -> None:
    contested = 0
    for n in range(examples(400)):
        problem = some_problem(Random(f"{seed()}/any/{n}"), SMALL)
        contested += agrees(problem, world_of(problem))
    assert contested > examples(200)


# --- any order ------------------------------------------------------------------------


@pytest.mark.spec("PLAN-2")
def test_any_order_is_gone_through_as_it_is() -> None:
    for n in range(examples(300)):
        rng = Random(f"{seed()}/order/{n}")
        problem = some_problem(rng, SMALL)
        order = rng.sample(range(problem.requests), rng.randint(0, problem.requests))
        expected = oracle.greedy(world_of(problem), order)
        for engine_of in ENGINES:
            accepted = engine_of(problem).greedy(np.array(order, dtype=np.int64))
            assert numbers(accepted) == expected


# --- two engines ----------------------------------------------------------------------


@pytest.mark.spec("PLAN-6")
@pytest.mark.parametrize("n", range(examples(3)))
def test_engines_agree_on_larger_rounds(n: int) -> None:
    problem = some_problem(Random(f"{seed()}/large/{n}"), LARGE, full=True)
    answers = [_answers(problem, engine_of) for engine_of in ENGINES]
    for name, array in answers[0].items():
        assert np.array_equal(array, answers[1][name]), name
    accepted = answers[0]["greedy"]
    assert 0 < accepted.sum() < answers[0]["alone"].sum()
    assert len(answers[0]["favored"]) > 50
    assert len(set(answers[0]["favored"].tolist())) > 1
    assert verify(problem, np.flatnonzero(accepted)) == ()


def _answers(problem: Problem, engine_of: EngineOf) -> dict[str, np.ndarray]:
    engine = engine_of(problem)
    alive = engine.alone()
    contests = engine.contests(alive)
    order = dpk_order(problem, engine)
    return {
        "alone": alive,
        "segment": contests.segment,
        "place": contests.place,
        "pair_segment": contests.pair_segment,
        "pair_block": contests.pair_block,
        "capacity": contests.capacity,
        "favored": engine.favored(contests, alive),
        "order": order,
        "greedy": engine.greedy(order),
        "arrival": engine.greedy(np.arange(problem.requests)),
    }


def test_what_lets_everything_pass_changes_nothing() -> None:
    """A row that nobody can exhaust, beside others, is as good as none."""
    for n in range(examples(60)):
        problem = some_problem(Random(f"{seed()}/ample/{n}"), SMALL)
        if not len(problem.left):
            continue
        ample = np.full((1, problem.coordinates), 10**9)
        more = replace(
            problem,
            row_first=problem.row_first + (np.arange(len(problem.row_first)) > 0),
            left=np.concatenate([ample, problem.left]),
            block=np.concatenate([[0], problem.block]),
            costs=np.minimum(problem.costs, 10**6),
        )
        before = replace(problem, costs=more.costs)
        for engine_of in (NumpyEngine, NumbaEngine):
            assert numbers(dpk(before, engine_of)) == numbers(dpk(more, engine_of))
