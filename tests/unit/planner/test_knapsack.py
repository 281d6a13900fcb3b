"""Knapsacks: bounds enclose the best filling, and the search finds it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, TypeAlias

import numpy as np
import pytest
from budget import counted, examples, seed
from oracle.planning import best_filling
from samples.planned import integers

from modicum.planner.allocation.knapsack import (
    fill_best,
    fill_greedily,
    fill_until_full,
)
from modicum.planner.allocation.loops import knapsacks, presence
from modicum.planner.allocation.problem import Integers

pytestmark = pytest.mark.soak

ENDLESS = 10**9

#: The quick filling, the greedy one and the search.
Loops: TypeAlias = tuple[Callable[..., Any], Callable[..., int], Callable[..., int]]


def until_full_in_a_tree(
    cost: Integers, weight: Integers, count: int, room: int
) -> tuple[int, float]:
    """Return the quick bounds, of items that came and went in a tree."""
    moves = integers([*range(0, count, 3), *range(count), *range(0, count, 3)])
    requests = presence.Requests(cost[:, None].copy(), weight, np.arange(count)[None])
    there = presence.nobody_present(requests, presence.Moves(moves * 0, moves))
    presence.move_to(0, requests, there)
    presence.bring_up_to_date(requests, there)
    return presence.fill_until_full(there.tree[0], room)


#: As they are, and compiled.
LOOPS: list[Loops] = [
    (fill_until_full, fill_greedily, fill_best),
    (until_full_in_a_tree, knapsacks.fill_greedily, knapsacks.fill_best),
]


def knapsack(rng: Random) -> tuple[list[tuple[int, int]], int]:
    """Return items, those of most weight per cost first, and what may be spent."""
    scale = rng.choice((4, 30, 10**6, 10**12))
    items = [
        (rng.randint(0 if rng.random() < 0.2 else 1, scale), rng.randint(1, 30))
        for _ in range(rng.randint(0, 10))
    ]
    items.sort(key=lambda item: -item[1] / item[0] if item[0] else -np.inf)
    return items, rng.choice((0, scale, rng.randint(0, 4 * scale)))


def columns(items: list[tuple[int, int]]) -> tuple[Integers, Integers]:
    cost, weight = integers(items, len(items), 2).T
    return cost.copy(), weight.copy()


@pytest.mark.parametrize("loops", LOOPS, ids=["plain", "compiled"])
def test_bounds_enclose_the_best_and_the_search_finds_it(loops: Loops) -> None:
    until_full, greedily, best = loops
    improved = 0
    for n in range(counted(400)):
        items, room = knapsack(Random(f"{seed()}/knapsack/{n}"))
        most = best_filling(items, room)
        cost, weight = columns(items)
        lower, upper = until_full(cost, weight, len(items), room)
        assert lower <= most <= upper
        assert (lower, upper) == fill_until_full(cost, weight, len(items), room)
        greedy = greedily(cost, weight, len(items), room)
        assert greedy <= most
        if sum(c for c, _ in items if c <= room) <= room:
            assert lower == upper == greedy
        taken = np.empty(len(items), np.bool_)
        alone = [item for item in items if item[0] <= room]
        cost, weight = columns(alone)
        for known in (0, lower, greedy, most):
            found = best(cost, weight, len(alone), room, known, ENDLESS, taken)
            assert found == most
        improved += max(lower, greedy) < most
    assert improved > counted(20)


@pytest.mark.parametrize("loops", LOOPS, ids=["plain", "compiled"])
def test_a_search_that_is_cut_short_answers_with_what_it_found(loops: Loops) -> None:
    short = 0
    for n in range(examples(60)):
        items, room = knapsack(Random(f"{seed()}/short/{n}"))
        items = [item for item in items if item[0] <= room]
        most = best_filling(items, room)
        cost, weight = columns(items)
        taken = np.empty(len(items), np.bool_)
        before = 0
        for effort in (0, 1, 5, 20, 100, ENDLESS):
            found = loops[2](cost, weight, len(items), room, 0, effort, taken)
            assert before <= found <= most
            short += found < most
            before = found
        assert before == most
    assert short > examples(20)


def test_published_examples() -> None:
    """Two small knapsacks of the original's tests, as (weight, cost)."""
    for pairs, room, most in (
        ([(1, 10), (2, 15), (0, 1)], 10, 1),
        ([(6, 2), (5, 3), (8, 6), (9, 7), (6, 5), (7, 9), (3, 4)], 9, 15),
    ):
        items = sorted(((c, w) for w, c in pairs), key=lambda i: -i[1] / i[0])
        items = [item for item in items if item[0] <= room]
        cost, weight = columns(items)
        taken = np.empty(len(items), np.bool_)
        assert fill_best(cost, weight, len(items), room, 0, ENDLESS, taken) == most


def test_large_numbers_do_not_cut_the_search_short() -> None:
    """Floats hold 53 bits: a bound must not fall below the integer that it bounds."""
    weight = integers([2**60 + 1, 2**60, 2**60 + 3])
    cost = integers([2**40, 2**40 + 1, 2**40 + 2])
    taken = np.empty(3, np.bool_)
    room = 2**41 + 1
    lower, upper = fill_until_full(cost, weight, 3, room)
    assert lower <= 2**61 + 1 <= upper
    assert fill_best(cost, weight, 3, room, 0, ENDLESS, taken) == 2**61 + 1
    room += 1
    assert fill_best(cost, weight, 3, room, 0, ENDLESS, taken) == 2**61 + 4
