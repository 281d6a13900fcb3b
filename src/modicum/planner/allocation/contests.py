"""What the requests of a round compete for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modicum.planner.allocation.problem import Integers


@dataclass(frozen=True, slots=True)
class Contests:
    """The pairs of a segment and a block that cannot let everybody pass.

    A segment is the set of all places on one line that the same requests ask for. A
    pair is sorted by its segment, then by its block; segments are numbered by their
    first place.

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
        signature: (places,) equal where the same requests ask, on the same line.
        asked_for: (places,) whether any request asks there.
    """
    _, first, number = np.unique(signature, return_index=True, return_inverse=True)
    kept = np.flatnonzero(asked_for[first])
    by_place = kept[np.argsort(first[kept])]
    renumbered = np.full(len(first), -1, np.int64)
    renumbered[by_place] = np.arange(len(by_place))
    return renumbered[number], first[by_place].astype(np.int64)
