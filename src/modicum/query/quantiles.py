"""Quantiles from a noisy tree of counts: a value, and the bins that may hold it.

The counts of a tree say how many values lie below each border of two bins, from few
nodes: one at each level at most. At the bins beside the true quantile that number is
known but for noise; so a bin may hold it unless noise would have to stray farther than
it does. Nothing has to hold at all borders at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from modicum.query.averages import Range
from modicum.query.intervals import width_of_sum
from modicum.query.request import Noise
from modicum.query.statistics import KeyValue, Statistic

#: The noisy counts of each level of a tree, from the level of two nodes on.
Tree = Sequence[Sequence[int]]


def tree_of(
    statistic: Statistic,
    noisy: Mapping[tuple[KeyValue, ...], int],
    group: tuple[KeyValue, ...],
) -> Tree:
    """Return the tree of one group.

    Args:
        statistic: The histogram.
        noisy: The counts by group, level and number of the node.
        group: The group.
    """
    return [
        [noisy[(*group, level, node)] for node in range(2**level)]
        for level in range(1, statistic.levels + 1)
    ]


class Quantile:
    """One quantile, of any group.

    It is the value of rank k for a k with ``share * n - share < k`` and
    ``k < share * n - share + 2``, of n values in order: so is every usual definition
    of a quantile, or it lies between two such values.

    Args:
        statistic: The histogram that it is read from.
        share: Below which share of the values it lies, from 0 to 1.
        noise: The kind of noise of the counts.
        scale: Its scale.
        error: How rarely it may lie outside its range.
    """

    def __init__(
        self,
        statistic: Statistic,
        share: Fraction,
        noise: Noise,
        scale: Fraction,
        error: Fraction,
    ) -> None:
        self._statistic = statistic
        self._share = share
        self._few = width_of_sum(noise, scale, ((Fraction(1), 2),), error / 2)
        bins = 2**statistic.levels
        self.strays = [
            width_of_sum(
                noise,
                scale,
                ((1 - share, border.bit_count()), (share, (bins - border).bit_count())),
                error / 2,
            )
            for border in range(1, bins)
        ]
        """By border, how far the number of values below it, less the share of all,
        strays to one side."""
        # `whole` times as large, all is whole: what is more than -below is at least
        # one more, and what is less than whole - below at least one less.
        below, whole = share.numerator, share.denominator
        self._at_least = [1 - below - int(one * whole) for one in self.strays]
        self._below = [whole - below + int(one * whole) for one in self.strays]

    def of(self, tree: Tree) -> Range | None:
        """Return the quantile in steps; None if there may be no values at all.

        Args:
            tree: The noisy counts.
        """
        if sum(tree[0]) <= self._few:
            return None
        first, last = self._bins(self._ranks(tree))
        low, high = self._first_step(first), self._last_step(last)
        value = min(max(self._descended(tree), low), high)
        return Range(Fraction(value), Fraction(low), Fraction(high))

    def _ranks(self, tree: Tree) -> Sequence[int]:
        """Return by border (1 - share) * values below - share * values above it.

        That is how many are below it, less the share of all.
        """
        below, above = [0, 0], [0, 0]
        for counts in tree:
            borders = range(len(counts) + 1)
            below = [
                below[one // 2] + (counts[one - 1] if one % 2 else 0) for one in borders
            ]
            above = [
                above[(one + 1) // 2] + (counts[one] if one % 2 else 0)
                for one in borders
            ]
        up = self._share.denominator - self._share.numerator
        down = self._share.numerator
        return [
            up * less - down * more
            for less, more in zip(below[1:-1], above[1:-1], strict=True)
        ]

    def _bins(self, ranks: Sequence[int]) -> tuple[int, int]:
        """Return the first and the last bin that may hold the quantile.

        The border behind its bin has enough values below it, and that before it has
        not too many, if noise does not stray too far at these two.
        """
        reached = (
            number
            for number, (rank, least) in enumerate(
                zip(ranks, self._at_least, strict=True)
            )
            if rank >= least
        )
        unpassed = (
            number
            for number in range(len(ranks), 0, -1)
            if ranks[number - 1] < self._below[number - 1]
        )
        return next(reached, len(ranks)), next(unpassed, 0)

    def _descended(self, tree: Tree) -> int:
        """Return the step where the share lies, by what the nodes say one by one."""
        share, node = self._share, 0
        for level, counts in enumerate(tree, start=1):
            left, right = max(counts[2 * node], 0), max(counts[2 * node + 1], 0)
            if left + right == 0:
                return self._middle(node, len(tree) - level + 1)
            rank = share * (left + right)
            if left and rank <= left:
                share, node = rank / left, 2 * node
            else:
                share, node = (rank - left) / right, 2 * node + 1
        first = self._first_step(node)
        return first + int(share * (self._last_step(node) - first))

    def _middle(self, node: int, levels_below: int) -> int:
        first = node << levels_below
        last = first + (1 << levels_below) - 1
        return (self._first_step(first) + self._last_step(last)) // 2

    def _first_step(self, number: int) -> int:
        first = self._statistic.low + number * self._statistic.bin
        return min(first, self._statistic.high)

    def _last_step(self, number: int) -> int:
        last = self._statistic.low + (number + 1) * self._statistic.bin - 1
        return min(last, self._statistic.high)
