"""The greedy allocator that a linear program guides."""

from __future__ import annotations

import sys
from random import Random

import numpy as np
import pytest
from budget import counted, examples, seed
from oracle.planning import violations
from samples.planned import (
    LARGE,
    SMALL,
    Size,
    dpk,
    integers,
    numbers,
    places_of,
    some_problem,
    world_of,
)

from modicum.core.errors import InputError
from modicum.planner.allocation.lp_greedy import guided
from modicum.planner.allocation.lp_relaxation import Relaxed, knapsacks, relaxed
from modicum.planner.allocation.numba_kernel import NumbaEngine
from modicum.planner.allocation.numpy_kernel import NumpyEngine
from modicum.planner.allocation.optimum import optimal
from modicum.planner.allocation.problem import Problem

CROWDED = Size(
    requests=40, places=9, blocks=3, coordinates=4, runs=2, rows=2, scale=900
)
ONE_COORDINATE = Size(
    requests=8, places=6, blocks=3, coordinates=1, runs=3, rows=3, scale=24
)


def drawn(name: str, size: Size, count: int, *, full: bool = False) -> list[Problem]:
    rng = Random(f"{seed()}/guided/{name}")
    return [some_problem(rng, size, full=full) for _ in range(count)]


def relaxation_of(problem: Problem) -> Relaxed:
    engine = NumpyEngine(problem)
    alive = engine.alone()
    contests = engine.contests(alive)
    held = knapsacks(problem, contests, engine.favored(contests, alive), alive)
    return relaxed(problem, held, np.flatnonzero(alive))


def test_it_fits_and_is_never_below_dpk() -> None:
    better = 0
    for problem in [
        *drawn("small", SMALL, counted(150)),
        *drawn("crowded", CROWDED, counted(30), full=True),
        *drawn("large", LARGE, counted(2), full=True),
    ]:
        engine = NumbaEngine(problem)
        accepted = guided(problem, engine)
        assert violations(world_of(problem), numbers(accepted)) == []
        # Nothing that still fits is left out.
        left = np.flatnonzero(~accepted)
        order = np.concatenate([np.flatnonzero(accepted), left])
        assert (engine.greedy(order) == accepted).all()
        plain = dpk(problem, NumbaEngine)
        weight, least = problem.weights[accepted].sum(), problem.weights[plain].sum()
        assert weight >= least
        better += weight > least
    assert better > 10


def test_either_engine_and_another_time_give_the_same() -> None:
    for problem in drawn("same", CROWDED, examples(20)):
        plans = [
            guided(problem, engine_of(problem))
            for engine_of in (NumpyEngine, NumbaEngine, NumpyEngine)
        ]
        assert len({numbers(plan) for plan in plans}) == 1


def test_only_those_among_whom_to_choose_are_accepted() -> None:
    rng = Random(f"{seed()}/among")
    for problem in drawn("among", CROWDED, examples(20)):
        among = np.array([rng.random() < 0.5 for _ in range(problem.requests)], bool)
        accepted = guided(problem, NumpyEngine(problem), among)
        assert not (accepted & ~among).any()
        assert violations(world_of(problem), numbers(accepted)) == []


def test_prices_say_what_a_request_is_worth_beyond_them() -> None:
    priced = 0
    for problem in [
        *drawn("prices", SMALL, examples(60)),
        *drawn("prices", CROWDED, examples(10)),
    ]:
        found = relaxation_of(problem)
        assert (found.prices >= 0).all()
        alive, costs = NumpyEngine(problem).alone(), problem.clamped()
        for request in np.flatnonzero(alive).tolist():
            price = sum(
                float(found.prices[place] @ costs[request])
                for place in places_of(problem, request)
            )
            priced += price > 0
            gain = problem.weights[request] - price
            assert found.gain[request] == pytest.approx(gain, abs=1e-6)
            # What is accepted in part is worth just its price.
            if found.share[request] < 1 - 1e-6:
                assert found.gain[request] < 1e-6
            if found.share[request] > 1e-6:
                assert found.gain[request] > -1e-6
    assert priced > 50


def test_a_program_worked_out_by_hand() -> None:
    # Two places; the third request asks for both. 10 and 8 are left.
    problem = Problem(
        weights=integers([6, 3, 8, 1]),
        costs=integers([[6], [6], [4], [6]]),
        run_first=np.arange(5),
        run_start=integers([0, 0, 0, 1]),
        run_stop=integers([1, 1, 2, 2]),
        row_first=integers([0, 1, 2]),
        left=integers([[10], [8]]),
        block=integers([0, 0]),
        line=integers([0, 0]),
        full=integers([[10]]),
    )
    found = relaxation_of(problem)
    assert found.share == pytest.approx([1, 0, 1, 2 / 3])
    assert found.bound == pytest.approx(14 + 2 / 3)
    assert found.prices[1, 0] == pytest.approx(1 / 6)
    assert 0.5 - 1e-9 <= found.prices[0, 0] <= 1 + 1e-9
    assert numbers(guided(problem, NumpyEngine(problem))) == {0, 2}


def test_with_one_coordinate_its_bound_is_above_the_optimum() -> None:
    binding = 0
    for problem in drawn("bound", ONE_COORDINATE, counted(60), full=True):
        bound = relaxation_of(problem).bound
        best = optimal(problem, NumpyEngine(problem), seconds=60, gap=0).weight
        assert bound >= best - 1e-6
        assert bound <= problem.weights[NumpyEngine(problem).alone()].sum() + 1e-6
        binding += bound < problem.weights[NumpyEngine(problem).alone()].sum()
    assert binding > 10


def test_without_the_solver_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (problem,) = drawn("missing", CROWDED, 1, full=True)
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(InputError, match="highspy") as caught:
        guided(problem, NumpyEngine(problem))
    (mistake,) = caught.value.problems
    assert mistake.code.value == "MOD108"
    assert mistake.help == "pip install 'modicum[plan]'"
