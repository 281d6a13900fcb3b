"""The worst move along one axis, exactly, in integers, in O(n log n) array steps.

Entry i lies on some segments of a line. A record on it costs `u[i]` when it comes or
goes, `b[i]` when it stays and changes. For a move from x to x' the cost is

    F(x, x') = U(x) + U(x') - sum of w[i] over entries holding both,

where U(x) is the sum of u[i] over entries holding x, and w = 2u - b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

#: Integers: int64 where every sum fits, else Python's own, in an object array.
Integers: TypeAlias = np.ndarray[Any, Any]

_INT64_SAFE = 2**62
# Up to this number of values, a range of the line is computed as one table.
_TABLE_MAX = 1 << 16


@dataclass(frozen=True, slots=True)
class Line:
    """Entries on the segments of one axis.

    Attributes:
        segments: The number of segments, >= 1.
        parts: (first segment, segment after the last, entry) of every stretch; the
            stretches of one entry do not overlap.
    """

    segments: int
    parts: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """A move between two places, and its cost.

    Attributes:
        cost: The cost.
        first: The place left.
        second: The place entered; the same if the record stays.
    """

    cost: int
    first: int
    second: int


def integers(values: Sequence[int], *, bound: int) -> Integers:
    """Return whole numbers as an array in which no sum up to `bound` overflows.

    Examples:
        >>> integers([3, 4], bound=7).dtype, integers([2**62], bound=2**63).dtype
        (dtype('int64'), dtype('O'))
        >>> int(integers([2**62, 2**62], bound=2**63).sum())
        9223372036854775808
    """
    return np.array(values, dtype=np.int64 if bound < _INT64_SAFE else object)


def depths(line: Line, costs: Sequence[int]) -> Integers:
    """Return, for every segment, the sum of the costs of the entries that contain it.

    Args:
        line: The entries.
        costs: One integer for each entry; it may be negative.

    Returns:
        One whole number for each segment.

    Examples:
        >>> depths(Line(3, ((0, 2, 0), (1, 3, 1))), [5, 7]).tolist()
        [5, 12, 7]
    """
    bound = sum(abs(costs[entry]) for _, _, entry in line.parts)
    bound += max((abs(cost) for cost in costs), default=0)
    changes = integers([0] * (line.segments + 1), bound=bound)
    if line.parts:
        left, right, entry = np.array(line.parts, dtype=np.int64).T
        amounts = integers(costs, bound=bound)[entry]
        np.add.at(changes, left, amounts)
        np.subtract.at(changes, right, amounts)
    return np.cumsum(changes)[:-1]


def deepest(line: Line, costs: Sequence[int]) -> tuple[int, int]:
    """Return the largest depth, and a segment where it is reached.

    Examples:
        >>> deepest(Line(3, ((0, 2, 0), (1, 3, 1))), [5, 7])
        (12, 1)
    """
    depth = depths(line, costs)
    place = int(np.argmax(depth))
    return int(depth[place]), place


def worst_pair(line: Line, u: Sequence[int], b: Sequence[int]) -> Pair:
    """Return the costliest move between two places of a line, or within one.

    Args:
        line: The entries.
        u: The cost of each when a record comes or goes, >= 0.
        b: The cost of each when a record stays and changes, >= 0.

    Returns:
        The exact maximum over all pairs of segments, and a pair that attains it.

    Examples:
        >>> line = Line(3, ((0, 1, 0), (1, 2, 1), (2, 3, 2)))
        >>> worst_pair(line, [1, 2, 3], [1, 2, 3]).cost
        5
        >>> worst_pair(line, [1, 2, 3], [2, 4, 6]).cost
        6
    """
    rises = depths(line, u)
    saved = [2 * leave - stay for leave, stay in zip(u, b, strict=True)]
    updates = _updates(line, saved)
    bound = 2 * sum(u) + 2 * int(np.sum(np.abs(updates.amount))) + 1
    if bound >= _INT64_SAFE:
        rises, updates = rises.astype(object), updates.with_any_size()
    best = _Search(rises).run(updates)
    second = best[1]
    first = int(np.argmax(rises - _shared(line, saved, second).astype(rises.dtype)))
    return Pair(best[0], first, second)


@dataclass(frozen=True, slots=True)
class _Updates:
    """The changes for the places of x as x' moves to the right.

    At segment `time`, `amount` is added for every x from `left` up to `right`.
    """

    time: Integers
    left: Integers
    right: Integers
    amount: Integers

    def between(self, first: int, after: int) -> _Updates:
        low, high = np.searchsorted(self.time, (first, after))
        return _Updates(
            self.time[low:high],
            self.left[low:high],
            self.right[low:high],
            self.amount[low:high],
        )

    def with_any_size(self) -> _Updates:
        return _Updates(self.time, self.left, self.right, self.amount.astype(object))


def _updates(line: Line, saved: Sequence[int]) -> _Updates:
    """Entering a stretch of an entry takes `saved` off all its stretches."""
    stretches: dict[int, list[tuple[int, int]]] = {}
    for left, right, entry in line.parts:
        stretches.setdefault(entry, []).append((left, right))
    rows = [
        (time, left, right, sign * saved[entry])
        for entry, own in stretches.items()
        if saved[entry]
        for enter, leave in own
        for time, sign in ((enter, -1), (leave, 1))
        if time < line.segments
        for left, right in own
    ]
    rows.sort(key=lambda row: row[0])
    times, lefts, rights, amounts = zip(*rows, strict=True) if rows else ((),) * 4
    return _Updates(
        np.array(times, dtype=np.int64),
        np.array(lefts, dtype=np.int64),
        np.array(rights, dtype=np.int64),
        integers(amounts, bound=sum(abs(amount) for amount in amounts)),
    )


def _shared(line: Line, saved: Sequence[int], place: int) -> Integers:
    holding = {entry for left, right, entry in line.parts if left <= place < right}
    parts = tuple(part for part in line.parts if part[2] in holding)
    return depths(Line(line.segments, parts), saved)


class _Search:
    """Divide and conquer over the positions of x'.

    A range of positions has few updates, and between their ends all x behave alike:
    only the best x of each group matters. So each level of the recursion handles O(n)
    numbers, and the smallest ranges are small tables.
    """

    def __init__(self, rises: Integers) -> None:
        self._rises = rises
        self._best: tuple[int, int] | None = None

    def run(self, updates: _Updates) -> tuple[int, int]:
        """Return the best cost and the x' that attains it."""
        everywhere = np.zeros(1, dtype=np.int64)
        size = len(self._rises)
        edges = _edges(updates)
        groups = np.union1d(everywhere, edges[edges < size])
        values = np.maximum.reduceat(self._rises, groups)
        self._halve(updates, groups, values, (0, size))
        assert self._best is not None
        return self._best

    def _halve(
        self,
        updates: _Updates,
        groups: Integers,
        values: Integers,
        stretch: tuple[int, int],
    ) -> None:
        """Find the best x' of a range, given each group's value before it."""
        first, after = stretch
        if (after - first) * (len(groups) + 1) <= _TABLE_MAX or after - first == 1:
            self._table(updates, groups, values, stretch)
            return
        middle = (first + after) // 2
        early, late = updates.between(first, middle), updates.between(middle, after)
        self._halve(early, *_merged(early, groups, values), (first, middle))
        changed = values + _steps(early, groups)
        self._halve(late, *_merged(late, groups, changed), (middle, after))

    def _table(
        self,
        updates: _Updates,
        groups: Integers,
        values: Integers,
        stretch: tuple[int, int],
    ) -> None:
        """Compute a range: a row for every position, a column for every group."""
        first, after = stretch
        changes = np.zeros((after - first, len(groups) + 1), dtype=values.dtype)
        row = updates.time - first
        left = np.searchsorted(groups, updates.left)
        right = np.searchsorted(groups, updates.right)
        np.add.at(changes, (row, left), updates.amount)
        np.subtract.at(changes, (row, right), updates.amount)
        table = np.cumsum(np.cumsum(changes, axis=0), axis=1)[:, :-1] + values
        totals = table.max(axis=1) + self._rises[first:after]
        place = int(np.argmax(totals))
        if self._best is None or totals[place] > self._best[0]:
            self._best = int(totals[place]), first + place


def _edges(updates: _Updates) -> Integers:
    return np.union1d(updates.left, updates.right)


def _merged(
    updates: _Updates, groups: Integers, values: Integers
) -> tuple[Integers, Integers]:
    """Return the groups that these updates distinguish, each with its best value."""
    edges = _edges(updates)
    kept = np.searchsorted(groups, edges[edges <= groups[-1]])
    starts = np.union1d(np.zeros(1, dtype=np.int64), kept)
    return groups[starts], np.maximum.reduceat(values, starts)


def _steps(updates: _Updates, groups: Integers) -> Integers:
    """Return the total of a run of updates for each group."""
    changes = np.zeros(len(groups) + 1, dtype=updates.amount.dtype)
    np.add.at(changes, np.searchsorted(groups, updates.left), updates.amount)
    np.subtract.at(changes, np.searchsorted(groups, updates.right), updates.amount)
    return np.cumsum(changes)[:-1]
