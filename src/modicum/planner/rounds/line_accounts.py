"""Accounts concatenated on one long line, and their charges.

Where many rules each have separate accounts, every account is a range of equally many
elements of one long line. A request covers intervals of it: its part of the ring, once
in each account that it is charged to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modicum.planner.allocation.problem import Booleans, Integers
from modicum.planner.rounds.history import check_adds_up
from modicum.planner.rounds.ring import Ranges


@dataclass(frozen=True, slots=True)
class LineDemands:
    """The demands of requests, in intervals of the long line.

    Attributes:
        first: (n + 1,) where each request's intervals begin in `start`.
        start: The start of each interval; those of a request are disjoint, and in
            order.
        stop: The end of each interval.
    """

    first: Integers
    start: Integers
    stop: Integers

    @property
    def owner(self) -> Integers:
        """The request of each interval."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    def chosen(self, kept: Booleans) -> LineDemands:
        """Return the demands of some requests; those of the others are empty."""
        intervals = kept[self.owner]
        counts = np.diff(self.first) * kept
        first = np.concatenate([[0], np.cumsum(counts)])
        return LineDemands(first, self.start[intervals], self.stop[intervals])

    def cuts(self) -> Integers:
        """Return the ends of intervals, without duplicates, ascending."""
        return np.unique(np.concatenate([self.start, self.stop]))


def demands_of(ranges: Ranges, owner: Integers, account: Integers) -> LineDemands:
    """Return the demands of requests that are charged to accounts.

    Args:
        ranges: The part of the ring of each request.
        owner: A request for each of its accounts.
        account: The accounts, from 0; no request has one of them twice.
    """
    size = ranges.size
    whole = ranges.width >= size
    start = np.where(whole, 0, ranges.start)[owner]
    stop = start + np.minimum(ranges.width, size)[owner]
    wraps = stop > size
    # An interval beyond the end of the ring continues at the beginning of the account.
    owners = np.concatenate([owner, owner[wraps]])
    base = np.concatenate([account, account[wraps]]) * size
    starts = base + np.concatenate([start, np.zeros(wraps.sum(), np.int64)])
    stops = base + np.concatenate([np.minimum(stop, size), stop[wraps] - size])
    order = np.lexsort((starts, owners))
    counts = np.bincount(owners, minlength=len(ranges.start))
    first = np.concatenate([[0], np.cumsum(counts)])
    return LineDemands(first, starts[order], stops[order])


@dataclass(frozen=True, slots=True)
class Charged:
    """The charges of one round, piece by piece of the long line.

    Attributes:
        cuts: The start of each piece, ascending. Nothing was charged before the first
            of them, and the last piece has no end.
        costs: (pieces, a).
    """

    cuts: Integers
    costs: Integers

    def at(self, elements: Integers) -> Integers:
        """Return the charges at elements."""
        piece = np.searchsorted(self.cuts, elements, side="right") - 1
        found = np.zeros((len(elements), self.costs.shape[1]), np.int64)
        found[piece >= 0] = self.costs[piece[piece >= 0]]
        return found


def charged_by(demands: LineDemands, costs: Integers, accepted: Booleans) -> Charged:
    """Return the total charge of accepted requests.

    Args:
        demands: The demands of all requests of a round.
        costs: (n, a), each at most one more than a full balance: a larger one never
            fits either, and could overflow.
        accepted: (n,).
    """
    check_adds_up(costs, accepted)
    kept = demands.chosen(accepted)
    cuts, owner = kept.cuts(), kept.owner
    steps = np.zeros((len(cuts), costs.shape[1]), np.int64)
    np.add.at(steps, np.searchsorted(cuts, kept.start), costs[owner])
    np.subtract.at(steps, np.searchsorted(cuts, kept.stop), costs[owner])
    total = np.cumsum(steps, axis=0)
    changes = np.ones(len(cuts), np.bool_)
    changes[1:] = (total[1:] != total[:-1]).any(axis=1)
    return Charged(cuts[changes], total[changes])
