"""Rounds of DPK in plain NumPy, as one writes them from the published description.

Everything is kept for every cell of the ring, every group of users and every order with
a budget: no rows are left out, nothing is merged but cells, requests are tested and
charged slice by slice, and the knapsacks of a pair are sums over its requests by
density. Decisions are those of `modicum.planner`: integers, the same bounds before the
same search, ties to the last coordinate, scores rounded alike.

That the planner drops orders which never decide makes no difference to this.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modicum.planner.allocation.greedy import by_score
from modicum.planner.allocation.knapsack import (
    EFFORT,
    ROUNDED,
    fill_best,
    fill_greedily,
)

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class Batch:
    """The requests of a round.

    Attributes:
        start: The first element of each range.
        width: How many elements it has.
        costs: (n, a) in ledger units, at every order with a budget.
        weights: What each is worth.
    """

    start: Integers
    width: Integers
    costs: Integers
    weights: Integers


@dataclass
class PlainPlanner:
    """Plans rounds over a ring, and remembers what was spent.

    Attributes:
        size: How many elements the ring has.
        total: (a,) what a group may spend in its life.
        caps: (groups, a) what it may have spent by each age, the youngest first.
        history: What was accepted in earlier rounds, the latest first.
    """

    size: int
    total: Integers
    caps: Integers
    history: list[Batch] = field(default_factory=list)

    def spend(self, batch: Batch, accepted: Booleans) -> None:
        """Remember what a round accepted."""
        columns = (batch.start, batch.width, self._charged(batch), batch.weights)
        self.history.insert(0, Batch(*(column[accepted] for column in columns)))
        del self.history[len(self.caps) - 1 :]

    def plan(self, batch: Batch) -> Booleans:
        """Return which requests of a round are accepted."""
        cells = np.unique(
            np.concatenate([_cuts(b, self.size) for b in self._all(batch)])
        )
        ranges = zip(batch.start, batch.width, strict=True)
        slices = [_slices(cells, self.size, *one) for one in ranges]
        left = self._left(cells)
        charged = self._charged(batch)
        alive = np.array(list(map(partial(fits, left), slices, charged)))
        there = np.zeros((len(batch.costs), len(cells)), np.bool_)
        for request in np.flatnonzero(alive):
            for one in slices[request]:
                there[request, one] = True
        score = self._scores(batch, charged, there, left)
        accepted = np.zeros(len(alive), np.bool_)
        for request in by_score(score):
            own, cost = slices[request], charged[request]
            if alive[request] and fits(left, own, cost):
                accepted[request] = True
                for one in own:
                    left[one] -= cost
        return accepted

    def _charged(self, batch: Batch) -> Integers:
        """Return costs; above a whole budget it makes no difference how much."""
        return np.minimum(batch.costs, self.total + 1)

    def _all(self, batch: Batch) -> list[Batch]:
        return [batch, *self.history]

    def _left(self, cells: Integers) -> Integers:
        """Return what is left, by cell, group and order."""
        left = np.repeat(self.caps[None], len(cells), axis=0)
        for age, past in enumerate(self.history, 1):
            steps = np.zeros((len(cells) + 1, len(self.total)), np.int64)
            columns = (past.start, past.width, past.costs)
            for start, width, cost in zip(*columns, strict=True):
                for one in _slices(cells, self.size, start, width):
                    steps[one.start] += cost
                    steps[one.stop] -= cost
            # The youngest group was not there yet, the next one for one round, ...
            left[:, age:] -= np.cumsum(steps, axis=0)[:-1, None]
        return left

    def _scores(
        self, batch: Batch, charged: Integers, there: Booleans, left: Integers
    ) -> Numbers:
        """Return the DPK score of each request."""
        asked_for = np.flatnonzero(there.any(axis=0))
        sets, number = np.unique(
            np.packbits(there[:, asked_for].T, axis=1), axis=0, return_inverse=True
        )
        number = number.reshape(-1)
        member = np.zeros((len(sets), len(charged)), np.bool_)
        member[number] = there[:, asked_for].T
        capacity = np.full((len(sets), *left.shape[1:]), np.iinfo(np.int64).max)
        np.minimum.at(capacity, number, np.maximum(left[asked_for], 0))
        demand = (member.astype(np.int64) @ charged)[number]
        passing = (demand[:, None] <= left[asked_for]).any(axis=2)
        contested = np.zeros(capacity.shape[:2], np.bool_)
        np.logical_or.at(contested, number, ~passing)
        best = self._favored(batch.weights, charged, member, contested, capacity)
        price, closed = np.zeros((2, len(sets), len(self.total)))
        for segment, group in np.argwhere(contested):
            a = best[segment, group]
            room = capacity[segment, group, a]
            price[segment, a] += 1 / room if room else 0
            closed[segment, a] += room == 0
        hurts = (batch.costs * (member.T @ price)).sum(axis=1)
        hopeless = ((batch.costs > 0) & (member.T @ closed > 0)).any(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.where(hurts > 0, batch.weights / hurts, np.inf)
        return np.where(hopeless, 0.0, score)

    def _favored(
        self,
        weights: Integers,
        charged: Integers,
        member: Booleans,
        contested: Booleans,
        capacity: Integers,
    ) -> Integers:
        """Return the order at which each contested pair can accept the most."""
        with np.errstate(divide="ignore"):
            density = weights[:, None] / charged
        ranked = np.argsort(-density, axis=0, kind="stable")
        best = np.zeros(contested.shape, np.int64)
        for segment in np.flatnonzero(contested.any(axis=1)):
            items = []
            for a in range(charged.shape[1]):
                own = ranked[:, a][member[segment, ranked[:, a]]]
                own = own[weights[own] > 0]
                items.append((charged[own, a], weights[own]))
            for group in np.flatnonzero(contested[segment]):
                best[segment, group] = fullest(items, capacity[segment, group])
        return best


# --- knapsacks ------------------------------------------------------------------------


def fullest(items: list[tuple[Integers, Integers]], rooms: Integers) -> int:
    """Return which of several knapsacks holds the most weight; of several the last.

    Args:
        items: For each, what the requests cost and weigh, the densest first.
        rooms: How large each is.
    """
    fitting = [
        (cost[cost <= room], weight[cost <= room])
        for (cost, weight), room in zip(items, rooms, strict=True)
    ]
    bounds = [between(*own, room) for own, room in zip(fitting, rooms, strict=True)]
    values = [lower for lower, _ in bounds]
    rivals = [a for a, (_, upper) in enumerate(bounds) if upper >= max(values)]
    for search in (filled_greedily, filled_best) if len(rivals) > 1 else ():
        for a in rivals:
            if max(values) <= bounds[a][1] >= values[a] + 1:
                values[a] = search(*fitting[a], int(rooms[a]), values[a])
    return max(range(len(values)), key=lambda a: (values[a], a))


def between(cost: Integers, weight: Integers, room: int) -> tuple[int, float]:
    """Return a lower and an upper bound of what a knapsack holds."""
    spent = np.cumsum(cost)
    count = int(np.searchsorted(spent, room, side="right"))
    value = int(weight[:count].sum())
    if count == len(cost):
        return value, float(value)
    rest = room - (spent[count - 1] if count else 0)
    upper = (value + rest * (weight[count] / cost[count])) * ROUNDED
    return max(value, int(weight[count])), float(upper)


def filled_greedily(cost: Integers, weight: Integers, room: int, least: int) -> int:
    """Return what a knapsack holds into which goes what still fits, in turn."""
    # Plain Python is quicker with lists than with arrays.
    costs, weights = cost.tolist(), weight.tolist()
    return max(least, fill_greedily(costs, weights, len(costs), room))


def filled_best(cost: Integers, weight: Integers, room: int, least: int) -> int:
    """Return the most that a knapsack holds, as far as it is searched."""
    costs, weights, taken = cost.tolist(), weight.tolist(), [False] * len(cost)
    search: Any = fill_best
    return int(search(costs, weights, len(costs), room, least, EFFORT, taken))


# --- cells ----------------------------------------------------------------------------


def fits(left: Integers, slices: list[slice], cost: Integers) -> bool:
    """Return whether a cost passes everywhere: at some order in each cell and group."""
    return all(bool((cost <= left[one]).any(axis=2).all()) for one in slices)


def _cuts(batch: Batch, size: int) -> Integers:
    part = batch.width < size
    ends = (batch.start[part] + batch.width[part]) % size
    return np.concatenate([[0], batch.start[part], ends])


def _slices(cells: Integers, size: int, start: int, width: int) -> list[slice]:
    """Return the cells of a range, which may wrap around."""
    if width >= size:
        return [slice(0, len(cells))]
    begin, end = np.searchsorted(cells, [start, (start + width) % size])
    if start + width < size:
        return [slice(int(begin), int(end))]
    wrapped = [slice(0, int(end))] if end else []
    return [*wrapped, slice(int(begin), len(cells))]
