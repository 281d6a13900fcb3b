"""Trees over requests: who is present at a place, those of most weight per cost first.

There is one tree for each coordinate. Node 1 is the root, node k has the children 2k
and 2k + 1, the leaves are the requests. Trees are brought up to date only
when they are used.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modicum.planner.allocation import knapsack
from modicum.planner.allocation.loops.jit import compiled
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
    """Where requests that count come and go.

    Attributes:
        place: (moves,) ascending.
        request: (moves,) who comes if it was away, and else goes.
    """

    place: Integers
    request: Integers


class Present(NamedTuple):
    """Who is present.

    Attributes:
        moves: Of everybody.
        weight: (1,) how much has come and gone in all.
        moved: (2,) how many moves the trees know of, and how many were made.
        leaf: (a, n) the leaf of each request that counts.
        tree: (a, 2 * size, 4) by node: the cost and the weight of all that are
            present below it together, and the least and the greatest cost of anybody
            there, present or not.
    """

    moves: Moves
    weight: Numbers
    moved: Integers
    leaf: Integers
    tree: Integers


_NOBODY = 2**62


@compiled
def nobody_present(requests: Requests, moves: Moves) -> Present:
    """Return trees in which nobody is present."""
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
    """Let come and go who does so up to a place."""
    moves, made = present.moves, present.moved[1]
    while made < len(moves.place) and moves.place[made] <= place:
        present.weight[0] += requests.weight[moves.request[made]]
        made += 1
    present.moved[1] = made


@compiled
def bring_up_to_date(requests: Requests, present: Present) -> None:
    """Tell the trees of all moves that were made, one tree after the other."""
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
    """Return what `knapsack.fill_until_full` does, of who is present in a tree."""
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
    """List the costs and weights of who is present, in order; return how many.

    Args:
        tree: Who is present.
        most: Who costs more is left out.
        cost: Filled in.
        weight: Filled in.
    """
    count = 0
    for leaf in range(len(tree) // 2, len(tree)):
        if tree[leaf, 1] and tree[leaf, 2] <= most:
            cost[count], weight[count] = tree[leaf, 0], tree[leaf, 1]
            count += 1
    return count
