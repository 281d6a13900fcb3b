"""Which requests and rows a solver is asked about."""

from __future__ import annotations

import numpy as np
from samples.planned import integers

from modicum.planner.allocation.disjunctions import simpler
from modicum.planner.allocation.numpy_kernel import NumpyEngine
from modicum.planner.allocation.problem import Problem
from modicum.planner.allocation.problem_reduction import Narrowed, narrowed


def found(
    left: list[list[list[int]]], requests: list[tuple[list[int], int, int]]
) -> Narrowed:
    """Return what is in dispute.

    Args:
        left: The rows of each place.
        requests: The cost of each request, its first place and the one after its last.
    """
    rows = [row for place in left for row in place]
    problem = Problem(
        weights=integers([1 for _ in requests]),
        costs=integers([cost for cost, _, _ in requests]),
        run_first=np.arange(len(requests) + 1),
        run_start=integers([start for _, start, _ in requests]),
        run_stop=integers([stop for _, _, stop in requests]),
        row_first=integers(np.cumsum([0, *map(len, left)])),
        left=integers(rows),
        block=np.zeros(len(rows), np.int64),
        line=np.zeros(len(left), np.int64),
        full=integers([[100] * len(rows[0])]),
    )
    return narrowed(problem, NumpyEngine(problem).alone())


def test_who_meets_no_row_that_binds_does_not_compete() -> None:
    it = found(
        [[[3]], [[9]], [[-1]]], [([2], 0, 1), ([2], 0, 2), ([5], 1, 2), ([9], 0, 1)]
    )
    assert it.requests.tolist() == [0, 1]
    assert it.row.tolist() == [0]
    assert it.demands.tolist() == [[4]]
    assert [array.tolist() for array in it.meetings()] == [[0, 1], [0, 0]]


def test_of_rows_that_ask_the_same_the_first_is_kept() -> None:
    wide, narrow = ([3], 0, 3), ([1], 1, 2)
    assert found([[[5]], [[6]], [[5]]], [wide, wide, narrow]).row.tolist() == [0, 1]
    assert found([[[5], [5]]], [([3], 0, 1)] * 2).row.tolist() == [0]
    different = [[5, 4], [4, 5], [5, 5]]
    assert found([different], [([3, 3], 0, 1)] * 2).row.tolist() == [0, 1]


def test_a_row_of_fewer_requests_with_no_less_left_is_out() -> None:
    wide, narrow = ([3], 0, 3), ([1], 1, 2)
    assert found([[[5]], [[5]], [[5]]], [wide, wide, narrow]).row.tolist() == [1]
    assert found([[[4]], [[5]], [[6]]], [wide, wide, narrow]).row.tolist() == [0, 1]
    # Of two coordinates, both must have no less left.
    two = [([3, 3], 0, 3), ([3, 3], 0, 3), ([1, 1], 1, 2)]
    assert found([[[5, 4]], [[4, 5]], [[5, 5]]], two).row.tolist() == [0, 1]


def test_requests_that_end_and_begin_at_a_place_are_told_apart() -> None:
    requests = [([3], 0, 1), ([3], 0, 1), ([3], 1, 2), ([3], 1, 2)]
    it = found([[[5]], [[5]]], requests)
    assert it.row.tolist() == [0, 1]
    assert [array.tolist() for array in it.meetings()] == [[0, 1, 2, 3], [0, 0, 1, 1]]


def test_a_coordinate_that_never_holds_alone_is_out() -> None:
    # 3/6 and 2/6 of the one, 1/4 and 1/4 of the other.
    it = simpler(found([[[6, 4]]], [([3, 1], 0, 1), ([2, 1], 0, 1), ([3, 3], 0, 1)]))
    assert it.left.tolist() == [[6, 4]]
    it = simpler(found([[[6, 4]]], [([3, 1], 0, 1), ([6, 4], 0, 1)]))
    assert it.left.tolist() == [[-1, 4]]


def test_shares_are_compared_exactly() -> None:
    large = 2**52
    requests = [([large + 1, large], 0, 1), ([large, large], 0, 1)]
    # As floats, both coordinates are alike to the last digit.
    assert simpler(found([[[large + 1] * 2]], requests)).left.tolist() == [
        [-1, large + 1]
    ]
    requests = [([large, large + 1], 0, 1), ([large, large], 0, 1)]
    assert simpler(found([[[large + 1] * 2]], requests)).left.tolist() == [
        [large + 1, -1]
    ]
    requests = [([large + 1, large], 0, 1), ([large, large + 1], 0, 1)]
    assert simpler(found([[[large + 1] * 2]], requests)).left.tolist() == [
        [large + 1] * 2
    ]


def test_a_coordinate_of_which_nothing_is_left_holds_for_costs_of_nothing() -> None:
    requests = [([0, 9], 0, 1), ([3, 5], 0, 1), ([0, 4], 0, 1)]
    assert simpler(found([[[0, 5]]], requests)).left.tolist() == [[0, 5]]
