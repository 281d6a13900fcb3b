"""Ranges of a ring, what was spent there, and the rounds that follow."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from budget import examples, seed
from samples.planned import integers, places_of

from modicum.accounting.grid import INFINITE
from modicum.core.errors import InvariantError
from modicum.planner.allocation.problem import Integers
from modicum.planner.rounds.ring import (
    Ranges,
    RingHistory,
    Spent,
    ring_problem,
    spent_on,
)


def some_ranges(rng: Random, size: int) -> Ranges:
    spans = [
        (rng.randrange(size), rng.choice((1, size, rng.randint(1, size))))
        for _ in range(rng.randint(0, 6))
    ]
    start, width = integers(spans, len(spans), 2).T
    return Ranges(size, start, width)


def elements(ranges: Ranges, request: int) -> set[int]:
    start, width = int(ranges.start[request]), int(ranges.width[request])
    return {(start + i) % ranges.size for i in range(width)}


def dense(spent: Spent, size: int) -> list[list[int]]:
    at: list[list[int]] = spent.at(np.arange(size)).tolist()
    return at


@pytest.mark.parametrize(
    ("start", "width", "cuts", "runs"),
    [
        (0, 1, [0, 1], [(0, 1)]),
        (9, 1, [0, 9], [(1, 2)]),
        (3, 4, [0, 3, 7], [(1, 2)]),
        (6, 4, [0, 6], [(1, 2)]),
        (6, 5, [0, 1, 6], [(0, 1), (2, 3)]),
        (5, 9, [0, 4, 5], [(0, 1), (2, 3)]),
        (0, 10, [0], [(0, 1)]),
        (7, 10, [0], [(0, 1)]),
    ],
)
def test_a_range_of_ten(
    start: int, width: int, cuts: list[int], runs: list[tuple[int, int]]
) -> None:
    ranges = Ranges(10, integers([start]), integers([width]))
    assert ranges.cuts().tolist() == cuts
    first, begins, ends = ranges.runs(ranges.cuts())
    assert first.tolist() == [0, len(runs)]
    assert list(zip(begins.tolist(), ends.tolist(), strict=True)) == runs


def test_ring_of_one_element() -> None:
    ranges = Ranges(1, integers([0, 0]), integers([1, 1]))
    assert ranges.cuts().tolist() == [0]
    assert [one.tolist() for one in ranges.runs(ranges.cuts())] == [
        [0, 1, 2],
        [0, 0],
        [1, 1],
    ]


@pytest.mark.spec("PLAN-3")
def test_a_round_spends_what_its_requests_cost_at_each_element() -> None:
    for n in range(examples(200)):
        rng = Random(f"{seed()}/spent/{n}")
        size = rng.randint(1, 12)
        ranges = some_ranges(rng, size)
        count = len(ranges.start)
        costs = integers([[rng.randint(0, 3)] * 2 for _ in range(count)], count, 2)
        accepted = np.array([rng.random() < 0.7 for _ in range(count)], dtype=np.bool_)
        spent = spent_on(ranges, costs, accepted)
        expected = [
            [
                sum(
                    int(costs[i, a])
                    for i in np.flatnonzero(accepted).tolist()
                    if point in elements(ranges, i)
                )
                for a in range(2)
            ]
            for point in range(size)
        ]
        assert dense(spent, size) == expected
        assert (np.diff(spent.costs, axis=0) != 0).any(axis=1).all()
        assert spent.cuts[0] == 0


@pytest.mark.spec("PLAN-3")
def test_a_group_has_left_what_is_unlocked_less_the_rounds_of_its_life() -> None:
    for n in range(examples(150)):
        rng = Random(f"{seed()}/left/{n}")
        size, groups = rng.randint(1, 10), rng.randint(1, 4)
        caps = integers([[10 * k, 7 * k] for k in range(1, groups + 1)])
        history = RingHistory()
        for _ in range(rng.randint(0, 5)):
            past = some_ranges(rng, size)
            count = len(past.start)
            costs = integers([[rng.randint(0, 9), 1] for _ in range(count)], count, 2)
            history.add(spent_on(past, costs, np.ones(count, np.bool_)), groups - 1)
        assert len(history.rounds) < groups
        ranges = some_ranges(rng, size)
        _check_left(ranges, caps, history)


def _check_left(ranges: Ranges, caps: Integers, history: RingHistory) -> None:
    size, groups, count = ranges.size, len(caps), len(ranges.start)
    problem = ring_problem(
        ranges,
        np.zeros((count, 2), np.int64),
        np.ones(count, np.int64),
        caps,
        history,
    )
    cuts = ranges.cuts().tolist()
    rounds = list(history.rounds)
    left: dict[tuple[int, int], set[tuple[int, ...]]] = {}
    for point in range(size):
        place = sum(cut <= point for cut in cuts) - 1
        demanding = {i for i in range(count) if point in elements(ranges, i)}
        assert demanding == {i for i in range(count) if place in places_of(problem, i)}
        for group in range(groups):
            own = (past.at(integers([point]))[0] for past in rounds[:group])
            spent = sum(own, start=np.zeros(2, np.int64))
            left.setdefault((place, group), set()).add(
                tuple((caps[group] - spent).tolist())
            )
    found: dict[tuple[int, int], set[tuple[int, ...]]] = {}
    for place in range(problem.places):
        for row in range(problem.row_first[place], problem.row_first[place + 1]):
            at = place, int(problem.block[row])
            found.setdefault(at, set()).add(tuple(problem.left[row].tolist()))
    assert found == left


def test_only_the_rounds_of_some_active_group_are_remembered() -> None:
    history = RingHistory()
    for number in range(5):
        history.add(Spent(integers([0]), integers([[number]])), 3)
    assert [int(past.costs[0, 0]) for past in history.rounds] == [4, 3, 2]
    history.add(Spent(integers([0]), integers([[9]])), 0)
    assert not history.rounds


@pytest.mark.spec("PLAN-3")
def test_what_could_not_be_added_up_is_refused() -> None:
    """Four infinite costs would add up to nothing in 64 bits."""
    ranges = Ranges(4, integers([0] * 4), integers([4] * 4))
    costs = integers([[1, INFINITE]] * 4)
    with pytest.raises(InvariantError, match="PLAN-3"):
        spent_on(ranges, costs, np.ones(4, np.bool_))
    nothing = spent_on(ranges, costs, np.zeros(4, np.bool_))
    assert dense(nothing, 4) == [[0, 0]] * 4
    cut_down = spent_on(ranges, np.minimum(costs, 100), np.ones(4, np.bool_))
    assert dense(cut_down, 4) == [[4, 400]] * 4
    history = RingHistory()
    for _ in range(2):
        history.add(Spent(integers([0]), integers([[INFINITE - 1]])), 2)
    with pytest.raises(InvariantError, match="PLAN-3"):
        ring_problem(
            Ranges(4, integers([]), integers([])),
            integers([], 0, 1),
            integers([]),
            integers([[1], [2], [3]]),
            history,
        )
