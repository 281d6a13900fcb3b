"""From noisy statistics to one aggregate of one group, with its range.

The counts of a tree give the number of values below each border of two bins, from few
nodes: at most one per level. At the bins beside the true quantile that number is known
up to noise; so a bin is a candidate unless noise would have to exceed its width.
Nothing has to hold at all borders at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Final, TypeAlias

from modicum.query.averages import Range, average, deviation, noisy, variance
from modicum.query.compiler import CompiledQuery, Line
from modicum.query.expressions.analysis import facts_of
from modicum.query.expressions.facts import Facts
from modicum.query.intervals import Draws, width, width_of_sum
from modicum.query.marginals import set_of
from modicum.query.model import Aggregate
from modicum.query.request import Noise
from modicum.query.statistics import KeyValue, Statistic

#: Counts of many groups are often equal; so many of their ranges are kept.
_RANGES_MAX: Final = 65_536

#: The noisy counts of each level of a tree, from the level of two nodes on.
Tree = Sequence[Sequence[int]]


def tree_of(
    statistic: Statistic,
    noisy: Mapping[tuple[KeyValue, ...], int | Fraction],
    group: tuple[KeyValue, ...],
) -> Tree:
    """Return the tree of one group.

    Args:
        statistic: The histogram.
        noisy: The counts by group, level and number of the node.
        group: The group.
    """
    return [
        [int(noisy[(*group, level, node)]) for node in range(2**level)]
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
        self._few = width_of_sum(noise, (Draws(scale, Fraction(1), 2),), error / 2)
        bins = 2**statistic.levels
        self.strays = [
            width_of_sum(
                noise,
                (
                    Draws(scale, 1 - share, border.bit_count()),
                    Draws(scale, share, (bins - border).bit_count()),
                ),
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
        """Return the quantile in steps; None if there may be no values at all."""
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
        """Return the step at a share, by descending through the nodes."""
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


Group: TypeAlias = tuple[KeyValue, ...]
#: The positions of some keys.
Keys: TypeAlias = tuple[int, ...]
#: By the name of a mechanism, its noisy numbers by group; of a histogram, by group,
#: level and number of the node.
Noisy: TypeAlias = Mapping[str, Mapping[Group, int]]
#: By the name of a statistic and a set of keys, its numbers by group.
Numbers: TypeAlias = Mapping[tuple[str, Keys], Mapping[Group, int | Fraction]]
Reader: TypeAlias = Callable[[Group], Range | None]


def numbers_of(compiled: CompiledQuery, noisy: Noisy) -> Numbers:
    """Return the numbers of all statistics, by all sets of keys that are asked.

    Sums by several sets are made consistent: see `modicum.query.marginals`.
    """
    found: dict[tuple[str, Keys], Mapping[Group, int | Fraction]] = {
        (line.statistic.name, line.keys): noisy[line.name] for line in compiled.lines
    }
    for name, marginals in compiled.marginals.items():
        measured = {
            set_of(line.keys): [
                noisy[line.name][one] for one in product(*compiled.values_of(line.keys))
            ]
            for line in compiled.lines
            if line.statistic.name == name
        }
        for keys in compiled.request.query.key_sets:
            groups = product(*compiled.values_of(keys))
            estimates = marginals.estimate(set_of(keys), measured)
            found[name, keys] = dict(zip(groups, estimates, strict=True))
    return found


def lines_of(
    aggregate: Aggregate, compiled: CompiledQuery, keys: Keys
) -> dict[str, Line]:
    """Return by kind of statistic a mechanism that an aggregate is made of.

    Sums by several sets of keys are made of others as well.
    """
    return {
        line.statistic.kind: line
        for line in compiled.lines
        if aggregate.name in line.serves
        and (line.keys == keys or line.statistic.name in compiled.marginals)
    }


def strays_of(
    line: Line, compiled: CompiledQuery, keys: Keys, error: Fraction
) -> int | Fraction:
    """Return how far noise strays in the numbers of a statistic by a set of keys."""
    marginals = compiled.marginals.get(line.statistic.name)
    if marginals is not None:
        return marginals.width(set_of(keys), error)
    return width(compiled.request.noise, line.scale, error)


def reader_of(
    aggregate: Aggregate,
    compiled: CompiledQuery,
    numbers: Numbers,
    keys: Keys,
    error: Fraction,
) -> Reader:
    """Return a reader of an aggregate of any group from noisy statistics.

    Args:
        aggregate: The aggregate.
        compiled: The query that it is of.
        numbers: The statistics.
        keys: The positions of the keys that the groups are formed by.
        error: The maximum probability that its result lies outside its range.
    """
    lines = lines_of(aggregate, compiled, keys)
    if aggregate.function == "quantile":
        return _quantile_reader(aggregate, compiled, numbers, keys, error)
    if aggregate.function in ("avg", "variance", "stddev"):
        return _average_reader(aggregate, compiled, numbers, keys, error)
    (line,) = lines.values()
    name, step = line.statistic.name, step_of(aggregate, compiled)
    strays = strays_of(line, compiled, keys, error)

    @lru_cache(maxsize=_RANGES_MAX)
    def told(number: int | Fraction) -> Range:
        found = noisy(number, strays, step)
        return found.rounded() if name in compiled.marginals else found

    cells = numbers[name, keys]
    return lambda group: told(cells[group])


def _average_reader(
    aggregate: Aggregate,
    compiled: CompiledQuery,
    numbers: Numbers,
    keys: Keys,
    error: Fraction,
) -> Reader:
    lines = lines_of(aggregate, compiled, keys)
    strays = {
        kind: strays_of(line, compiled, keys, error / len(lines))
        for kind, line in lines.items()
    }
    step = step_of(aggregate, compiled)
    total = lines["total"].statistic

    cells = {kind: numbers[one.statistic.name, keys] for kind, one in lines.items()}

    def read(group: Group) -> Range | None:
        parts = {kind: noisy(cells[kind][group], strays[kind]) for kind in lines}
        if aggregate.function == "avg":
            low, high = total.low - total.center, total.high - total.center
            return _shifted(
                average(parts["rows"], parts["total"], low, high), total.center, step
            )
        spread = variance(
            parts["rows"],
            parts["total"],
            parts["squares"],
            total.high - total.low,
            population=aggregate.population,
        )
        if spread is None:
            return None
        if aggregate.function == "stddev":
            return deviation(spread).times(step).rounded()
        return spread.times(step**2).rounded()

    return read


def _shifted(found: Range | None, center: int, step: Fraction) -> Range | None:
    """Return an average around a center in the units of its numbers."""
    if found is None:
        return None
    whole = Range(found.value + center, found.low + center, found.high + center)
    return whole.times(step).rounded()


def _quantile_reader(
    aggregate: Aggregate,
    compiled: CompiledQuery,
    numbers: Numbers,
    keys: Keys,
    error: Fraction,
) -> Reader:
    quantile = quantile_of(aggregate, compiled, keys, error)
    (line,) = lines_of(aggregate, compiled, keys).values()
    step = step_of(aggregate, compiled)

    cells = numbers[line.statistic.name, keys]

    def read(group: Group) -> Range | None:
        tree = tree_of(line.statistic, cells, group)
        inside = quantile.of(tree)
        return None if inside is None else inside.times(step)

    return read


def quantile_of(
    aggregate: Aggregate, compiled: CompiledQuery, keys: Keys, error: Fraction
) -> Quantile:
    """Return a reader of a quantile of any group from its tree.

    Args:
        aggregate: The aggregate.
        compiled: The query that it is of.
        keys: The positions of the keys that the groups are formed by.
        error: How rarely it may lie outside its range.
    """
    (line,) = lines_of(aggregate, compiled, keys).values()
    assert aggregate.share is not None  # It is a quantile.
    return Quantile(
        line.statistic, aggregate.share, compiled.request.noise, line.scale, error
    )


def measured(aggregate: Aggregate, compiled: CompiledQuery) -> Facts:
    """Return the step and the limits of an aggregate's numbers."""
    assert aggregate.value is not None  # Only counts may be of no column.
    return facts_of(aggregate.value, compiled.request.tables)


def step_of(aggregate: Aggregate, compiled: CompiledQuery) -> Fraction:
    """Return the value of one step of an aggregate's answer."""
    if aggregate.function in ("count", "count-distinct"):
        return Fraction(1)
    return measured(aggregate, compiled).step
