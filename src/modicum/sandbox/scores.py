"""The output of a sandbox: one number of the range, on a grid; or none."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import Final

from modicum.escrow.programs import STEPS, Range

#: A record is the content of an eventfd: one more than the bits of a number.
RECORD_BYTES: Final = 8
#: Number of bits of one score, or that there is none: log2(STEPS + 2).
BITS_MAX: Final = math.log2(STEPS + 2)


def score_of(record: bytes, span: Range) -> float | None:
    """Return the score of a record, in the range and on its grid."""
    score = number_of(record)
    if score is None:
        return None
    try:
        return on_grid(score, span)
    except OverflowError:  # Whether a run fails must not be a program's to choose.
        return None


def number_of(record: bytes) -> float | None:
    """Return the number of a record; None if it is not finite."""
    if len(record) != RECORD_BYTES:
        return None
    (count,) = struct.unpack("=Q", record)
    (number,) = struct.unpack("=d", struct.pack("=Q", (count - 1) % 2**64))
    return number if math.isfinite(number) else None


def on_grid(score: float, span: Range) -> float:
    """Return the number of a range's grid that is nearest to a score.

    The last bits of a score are none, and neither is its exponent: a range is cut
    into 10**9 steps, and a score is one of their ends.

    Examples:
        >>> half = Range(Fraction(0), Fraction(1))
        >>> on_grid(0.123456789123, half), on_grid(-1e-300, half), on_grid(7.0, half)
        (0.123456789, 0.0, 1.0)
    """
    step = span.width / STEPS
    steps = round((span.clamp(Fraction(score)) - span.low) / step)
    rounded = float(span.low + steps * step)
    if rounded > span.high:  # Some ends of ranges are no floats.
        return math.nextafter(rounded, -math.inf)
    if rounded < span.low:
        return math.nextafter(rounded, math.inf)
    return rounded
