"""Operations on the rows with NumPy, without compilation."""

from __future__ import annotations

import numpy as np

from modicum.accounting.grid import INFINITE
from modicum.ledger.bulk.layout import (
    ALWAYS,
    NEVER,
    Booleans,
    Integers,
    ReleaseRows,
    Rows,
)

#: The bits of a sum that are not carried.
_REST = INFINITE - 1
_NONE: Integers = np.zeros(0, dtype=np.int64)


class NumpyEngine:
    """An `Engine` of array operations on the rows of a release."""

    def __init__(self, rows: Rows, caps: Integers) -> None:
        self.left: Integers = caps.copy()
        self.rest: Integers = np.zeros(caps.shape, dtype=np.int64)
        self.carried: Integers = np.zeros(caps.shape, dtype=np.int64)
        self._rows, self._caps = rows, caps
        self._about = np.zeros(len(rows.first_row) - 1, dtype=np.bool_)

    def admits(self, release: ReleaseRows) -> bool:
        """Return whether every row allows the release."""
        each = [self._matching(release, place) for place in range(len(release.inside))]
        numbers = (
            each[0] if len(each) == 1 else np.unique(np.concatenate([_NONE, *each]))
        )
        left = self.left[numbers]
        for place, own in enumerate(each):
            at = np.searchsorted(numbers, own)
            losses = release.losses[place, self._rows.unit[own]]
            fits = losses <= left[at]
            if not self._admits(own, fits):
                return False
            if place + 1 < len(each):  # The next mechanism finds less.
                kept = np.where(left[at] == ALWAYS, ALWAYS, left[at] - losses)
                left[at] = np.where(fits, kept, NEVER)
        return True

    def _admits(self, numbers: Integers, fits: Booleans) -> bool:
        """Return whether rows hold, given which coordinates are within their caps."""
        every, others = self._rows.every[numbers], fits[:, 1:]
        enough = np.where(every, others.all(axis=1), others.any(axis=1))
        return bool((enough & fits[:, 0]).all())

    def move(self, release: ReleaseRows, sign: int) -> bool:
        """Add a release to its rows (1), or take it back (-1)."""
        covered = True
        for place in range(len(release.inside)):
            numbers = self._matching(release, place)
            losses = release.losses[place, self._rows.unit[numbers]]
            moved = self.rest[numbers] + sign * losses
            rest, carried = moved & _REST, self.carried[numbers] + (moved >> 62)
            self.rest[numbers], self.carried[numbers] = rest, carried
            caps = self._caps[numbers]
            within = np.where((carried > 0) | (rest > caps), NEVER, caps - rest)
            self.left[numbers] = np.where(caps == ALWAYS, ALWAYS, within)
            covered = covered and bool((carried >= 0).all())
        return covered

    def _matching(self, release: ReleaseRows, place: int) -> Integers:
        """Return the rows that a mechanism falls under, rising."""
        rows = self._rows
        for key in release.keys[
            release.first_key[place] : release.first_key[place + 1]
        ]:
            about = rows.bases[rows.first_base[key] : rows.first_base[key + 1]]
            self._about[about] = True
        bases = np.flatnonzero(self._about)
        self._about[bases] = False
        first, after = rows.first_row[bases], rows.first_row[bases + 1]
        counts = after - first
        skipped = first - np.cumsum(counts) + counts
        numbers = np.repeat(skipped, counts)
        numbers += np.arange(len(numbers))
        found: Integers = numbers[release.inside[place, rows.context[numbers]]]
        return found
