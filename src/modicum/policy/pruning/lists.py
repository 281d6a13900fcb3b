"""Many lists of numbers in two arrays, and the least key of each list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Integers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool]


@dataclass(frozen=True, slots=True)
class Lists:
    """Lists of numbers, none empty, one after the other; each belongs to a target.

    Attributes:
        targets: What the lists belong to, rising.
        starts: Where each list begins.
        sources: The numbers of all lists.
    """

    targets: Integers
    starts: Integers
    sources: Integers

    @property
    def lengths(self) -> Integers:
        """How long each list is."""
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
    """Blocks of pairs: in a block, every target goes with every source."""

    blocks: list[tuple[Integers, Integers]]

    def add(self, targets: Sequence[int], sources: Sequence[int]) -> None:
        """Take in a block."""
        rows, columns = np.array(targets, np.int64), np.array(sources, np.int64)
        self.blocks.append((np.repeat(rows, columns.size), np.tile(columns, rows.size)))

    def lists(self) -> Lists:
        """Return the sources of each target as a list; a pair may come repeatedly."""
        nothing = [np.zeros(0, np.int64)]
        targets = np.concatenate(nothing + [block for block, _ in self.blocks])
        sources = np.concatenate(nothing + [block for _, block in self.blocks])
        return grouped(targets, sources)


def grouped(targets: Integers, sources: Integers) -> Lists:
    """Return pairs of target and source as the list of each target."""
    order = np.argsort(targets, kind="stable")
    distinct, starts = np.unique(targets[order], return_index=True)
    return Lists(distinct, starts.astype(np.int64), sources[order])
