"""Budgets as chains: within a chain, every budget is no looser than the next.

Among all budgets that cover a rule, only the least place in each chain matters; and a
budget is no looser than another one exactly if its place is below the other's
*threshold* in that chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from modicum.accounting import INFINITE, Filter
from modicum.accounting.filters.comparison import ANYTHING, reduced
from modicum.accounting.grid import EPS

Integers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool]


@dataclass(frozen=True, slots=True)
class Lists:
    """Concatenated non-empty lists of numbers; each belongs to a target.

    Attributes:
        targets: The targets of the lists, ascending.
        starts: The start of each list.
        sources: The numbers of all lists.
    """

    targets: Integers
    starts: Integers
    sources: Integers

    @property
    def lengths(self) -> Integers:
        """The length of each list."""
        return np.diff(self.starts, append=self.sources.size)

    def least(self, keys: Integers) -> Integers:
        """Return, for each row of keys and each list, the least key in the list.

        Args:
            keys: A column for every number that may be in a list.
        """
        if not self.targets.size:
            return keys[:, :0]
        found = np.take(keys, self.sources, axis=1)
        return np.minimum.reduceat(found, self.starts, axis=1)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Blocks of pairs: in a block, every target is paired with every source."""

    blocks: list[tuple[Integers, Integers]]

    def add(self, targets: Sequence[int], sources: Sequence[int]) -> None:
        """Take in a block."""
        rows, columns = np.array(targets, np.int64), np.array(sources, np.int64)
        self.blocks.append((np.repeat(rows, columns.size), np.tile(columns, rows.size)))

    def lists(self) -> Lists:
        """Return the sources of each target as a list; a pair may occur repeatedly."""
        nothing = [np.zeros(0, np.int64)]
        targets = np.concatenate(nothing + [block for block, _ in self.blocks])
        sources = np.concatenate(nothing + [block for _, block in self.blocks])
        return grouped(targets, sources)


def grouped(targets: Integers, sources: Integers) -> Lists:
    """Return pairs of target and source as the list of each target."""
    order = np.argsort(targets, kind="stable")
    distinct, starts = np.unique(targets[order], return_index=True)
    return Lists(distinct, starts.astype(np.int64), sources[order])


@dataclass(frozen=True, slots=True)
class Chains:
    """Limits in chains.

    Limits that admit the same are one limit.

    Attributes:
        limit: For each given filter, the number of its limit.
        chain: For each limit, its chain.
        place: For each limit, its place in its chain.
        thresholds: For each chain a row: for each limit, how many limits of the
            chain are no looser than it. They are the first ones.
    """

    limit: Integers
    chain: Integers
    place: Integers
    thresholds: Integers


def chains_of(filters: Sequence[Filter]) -> Chains:
    """Return filters in chains, as few as a quick look finds.

    Args:
        filters: In any order, repeatedly or not.
    """
    known: dict[Filter, int] = {}
    limit = [known.setdefault(reduced(one), len(known)) for one in filters]
    limits = list(known)
    caps = _table(limits)
    every = np.array([one.every for one in limits], dtype=bool)
    members = _chained(caps, np.flatnonzero(~every))
    members += _chained(caps, np.flatnonzero(every))
    chain = np.zeros(len(limits), np.int64)
    place = np.zeros(len(limits), np.int64)
    for number, one in enumerate(members):
        chain[one] = number
        place[one] = np.arange(len(one))
    thresholds = [_threshold(caps, every, one) for one in members]
    return Chains(
        limit=np.array(limit, np.int64),
        chain=chain,
        place=place,
        thresholds=np.array(thresholds, np.int64).reshape(-1, len(limits)),
    )


def _table(limits: Sequence[Filter]) -> Integers:
    """Return a row of caps for each limit; the last cap is on deltas.

    Where one cap is enough, an absent one admits nothing; where all must hold, an
    absent one admits everything. So within one kind, a limit is no looser than
    another one exactly if none of its caps is larger.
    """
    indices = sorted({EPS} | {index for one in limits for index, _ in one.caps})
    column = {index: place for place, index in enumerate(indices)}
    table = np.full((len(limits), len(indices) + 1), -1, np.int64)
    for row, one in zip(table, limits, strict=True):
        if one.every or one == ANYTHING:
            row[:] = INFINITE
        if one.enforced:
            row[-1] = one.delta_cap
        for index, cap in one.caps:
            row[column[index]] = cap
    return table


def _chained(caps: Integers, numbers: Integers) -> list[Integers]:
    """Return limits of one kind in chains; each joins the first one that it extends."""
    if not numbers.size:
        return []
    chains: list[list[int]] = []
    ends = caps[:0]
    for number in numbers[np.lexsort(caps[numbers].T[::-1])].tolist():
        fits = np.flatnonzero((ends <= caps[number]).all(axis=1))
        if fits.size:
            chains[fits[0]].append(number)
            ends[fits[0]] = caps[number]
        else:
            chains.append([number])
            ends = np.vstack([ends, caps[number]])
    return [np.array(chain, np.int64) for chain in chains]


def _threshold(caps: Integers, every: Flags, chain: Integers) -> Integers:
    """Return for each limit how many limits of a chain are no looser."""
    columns = zip(caps[chain].T, caps.T, strict=True)
    each = np.array([np.searchsorted(a, b, side="right") for a, b in columns])
    within, deltas = each[:-1], each[-1]
    if every[chain[0]]:
        # All caps of the chain's limits hold at once, so one that suffices is enough.
        other_kind = within.max(axis=0)
    else:
        # Below one cap of the chain's, other coordinates may be infinite: a limit with
        # several caps (a single one counts as the other kind) is met by nothing else.
        nothing = np.searchsorted(caps[chain, -1], 0, side="left")
        uncapped = (caps[:, :-1] == INFINITE).all(axis=1)
        other_kind = np.where(uncapped, chain.size, nothing)
    same_kind = every == every[chain[0]]
    counts = np.where(same_kind, within.min(axis=0), other_kind)
    threshold: Integers = np.minimum(counts, deltas)
    return threshold
