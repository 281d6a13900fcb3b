"""Cutting boxes along the borders of regions, many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from modicum.ledger.cells.axes import Box, Region

Integers: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Booleans: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

#: Regions that make up more pieces than this among themselves are charged as larger
#: ones of fewer.
ARRANGEMENT_MAX = 15_000


class Pieces(NamedTuple):
    """Disjoint boxes, each on one side of every region.

    Attributes:
        ends: By box, axis and end, the points.
        source: The number of the box that each is a part of.
        sides: By box and region, whether it lies inside.
    """

    ends: Integers
    source: Integers
    sides: Booleans


def ends_of(boxes: Sequence[Box]) -> Integers:
    """Return boxes as an array, by box, axis and end."""
    ends: Integers = np.array(boxes, dtype=np.int64)
    return ends.reshape(len(boxes), -1, 2)


def cut(ends: Integers, regions: Sequence[Region], most: int) -> Pieces | None:
    """Return boxes in pieces that lie on one side of every region.

    Args:
        ends: The boxes, disjoint.
        regions: The regions.
        most: Give up, and return None, as soon as there are more pieces.
    """
    origin: Integers = np.arange(len(ends))
    sides: Booleans = np.zeros((len(ends), 0), dtype=np.bool_)
    for region in regions:
        rows: Integers = np.arange(len(ends))
        inner, outer = [(ends[:0], rows[:0])], (ends, rows)
        if region is None:
            inner, outer = [outer], inner[0]
        for knife in region or ():
            common, outer = _divided(*outer, ends_of([knife])[0])
            inner.append(common)
            if sum(len(one) for one, _ in inner) + len(outer[0]) > most:
                return None
        counts = [len(one) for one, _ in (*inner, outer)]
        within = np.repeat([True] * len(inner) + [False], counts)
        ends = np.concatenate([one for one, _ in (*inner, outer)])
        rows = np.concatenate([one for _, one in (*inner, outer)])
        sides = np.concatenate([sides[rows], within[:, None]], axis=1)
        origin = origin[rows]
    return Pieces(ends, origin, sides)


def _divided(
    ends: Integers, rows: Integers, knife: Integers
) -> tuple[tuple[Integers, Integers], tuple[Integers, Integers]]:
    """Return the parts of some boxes inside and outside of another one."""
    lows = np.maximum(ends[:, :, 0], knife[:, 0])
    highs = np.minimum(ends[:, :, 1], knife[:, 1])
    meets = (lows <= highs).all(axis=1)
    left, left_rows = [ends[~meets]], [rows[~meets]]
    rest, own = ends[meets].copy(), rows[meets]
    lows, highs = lows[meets], highs[meets]
    for axis in range(ends.shape[1]):
        for cuts, end, border in (
            (rest[:, axis, 0] < lows[:, axis], 1, lows[:, axis] - 1),
            (rest[:, axis, 1] > highs[:, axis], 0, highs[:, axis] + 1),
        ):
            piece = rest[cuts].copy()
            piece[:, axis, end] = border[cuts]
            left.append(piece)
            left_rows.append(own[cuts])
        rest[:, axis, 0], rest[:, axis, 1] = lows[:, axis], highs[:, axis]
    return (rest, own), (np.concatenate(left), np.concatenate(left_rows))


def simplified(extent: Box, regions: tuple[Region, ...]) -> tuple[Region, ...]:
    """Return regions that contain the given ones and do not cut space too finely.

    The result depends only on the regions and the space, so that a charge is found
    again whatever happened in between.
    """
    if sum(len(region or ()) for region in regions) <= 1:
        return regions
    whole = ends_of([extent])
    if cut(whole, tuple(dict.fromkeys(regions)), ARRANGEMENT_MAX) is not None:
        return regions
    hulls = tuple(None if one is None else (_hull(one),) for one in regions)
    if cut(whole, tuple(dict.fromkeys(hulls)), ARRANGEMENT_MAX) is not None:
        return hulls
    return (None,) * len(regions)


def _hull(boxes: Sequence[Box]) -> Box:
    """Return the least box that contains some boxes."""
    return tuple(
        (min(low for low, _ in spans), max(high for _, high in spans))
        for spans in zip(*boxes, strict=True)
    )
