"""Averages and spreads from noisy numbers: of rows, their sum and that of squares.

Each noisy number has an interval for the true one. Derived numbers get the range over
all combinations, so that it is never too narrow.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Final

from msgspec import Struct

from modicum.accounting.decimals import significant

#: Number of digits of quotients.
DIGITS: Final = 12

# Number of binary digits of square roots below one step.
_ROOT_BITS: Final = 64

_ONE: Final = Fraction(1)


class Range(Struct, frozen=True, gc=False):
    """A released number, and the range of the true one.

    Attributes:
        value: The number.
        low: The true one is not less.
        high: Nor is it more.
    """

    value: Fraction
    low: Fraction
    high: Fraction

    def times(self, step: Fraction) -> Range:
        """Return it in other units.

        Args:
            step: How many of them one of these is, above 0.
        """
        if step == 1:
            return self
        return Range(self.value * step, self.low * step, self.high * step)

    def within(self, low: Fraction, high: Fraction) -> Range:
        """Return it moved into bounds that the true number is known to keep."""
        value, least, most = (
            min(max(one, low), high) for one in (self.value, self.low, self.high)
        )
        return Range(value, least, most)

    def rounded(self) -> Range:
        """Return it with few digits: the range grows, if anything."""
        return Range(
            _rounded(self.value, up=False),
            _rounded(self.low, up=False),
            _rounded(self.high, up=True),
        )


def noisy(
    number: int | Fraction, width: int | Fraction, step: Fraction = _ONE
) -> Range:
    """Return a noisy number with its range.

    Args:
        number: The number.
        width: How far noise strays.
        step: How many units one of them is, above 0.
    """
    up, down = step.as_integer_ratio()
    ends = (number * up, (number - width) * up, (number + width) * up)
    if down == 1:
        return Range(*map(Fraction, ends))
    return Range(*(Fraction(one, down) for one in ends))


def average(rows: Range, total: Range, low: int, high: int) -> Range | None:
    """Return the average of values; None if there may be none.

    Args:
        rows: The number of values.
        total: Their sum.
        low: The least value.
        high: The greatest one.
    """
    if rows.low <= 0:
        return None
    found = Range(
        total.value / rows.value,
        total.low / (rows.high if total.low >= 0 else rows.low),
        total.high / (rows.low if total.high >= 0 else rows.high),
    )
    return found.within(Fraction(low), Fraction(high))


def variance(
    rows: Range, total: Range, squares: Range, spread: int, *, population: bool
) -> Range | None:
    """Return the variance of values; None if there may be too few of them.

    Args:
        rows: The number of values.
        total: Their sum, around any center.
        squares: The sum of their squares, around the same one.
        spread: How far the greatest value lies from the least one.
        population: Whether is divided by the number of rows; else by one less.
    """
    fewest = 0 if population else 1
    if rows.low <= fewest:
        return None
    most = Fraction(spread * spread, 4)
    mean = total.value / rows.value
    found = Range(
        squares.value / rows.value - mean * mean,
        _least(rows, total, squares.low),
        _most(rows, total, squares.high),
    ).within(Fraction(0), most)
    if population:
        return found
    # Of n rows, it is n / (n - 1) times as much: less, the more rows there are.
    return Range(
        found.value * rows.value / (rows.value - 1),
        found.low * rows.high / (rows.high - 1),
        found.high * rows.low / (rows.low - 1),
    )


def deviation(spread: Range) -> Range:
    """Return the standard deviation that a variance belongs to."""
    return Range(
        root_below(spread.value), root_below(spread.low), root_above(spread.high)
    )


# --- the range of squares / rows - (total / rows)**2, which is concave in 1 / rows ----


def _least(rows: Range, total: Range, squares: Fraction) -> Fraction:
    farthest = max(total.low**2, total.high**2)
    return min(squares / n - farthest / n**2 for n in (rows.low, rows.high))


def _most(rows: Range, total: Range, squares: Fraction) -> Fraction:
    nearest = Fraction(0)
    if total.low > 0 or total.high < 0:
        nearest = min(total.low**2, total.high**2)
    at = [1 / rows.low, 1 / rows.high]
    if nearest and at[1] < squares / (2 * nearest) < at[0]:
        at.append(squares / (2 * nearest))  # The top of the parabola.
    return max(squares * one - nearest * one**2 for one in at)


# --- rounding -------------------------------------------------------------------------

_ROOT_ERROR: Final = Fraction(1, 2**_ROOT_BITS)


def root_below(value: Fraction) -> Fraction:
    """Return a square root, rounded down by less than `_ROOT_ERROR`."""
    return Fraction(isqrt(int(value * 4**_ROOT_BITS)), 2**_ROOT_BITS)


def root_above(value: Fraction) -> Fraction:
    """Return a number above a square root, by at most `_ROOT_ERROR`."""
    return root_below(value) + _ROOT_ERROR


def few_digits(value: Fraction, *, up: bool = False) -> Fraction:
    """Return a number, rounded down or up unless it is a decimal of few places."""
    short = (value * 10**DIGITS).denominator == 1
    return value if short else _rounded(value, up=up)


def _rounded(value: Fraction, *, up: bool) -> Fraction:
    if value < 0:
        return -significant(-value, DIGITS, up=not up)
    return significant(value, DIGITS, up=up)
