"""The exact optimum of a round, against trying every choice."""

from __future__ import annotations

import sys
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from budget import counted, examples, seed
from oracle.planning import violations
from samples.planned import (
    SMALL,
    RingLife,
    Size,
    dpk,
    integers,
    numbers,
    places_of,
    some_problem,
    world_of,
)

from modicum.core.errors import InputError
from modicum.planner.allocation import optimum as searching
from modicum.planner.allocation.highs import Answer, Effort, Program, solve
from modicum.planner.allocation.lp_greedy import guided
from modicum.planner.allocation.numba_kernel import NumbaEngine
from modicum.planner.allocation.numpy_kernel import NumpyEngine
from modicum.planner.allocation.optimum import Optimum, optimal
from modicum.planner.allocation.problem import Booleans, Numbers, Problem

#: More requests than rows let pass, so that there is something to choose.
CROWDED = Size(requests=9, places=4, blocks=2, coordinates=3, runs=2, rows=2, scale=900)
#: What a search needs a while for.
BUSY = Size(
    requests=150, places=40, blocks=3, coordinates=3, runs=2, rows=2, scale=90_000
)


def best_by_trying(problem: Problem) -> int:
    """Return the most weight that fits, of all choices of requests."""
    n = problem.requests
    choices = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    costs = np.minimum(problem.costs, 10**17 + 1)
    wanted = [places_of(problem, request) for request in range(n)]
    passes = np.ones(len(choices), np.bool_)
    for place in range(problem.places):
        here = np.array([place in own for own in wanted], np.int64)
        spent = choices @ (here[:, None] * costs)
        for left in problem.left[
            problem.row_first[place] : problem.row_first[place + 1]
        ]:
            passes &= (spent <= left).any(axis=1) | ~(choices @ here > 0)
    return int((choices @ problem.weights)[passes].max())


def checked(problem: Problem, optimum: Optimum) -> None:
    """Check what is always so."""
    assert violations(world_of(problem), numbers(optimum.accepted)) == []
    assert optimum.weight == problem.weights[optimum.accepted].sum()
    assert optimum.bound >= optimum.weight >= 0
    assert optimum.gap >= 0


def rounds(count: int) -> list[Problem]:
    """Return rounds of every kind, all small enough to try every choice."""
    rng = Random(f"{seed()}/optimal")
    found = []
    for number in range(count):
        if number % 3 == 0:
            life = RingLife.drawn(rng)
            for _ in range(rng.randint(0, 2)):
                problem, _, requests, ranges = life.round(rng.randint(1, 6))
                life.close(problem, requests, ranges, dpk(problem, NumpyEngine))
            found.append(life.round(rng.randint(1, 9))[0])
        elif number % 3 == 1:
            found.append(some_problem(rng, SMALL))
        else:
            found.append(varied(some_problem(rng, CROWDED, full=True), rng))
    return found


def varied(problem: Problem, rng: Random) -> Problem:
    """Return a round with weights of many sizes."""
    times = [rng.randint(1, 9) for _ in range(problem.requests)]
    return replace(problem, weights=problem.weights * np.array(times, np.int64))


def test_the_optimum_is_what_trying_everything_finds() -> None:
    chosen = 0
    for problem in rounds(counted(300)):
        optimum = optimal(problem, NumpyEngine(problem), seconds=60, gap=0)
        best = best_by_trying(problem)
        assert (optimum.weight, optimum.bound) == (best, best)
        assert optimum.proven
        assert optimum.held
        assert optimum.gap == 0
        checked(problem, optimum)
        chosen += best > problem.weights[dpk(problem, NumpyEngine)].sum()
    # Else these rounds would not tell an optimum from what any allocator finds.
    assert chosen > 15


def test_every_bound_is_above_what_can_be_had() -> None:
    for problem in rounds(examples(60)):
        best = best_by_trying(problem)
        for seconds, gap in ((0.0, 0.0), (60.0, 0.3)):
            engine = NumpyEngine(problem)
            optimum = optimal(problem, engine, seconds=seconds, gap=gap)
            checked(problem, optimum)
            assert optimum.bound >= best >= optimum.weight
            assert not optimum.proven or best * 10 <= optimum.weight * 13


def busy() -> Problem:
    """Return a round that takes long to solve."""
    problem: Problem = some_problem(Random("busy"), BUSY, full=True)
    return problem


def test_when_time_runs_out_the_best_so_far_is_the_answer() -> None:
    problem = busy()
    engine = NumbaEngine(problem)
    optimum = optimal(problem, engine, seconds=0.05, gap=0)
    checked(problem, optimum)
    assert not optimum.proven
    assert optimum.bound > optimum.weight
    assert optimum.weight >= problem.weights[dpk(problem, NumbaEngine)].sum()
    # A generous limit: machines are slow at times.
    assert optimum.seconds < 30
    # Nor is it proven if a bound that takes no search happens to be near.
    assert not optimal(problem, engine, seconds=0.0, gap=9.0).proven


def test_an_answer_is_never_worse_than_the_start() -> None:
    problem = busy()
    engine = NumbaEngine(problem)
    good = optimal(problem, engine, seconds=1.0, gap=0)
    again = optimal(problem, engine, seconds=0.0, start=good.accepted)
    assert again.weight >= good.weight
    everything = np.ones(problem.requests, np.bool_)
    checked(problem, optimal(problem, engine, seconds=0.0, start=everything))


def test_the_same_round_has_the_same_optimum_with_either_engine() -> None:
    for problem in rounds(examples(30)):
        answers = [
            optimal(problem, engine_of(problem), seconds=60, gap=0)
            for engine_of in (NumpyEngine, NumbaEngine, NumpyEngine)
        ]
        assert len({numbers(answer.accepted) for answer in answers}) == 1


def test_what_a_solver_chooses_too_much_of_is_not_proven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if its rounding let one request too many pass."""

    def careless(
        program: Program, effort: Effort | None = None, start: object = None
    ) -> Answer:
        answer = solve(program, effort)
        return replace(answer, x=np.ones_like(answer.x), finished=True)

    monkeypatch.setattr(searching, "solve", careless)
    dropped = 0
    for problem in rounds(counted(30)):
        optimum = optimal(problem, NumpyEngine(problem), seconds=60, gap=0.5)
        checked(problem, optimum)
        assert optimum.held or not optimum.proven
        dropped += not optimum.held
    assert dropped > 3


@pytest.mark.parametrize("said", [0.0, float("-inf"), float("nan")])
def test_a_program_that_was_not_solved_to_its_end_bounds_nothing(
    said: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the gap that is told would be less than the true one."""

    def stopped(
        program: Program, effort: Effort | None = None, start: Numbers | None = None
    ) -> Answer:
        answer = solve(program, effort, start)
        if program.whole.any():  # No time for this one: it knows no better bound.
            unknown = said if not np.isfinite(said) else float("inf")
            nothing = np.empty(0, np.float64)
            return replace(answer, x=nothing, bound=unknown, finished=False)
        return replace(answer, bound=said, finished=False)

    monkeypatch.setattr(searching, "solve", stopped)
    result = 0
    for problem in rounds(counted(30)):
        optimum = optimal(problem, NumpyEngine(problem), seconds=60, gap=0)
        checked(problem, optimum)
        assert optimum.bound >= best_by_trying(problem)
        result += optimum.gap > 0
    assert result > 3


def large() -> Problem:
    """Return a round with numbers as large as they get."""
    problem: Problem = some_problem(Random("large"), CROWDED, full=True)
    times = 2**46
    return replace(
        problem,
        weights=problem.weights * 2**40 + np.arange(problem.requests),
        costs=np.where(problem.costs < 2**60, problem.costs % 2**11 * times, 2**62),
        left=problem.left * times,
    )


def test_large_numbers_are_scaled() -> None:
    problem = large()
    small = replace(
        problem,
        costs=np.minimum(problem.costs // 2**46, 10**6),
        left=problem.left // 2**46,
    )
    optimum = optimal(problem, NumpyEngine(problem), seconds=60)
    checked(problem, optimum)
    best = best_by_trying(small)
    assert optimum.bound >= best >= optimum.weight
    assert optimum.proven
    assert best <= optimum.weight * 1.0011


def test_without_the_solver_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    problem = busy()
    with pytest.raises(InputError, match="highspy") as caught:
        optimal(problem, NumbaEngine(problem))
    (mistake,) = caught.value.problems
    assert mistake.code.value == "MOD108"
    assert mistake.help == "pip install 'modicum[plan]'"


def test_a_round_without_requests() -> None:
    problem = some_problem(Random("none"), replace(SMALL, requests=0))
    optimum = optimal(problem, NumpyEngine(problem))
    accepted: Booleans = optimum.accepted
    assert accepted.shape == (0,)
    assert (optimum.weight, optimum.bound, optimum.proven) == (0, 0, True)


def round_of(left: list[list[int]], requests: list[tuple[int, list[int]]]) -> Problem:
    """Return a round of one place, of which all requests ask."""
    n, rows = len(requests), len(left)
    return Problem(
        weights=integers([weight for weight, _ in requests]),
        costs=integers([cost for _, cost in requests]),
        run_first=np.arange(n + 1),
        run_start=np.zeros(n, np.int64),
        run_stop=np.ones(n, np.int64),
        row_first=integers([0, rows]),
        left=integers(left),
        block=np.zeros(rows, np.int64),
        line=integers([0]),
        full=integers([[10**18] * len(left[0])]),
    )


@pytest.mark.parametrize(
    "problem",
    [
        # Nothing is left, but each of them takes nothing somewhere.
        round_of([[0, 0]], [(5, [7, 0]), (3, [0, 7]), (4, [0, 9])]),
        round_of([[-1, 0, 0]], [(5, [0, 7, 0]), (3, [0, 0, 7]), (4, [9, 0, 9])]),
        # Shares are too small, or too large, for the solver.
        round_of(
            [[10**12, 10**12]], [(1, [1, 1]), (9, [10**12] * 2), (8, [10**12] * 2)]
        ),
        round_of(
            [[1, 10**17], [10**17, 1]],
            [(5, [1, 1]), (7, [10**17, 1]), (8, [1, 10**17]), (6, [1, 1])],
        ),
        round_of([[10**17, 2]], [(5, [10**17, 1]), (7, [10**17, 1]), (8, [1, 10**17])]),
    ],
)
def test_extreme_shares_are_solved(problem: Problem) -> None:
    engine = NumpyEngine(problem)
    most = best_by_trying(replace(problem, costs=problem.clamped()))
    optimum = optimal(problem, engine, seconds=60)
    checked(problem, optimum)
    assert optimum.weight <= most <= optimum.bound
    assert optimum.weight == most or not optimum.proven
    plan = guided(problem, engine)
    assert violations(world_of(problem), numbers(plan)) == []
