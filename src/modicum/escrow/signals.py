"""What a signal discloses of a score: the score itself, or its bin."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final

from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import number_text
from modicum.escrow.programs import STEPS, Range

#: Finer bins disclose nearly as much as the score.
BINS_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class Bin:
    """A part of a range, from one end up to the other.

    Attributes:
        low: Its lower end, which belongs to it.
        high: Its upper end, which belongs to the next one; that of the last bin is the
            end of the range, and belongs to it.
    """

    low: Fraction
    high: Fraction

    def to_dict(self) -> dict[str, str]:
        """Return it as plain JSON."""
        return {"low": number_text(self.low), "high": number_text(self.high)}


def bins_of(scores: Range, width: Fraction) -> int:
    """Return into how many bins of at most a width a range is divided evenly.

    Args:
        scores: The range.
        width: How wide a bin is, above 0 and at most the range.

    Raises:
        InputError: If bins cannot be so wide, or there would be more than 1000.

    Examples:
        >>> bins_of(Range(Fraction(0), Fraction(1)), Fraction(1, 20))
        20
    """
    if not 0 < width <= scores.width or ceil(scores.width / width) > BINS_MAX:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"bins of a score between {number_text(scores.low)} and"
                f" {number_text(scores.high)} cannot be {number_text(width)} wide",
                help=f"choose a width for 1 to {BINS_MAX} bins, such as"
                f" {number_text(scores.width / 20)}",
            )
        )
    return ceil(scores.width / width)


def bin_of(score: Fraction, scores: Range, bins: int) -> Bin:
    """Return the bin that a score lies in.

    Args:
        score: The score, in its range.
        scores: The range, divided evenly.
        bins: The number of bins, at least 1.

    Examples:
        >>> found = bin_of(Fraction(4, 5), Range(Fraction(0), Fraction(1)), 20)
        >>> found.to_dict()
        {'low': '0.8', 'high': '0.85'}
    """
    width = scores.width / bins
    place = min(int((scores.clamp(score) - scores.low) / width), bins - 1)
    low = scores.low + place * width
    return Bin(low, low + width)


def score_text(score: Fraction, scores: Range) -> str:
    """Return a score as a decimal with enough digits to identify its step.

    A score is kept as a float, which has many more digits than it has steps.

    Examples:
        >>> score_text(Fraction(0.1), Range(Fraction(0), Fraction(1)))
        '0.1'
    """
    step = scores.width / STEPS
    nearest = scores.low + round((score - scores.low) / step) * step
    unit = Fraction(1)
    while unit > step:
        unit /= 10
    while unit * 10 <= step:
        unit *= 10
    return number_text(round(nearest / unit) * unit)
