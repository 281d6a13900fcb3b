"""The demand at each place, and the rows that can reject something."""

from __future__ import annotations

from typing import Any

import numpy as np

from modicum.core.jit import compiled
from modicum.planner.allocation.problem import Booleans, Integers


@compiled
def demand(
    costs: Integers,
    run_first: Integers,
    run_start: Integers,
    run_stop: Integers,
    alive: Booleans,
    out: Integers,
) -> None:
    """Fill in the total cost of all remaining requests, by place."""
    places, coordinates = out.shape
    out[:] = 0
    for request in range(len(alive)):
        if not alive[request]:
            continue
        for run in range(run_first[request], run_first[request + 1]):
            start, stop = run_start[run], run_stop[run]
            for a in range(coordinates):
                out[start, a] += costs[request, a]
                if stop < places:
                    out[stop, a] -= costs[request, a]
    for place in range(1, places):
        for a in range(coordinates):
            out[place, a] += out[place - 1, a]


@compiled
def passes(left: Integers, row: int, cost: Integers) -> bool:
    """Return whether a row accepts a cost: some coordinate has that much left."""
    for a in range(len(cost)):  # noqa: SIM110 - numba
        if cost[a] <= left[row, a]:
            return True
    return False


@compiled
def compared(left: Integers, one: int, other: int) -> tuple[bool, bool]:
    """Return whether a row has no less than another everywhere, and no more.

    Below 0 nothing passes: how far below makes no difference.
    """
    no_less, no_more = True, True
    for a in range(left.shape[1]):
        first, second = max(left[one, a], -1), max(left[other, a], -1)
        no_less &= first >= second
        no_more &= first <= second
    return no_less, no_more


@compiled
def binding_rows(
    row_first: Integers, left: Integers, demands: Integers
) -> tuple[Integers, Integers]:
    """Return the rows that can reject something, by place, as a list of lists.

    It leaves out rows that would accept everything requested of them together, and rows
    of which another at the same place has no more in any coordinate.
    """
    places = len(row_first) - 1
    first = np.zeros(places + 1, np.int64)
    kept = np.empty(len(left), np.int64)
    count = 0
    for place in range(places):
        for row in range(row_first[place], row_first[place + 1]):
            if passes(left, row, demands[place]):
                continue
            at, superfluous = first[place], False
            while at < count and not superfluous:
                superfluous, replaces = compared(left, row, kept[at])
                if superfluous:
                    break
                if replaces:
                    count -= 1
                    kept[at] = kept[count]
                else:
                    at += 1
            if not superfluous:
                kept[count] = row
                count += 1
        first[place + 1] = count
    return first, kept[:count].copy()


@compiled
def mixed(number: int, salt: np.uint64) -> np.uint64:
    """Return a 64-bit hash of a number (the finalizer of splitmix64)."""
    z = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15) + salt
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def signatures(
    run_first: Integers,
    run_start: Integers,
    run_stop: Integers,
    alive: Booleans,
    line: Integers,
    salt: np.uint64,
    out: Any,
) -> None:
    """Fill in, by place, the hash of its set of requests and its line.

    Equal sets on one line have equal hashes, and different ones have not, except with
    probability 2**-64. That holds for sets chosen without knowing the salt: among any
    65 marks, some cancel out. Only the order in which requests are tried depends on it.
    """
    places = len(line)
    out[:] = 0
    for request in range(len(alive)):
        if alive[request]:
            mark = mixed(request, salt)
            for run in range(run_first[request], run_first[request + 1]):
                out[run_start[run]] ^= mark
                if run_stop[run] < places:
                    out[run_stop[run]] ^= mark
    for place in range(1, places):
        out[place] ^= out[place - 1]
    for place in range(places):
        out[place] ^= mixed(-1 - line[place], salt)


@compiled
def contest(
    row_first: Integers,
    left: Integers,
    block: Integers,
    segment: Integers,
    demands: Integers,
    blocks: int,
    capacity: Integers,
    contested: Booleans,
) -> None:
    """Fill in, by segment and block, the least remainder, and whether it is contested.

    Args:
        row_first: The start of each place's rows.
        left: All rows.
        block: By row.
        segment: By place; negative where no request is.
        demands: By place, the total cost of all requests.
        blocks: How many there are.
        capacity: (segments * blocks, a), filled in; not below 0.
        contested: (segments * blocks,), filled in.
    """
    coordinates = left.shape[1]
    capacity[:] = 2**62
    contested[:] = False
    for place in range(len(segment)):
        s = segment[place]
        if s < 0:
            continue
        for row in range(row_first[place], row_first[place + 1]):
            pair = s * blocks + block[row]
            for a in range(coordinates):
                capacity[pair, a] = min(capacity[pair, a], max(left[row, a], 0))
            if not contested[pair]:
                contested[pair] = not passes(left, row, demands[place])
