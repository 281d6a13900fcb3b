"""What is left of boxes when others are taken away, as few boxes in one order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

import numpy as np

from modicum.ledger.cells.axes import Box
from modicum.ledger.cells.partition import Integers
from modicum.release import Span
from modicum.release.parts import merged

#: Space is not sliced more finely than this: that would take seconds.
_SLICES_MAX = 5000


def remainder(own: Integers, taken: Integers, most: int) -> list[Box] | None:
    """Return disjoint boxes that make up what lies in some boxes and not in others.

    Space is sliced along its last axis first, wherever something begins or ends
    there; slices that are alike and touch are one. On the first axis boxes are as
    long as they can be.

    Args:
        own: Boxes, by box, axis and end; they have an axis.
        taken: Boxes that are taken away.
        most: Give up as soon as there are more boxes.

    Returns:
        The boxes; None if they are too many, or would have to be cut too finely.

    Examples:
        >>> square = np.array([[(0, 9), (0, 9)]])
        >>> remainder(square, np.array([[(2, 3), (5, 9)]]), 10)
        [((0, 9), (0, 4)), ((0, 1), (5, 9)), ((4, 9), (5, 9))]
    """
    ends = np.concatenate([own, taken]) + np.array([0, 1])
    if prod(len(np.unique(one)) for one in ends.swapaxes(0, 1)[1:]) > _SLICES_MAX:
        return None
    found: list[Box] = []
    for box in _sliced(np.unique(own, axis=0), np.unique(taken, axis=0)):
        if len(found) == most:
            return None
        found.append(box)
    return found


def _sliced(own: Integers, taken: Integers) -> Iterator[Box]:
    if own.shape[1] == 1:
        spans = (
            [(low, high) for low, high in one[:, 0].tolist()] for one in (own, taken)
        )
        yield from (((low, high),) for low, high in apart(*spans))
        return
    alike: list[Span] = []
    before: tuple[Box, ...] = ()
    for span in _slices(own[:, -1], taken[:, -1]):
        inner = tuple(_sliced(_within(own, span), _within(taken, span)))
        if inner != before:
            yield from _thick(before, alike)
            before, alike = inner, []
        alike.append(span)
    yield from _thick(before, alike)


def _within(boxes: Integers, span: Span) -> Integers:
    """Return the boxes that hold a span of the last axis, without that axis."""
    low, high = span
    holds = (boxes[:, -1, 0] <= low) & (boxes[:, -1, 1] >= high)
    found: Integers = np.unique(boxes[holds, :-1], axis=0)
    return found


def _thick(inner: tuple[Box, ...], spans: list[Span]) -> Iterator[Box]:
    """Yield boxes that reach over spans of one more axis."""
    yield from ((*box, span) for span in merged(spans) for box in inner)


def _slices(own: Integers, taken: Integers) -> Iterator[Span]:
    """Yield spans in which nothing begins or ends, of those that are not empty."""
    ends = np.unique(np.concatenate([own, taken]) + np.array([0, 1]))
    for low, after in zip(ends.tolist(), ends[1:].tolist(), strict=False):
        if ((own[:, 0] <= low) & (own[:, 1] >= low)).any():
            yield low, after - 1


def apart(own: Iterable[Span], taken: Iterable[Span]) -> Iterator[Span]:
    """Yield what of some spans lies in no other ones, as spans that do not touch.

    Args:
        own: The spans.
        taken: The other ones.

    Examples:
        >>> list(apart([(1, 3), (4, 9)], [(8, 20), (2, 2)]))
        [(1, 1), (3, 7)]
    """
    gone = merged(list(taken))
    for low, high in merged(list(own)):
        start = low
        for first, last in gone:
            if last >= start and first <= high:
                if first > start:
                    yield start, first - 1
                start = last + 1
        if start <= high:
            yield start, high
