"""Which places the same requests ask for, and what is left there."""

from __future__ import annotations

from typing import Any

import numpy as np

from modicum.planner.allocation.loops.jit import compiled
from modicum.planner.allocation.loops.rows import passes
from modicum.planner.allocation.problem import Booleans, Integers


@compiled
def mixed(number: int, salt: np.uint64) -> np.uint64:
    """Return 64 bits that stand for a number (the finalizer of splitmix64)."""
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
    """Fill in, by place, what stands for the set of requests there, and its line.

    Equal sets on one line have equal signatures, and different ones have not, but for
    one time in 2**64. That is so for sets that were chosen without knowing the salt:
    among any 65 marks, some cancel out. Nothing but the order in which requests are
    tried rests on it.
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
    asked: Integers,
    blocks: int,
    capacity: Integers,
    contested: Booleans,
) -> None:
    """Fill in, by segment and block, the least that is left, and if it is contested.

    Args:
        row_first: Where each place's rows begin.
        left: All rows.
        block: By row.
        segment: By place; negative where no request is.
        asked: By place, what all requests would cost together.
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
                contested[pair] = not passes(left, row, asked[place])
