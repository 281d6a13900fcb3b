"""Trees over requests: those present at a place, by weight per cost.

There is one tree for each coordinate. Node 1 is the root, node k has the children 2k
and 2k + 1, the leaves are the requests. Trees are updated only when they are used.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modicum.core.jit import compiled
from modicum.planner.allocation import knapsack
from modicum.planner.allocation.problem import Integers, Numbers


class Requests(NamedTuple):
    """The requests of a round.

    Attributes:
        cost: By request and coordinate.
        weight: By request.
        ranked: (a, m) those that count, those of most weight per cost first.
    """

    cost: Integers
    weight: Integers
    ranked: Integers


class Moves(NamedTuple):
    """The places where counted requests come and go.

    Attributes:
        place: (moves,) ascending.
        request: (moves,) the request that comes if it was absent, and otherwise goes.
    """

    place: Integers
    request: Integers


class Present(NamedTuple):
    """The present requests.

    Attributes:
        moves: Of everybody.
        weight: (1,) the total weight of all moves.
        moved: (2,) how many moves the trees know of, and how many were made.
        leaf: (a, n) the leaf of each request that counts.
        tree: (a, 2 * size, 4) by node: the total cost and weight of all requests
            present below it, and the least and the greatest cost of any request there,
            present or not.
    """

    moves: Moves
    weight: Numbers
    moved: Integers
    leaf: Integers
    tree: Integers


_NOBODY = 2**62


@compiled
def nobody_present(requests: Requests, moves: Moves) -> Present:
    """Return trees without present requests."""
    coordinates, count = requests.ranked.shape
    size = 1
    while size < count:
        size *= 2
    leaf = np.zeros((coordinates, len(requests.weight)), np.int64)
    tree = np.zeros((coordinates, 2 * size, 4), np.int64)
    for a in range(coordinates):
        tree[a, size + count :, 2] = _NOBODY
        for rank in range(count):
            request = requests.ranked[a, rank]
            leaf[a, request] = size + rank
            tree[a, size + rank, 2:] = requests.cost[request, a]
        for node in range(size - 1, 0, -1):
            one, other = tree[a, 2 * node], tree[a, 2 * node + 1]
            tree[a, node, 2] = min(one[2], other[2])
            tree[a, node, 3] = max(one[3], other[3])
    return Present(
        moves,
        np.zeros(1, np.float64),
        np.zeros(2, np.int64),
        leaf,
        tree,
    )


@compiled
def move_to(place: int, requests: Requests, present: Present) -> None:
    """Apply the moves up to a place."""
    moves, made = present.moves, present.moved[1]
    while made < len(moves.place) and moves.place[made] <= place:
        present.weight[0] += requests.weight[moves.request[made]]
        made += 1
    present.moved[1] = made


@compiled
def bring_up_to_date(requests: Requests, present: Present) -> None:
    """Update the trees with all moves, one tree after the other."""
    since, made = present.moved
    for a in range(len(present.tree)):
        tree, leaf = present.tree[a], present.leaf[a]
        for move in range(since, made):
            request = present.moves.request[move]
            cost, weight = requests.cost[request, a], requests.weight[request]
            node = leaf[request]
            if tree[node, 1]:
                cost, weight = -cost, -weight
            while node:
                tree[node, 0] += cost
                tree[node, 1] += weight
                node >>= 1
    present.moved[0] = made


@compiled
def fill_until_full(tree: Integers, room: int) -> tuple[int, float]:
    """Return the result of `knapsack.fill_until_full` for the requests in a tree."""
    size = len(tree) // 2
    node, rest, value = 1, room, 0
    while True:
        # Only those that are present have a weight.
        if tree[node, 1] and tree[node, 2] <= room:
            if tree[node, 3] <= room and tree[node, 0] <= rest:
                rest -= tree[node, 0]
                value += tree[node, 1]
            elif node < size:
                node *= 2
                continue
            else:
                weight = tree[node, 1]
                upper = (value + rest * (weight / tree[node, 0])) * knapsack.ROUNDED
                return max(value, weight), upper
        # On to what comes after all that is below this node.
        while node & 1:
            node >>= 1
        if not node:
            return value, float(value)
        node += 1


@compiled
def list_present(tree: Integers, most: int, cost: Integers, weight: Integers) -> int:
    """List the costs and weights of present requests, in order; return their number.

    Args:
        tree: The tree of present requests.
        most: Requests that cost more are left out.
        cost: Filled in.
        weight: Filled in.
    """
    count = 0
    for leaf in range(len(tree) // 2, len(tree)):
        if tree[leaf, 1] and tree[leaf, 2] <= most:
            cost[count], weight[count] = tree[leaf, 0], tree[leaf, 1]
            count += 1
    return count
