"""At which coordinate each contested pair can accept the most."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modicum.core.jit import compiled
from modicum.planner.allocation import knapsack
from modicum.planner.allocation.loops.presence import (
    Moves,
    Present,
    Requests,
    bring_up_to_date,
    fill_until_full,
    list_present,
    move_to,
    nobody_present,
)
from modicum.planner.allocation.problem import Booleans, Integers, Numbers

fill_greedily = compiled(knapsack.fill_greedily)
fill_best = compiled(knapsack.fill_best)


class Pairs(NamedTuple):
    """The contested pairs of segments and blocks.

    Attributes:
        place: A place of each segment that has any, in order.
        first: The start of each such segment's pairs, and the end.
        block: (pairs,) which block a pair is of.
        capacity: (pairs, a), not below 0.
    """

    place: Integers
    first: Integers
    block: Integers
    capacity: Integers


class Room(NamedTuple):
    """Work space.

    Attributes:
        cost: The costs of those that are present and fit, in order.
        weight: Their weights.
        taken: Choices of a search.
        lower: A lower bound of a pair's knapsack, by coordinate.
        upper: An upper bound of it.
    """

    cost: Integers
    weight: Integers
    taken: Booleans
    lower: Integers
    upper: Numbers


class Memory(NamedTuple):
    """The last pair, by block.

    Attributes:
        capacity: (blocks, a) its capacity.
        best: (blocks,) the coordinate that can accept the most.
        until: (blocks,) It is still valid while the capacity is the same, and no more
            weight than this has moved in total.
    """

    capacity: Integers
    best: Integers
    until: Numbers


# More than the float error in a bound.
_LOST = 1e-9
# Sums of integers below this are exact in floats.
_EXACT = 2.0**52


@compiled
def remembered(memory: Memory, block: int, capacity: Integers, moved: float) -> bool:
    """Return whether the last result for a block is valid for a pair of it."""
    if moved > memory.until[block]:
        return False
    for a in range(len(capacity)):  # noqa: SIM110 - numba
        if capacity[a] != memory.capacity[block, a]:
            return False
    return True


@compiled
def margin(best: int, upper: Numbers, heaviest: int) -> float:
    """Return how much weight may move before another coordinate may be best.

    Arrivals can only raise the upper bounds of the others, and departures lower that of
    the best, by as much at most. The best filling is never further below its upper
    bound than the heaviest request.
    """
    others = 0.0
    for a in range(len(upper)):
        if a != best:
            others = max(others, upper[a])
    ahead: float = upper[best] * (1 - _LOST) - others * (1 + _LOST)
    return ahead - heaviest - 1


@compiled
def best_filling(capacity: Integers, present: Present, room: Room, effort: int) -> int:
    """Return the coordinate with the best knapsack; of several the last.

    Bounds come first; more work only where it can change the result.
    """
    lower, upper = room.lower, room.upper
    for a in range(len(capacity)):
        lower[a], upper[a] = fill_until_full(present.tree[a], capacity[a])
    if (upper >= lower.max()).sum() > 1:
        for exact in (False, True):
            for a in range(len(capacity)):
                if upper[a] >= lower.max() and upper[a] >= lower[a] + 1:
                    count = list_present(
                        present.tree[a], capacity[a], room.cost, room.weight
                    )
                    lower[a] = filled_better(
                        count, capacity[a], lower[a], room, effort * exact
                    )
    best = 0
    for a in range(1, len(capacity)):
        if lower[a] >= lower[best]:
            best = a
    return best


@compiled
def filled_better(
    count: int, capacity: int, least: int, room: Room, effort: int
) -> int:
    """Return a better lower bound of the best filling; without effort a quick one."""
    cost, weight = room.cost, room.weight
    if not effort:
        return max(least, fill_greedily(cost, weight, count, capacity))
    return fill_best(cost, weight, count, capacity, least, effort, room.taken)


@compiled
def favored(
    requests: Requests, moves: Moves, pairs: Pairs, blocks: int, effort: int
) -> Integers:
    """Return the coordinate at which each contested pair can accept the most.

    Args:
        requests: Of the round.
        moves: The places where counted requests come and go.
        pairs: Of segments and blocks.
        blocks: How many there are.
        effort: How often an exact search may look at an item.
    """
    coordinates, count = requests.ranked.shape
    room = Room(
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.bool_),
        np.empty(coordinates, np.int64),
        np.empty(coordinates, np.float64),
    )
    memory = Memory(
        np.zeros((blocks, coordinates), np.int64),
        np.zeros(blocks, np.int64),
        np.full(blocks, -1.0),
    )
    present = nobody_present(requests, moves)
    heaviest = requests.weight.max()
    best = np.zeros(len(pairs.block), np.int64)
    for s in range(len(pairs.place)):
        # Requests between two such places come and go at once.
        move_to(pairs.place[s], requests, present)
        moved = present.weight[0]
        for pair in range(pairs.first[s], pairs.first[s + 1]):
            block, capacity = pairs.block[pair], pairs.capacity[pair]
            if not remembered(memory, block, capacity, moved):
                bring_up_to_date(requests, present)
                found = best_filling(capacity, present, room, effort)
                until = moved + margin(found, room.upper, heaviest)
                memory.capacity[block] = capacity
                memory.best[block] = found
                memory.until[block] = until if until < _EXACT else -1.0
            best[pair] = memory.best[block]
    return best
