"""An engine with plain NumPy: the same results, without compiling."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np

from modicum.planner.allocation.knapsack import (
    EFFORT,
    fill_best,
    fill_greedily,
    fill_until_full,
)
from modicum.planner.allocation.problem import (
    Booleans,
    Contests,
    Integers,
    Problem,
    segments,
)


class NumpyEngine:
    """The operations that allocators need on one problem; see `engines.Engine`.

    Args:
        problem: The problem of a round.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._costs = problem.clamped()
        self._place_of_row = np.repeat(
            np.arange(problem.places), np.diff(problem.row_first)
        )

    def valued(self, weights: Integers) -> NumpyEngine:
        """Return an engine for the same problem, if requests had other weights."""
        other = copy(self)
        other._problem = replace(self._problem, weights=weights)  # noqa: SLF001 - ours
        return other

    def alone(self) -> Booleans:
        """Return, for each request, whether it fits if no other is accepted."""
        left = self._problem.left
        return np.array(
            [self._fits(request, left) for request in range(self._problem.requests)],
            dtype=np.bool_,
        )

    def greedy(self, order: Integers) -> Booleans:
        """Return which requests are accepted if they are tried in an order."""
        left = self._problem.left.copy()
        accepted = np.zeros(self._problem.requests, np.bool_)
        for request in order:
            accepted[request] = self._fits(request, left)
            if accepted[request]:
                for rows in self._rows(request):
                    left[rows] -= self._costs[request]
        return accepted

    def contests(self, alive: Booleans) -> Contests:
        """Return what the remaining requests compete for."""
        problem, blocks = self._problem, len(self._problem.full)
        there = self._there(alive)
        sets = np.packbits(there, axis=1)
        signature = np.unique(
            np.column_stack([problem.line, sets]), axis=0, return_inverse=True
        )[1]
        asked_for = np.asarray(there.any(axis=1))
        segment, place = segments(signature.reshape(-1), asked_for)
        demand = there @ self._costs[alive]
        passing = demand[self._place_of_row] <= problem.left
        contested_row = ~np.asarray(passing.any(axis=1))
        at = segment[self._place_of_row]
        rows = np.flatnonzero(at >= 0)
        pair = at[rows] * blocks + problem.block[rows]
        shape = len(place) * blocks, problem.coordinates
        capacity = np.full(shape, np.iinfo(np.int64).max)
        np.minimum.at(capacity, pair, np.maximum(problem.left[rows], 0))
        contested = np.zeros(len(place) * blocks, np.bool_)
        contested[pair[contested_row[rows]]] = True
        pairs = np.flatnonzero(contested)
        return Contests(
            segment, place, pairs // blocks, pairs % blocks, capacity[pairs]
        )

    def favored(self, contests: Contests, alive: Booleans) -> Integers:
        """Return, for each contested pair, the coordinate that can accept the most."""
        counting = alive & (self._problem.weights > 0)
        there = self._there(counting)
        counted = np.flatnonzero(counting)
        return np.array(
            [
                self._favored(counted[there[place]], room)
                for place, room in zip(
                    contests.pair_place, contests.capacity, strict=True
                )
            ],
            dtype=np.int64,
        )

    def _favored(self, requests: Integers, capacity: Integers) -> int:
        items = [self._items(requests, a, room) for a, room in enumerate(capacity)]
        bounds = [
            fill_until_full(cost, weight, len(cost), room)
            for (cost, weight), room in zip(items, capacity, strict=True)
        ]
        values = [lower for lower, _ in bounds]
        rivals = [a for a, (_, upper) in enumerate(bounds) if upper >= max(values)]
        for search in (_greedy, _exact) if len(rivals) > 1 else ():
            for a in rivals:
                if max(values) <= bounds[a][1] >= values[a] + 1:
                    values[a] = search(*items[a], capacity[a], values[a])
        return max(range(len(values)), key=lambda a: (values[a], a))

    def _items(
        self, requests: Integers, coordinate: int, room: int
    ) -> tuple[Integers, Integers]:
        """Return costs and weights of what fits alone, the densest first."""
        cost, weight = self._costs[requests, coordinate], self._problem.weights
        with np.errstate(divide="ignore"):
            order = np.argsort(-(weight[requests] / cost), kind="stable")
        order = order[cost[order] <= room]
        return cost[order], weight[requests][order]

    def _there(self, alive: Booleans) -> Booleans:
        """Return, by place, which of the remaining requests cover it."""
        problem, kept = self._problem, np.flatnonzero(alive)
        there = np.zeros((problem.places, len(kept)), np.bool_)
        for column, request in enumerate(kept.tolist()):
            for start, stop in self._spans(request):
                there[start:stop, column] = True
        return there

    def _spans(self, request: int) -> list[tuple[int, int]]:
        problem = self._problem
        runs = slice(problem.run_first[request], problem.run_first[request + 1])
        return list(zip(problem.run_start[runs], problem.run_stop[runs], strict=True))

    def _rows(self, request: int) -> list[slice]:
        first = self._problem.row_first
        return [
            slice(first[start], first[stop]) for start, stop in self._spans(request)
        ]

    def _fits(self, request: int, left: Integers) -> bool:
        cost = self._costs[request]
        return all(
            bool((cost <= left[rows]).any(axis=1).all()) for rows in self._rows(request)
        )


def _greedy(cost: Integers, weight: Integers, room: int, least: int) -> int:
    return max(least, fill_greedily(cost, weight, len(cost), room))


def _exact(cost: Integers, weight: Integers, room: int, least: int) -> int:
    taken = np.empty(len(cost), np.bool_)
    return fill_best(cost, weight, len(cost), room, least, EFFORT, taken)
