"""Requests over a ring of elements, and earlier charges there.

A partitioning attribute, or several of them flattened into one, is a ring of elements.
A request covers a range of them, which may wrap around. All active groups of users are
charged alike, so that a group's charge is that of the rounds since its activation:
nothing is stored by group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from modicum.planner.allocation.problem import Booleans, Integers, Problem
from modicum.planner.rounds.history import History, check_adds_up, left_to_groups


def ascending(values: Integers) -> Integers:
    """Return the distinct ones of some values, ascending.

    For these sizes sorting is several times faster than `np.unique`.

    Args:
        values: At least one.
    """
    in_order = np.sort(values)
    different: Integers = in_order[np.append(True, in_order[1:] != in_order[:-1])]
    return different


@dataclass(frozen=True, slots=True)
class Ranges:
    """Ranges of a ring.

    Attributes:
        size: How many elements the ring has.
        start: (n,) the first element of each range.
        width: (n,) how many elements it has, from 1 to `size`.
    """

    size: int
    start: Integers
    width: Integers

    def cuts(self) -> Integers:
        """Return 0 and the ends of ranges, without duplicates, ascending."""
        part = self.width < self.size
        ends = (self.start[part] + self.width[part]) % self.size
        return ascending(np.concatenate([[0], self.start[part], ends]))

    def runs(self, cuts: Integers) -> tuple[Integers, Integers, Integers]:
        """Return the runs of each range over the places between cuts.

        Args:
            cuts: At least those of `cuts`, ascending, the first of them 0.

        Returns:
            The first run of each range, and the start and end of each run.
        """
        places = len(cuts)
        whole = self.width >= self.size
        start = np.where(whole, 0, self.start)
        end = np.where(whole, self.size, start + self.width)
        wraps = end > self.size
        first = np.concatenate([[0], np.cumsum(1 + wraps)])
        at = np.searchsorted(np.append(cuts, self.size), [start, end % self.size])
        begins, ends = at[0], np.where(end == self.size, places, at[1])
        run_start = np.zeros(first[-1], np.int64)
        run_stop = np.zeros(first[-1], np.int64)
        # A range that wraps has the run from 0 on first.
        last = first[1:] - 1
        run_start[last] = begins
        run_stop[last] = np.where(wraps, places, ends)
        run_stop[first[:-1][wraps]] = ends[wraps]
        return first, run_start, run_stop


@dataclass(frozen=True, slots=True)
class Spent:
    """The charges of one round, piece by piece of the ring.

    Attributes:
        cuts: The start of each piece, ascending, the first of them 0.
        costs: (pieces, a).
    """

    cuts: Integers
    costs: Integers

    def at(self, cells: Integers) -> Integers:
        """Return the charges where cells begin; no cell has a cut inside."""
        return self.costs[np.searchsorted(self.cuts, cells, side="right") - 1]


def spent_on(ranges: Ranges, costs: Integers, accepted: Booleans) -> Spent:
    """Return the total charge of accepted requests.

    Args:
        ranges: Of all requests of a round.
        costs: (n, a), each at most one more than a full balance: a larger one never
            fits either, and could overflow.
        accepted: (n,).
    """
    check_adds_up(costs, accepted)
    kept = Ranges(ranges.size, ranges.start[accepted], ranges.width[accepted])
    cuts = kept.cuts()
    first, start, stop = kept.runs(cuts)
    owner = np.repeat(np.flatnonzero(accepted), np.diff(first))
    steps = np.zeros((len(cuts) + 1, costs.shape[1]), np.int64)
    np.add.at(steps, start, costs[owner])
    np.subtract.at(steps, stop, costs[owner])
    total = np.cumsum(steps, axis=0)[:-1]
    changes = np.ones(len(cuts), np.bool_)
    changes[1:] = (total[1:] != total[:-1]).any(axis=1)
    return Spent(cuts[changes], total[changes])


RingHistory: TypeAlias = History[Spent]


def ring_problem(
    ranges: Ranges,
    costs: Integers,
    weights: Integers,
    caps: Integers,
    history: RingHistory,
    fresh: Booleans | None = None,
) -> Problem:
    """Return the problem of a round over a ring.

    Args:
        ranges: Of the requests.
        costs: (n, a).
        weights: (n,).
        caps: (groups, a) the limit of each active group so far, the youngest first: a
            group of age k is charged the last k - 1 rounds. The oldest may have spent
            its whole budget.
        history: The earlier charges.
        fresh: Which requests are tried for the first time; None if all are.

    Raises:
        InputError: If there would be too many balances to keep in memory.
    """
    cuts = ranges.cuts()
    cells = ascending(np.concatenate([cuts, *(past.cuts for past in history.rounds)]))
    groups, coordinates = caps.shape
    spent = (past.at(cells) for past in history.rounds)
    left = left_to_groups(caps, len(cells), spent)
    place = np.searchsorted(cuts, cells, side="right") - 1
    cell_first = np.searchsorted(place, np.arange(len(cuts) + 1))
    first, start, stop = ranges.runs(cuts)
    return Problem(
        weights=weights,
        costs=costs,
        run_first=first,
        run_start=start,
        run_stop=stop,
        row_first=cell_first * groups,
        left=left.reshape(-1, coordinates),
        block=np.tile(np.arange(groups), len(cells)),
        line=np.zeros(len(cuts), np.int64),
        full=np.broadcast_to(caps[-1], caps.shape),
        extent=np.diff(np.append(cuts, ranges.size)) / ranges.size,
        fresh=fresh,
    )
