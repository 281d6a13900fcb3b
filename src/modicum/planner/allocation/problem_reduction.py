"""The part of a problem that matters to a solver: competing requests and rows.

Nothing here changes what may be accepted. It drops requests that fit nowhere alone, and
requests that touch no row that could reject any; rows that would accept all, and rows
of which another requests at least as much of at least the same requests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from modicum.planner.allocation.problem import Booleans, Integers, Problem

#: The maximum distance, in stretches, of a row that makes another redundant.
_REACH = 256


@dataclass(frozen=True, slots=True)
class Narrowed:
    """Competing requests, and rows that cannot accept all of them.

    `m` requests, `k` rows. Consecutive places covered by the same of these requests are
    one *stretch*.

    Attributes:
        requests: (m,) which requests of the problem, ascending.
        costs: (m, a) their costs, clamped.
        row: (k,) which rows of the problem, ascending.
        place: (k,) the places of these rows.
        left: (k, a) the remainder; -1 where nothing passes.
        demands: (k, a) the total cost of all requests there.
        stretch: (k,) on which stretch each row lies, ascending.
        starts: (runs,) the first stretch of each run of a request.
        stops: (runs,) the stretch after the last.
        owner: (runs,) whose run it is, as a number below `m`; ascending.
    """

    requests: Integers
    costs: Integers
    row: Integers
    place: Integers
    left: Integers
    demands: Integers
    stretch: Integers
    starts: Integers
    stops: Integers
    owner: Integers

    def only(self, kept: Booleans) -> Narrowed:
        """Return the same with some of the rows."""
        return replace(
            self,
            row=self.row[kept],
            place=self.place[kept],
            left=self.left[kept],
            demands=self.demands[kept],
            stretch=self.stretch[kept],
        )

    def meetings(self) -> tuple[Integers, Integers]:
        """Return who meets which row: requests and rows, by request, then by row."""
        first = np.searchsorted(self.stretch, self.starts)
        count = np.searchsorted(self.stretch, self.stops) - first
        return np.repeat(self.owner, count), _spread(first, count)


def narrowed(problem: Problem, alive: Booleans) -> Narrowed:
    """Return the contested part of a problem.

    Args:
        problem: The round.
        alive: (n,) the requests that may be accepted; each of them fits alone.
    """
    costs = problem.clamped()
    owner = np.repeat(np.arange(problem.requests), np.diff(problem.run_first))
    runs = alive[owner]
    demands = _summed(problem, costs[owner], runs)
    anybody = _summed(problem, np.ones((len(owner), 1), np.int64), runs)[:, 0] > 0
    place = np.repeat(np.arange(problem.places), np.diff(problem.row_first))
    fails = (demands[place] > problem.left).all(axis=1)
    row = np.flatnonzero(fails & anybody[place])
    place = place[row]
    competing = _competing(problem, owner, runs, place)
    runs = competing[owner]
    starts, stops = problem.run_start[runs], problem.run_stop[runs]
    changes = np.zeros(problem.places + 1, np.int64)
    changes[starts] = changes[stops] = 1
    stretch = np.cumsum(changes)
    found = Narrowed(
        requests=np.flatnonzero(competing),
        costs=costs[competing],
        row=row,
        place=place,
        left=np.maximum(problem.left[row], -1),
        demands=demands[place],
        stretch=stretch[place],
        starts=stretch[starts],
        stops=stretch[stops],
        owner=(np.cumsum(competing) - 1)[owner[runs]],
    )
    return without_redundant(found, np.zeros(len(row), np.int64))


def without_redundant(found: Narrowed, kind: Integers) -> Narrowed:
    """Return the same without rows that another row of their kind makes redundant.

    Args:
        found: Requests and rows.
        kind: (k,) only rows of one kind are compared; not below 0.
    """
    kinds = int(kind.max(initial=0)) + 1
    least = _least(found.stretch * kinds + kind, found.left)
    found = found.only(least)
    return found.only(~_covered(found, kind[least]))


def _summed(problem: Problem, values: Integers, runs: Booleans) -> Integers:
    """Return the sum over the runs at each place.

    Args:
        problem: The round.
        values: (runs, c).
        runs: Which runs count.
    """
    steps = np.zeros((problem.places + 1, values.shape[1]), np.int64)
    np.add.at(steps, problem.run_start[runs], values[runs])
    np.subtract.at(steps, problem.run_stop[runs], values[runs])
    return np.cumsum(steps, axis=0)[:-1]


def _competing(
    problem: Problem, owner: Integers, runs: Booleans, place: Integers
) -> Booleans:
    """Return which requests cover one of some places."""
    before = np.zeros(problem.places + 1, np.int64)
    np.cumsum(np.bincount(place, minlength=problem.places), out=before[1:])
    met = before[problem.run_stop] > before[problem.run_start]
    competing = np.zeros(problem.requests, np.bool_)
    competing[owner[runs & met]] = True
    return competing


def _least(group: Integers, left: Integers) -> Booleans:
    """Return which rows have no other row of their group below them."""
    total = left.astype(np.float64).sum(axis=1)
    order = np.lexsort((total, group))
    kept = np.zeros(len(group), np.bool_)
    while len(order):
        here = group[order]
        begins = np.flatnonzero(np.append(True, here[1:] != here[:-1]))
        # The lowest total of a group is below no other, and represents all above it.
        kept[order[begins]] = True
        lowest = np.repeat(order[begins], np.diff(np.append(begins, len(order))))
        order = order[(left[order] < left[lowest]).any(axis=1)]
    return kept


def _covered(found: Narrowed, kind: Integers) -> Booleans:
    """Return which rows request no more than a row nearby, of no more requests.

    Of two equal rows the first is kept.
    """
    low, high = _zones(found)
    stretch, left = found.stretch, found.left
    covered = np.zeros(len(stretch), np.bool_)
    for away in range(1, _REACH):
        for there in (stretch + away, stretch - away):
            mine = np.flatnonzero((low <= there) & (there < high) & ~covered)
            first = np.searchsorted(stretch, there[mine])
            count = np.searchsorted(stretch, there[mine], side="right") - first
            other, mine = _spread(first, count), np.repeat(mine, count)
            below = (left[other] <= left[mine]).all(axis=1) & (
                kind[other] == kind[mine]
            )
            equal = (low[other] <= stretch[mine]) & (stretch[mine] < high[other])
            equal &= (left[other] == left[mine]).all(axis=1)
            covered[mine[below & ~(equal & (mine < other))]] = True
        if not (~covered & ((low <= stretch - away) | (stretch + away < high))).any():
            break
    return covered


def _zones(found: Narrowed) -> tuple[Integers, Integers]:
    """Return, for each row, a first stretch and the one after a last one.

    A request that covers the row covers every stretch between them.
    """
    end = int(found.stops.max(initial=0)) + 1
    low, high = np.zeros(end, np.int64), np.full(end, end)
    count = found.stops - found.starts
    at = _spread(found.starts, count)
    np.maximum.at(low, at, np.repeat(found.starts, count))
    np.minimum.at(high, at, np.repeat(found.stops, count))
    return low[found.stretch], high[found.stretch]


def _spread(first: Integers, count: Integers) -> Integers:
    """Return `first[k], first[k] + 1, ...`, `count[k]` numbers, for each k in turn."""
    upto = np.cumsum(count)
    return np.arange(int(count.sum())) + np.repeat(first - upto + count, count)
