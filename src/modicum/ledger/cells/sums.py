"""Exact sums of losses, many at once, in 64-bit integers.

A sum is kept as `carried * 2**62 + rest`. An infinite loss is 2**62: it adds one to
what is carried and nothing to the rest, so that taking it back restores the sum. A
sum is infinite as soon as anything is carried.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modicum.accounting import COORDINATES, INFINITE, Loss, Total
from modicum.core.errors import check
from modicum.ledger.cells.cutting import Integers

#: The bits of a sum that are not carried.
_REST = INFINITE - 1
_BITS = INFINITE.bit_length() - 1


class Amounts(NamedTuple):
    """Sums, or losses: arrays whose last axis is the coordinates.

    Attributes:
        rest: From 0 to 2**62 - 1.
        carried: How many times 2**62 there are besides.
    """

    rest: Integers
    carried: Integers

    def total(self, place: int) -> Total:
        """Return one of the sums; what is carried stands as infinite entries."""
        return Total(
            tuple(self.rest[place].tolist()), tuple(self.carried[place].tolist())
        )

    def totals(self) -> list[Total]:
        """Return all sums."""
        return [self.total(place) for place in range(len(self.rest))]

    def taken(self, places: Integers) -> Amounts:
        """Return some of the sums."""
        return Amounts(self.rest[places], self.carried[places])

    def line(self, place: int) -> Amounts:
        """Return one of the sums, as a table of one line."""
        return Amounts(self.rest[place : place + 1], self.carried[place : place + 1])


def of_loss(loss: Loss) -> Amounts:
    """Return a loss as one line of amounts."""
    units: Integers = np.array([loss.coordinates], dtype=np.int64)
    return Amounts(units & _REST, units >> _BITS)


def nothing(lines: int) -> Amounts:
    """Return so many sums of nothing."""
    empty: Integers = np.zeros((lines, COORDINATES), dtype=np.int64)
    return Amounts(empty, empty.copy())


def added(one: Amounts, other: Amounts) -> Amounts:
    """Return the exact sums of amounts, line by line."""
    rest = one.rest + other.rest
    return Amounts(rest & _REST, one.carried + other.carried + (rest >> _BITS))


def saturated(amounts: Amounts) -> Integers:
    """Return amounts as one number each: `INFINITE` where anything is carried."""
    units: Integers = np.where(amounts.carried > 0, INFINITE, amounts.rest)
    return units


class Sums:
    """A growing table of sums. Line 0 is nothing, and stays so.

    Args:
        table: The sums to begin with.
    """

    def __init__(self, table: Amounts | None = None) -> None:
        self._table = nothing(1) if table is None else table
        #: What comparisons read: one number for each sum, 2**62 if it is infinite.
        self._units = saturated(self._table)
        self.count = len(self._units)

    def __getitem__(self, lines: Integers) -> Amounts:
        return self._table.taken(lines)

    def units(self, lines: Integers, column: int | Integers) -> Integers:
        """Return a coordinate of sums: `INFINITE` where it is infinite."""
        found: Integers = self._units[lines, column]
        return found

    def grow(self, like: Integers) -> Integers:
        """Append a copy of each of some lines; return the numbers of the copies."""
        new = np.arange(self.count, self.count + len(like))
        self.count += len(like)
        room = len(self._units)
        if self.count > room:
            more = nothing(max(self.count, 2 * room) - room)
            self._table = Amounts(
                np.concatenate([self._table.rest, more.rest]),
                np.concatenate([self._table.carried, more.carried]),
            )
            self._units = np.concatenate([self._units, more.rest])
        self._put(new, self._table.taken(like))
        return new

    def add(self, lines: Integers, amounts: Amounts) -> None:
        """Add an amount to each of some distinct lines."""
        self._put(lines, added(self._table.taken(lines), amounts))

    def take_back(self, lines: Integers, amounts: Amounts) -> None:
        """Undo `add`.

        Raises:
            InvariantError: If more is taken back than was added; nothing is changed.
        """
        before = self._table.taken(lines)
        rest = before.rest - amounts.rest
        carried = before.carried - amounts.carried + (rest >> _BITS)
        check(bool((carried >= 0).all()), "ACC-3: only what was added is taken back")
        self._put(lines, Amounts(rest & _REST, carried))

    def _put(self, lines: Integers, amounts: Amounts) -> None:
        self._table.rest[lines], self._table.carried[lines] = amounts
        self._units[lines] = saturated(amounts)
