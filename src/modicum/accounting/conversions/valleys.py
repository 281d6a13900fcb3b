"""Looking for the lowest point of a function that is slow to compute.

As with `decimals.lowest`, the callers evaluate a bound that is valid at every point: a
point that is not quite the best costs a little tightness and never soundness.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

_STEPS_MAX = 60


def bottom_of_valley(
    bound: Callable[[Decimal], Decimal],
    around: tuple[Decimal, Decimal, Decimal],
    least: Decimal,
    within: Decimal,
) -> Decimal:
    """Return where a function with one valley is (nearly) least, in few evaluations.

    Each parabola through the three lowest points proposes the next point; where that
    is no progress, the longer side is divided.

    Args:
        bound: Falls, then rises; may be infinite.
        around: A low end, a point where the function is less than at either end, and
            a high end.
        least: The function at that point.
        within: How close the ends come before the search stops.

    Examples:
        >>> around = Decimal(0), Decimal(1), Decimal(9)
        >>> within = Decimal("1e-6")
        >>> at = bottom_of_valley(lambda x: (x - 2) ** 2, around, Decimal(1), within)
        >>> f"{at:.4f}"
        '2.0000'
    """
    low, middle, high = around
    lows: list[tuple[Decimal, Decimal]] = [(middle, least)]
    for step in range(_STEPS_MAX):
        if high - low < within:
            break
        there = None if step % 4 == 3 else _vertex(lows[:3])
        if there is None or not low < there < high:
            there = _divided(low, middle, high)
        if abs(there - middle) < within / 4:
            there = middle + (
                within / 4 if high - middle > middle - low else -within / 4
            )
        value = bound(there)
        lows = sorted([*lows, (there, value)], key=lambda point: point[1])
        if value < least:
            low, high = (middle, high) if there > middle else (low, middle)
            middle, least = there, value
        elif there > middle:
            high = there
        else:
            low = there
    return middle


def _divided(low: Decimal, middle: Decimal, high: Decimal) -> Decimal:
    share = Decimal("0.381966")
    if high - middle > middle - low:
        return middle + share * (high - middle)
    return middle - share * (middle - low)


def _vertex(points: list[tuple[Decimal, Decimal]]) -> Decimal | None:
    """Return where the parabola through three points is lowest, if it is."""
    if len(points) < 3 or any(value.is_infinite() for _, value in points):
        return None
    (a, at_a), (b, at_b), (c, at_c) = points
    first, second = (b - a) * (at_b - at_c), (b - c) * (at_b - at_a)
    if first == second:
        return None
    return b - ((b - a) * first - (b - c) * second) / (2 * (first - second))
