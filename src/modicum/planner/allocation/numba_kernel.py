"""Working on a problem with compiled loops. Import this only to use it."""

from __future__ import annotations

import hashlib
from copy import copy
from dataclasses import replace

import numpy as np

from modicum.planner.allocation.knapsack import EFFORT
from modicum.planner.allocation.loops import knapsacks, rows, tree
from modicum.planner.allocation.loops.presence import Moves, Requests
from modicum.planner.allocation.problem import (
    Booleans,
    Contests,
    Integers,
    Problem,
    segments,
)


class NumbaEngine:
    """The operations that allocators need on one problem; see `engines.Engine`.

    Args:
        problem: The problem of a round.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._costs = problem.clamped()
        self._runs = problem.run_first, problem.run_start, problem.run_stop
        everybody = np.ones(problem.requests, np.bool_)
        self._first, kept = rows.binding_rows(
            problem.row_first, problem.left, self._demand(everybody)
        )
        self._binding = problem.left[kept]

    def valued(self, weights: Integers) -> NumbaEngine:
        """Return an engine for the same problem, if requests had other weights."""
        other = copy(self)
        other._problem = replace(self._problem, weights=weights)  # noqa: SLF001 - ours
        return other

    def alone(self) -> Booleans:
        """Return, for each request, whether it fits if no other is accepted."""
        order = np.arange(self._problem.requests)
        return self._gone_through(order, spend=False)

    def greedy(self, order: Integers) -> Booleans:
        """Return which requests are accepted if they are tried in an order."""
        return self._gone_through(order, spend=True)

    def contests(self, alive: Booleans) -> Contests:
        """Return what the remaining requests compete for."""
        problem = self._problem
        signature = np.empty(problem.places, np.uint64)
        salt = self._salt(alive)
        rows.signatures(*self._runs, alive, problem.line, salt, signature)
        segment, place = segments(signature, self._asked_for(alive))
        blocks = len(problem.full)
        capacity = np.empty((len(place) * blocks, problem.coordinates), np.int64)
        contested = np.empty(len(place) * blocks, np.bool_)
        rows.contest(
            problem.row_first,
            problem.left,
            problem.block,
            segment,
            self._demand(alive),
            blocks,
            capacity,
            contested,
        )
        pairs = np.flatnonzero(contested)
        by_segment, block = np.divmod(pairs, blocks)
        return Contests(segment, place, by_segment, block, capacity.take(pairs, axis=0))

    def favored(self, contests: Contests, alive: Booleans) -> Integers:
        """Return, for each contested pair, the coordinate that can accept the most."""
        problem = self._problem
        counts = alive & (problem.weights > 0)
        counting = np.flatnonzero(counts)
        if problem.coordinates == 1 or not len(counting) or not len(contests.capacity):
            return np.full(len(contests.capacity), problem.coordinates - 1)
        segment = contests.pair_segment
        first = np.flatnonzero(np.append(True, segment[1:] != segment[:-1]))
        requests = Requests(
            self._costs,
            problem.weights.copy(),  # Read-only arrays would recompile the loops.
            ranked(self._costs, problem.weights, counting),
        )
        pairs = knapsacks.Pairs(
            contests.place[segment[first]],
            np.append(first, len(segment)),
            np.ascontiguousarray(contests.pair_block),
            np.ascontiguousarray(contests.capacity),
        )
        moves, blocks = self._moves(counts), len(problem.full)
        return knapsacks.favored(requests, moves, pairs, blocks, EFFORT)

    def _salt(self, alive: Booleans) -> np.uint64:
        """Return 64 bits that any other round, or other requests, would change.

        So requests cannot be chosen for how their marks cancel out.
        """
        digest = hashlib.sha256()
        for one in (*self._runs, alive):
            digest.update(one.tobytes())
        return np.uint64(int.from_bytes(digest.digest()[:8], "little"))

    def _moves(self, counts: Booleans) -> Moves:
        first, start, stop = self._runs
        owner = np.repeat(np.arange(len(counts)), np.diff(first))
        runs = np.flatnonzero(counts[owner])
        place = np.concatenate([start[runs], stop[runs]])
        order = np.argsort(place, kind="stable")
        return Moves(place[order], np.tile(owner[runs], 2)[order])

    def _demand(self, alive: Booleans) -> Integers:
        out = np.empty((self._problem.places, self._problem.coordinates), np.int64)
        rows.demand(self._costs, *self._runs, alive, out)
        return out

    def _asked_for(self, alive: Booleans) -> Booleans:
        count = np.empty((self._problem.places, 1), np.int64)
        rows.demand(np.ones((len(alive), 1), np.int64), *self._runs, alive, count)
        return count[:, 0] > 0

    def _gone_through(self, order: Integers, *, spend: bool) -> Booleans:
        accepted = np.zeros(self._problem.requests, np.bool_)
        tree.go_through(
            order, self._costs, *self._runs, self._first, self._binding, spend, accepted
        )
        return accepted


def ranked(costs: Integers, weights: Integers, counting: Integers) -> Integers:
    """Return requests by coordinate, those of most weight per cost first.

    Args:
        costs: (n, a).
        weights: (n,), > 0 for those that count.
        counting: Which count, ascending; ties keep this order.

    Returns:
        (a, m) requests.
    """
    with np.errstate(divide="ignore"):
        density = weights[counting, None] / costs[counting]
    return np.ascontiguousarray(
        counting[np.argsort(-density, axis=0, kind="stable")].T.astype(np.int64)
    )
