"""Both engines on rounds that one can work out by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from samples.planned import ENGINES, dpk, dpk_order, integers, numbers

from modicum.accounting.grid import INFINITE
from modicum.planner.allocation import engine as engines
from modicum.planner.allocation.engine import Engine, numba_engine
from modicum.planner.allocation.loops import knapsacks
from modicum.planner.allocation.loops import rows as segments
from modicum.planner.allocation.numba_kernel import NumbaEngine
from modicum.planner.allocation.problem import Problem

EngineOf = Callable[[Problem], Engine]

both = pytest.mark.parametrize("engine_of", ENGINES, ids=["numpy", "numba"])


def problem_of(
    left: list[list[list[int]]],
    requests: list[tuple[int, list[int], list[tuple[int, int]]]],
    *,
    coordinates: int = 1,
    line: list[int] | None = None,
) -> Problem:
    """Return a problem of one balance.

    Args:
        left: The rows of each place.
        requests: The weight, the cost and the runs of each request.
        coordinates: Of costs.
        line: By place; all on one if left out.
    """
    rows = [row for place in left for row in place]
    runs = [run for _, _, own in requests for run in own]
    return Problem(
        weights=integers([weight for weight, _, _ in requests], len(requests)),
        costs=integers([cost for _, cost, _ in requests], len(requests), coordinates),
        run_first=integers(np.cumsum([0, *(len(own) for _, _, own in requests)])),
        run_start=integers([start for start, _ in runs]),
        run_stop=integers([stop for _, stop in runs]),
        row_first=integers(np.cumsum([0, *map(len, left)])),
        left=integers(rows, len(rows), coordinates),
        block=np.zeros(len(rows), np.int64),
        line=integers(line or [0] * len(left)),
        full=integers([[100] * coordinates]),
    )


@both
@pytest.mark.spec("PLAN-2")
def test_a_round_without_requests(engine_of: EngineOf) -> None:
    rounds: list[list[list[list[int]]]] = [[], [[]], [[[5, -1]], [[0, 0], [1, 1]]]]
    for left in rounds:
        problem = problem_of(left, [], coordinates=2)
        engine = engine_of(problem)
        alive = engine.alone()
        assert alive.shape == (0,)
        contests = engine.contests(alive)
        assert contests.segment.tolist() == [-1] * len(left)
        assert contests.capacity.shape == (0, 2)
        assert engine.favored(contests, alive).tolist() == []
        assert dpk_order(problem, engine).tolist() == []
        assert dpk(problem, engine_of).tolist() == []


@both
@pytest.mark.spec("PLAN-2")
@pytest.mark.parametrize(
    ("cost", "left", "fits"),
    [
        ([3, 9], [3, 3], True),
        ([4, 9], [3, 3], False),
        ([9, 3], [-5, 3], True),
        ([0, 0], [-1, -1], False),
        ([0, 1], [0, -1], True),
        ([INFINITE, 3], [99, 3], True),
        ([INFINITE, INFINITE], [99, 99], False),
        ([INFINITE, INFINITE], [INFINITE // 3, 5], False),
        ([50, 50], [-INFINITE, -INFINITE], False),
    ],
)
def test_one_request_at_one_row(
    engine_of: EngineOf, cost: list[int], left: list[int], fits: bool
) -> None:
    problem = problem_of([[left]], [(1, cost, [(0, 1)])], coordinates=2)
    assert engine_of(problem).alone().tolist() == [fits]
    assert dpk(problem, engine_of).tolist() == [fits]


@both
@pytest.mark.spec("PLAN-2")
def test_every_row_may_let_a_cost_pass_at_a_coordinate_of_its_own(
    engine_of: EngineOf,
) -> None:
    left = [[[5, 0], [0, 5]], [], [[0, 5]]]
    requests = [
        (1, [4, 4], [(0, 1), (2, 3)]),
        (1, [2, 2], [(0, 3)]),
        (1, [1, 9], [(2, 3)]),
    ]
    problem = problem_of(left, requests, coordinates=2)
    engine = engine_of(problem)
    assert engine.alone().tolist() == [True, True, False]
    assert engine.greedy(integers([0, 1, 2])).tolist() == [True, False, False]
    assert engine.greedy(integers([1, 0])).tolist() == [False, True, False]
    assert engine.greedy(integers([2])).tolist() == [False, False, False]
    assert engine.greedy(integers([])).tolist() == [False, False, False]


@both
@pytest.mark.spec("PLAN-2")
def test_where_nothing_is_charged_or_left_nothing_is_turned_away(
    engine_of: EngineOf,
) -> None:
    requests = [(1, [7], [(1, 2)]), (1, [INFINITE], []), (1, [1], [(0, 1)])]
    problem = problem_of([[[-3]], []], requests)
    assert engine_of(problem).alone().tolist() == [True, True, False]
    assert dpk(problem, engine_of).tolist() == [True, True, False]


@both
@pytest.mark.spec("PLAN-4")
def test_segments_join_all_places_of_a_line_with_the_same_requests(
    engine_of: EngineOf,
) -> None:
    left = [[[9], [6]], [[1]], [[5]], [[3]], [[2]]]
    requests = [(1, [4], [(0, 1), (2, 4)]), (1, [5], [(0, 1), (2, 4)])]
    problem = problem_of(left, requests, line=[0, 0, 0, 1, 1])
    everybody = np.ones(2, np.bool_)
    contests = engine_of(problem).contests(everybody)
    assert contests.segment.tolist() == [0, -1, 0, 1, -1]
    assert contests.place.tolist() == [0, 3]
    # Either row of the first segment is short of 9; the least is left at place 2.
    assert contests.pair_place.tolist() == [0, 3]
    assert contests.pair_block.tolist() == [0, 0]
    assert contests.capacity.tolist() == [[5], [3]]
    nobody = engine_of(problem).contests(~everybody)
    assert nobody.segment.tolist() == [-1] * 5


@both
@pytest.mark.spec("PLAN-4")
def test_of_coordinates_that_hold_as_much_the_last_is_favored(
    engine_of: EngineOf,
) -> None:
    whole = [(0, 1)]
    for requests, left, best in (
        ([(2, [1, 1, 9], whole), (2, [1, 1, 9], whole)], [1, 1, 1], 1),
        ([(2, [1, 1, 1], whole), (3, [1, 9, 1], whole)], [1, 1, 1], 2),
        ([(2, [1, 1, 9], whole), (3, [1, 9, 9], whole)], [1, 1, 1], 0),
        ([(0, [1, 1, 9], whole), (0, [1, 1, 9], whole)], [1, 1, 1], 2),
        ([(1, [9, 9, 9], whole), (1, [9, 9, 9], whole)], [1, 1, 1], 2),
    ):
        problem = problem_of([[left]], requests, coordinates=3)
        alive = np.ones(2, np.bool_)
        engine = engine_of(problem)
        contests = engine.contests(alive)
        assert engine.favored(contests, alive).tolist() == [best]


@both
@pytest.mark.spec("PLAN-4")
def test_the_knapsack_is_filled_exactly_where_it_matters(engine_of: EngineOf) -> None:
    whole = [(0, 1)]
    requests = [
        (60, [6, 9], whole),
        (49, [5, 99], whole),
        (49, [5, 99], whole),
        (30, [4, 1], whole),
    ]
    problem = problem_of([[[10, 10]]], requests, coordinates=2)
    alive = np.ones(4, np.bool_)
    engine = engine_of(problem)
    # By density, either holds 60 + 30; at best, coordinate 0 holds 49 + 49.
    contests = engine.contests(alive)
    assert engine.favored(contests, alive).tolist() == [0]
    more = replace(problem, weights=integers([60, 45, 45, 30]))
    engine = engine_of(more)
    assert engine.favored(engine.contests(alive), alive).tolist() == [1]


def test_loops_are_compiled_once_however_arrays_lie_in_memory() -> None:
    """Compiling takes seconds, and numba does so for every kind of array it meets."""
    requests = [(1, [2, 3], [(0, 1)]), (1, [3, 2], [(0, 1)]), (2, [3, 3], [(0, 1)])]
    problem = problem_of([[[4, 4]]], requests, coordinates=2)
    expected = dpk(problem, NumbaEngine)
    loop: Any = knapsacks.favored
    before = len(loop.signatures)
    frozen = problem.weights.copy()
    frozen.flags.writeable = False
    other = replace(problem, weights=frozen, costs=np.asfortranarray(problem.costs))
    assert np.array_equal(dpk(other, NumbaEngine), expected)
    assert len(loop.signatures) == before


def test_an_engine_is_made_for_numba_if_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert numba_engine() is NumbaEngine
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    assert numba_engine() is None


def test_who_is_accepted_is_told_by_number() -> None:
    assert numbers(np.array([True, False, True])) == {0, 2}


def test_marks_that_cancel_out_cannot_be_picked() -> None:
    """Among any 65 marks some cancel out, if one knows the salt before one asks.

    Then a place at which all of these ask would look like one at which nobody does.
    """
    salt = np.uint64(1)
    basis: dict[int, tuple[int, int]] = {}
    chosen = 0
    for request in range(65):
        mark, chosen = int(segments.mixed(request, salt)), 1 << request
        while mark and mark.bit_length() in basis:
            other, others = basis[mark.bit_length()]
            mark, chosen = mark ^ other, chosen ^ others
        if not mark:
            break
        basis[mark.bit_length()] = mark, chosen
    gang = [request for request in range(65) if chosen >> request & 1]
    marks = [int(segments.mixed(request, salt)) for request in gang]
    assert np.bitwise_xor.reduce(np.array(marks, np.uint64)) == 0
    requests = [
        (1, [10], [(1, 2)] if request in gang else [])
        for request in range(max(gang) + 1)
    ]
    problem = problem_of([[[1000]], [[25]]], [*requests, (1000, [20], [(0, 2)])])
    plans = [dpk(problem, engine_of) for engine_of in ENGINES]
    assert plans[0].tolist() == plans[1].tolist()
    assert plans[0][-1]
