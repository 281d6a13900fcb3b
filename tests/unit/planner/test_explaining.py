"""What stands in the way of a request is really there, and all of it is told."""

from __future__ import annotations

import numpy as np
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.planner.allocation.numpy_kernel import NumpyEngine
from modicum.planner.allocation.problem import Problem
from modicum.planner.obstacles import why_not


def on_one_line(
    costs: list[list[int]], spans: list[tuple[int, int]], left: list[list[int]]
) -> Problem:
    """Return a problem of one run for each request, and one row at each place."""
    places = len(left)
    return Problem(
        weights=np.ones(len(costs), np.int64),
        costs=np.array(costs, np.int64),
        run_first=np.arange(len(costs) + 1),
        run_start=np.array([start for start, _ in spans], np.int64),
        run_stop=np.array([stop for _, stop in spans], np.int64),
        row_first=np.arange(places + 1),
        left=np.array(left, np.int64),
        block=np.zeros(places, np.int64),
        line=np.zeros(places, np.int64),
        full=np.array([[100] * len(costs[0])], np.int64),
    )


def test_the_place_the_coordinate_and_the_rivals_are_told() -> None:
    problem = on_one_line(
        [[4, 9], [3, 1], [2, 9], [5, 5]],
        [(0, 2), (1, 3), (1, 2), (0, 3)],
        [[10, 10], [8, 10], [9, 4]],
    )
    accepted = np.array([True, True, False, False])
    (obstacle,) = why_not(problem, accepted, 2)
    assert (obstacle.place, obstacle.block, obstacle.line) == (1, 0, 0)
    assert obstacle.before == (8, 10)
    assert obstacle.left == (1, 0)
    assert obstacle.needs == (2, 9)
    assert obstacle.rivals == (0, 1)  # At least 4/8 of every coordinate; at least 1/10.
    assert obstacle.coordinate == 0
    assert not obstacle.alone


def test_what_does_not_fit_alone_comes_first() -> None:
    problem = on_one_line([[5], [5]], [(0, 3), (0, 3)], [[9], [4], [-1]])
    obstacles = why_not(problem, np.array([True, False]), 1)
    assert [one.place for one in obstacles] == [2, 1, 0]
    assert [one.alone for one in obstacles] == [True, True, False]
    assert len(why_not(problem, np.array([True, False]), 1, most=1)) == 1


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_there_are_obstacles_exactly_if_the_request_does_not_fit(
    data: st.DataObject,
) -> None:
    places, requests, coordinates = 5, 6, 2
    amount = st.integers(0, 12)
    costs = data.draw(_table(amount, requests, coordinates))
    spans = [
        (start, data.draw(st.integers(start + 1, places)))
        for start in data.draw(
            st.lists(st.integers(0, places - 1), min_size=6, max_size=6)
        )
    ]
    left = data.draw(_table(st.integers(-2, 30), places, coordinates))
    problem = on_one_line(costs, spans, left)
    accepted = NumpyEngine(problem).greedy(np.arange(requests))
    for request in np.flatnonzero(~accepted):
        spent = np.array(left)
        for other in np.flatnonzero(accepted):
            spent[slice(*spans[other])] -= costs[other]
        blocked = [
            place
            for place in range(*spans[request])
            if not any(
                cost <= rest
                for cost, rest in zip(costs[request], spent[place], strict=True)
            )
        ]
        result = why_not(problem, accepted, int(request))
        assert sorted(one.place for one in result) == blocked
        for one in result:
            assert one.alone == (
                not any(
                    cost <= rest
                    for cost, rest in zip(costs[request], left[one.place], strict=True)
                )
            )
            assert set(one.rivals) == {
                other
                for other in np.flatnonzero(accepted)
                if spans[other][0] <= one.place < spans[other][1]
            }


def _table(
    numbers: st.SearchStrategy[int], rows: int, columns: int
) -> st.SearchStrategy[list[list[int]]]:
    line = st.lists(numbers, min_size=columns, max_size=columns)
    return st.lists(line, min_size=rows, max_size=rows)
