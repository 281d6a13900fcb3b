"""Cells: the finitely many kinds of places a record can be, seen by the entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from modicum.accounting.neighborhoods.regions import Box, Region, Segments

# Maximum number of bits of the tables of boxes by segment, for each allowed set.
_BITS_PER_SET = 64


@dataclass(frozen=True, slots=True)
class Cell:
    """A kind of place: all records there lie in the same entries.

    Attributes:
        members: The entries that hold it, as the bits of a number.
        place: A segment of each axis where such a record can be.
    """

    members: int
    place: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """Places that differ only on the free axes.

    Attributes:
        cells: One cell for every distinct set of entries; at least one.
    """

    cells: tuple[Cell, ...]


def columns(
    axes: Sequence[Segments],
    regions: Sequence[Region],
    free: frozenset[str],
    *,
    at_most: int,
) -> list[Column] | None:
    """Return the cells of cut axes, in columns along the free ones.

    Args:
        axes: The axes, cut where some region begins or ends.
        regions: The region of every entry.
        free: Names of the axes on which a record may move.
        at_most: How many sets of boxes to look at before giving up.

    Returns:
        Columns; two columns that look alike are one. None if there are too many.

    Examples:
        >>> columns([], [({},)], frozenset(), at_most=10)
        [Column(cells=(Cell(members=1, place=()),))]
    """
    owners = [entry for entry, region in enumerate(regions) for _ in region]
    boxes = [box for region in regions for box in region]
    if sum(len(axis) for axis in axes) * len(boxes) > _BITS_PER_SET * at_most:
        return None
    ordered = [axis for axis in axes if axis.axis.name not in free]
    fixed = len(ordered)
    ordered += [axis for axis in axes if axis.axis.name in free]
    masks = [_masks(axis, boxes) for axis in ordered]
    budget = at_most
    starts: dict[int, tuple[int, ...]] = {(1 << len(boxes)) - 1: ()}
    if (heads := _spread(starts, masks[:fixed], budget)) is None:
        return None
    found: dict[frozenset[int], Column] = {}
    where = [ordered.index(axis) for axis in axes]
    for active, head in heads.items():
        budget = at_most - len(found)
        tails = _spread({active: head}, masks[fixed:], budget)
        if tails is None or budget <= 0:
            return None
        cells = {
            _entries(mask, owners): tuple(place[i] for i in where)
            for mask, place in tails.items()
        }
        column = Column(tuple(Cell(bits, place) for bits, place in cells.items()))
        found.setdefault(frozenset(cells), column)
    return list(found.values())


def _masks(axis: Segments, boxes: Sequence[Box]) -> list[int]:
    """Return, for each segment, the boxes that cover it as the bits of a number."""
    masks = [0] * len(axis)
    for number, box in enumerate(boxes):
        for segment in axis.covered(box.get(axis.axis.name)):
            masks[segment] |= 1 << number
    return masks


def _spread(
    starts: dict[int, tuple[int, ...]], axes: Sequence[list[int]], at_most: int
) -> dict[int, tuple[int, ...]] | None:
    """Follow every set of boxes over more axes; each distinct set is kept once."""
    found = starts
    for masks in axes:
        if len(found) * len(masks) > at_most:
            return None
        further: dict[int, tuple[int, ...]] = {}
        for active, place in found.items():
            for segment, mask in enumerate(masks):
                further.setdefault(active & mask, (*place, segment))
        found = further
    return found


def _entries(mask: int, owners: Sequence[int]) -> int:
    bits = 0
    while mask:
        lowest = mask & -mask
        bits |= 1 << owners[lowest.bit_length() - 1]
        mask ^= lowest
    return bits


def holding(members: int) -> list[int]:
    """Return the entries of a cell.

    Examples:
        >>> holding(0b1010)
        [1, 3]
    """
    found = []
    while members:
        lowest = members & -members
        found.append(lowest.bit_length() - 1)
        members ^= lowest
    return found
