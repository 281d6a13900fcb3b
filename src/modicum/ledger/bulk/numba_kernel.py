"""Loops over the rows, compiled by numba. Import this module only to use it.

The loops stop at the first rule that denies. Their data is laid out in advance; nothing
is allocated but small views.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit

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

_Loop = TypeVar("_Loop", bound=Callable[..., Any])


def compiled(loop: _Loop) -> _Loop:
    """Return a loop that is compiled when it is first called.

    The machine code is kept on disk, if there is a place where that is allowed.
    """
    try:
        return cast("_Loop", njit(cache=True)(loop))
    except RuntimeError:
        return cast("_Loop", njit(loop))


class Scratch(NamedTuple):
    """Work space. A stamp marks the values written for the current decision.

    Attributes:
        seen: The stamp of the mechanism that last met each base rule.
        found: Rows that match a mechanism.
    """

    seen: Integers
    found: Integers


class Pending(NamedTuple):
    """The remainder of rows after some mechanisms of a release with several.

    Attributes:
        touched: The stamp of the release that last wrote each row of `left`.
        left: By row and coordinate, the remainder.
    """

    touched: Integers
    left: Integers


@compiled
def _fits(left: Integers, loss: Integers, every: bool) -> bool:  # noqa: FBT001
    """Return whether a row's filter holds after adding a loss."""
    if loss[0] > left[0]:
        return False
    for at in range(1, len(left)):
        if (loss[at] <= left[at]) != every:
            return not every
    return every


@compiled
def _reduce(left: Integers, loss: Integers) -> None:
    """Subtract a loss from the remainder of a row."""
    for at in range(len(left)):
        if left[at] != ALWAYS:
            left[at] = left[at] - loss[at] if loss[at] <= left[at] else NEVER


@compiled
def _matching(
    rows: Rows, scratch: Scratch, release: ReleaseRows, place: int, stamp: int
) -> int:
    """Write the rows that match a mechanism to `found`; return their number."""
    count = 0
    inside = release.inside[place]
    for key in release.keys[release.first_key[place] : release.first_key[place + 1]]:
        for base in rows.bases[rows.first_base[key] : rows.first_base[key + 1]]:
            if scratch.seen[base] == stamp:
                continue
            scratch.seen[base] = stamp
            for row in range(rows.first_row[base], rows.first_row[base + 1]):
                if inside[rows.context[row]]:
                    scratch.found[count] = row
                    count += 1
    return count


@compiled
def _admits_one(
    rows: Rows, left: Integers, scratch: Scratch, release: ReleaseRows, stamp: int
) -> bool:
    """Return whether every row allows a release of one mechanism."""
    losses = release.losses[0]
    for row in scratch.found[: _matching(rows, scratch, release, 0, stamp)]:
        if not _fits(left[row], losses[rows.unit[row]], rows.every[row]):
            return False
    return True


@compiled
def _admits_all(
    rows: Rows,
    left: Integers,
    work: tuple[Scratch, Pending],
    release: ReleaseRows,
    stamp: int,
) -> bool:
    """Return whether every row allows all mechanisms together.

    Sums only grow. So a row that denies some of the mechanisms denies all of them,
    and the last one that a row is about sees the whole sum.
    """
    scratch, so_far = work
    for place in range(len(release.inside)):
        count = _matching(rows, scratch, release, place, stamp + place)
        for row in scratch.found[:count]:
            pending, loss = so_far.left[row], release.losses[place, rows.unit[row]]
            if so_far.touched[row] != stamp:
                so_far.touched[row] = stamp
                pending[:] = left[row]
            if not _fits(pending, loss, rows.every[row]):
                return False
            _reduce(pending, loss)
    return True


class _Charges(NamedTuple):
    """The limits and charges of the rows; see `Engine`."""

    caps: Integers
    left: Integers
    rest: Integers
    carried: Integers


@compiled
def _move_row(charges: _Charges, row: int, loss: Integers, sign: int) -> bool:
    """Add a loss to a row, or take it back; return whether it had been there."""
    caps, left = charges.caps[row], charges.left[row]
    rest, carried = charges.rest[row], charges.carried[row]
    covered = True
    for at in range(len(loss)):
        moved = rest[at] + sign * loss[at]
        rest[at] = moved & _REST
        carried[at] += moved >> 62
        if caps[at] != ALWAYS:
            beyond = carried[at] > 0 or rest[at] > caps[at]
            left[at] = NEVER if beyond else caps[at] - rest[at]
        covered = covered and carried[at] >= 0
    return covered


@compiled
def _move(
    rows: Rows,
    charges: _Charges,
    scratch: Scratch,
    release: ReleaseRows,
    mark: tuple[int, int],
) -> bool:
    """Add a release to its rows, or take it back; `mark` is (stamp, sign)."""
    stamp, sign = mark
    covered = True
    for place in range(len(release.inside)):
        count = _matching(rows, scratch, release, place, stamp + place)
        for row in scratch.found[:count]:
            loss = release.losses[place, rows.unit[row]]
            if not _move_row(charges, row, loss, sign):
                covered = False
    return covered


class NumbaEngine:
    """An `Engine` of compiled loops."""

    def __init__(self, rows: Rows, caps: Integers) -> None:
        self.left: Integers = caps.copy()
        self.rest: Integers = np.zeros(caps.shape, dtype=np.int64)
        self.carried: Integers = np.zeros(caps.shape, dtype=np.int64)
        self._rows = rows
        self._charges = _Charges(caps, self.left, self.rest, self.carried)
        self._scratch = Scratch(
            seen=np.zeros(len(rows.first_row) - 1, dtype=np.int64),
            found=np.zeros(len(caps), dtype=np.int64),
        )
        self._pending = Pending(
            touched=np.zeros(len(caps), dtype=np.int64),
            left=np.zeros(caps.shape, dtype=np.int64),
        )
        self._stamp = 1

    def admits(self, release: ReleaseRows) -> bool:
        """Return whether every row allows the release."""
        stamp = self._next_stamp(release)
        if len(release.inside) == 1:
            return _admits_one(self._rows, self.left, self._scratch, release, stamp)
        work = self._scratch, self._pending
        return _admits_all(self._rows, self.left, work, release, stamp)

    def move(self, release: ReleaseRows, sign: int) -> bool:
        """Add a release to its rows (1), or take it back (-1)."""
        mark = self._next_stamp(release), sign
        return _move(self._rows, self._charges, self._scratch, release, mark)

    def _next_stamp(self, release: ReleaseRows) -> int:
        stamp = self._stamp
        self._stamp += len(release.inside)
        return stamp


def warm() -> None:
    """Compile or load the loops, by deciding about releases with one row."""
    places = np.array([0, 1], dtype=np.int64)
    nought = np.zeros(1, dtype=np.int64)
    every: Booleans = np.zeros(1, dtype=np.bool_)
    rows = Rows(places, nought, places, nought, nought, every)
    caps: Integers = np.zeros((1, 2), dtype=np.int64)
    engine = NumbaEngine(rows, caps)
    for mechanisms in (1, 2):
        release = ReleaseRows(
            first_key=np.arange(mechanisms + 1),
            keys=np.zeros(mechanisms, dtype=np.int64),
            inside=np.ones((mechanisms, 1), dtype=np.bool_),
            losses=np.zeros((mechanisms, 1, 2), dtype=np.int64),
        )
        engine.admits(release)
        engine.move(release, 1)
