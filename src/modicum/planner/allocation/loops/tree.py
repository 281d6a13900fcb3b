"""A tree over the places, to test and charge whole runs at once.

Node 1 is the root, node k has the children 2k and 2k + 1, the leaves are the places.
`low` is, by node and coordinate, the least remainder of a row below it, without charges
to nodes above it; `taken` the charge to a whole node at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modicum.core.jit import compiled
from modicum.planner.allocation.problem import Booleans, Integers


class Tree(NamedTuple):
    """A tree over places, and work space.

    Attributes:
        first: The start of each place's rows.
        left: The rows.
        low: See above.
        taken: See above.
        failed: By node, when a place below it turned something away; [0] is the last
            time that anything did so.
        stack: Nodes to visit.
        above: The charges above a node, by its depth.
    """

    first: Integers
    left: Integers
    low: Integers
    taken: Integers
    failed: Integers
    stack: Integers
    above: Integers


_MUCH = 2**62


@compiled
def new_tree(first: Integers, left: Integers) -> Tree:
    """Return a tree over places whose rows are `left[first[p]:first[p + 1]]`."""
    coordinates = left.shape[1]
    size, height = 1, 1
    while size < len(first) - 1:
        size *= 2
        height += 1
    low = np.full((2 * size, coordinates), _MUCH, np.int64)
    for place in range(len(first) - 1):
        for row in range(first[place], first[place + 1]):
            for a in range(coordinates):
                low[size + place, a] = min(low[size + place, a], left[row, a])
    for node in range(size - 1, 0, -1):
        for a in range(coordinates):
            low[node, a] = min(low[2 * node, a], low[2 * node + 1, a])
    return Tree(
        first,
        left,
        low,
        np.zeros((2 * size, coordinates), np.int64),
        np.zeros(2 * size, np.int64),
        np.empty(height + 2, np.int64),
        np.empty((height + 2, coordinates), np.int64),
    )


@compiled
def run_passes(tree: Tree, start: int, stop: int, cost: Integers) -> bool:
    """Return whether one coordinate accepts a cost at every row of a run."""
    for a in range(len(cost)):
        if least_of_run(tree.low, tree.taken, start, stop, a) >= cost[a]:
            return True
    return False


@compiled
def least_of_run(low: Integers, taken: Integers, start: int, stop: int, a: int) -> int:
    """Return the least that is left at a row of a run, at one coordinate."""
    size = len(low) // 2
    one, other = start + size, stop - 1 + size
    least: int = low[one, a]
    on_the_right: int = low[other, a]
    # Up on both sides, past all that lies between them.
    while one >> 1 != other >> 1:
        if not one & 1:
            least = min(least, low[one + 1, a])
        if other & 1:
            on_the_right = min(on_the_right, low[other - 1, a])
        one, other = one >> 1, other >> 1
        least -= taken[one, a]
        on_the_right -= taken[other, a]
    least = min(least, on_the_right)
    one >>= 1
    while one:
        least -= taken[one, a]
        one >>= 1
    return least


@compiled
def node_passes(low: Integers, node: int, above: Integers, cost: Integers) -> bool:
    """Return whether one coordinate accepts a cost at every row below a node."""
    for a in range(len(cost)):  # noqa: SIM110 - numba
        if low[node, a] - above[a] >= cost[a]:
            return True
    return False


@compiled
def place_passes(
    first: Integers,
    left: Integers,
    place: int,
    taken: Integers,
    above: Integers,
    cost: Integers,
) -> bool:
    """Return whether every row of a place accepts a cost."""
    for row in range(first[place], first[place + 1]):
        passed = False
        for a in range(len(cost)):
            if left[row, a] - taken[a] - above[a] >= cost[a]:
                passed = True
                break
        if not passed:
            return False
    return True


@compiled
def fits(tree: Tree, start: int, stop: int, cost: Integers) -> bool:
    """Return whether every row of a run accepts a cost."""
    if run_passes(tree, start, stop, cost):
        return True
    # With one coordinate that was all; otherwise every row may use a different one.
    return len(cost) > 1 and not stumbles(tree, start, stop, cost)


@compiled
def stumbles(tree: Tree, start: int, stop: int, cost: Integers) -> bool:
    """Return whether a row of a run rejects a cost.

    The last failure is likely to repeat, so it is tested first.
    """
    size, above, stack = len(tree.low) // 2, tree.above, tree.stack
    above[0, :] = 0
    stack[0] = 1
    height, depth, width = 1, 0, size
    while height:
        height -= 1
        node = stack[height]
        # The children of the last node are one deeper, the others further up.
        while node >= 2 << depth:
            depth, width = depth + 1, width >> 1
        while node < 1 << depth:
            depth, width = depth - 1, width << 1
        begin = (node - (1 << depth)) * width
        if begin >= stop or begin + width <= start:
            continue
        inside = start <= begin and begin + width <= stop
        if inside and node_passes(tree.low, node, above[depth], cost):
            continue
        if node < size:
            # Both children read this; neither is done before its whole subtree is.
            above[depth + 1] = above[depth] + tree.taken[node]
            latest = 2 * node
            if tree.failed[latest] <= tree.failed[latest + 1]:
                latest += 1
            stack[height], stack[height + 1] = latest ^ 1, latest
            height += 2
        elif not place_passes(
            tree.first, tree.left, node - size, tree.taken[node], above[depth], cost
        ):
            mark_failed(tree.failed, node)
            return True
    return False


@compiled
def mark_failed(failed: Integers, leaf: int) -> None:
    """Mark the path from the root to a leaf as the one that failed last."""
    failed[0] += 1
    node = leaf
    while node:
        failed[node] = failed[0]
        node >>= 1


@compiled
def take(low: Integers, taken: Integers, start: int, stop: int, cost: Integers) -> None:
    """Take a cost from every place of a run."""
    size = len(low) // 2
    coordinates = len(cost)
    begin, end = start + size, stop + size
    while begin < end:
        if begin & 1:
            for a in range(coordinates):
                low[begin, a] -= cost[a]
                taken[begin, a] += cost[a]
            begin += 1
        if end & 1:
            end -= 1
            for a in range(coordinates):
                low[end, a] -= cost[a]
                taken[end, a] += cost[a]
        begin >>= 1
        end >>= 1
    for leaf in (start + size, stop - 1 + size):
        node = leaf >> 1
        while node:
            for a in range(coordinates):
                least = min(low[2 * node, a], low[2 * node + 1, a])
                low[node, a] = least - taken[node, a]
            node >>= 1


@compiled
def go_through(
    order: Integers,
    costs: Integers,
    run_first: Integers,
    run_start: Integers,
    run_stop: Integers,
    first: Integers,
    left: Integers,
    spend: bool,  # noqa: FBT001
    accepted: Booleans,
) -> None:
    """Test for every request of an order whether it fits, and charge it if requested.

    Args:
        order: Requests, without duplicates.
        costs: By request and coordinate.
        run_first: As in `Problem`.
        run_start: As in `Problem`.
        run_stop: As in `Problem`.
        first: The start of each place's rows.
        left: The rows that can turn something away.
        spend: Whether what fits is charged before the next is tested.
        accepted: Filled in.
    """
    tree = new_tree(first, left)
    for request in order:
        cost = costs[request]
        passed = True
        for run in range(run_first[request], run_first[request + 1]):
            if not fits(tree, run_start[run], run_stop[run], cost):
                passed = False
                break
        accepted[request] = passed
        if passed and spend:
            for run in range(run_first[request], run_first[request + 1]):
                take(tree.low, tree.taken, run_start[run], run_stop[run], cost)
