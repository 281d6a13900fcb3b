"""Exact sums of losses, many at once, in 64-bit integers.

A sum is stored as `carried * 2**62 + rest`. An infinite loss is 2**62: it adds one to
the carried part and nothing to the rest, so that subtracting it restores the sum. A sum
is infinite as soon as anything is carried.
"""

from __future__ import annotations

import msgspec
import numpy as np

from modicum.accounting import COORDINATES, INFINITE, Loss, Total
from modicum.core.errors import check
from modicum.ledger.cells.partition import Integers

#: The bits of a sum that are not carried.
_REST = INFINITE - 1
_BITS = INFINITE.bit_length() - 1
#: The bits that are set only in a number that exceeds the range of the rest.
_BEYOND = np.int64(~_REST)


class Amounts(msgspec.Struct, frozen=True, gc=False):
    """Sums, or losses.

    Attributes:
        table: Its last axis is the rest of each coordinate, from 0 to 2**62 - 1, and
            then how many times 2**62 are carried besides. They lie side by side so
            that one step of NumPy moves both.
    """

    table: Integers

    @classmethod
    def of(cls, rest: Integers, carried: Integers) -> Amounts:
        """Return the sums that these two make up."""
        return cls(np.concatenate([rest, carried], axis=-1))

    @property
    def rest(self) -> Integers:
        """The part that is not carried; a view."""
        return self.table[..., :COORDINATES]

    @property
    def carried(self) -> Integers:
        """The number of times 2**62 is carried; a view."""
        return self.table[..., COORDINATES:]

    def total(self, place: int) -> Total:
        """Return one of the sums; carried parts appear as infinite entries."""
        line = self.table[place].tolist()
        return Total(tuple(line[:COORDINATES]), tuple(line[COORDINATES:]))

    def totals(self) -> list[Total]:
        """Return all sums."""
        return [self.total(place) for place in range(len(self.table))]

    def taken(self, places: Integers) -> Amounts:
        """Return some of the sums."""
        return Amounts(self.table[places])


def of_loss(loss: Loss) -> Amounts:
    """Return a loss as one line of amounts."""
    units: Integers = np.array([loss.coordinates], dtype=np.int64)
    return Amounts.of(units & _REST, units >> _BITS)


def nothing(lines: int) -> Amounts:
    """Return this many zero sums."""
    return Amounts(np.zeros((lines, 2 * COORDINATES), dtype=np.int64))


def added(one: Amounts, other: Amounts) -> Amounts:
    """Return the exact sums of amounts, line by line."""
    return _carrying(one.table + other.table)


def saturated(amounts: Amounts) -> Integers:
    """Return amounts as one number each: `INFINITE` where anything is carried."""
    units: Integers = np.where(amounts.carried > 0, INFINITE, amounts.rest)
    return units


def _carrying(table: Integers) -> Amounts:
    """Return amounts whose rests left their range, up or down, as they should be."""
    # Mostly none did, which one comparison of all columns shows: the carried part is
    # never so large. NumPy counts several times faster than it evaluates `any`.
    if np.count_nonzero(table & _BEYOND):
        rest = table[..., :COORDINATES]
        table[..., COORDINATES:] += rest >> _BITS
        rest &= _REST
    return Amounts(table)


class Sums:
    """A growing table of sums. Line 0 is nothing, and stays so.

    Args:
        sums: The sums to begin with.
    """

    def __init__(self, sums: Amounts | None = None) -> None:
        self._table = (nothing(1) if sums is None else sums).table
        self.count = len(self._table)

    def __getitem__(self, lines: Integers) -> Amounts:
        return Amounts(self._table.take(lines, axis=0))

    def units(self, lines: Integers, column: int | Integers) -> Integers:
        """Return a coordinate of sums: `INFINITE` where it is infinite."""
        rest = self._table[lines, column]
        carried = self._table[lines, column + COORDINATES]
        found: Integers = np.where(carried > 0, INFINITE, rest)
        return found

    def begin(self, lines: int) -> Integers:
        """Append this many zero sums; return their numbers."""
        new = np.arange(self.count, self.count + lines)
        self.count += lines
        room = len(self._table)
        if self.count > room:
            more = nothing(max(self.count, 2 * room) - room)
            self._table = np.concatenate([self._table, more.table])
        return new

    def copy(self, lines: Integers) -> Integers:
        """Append a copy of each of some lines; return the numbers of the copies."""
        new = self.begin(len(lines))
        self._table[new] = self._table[lines]
        return new

    def add(self, lines: Integers, amounts: Amounts) -> None:
        """Add an amount to each of some distinct lines.

        Args:
            lines: The lines, in any shape that the amounts can be broadcast to.
            amounts: The amounts to add.
        """
        self._table[lines] = added(self[lines], amounts).table

    def take_back(self, lines: Integers, amounts: Amounts) -> None:
        """Undo `add`.

        Raises:
            InvariantError: If more is subtracted than was added; nothing is changed.
        """
        left = _carrying(self._table[lines] - amounts.table)
        check(
            bool((left.carried >= 0).all()), "ACC-3: only what was added is taken back"
        )
        self._table[lines] = left.table
