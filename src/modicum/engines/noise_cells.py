"""The first step of a draw: one of the cells 0, 1, 2, ..., by a certified table.

Cell j has the probability f(j) / (f(0) + f(1) + ...), with f(j) = exp(-j / s) for
`laplace` and exp(-j² / (2 s²)) for `gaussian`. The cell of a draw is the j with
c(j) <= U < c(j + 1), where c(j) is the probability of all cells below j, and U is
uniform in [0, 1) and known by its first binary digits only.

The first `bits` digits of U are a whole number u: u <= U * 2**bits < u + 1. For each
c(m) whole numbers are known with low(m) <= c(m) * 2**bits < high(m) + 1. So where
u > high(m), U is not below c(m); and where u < low(m), U is below c(m). If that holds
the same number of cells below and above U, the cell is certain. Otherwise it is left
open, and is to be asked again with more digits.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from modicum.accounting.decimals import exp_bounds
from modicum.core.errors import check

Integers = NDArray[np.int64]

#: Sums are of so many more digits than u, which covers their rounding by far.
_GUARD: Final = 64
#: So many first digits of u are looked up at once; most of them decide.
_LOOKED_UP: Final = 16
#: The mark of digits that do not decide.
_OPEN: Final = -1


@lru_cache(maxsize=16)
def borders(noise: str, scale: Fraction, bits: int) -> tuple[list[int], list[int]]:
    """Return `low` and `high` of the borders c(1), c(2), ... of the cells.

    Cells behind the last border have a probability below 2**-(bits + 1), and its `low`
    is at least 2**bits - 1: so no draw is certain to lie behind it.

    Args:
        noise: The kind of noise.
        scale: Of the cells, s.
        bits: The number of digits of u.

    Source:
        All sums, products and quotients are of integers, rounded down for a lower and
        up for an upper bound. Quotients of successive terms never grow, so that all
        terms from t on, with the quotient q at t, sum to at most t / (1 - q).
    """
    point = bits + _GUARD
    one = 1 << point
    # The first quotient, and what the quotients are multiplied with at each step.
    if noise == "laplace":
        down, up = exp_bounds(1 / scale, point)
        slower, slowest = one, one
    else:
        down, up = exp_bounds(1 / (2 * scale * scale), point)
        slower, slowest = exp_bounds(1 / (scale * scale), point)
    least = most = one
    sums_least, sums_most = [one], [one]
    while True:
        least, most = least * down >> point, (most * up >> point) + 1
        down, up = down * slower >> point, (up * slowest >> point) + 1
        if most << (bits + 2) <= one - up:
            break
        sums_least.append(sums_least[-1] + least)
        sums_most.append(sums_most[-1] + most)
    all_least = sums_least[-1]
    all_most = sums_most[-1] + (one >> (bits + 2)) + 1
    low = [(below << bits) // all_most for below in sums_least]
    high = [(below << bits) // all_least for below in sums_most]
    check(low[-1] >= (1 << bits) - 1, "the last border leaves nothing behind it")
    return low, high


def cell(noise: str, scale: Fraction, word: int, bits: int) -> int | None:
    """Return the cell of the first digits of U; None if they leave it open."""
    low, high = borders(noise, scale, bits)
    least, most = bisect_left(high, word), bisect_right(low, word)
    return least if least == most else None


class CellTable(Struct, frozen=True):
    """The cells of many draws at once.

    Attributes:
        bits: The number of digits of u, at most 32.
        low: The lower bounds of the borders.
        high: Their upper bounds.
        by_digits: By the first digits of u, the cell; negative if they leave it open.
    """

    bits: int
    low: Integers
    high: Integers
    by_digits: NDArray[np.int32]

    def cells(self, words: Integers) -> tuple[Integers, Integers]:
        """Return the cells of some draws, and the places of those that are open."""
        shift = self.bits - min(self.bits, _LOOKED_UP)
        found = self.by_digits[words >> shift].astype(np.int64)
        unknown = np.flatnonzero(found < 0)
        least, most = _around(self.low, self.high, words[unknown], words[unknown])
        found[unknown] = least
        return found, unknown[least != most]


@lru_cache(maxsize=16)
def cell_table(noise: str, scale: Fraction, bits: int) -> CellTable:
    """Return the table of a law; see `borders`."""
    low, high = (np.array(one, np.int64) for one in borders(noise, scale, bits))
    looked_up = min(bits, _LOOKED_UP)
    width = 1 << (bits - looked_up)
    first = np.arange(1 << looked_up, dtype=np.int64) * width
    least, most = _around(low, high, first, first + width - 1)
    by_digits = np.where(least == most, least, _OPEN).astype(np.int32)
    return CellTable(bits, low, high, by_digits)


def _around(
    low: Integers, high: Integers, first: Integers, last: Integers
) -> tuple[Integers, Integers]:
    """Return the least and the greatest cells of all u from first to last."""
    return np.searchsorted(high, first, "left"), np.searchsorted(low, last, "right")
