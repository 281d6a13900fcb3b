"""The problem of one round: which requests to accept, in plain integer arrays.

Everything that can be charged lies on a *line of places*. A place is what all of the
requests of a round treat alike: an interval of a partitioning attribute, a box of
several, a set of users. A request covers *runs* of places, and is charged to all of
them alike. At each place there are *rows*: one for every group of users, every rule,
every period with a separate balance there, and for every different history within the
place. A row gives the remainder, coordinate by coordinate; it accepts a cost if at
least one coordinate has that much left. A request may be accepted if every row at its
places accepts it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from modicum.accounting.grid import INFINITE
from modicum.core.errors import check

Integers: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.float64]
Booleans: TypeAlias = NDArray[np.bool_]

#: Sums of costs stay below this, so that nothing overflows.
SUM_MAX = INFINITE

_SIDE_BY_SIDE = 64


@dataclass(frozen=True, slots=True)
class Problem:
    """The problem of a round, and the remaining budget.

    `n` requests, `p` places, `r` rows, `a` coordinates.

    Attributes:
        weights: (n,) the weight of each request, >= 0; requests are in the order of
            arrival.
        costs: (n, a) in ledger units, from 0 to `INFINITE`.
        run_first: (n + 1,) where each request's runs begin in `run_start`.
        run_start: The first place of each run; the runs of a request are disjoint
            and in order.
        run_stop: The place after the last of each run.
        row_first: (p + 1,) where each place's rows begin in `left`.
        left: (r, a) the remainder; negative where a coordinate accepts nothing.
        block: (r,) which balance at its place a row belongs to, from 0: the group of
            users, for instance. Rows of one block at one place differ by history.
        line: (p,) the rule whose line a place lies on. Places of two lines are never
            identified.
        full: (blocks, a) the full balance, by block; the reference of shares.
        extent: (p,) which part of all that can be charged a place is; None if all
            places are alike.
        fresh: (n,) whether a request is tried for the first time; None if all are.
    """

    weights: Integers
    costs: Integers
    run_first: Integers
    run_start: Integers
    run_stop: Integers
    row_first: Integers
    left: Integers
    block: Integers
    line: Integers
    full: Integers
    extent: Numbers | None = None
    fresh: Booleans | None = None

    def __post_init__(self) -> None:
        """Check what the loops rely on: that every index is within its array."""
        requests, coordinates = self.costs.shape
        places, rows = len(self.line), len(self.left)
        check(
            _points_into(self.run_first, requests, len(self.run_start))
            and _points_into(self.row_first, places, rows)
            and self.weights.shape == (requests,)
            and self.run_start.shape == self.run_stop.shape
            and self.left.shape == (rows, coordinates)
            and self.block.shape == (rows,)
            and self.full.shape[1:] == (coordinates,)
            and _within(self.block, len(self.full) - 1),
            "PLAN-1: the arrays of a problem fit together",
        )
        check(
            _within(self.run_start, places)
            and _within(self.run_stop, places)
            and bool(np.all(self.run_start < self.run_stop))
            and self._disjoint(),
            "PLAN-1: a request asks for disjoint runs of places, in order",
        )
        check(
            _within(self.weights, INFINITE) and _within(self.costs, INFINITE),
            "PLAN-1: weights and costs are neither negative nor beyond infinity",
        )
        check(
            int(self.weights.max(initial=0)) * requests < SUM_MAX
            and int(self.left.max(initial=0)) < SUM_MAX
            and int(self.left.min(initial=0)) >= -SUM_MAX,
            "PLAN-1: weights add up to an integer, and what is left is finite",
        )
        check(
            (self.extent is None or self.extent.shape == (places,))
            and (self.fresh is None or self.fresh.shape == (requests,)),
            "PLAN-1: the arrays of a problem fit together",
        )

    def _disjoint(self) -> bool:
        owner = np.repeat(np.arange(len(self.weights)), np.diff(self.run_first))
        same = owner[1:] == owner[:-1]
        return not bool((same & (self.run_start[1:] < self.run_stop[:-1])).any())

    @property
    def requests(self) -> int:
        """The number of requests."""
        return len(self.weights)

    @property
    def places(self) -> int:
        """The number of places."""
        return len(self.line)

    @property
    def coordinates(self) -> int:
        """The number of coordinates of a cost."""
        return int(self.costs.shape[1])

    def clamped(self) -> Integers:
        """Return costs that pass and fail like the true ones, and add up safely.

        A cost above all that is left anywhere is replaced by a cost one above it: it
        passes nowhere either, alone or in a sum.
        """
        most = _greatest(self.left) + 1
        check(
            int(most.max(initial=0)) * (self.requests + 1) < SUM_MAX,
            "PLAN-1: the costs of all requests add up to an integer",
        )
        return np.ascontiguousarray(np.minimum(self.costs, most))


def _greatest(left: Integers) -> Integers:
    """Return the maximum of each column, at least 0.

    NumPy reduces short rows slowly, so rows are placed side by side.
    """
    rows, columns = left.shape
    even = rows - rows % _SIDE_BY_SIDE
    wide = left[:even].reshape(-1, _SIDE_BY_SIDE * columns).max(axis=0, initial=0)
    rest = left[even:].max(axis=0, initial=0)
    most: Integers = np.maximum(wide.reshape(_SIDE_BY_SIDE, columns).max(axis=0), rest)
    return most


def _points_into(first: Integers, count: int, total: int) -> bool:
    return (
        first.shape == (count + 1,)
        and int(first[0]) == 0
        and int(first[-1]) == total
        and bool(np.all(first[1:] >= first[:-1]))
    )


def _within(values: NDArray[Any], most: int) -> bool:
    return not len(values) or (int(values.min()) >= 0 and int(values.max()) <= most)


@dataclass(frozen=True, slots=True)
class Contests:
    """The pairs of a segment and a block that cannot accept all requests.

    A segment is the set of all places on one line that the same requests cover. A pair
    is sorted by its segment, then by its block; segments are numbered by their first
    place.

    Attributes:
        segment: (places,) the segment of each place; negative where no request is.
        place: (segments,) the first place of each segment.
        pair_segment: (pairs,) the segment of each contested pair.
        pair_block: (pairs,) its block.
        capacity: (pairs, a) the least that is left at a row of the pair; not below 0.
    """

    segment: Integers
    place: Integers
    pair_segment: Integers
    pair_block: Integers
    capacity: Integers

    @property
    def pair_place(self) -> Integers:
        """The first place of each pair's segment."""
        return self.place[self.pair_segment]


def segments(signature: np.ndarray, asked_for: np.ndarray) -> tuple[Integers, Integers]:
    """Return the segment of each place, and the first place of each segment.

    Args:
        signature: (places,) equal where the same requests cover, on the same line.
        asked_for: (places,) whether any request covers it.
    """
    _, first, number = np.unique(signature, return_index=True, return_inverse=True)
    kept = np.flatnonzero(asked_for[first])
    by_place = kept[np.argsort(first[kept])]
    renumbered = np.full(len(first), -1, np.int64)
    renumbered[by_place] = np.arange(len(by_place))
    return renumbered[number], first[by_place].astype(np.int64)


def deciding(costs: Integers, caps: Integers) -> Integers:
    """Return the coordinates that suffice for a filter to admit the same.

    It drops a coordinate that admits nothing, and one at which every cost is at least
    as large a share of the cap as at another. That is lossless as long as every balance
    is unlocked by the same share in every coordinate, and is charged nothing but these
    costs.

    Args:
        costs: (kinds, a) every cost that was or may be charged, each >= 0.
        caps: (a,) the cap of each coordinate; negative if it admits nothing.

    Returns:
        The kept coordinates, ascending; at least one if there is any.

    Source:
        The implementation of Küchler et al. 2024 (S&P) drops orders like this.

    Examples:
        >>> deciding(np.array([[2, 3, 9], [4, 5, 6]]), np.array([10, 10, 30])).tolist()
        [0, 2]
    """
    exact_costs = [[int(cost) for cost in row] for row in costs]
    exact_caps = [int(cap) for cap in caps]
    kept = [a for a, cap in enumerate(exact_caps) if cap > 0]
    for a in list(kept):
        others = [b for b in kept if b != a]
        if any(
            all(row[a] * exact_caps[b] >= row[b] * exact_caps[a] for row in exact_costs)
            for b in others
        ):
            kept.remove(a)
    return np.array(kept or list(range(min(1, len(caps)))), np.int64)
