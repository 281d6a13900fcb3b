"""Unions of boxes over partitioning attributes, in a compact form.

A box is a conjunction. The same rows can be described by many unions of boxes; equal
canonical forms contain the same rows, and unions that differ only in order, in
repetition or in how one attribute is cut into pieces have equal canonical forms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from modicum.release.parts import Box, Span, Values, in_order, merged
from modicum.release.population import Partition


def union(
    boxes: Iterable[Box], partitions: Mapping[str, Partition]
) -> tuple[Box, ...] | None:
    """Return a union of boxes in canonical form; None if it contains everybody.

    An attribute of which a box names every value is dropped, a box inside another
    one is dropped, and boxes that differ in one attribute only become one.

    Args:
        boxes: The boxes; their attributes are sorted, the values of each too.
        partitions: The domains of the attributes.

    Examples:
        >>> size = {"size": Partition("size", None, 1, 9, (), None)}
        >>> union([(("size", ((4, 6),)),), (("size", ((1, 3), (5, 5))),)], size)
        ((('size', ((1, 6),)),),)
        >>> union([(("size", ((1, 5),)),), (("size", ((4, 9),)),)], size) is None
        True
    """
    left = in_order(_without_complete(box, partitions) for box in boxes)
    before: tuple[Box, ...] = ()
    while left != before:
        before = left
        for name in sorted({name for box in left for name, _ in box}):
            left = _joined(left, name, partitions)
        left = _without_inner(left)
    return None if () in left else left


def _without_complete(box: Box, partitions: Mapping[str, Partition]) -> Box:
    return tuple(
        (name, values)
        for name, values in box
        if not _is_complete(values, partitions[name])
    )


def _is_complete(values: Values, partition: Partition) -> bool:
    if partition.values is not None:
        return len(values) == len(partition.values)
    return values == ((partition.low, partition.high),)


def _joined(
    boxes: tuple[Box, ...], name: str, partitions: Mapping[str, Partition]
) -> tuple[Box, ...]:
    """Return boxes of which no two differ in the values of one attribute only."""
    kept: list[Box] = []
    alike: dict[Box, list[Values]] = {}
    for box in boxes:
        values = dict(box).get(name)
        if values is None:
            kept.append(box)
        else:
            rest = tuple(pair for pair in box if pair[0] != name)
            alike.setdefault(rest, []).append(values)
    for rest, found in alike.items():
        box = tuple(sorted((*rest, (name, _either(found)))))
        kept.append(_without_complete(box, partitions))
    return in_order(kept)


def _either(found: list[Values]) -> Values:
    """Return the values of any of several sets of one attribute."""
    every = [one for values in found for one in values]
    if isinstance(every[0], str):
        return tuple(sorted({cast("str", one) for one in every}))
    return merged([cast("Span", one) for one in every])


def _without_inner(boxes: tuple[Box, ...]) -> tuple[Box, ...]:
    """Return the boxes that lie in no other one; no two are equal."""
    return tuple(
        box
        for box in boxes
        if not any(other != box and _lies_in(box, other) for other in boxes)
    )


def _lies_in(box: Box, outer: Box) -> bool:
    own = dict(box)
    return all(name in own and _is_subset(own[name], values) for name, values in outer)


def _is_subset(values: Values, outer: Values) -> bool:
    if isinstance(values[0], str):
        return set(values) <= set(outer)
    spans = cast("tuple[Span, ...]", outer)
    return all(
        any(first <= low and high <= last for first, last in spans)
        for low, high in values
    )
