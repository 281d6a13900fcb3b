"""Segments: disjoint sets of points, cut as releases arrive.

At any time the points of a space are divided into segments such that every release so
far covers each of them wholly or not at all. So all points of a segment have the same
charge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from modicum.core.canonical import Plain
from modicum.ledger.cells.axes import Box, Region
from modicum.ledger.cells.partition import Booleans, Integers, cut, ends_of, simplified
from modicum.release import Span
from modicum.release.memo import Memo
from modicum.release.parts import merged

#: Beyond this number of segments, or of boxes that make them up, no segment is cut any
#: more: a release is charged to every segment that it touches.
SEGMENTS_MAX = 20_000
BOXES_MAX = 4 * SEGMENTS_MAX
#: Maximum number of overlays cached until the next cut, if they have few pieces.
OVERLAYS_MAX = 1_000
OVERLAY_PIECES_MAX = 1_000
#: Maximum number of region choices cached with each overlay.
_FOUND_MAX = 16

#: A box, and for each region whether it lies inside.
_Piece: TypeAlias = tuple[Box, tuple[bool, ...]]


@dataclass(frozen=True, slots=True)
class Overlay:
    """Some regions, laid over the segments.

    Attributes:
        segments: For each piece that some region covers, the segment it is part of;
            of segments that must be cut, the other pieces as well.
        inside: By piece and region, whether the piece lies in the region.
        fresh: The pieces that become new segments when they are cut.
        pieces: The boxes of segments that must be cut, by segment.
        whole: Whether no segment may be cut, so that a partly covered one counts as
            covered.
        rounded: Whether there is such a segment.
        found: Caches the pieces that lie inside some regions.
    """

    segments: Integers
    inside: Booleans
    fresh: Booleans
    pieces: Mapping[int, Sequence[_Piece]]
    whole: bool = False
    rounded: bool = False
    found: Memo[tuple[int, ...], Integers] = field(
        init=False,
        repr=False,
        compare=False,
        default_factory=lambda: Memo(_FOUND_MAX),
    )

    def inside_any(self, regions: tuple[int, ...]) -> Integers:
        """Return the pieces that lie inside at least one of some regions."""
        known = self.found.get(regions)
        if known is not None:
            return known
        places = np.flatnonzero(self.inside[:, regions].any(axis=1))
        return self.found.keep(regions, places)


class SegmentsThen(Struct, frozen=True):
    """The segments at some time, unaffected by later cuts.

    Attributes:
        ends: By box, axis and end, the points of all boxes.
        owner: The segment that each box belongs to.
    """

    ends: Integers
    owner: Integers

    def box(self, overlay: Overlay, place: int) -> Box:
        """Return a box of a piece of an overlay of that time."""
        return self.all_boxes(overlay, place)[0]

    def all_boxes(self, overlay: Overlay, place: int) -> list[Box]:
        """Return the boxes that make up a piece of an overlay of that time."""
        segment = int(overlay.segments[place])
        pieces = overlay.pieces.get(segment)
        if pieces is None:
            return self.boxes(segment)
        sides = tuple(map(bool, overlay.inside[place]))
        return [box for box, own in pieces if own == sides] or self.boxes(segment)

    def boxes(self, segment: int) -> list[Box]:
        """Return the boxes that make up a segment."""
        ends = self.ends[self.owner == segment].tolist()
        return [tuple((low, high) for low, high in box) for box in ends]


class Segments:
    """The segments of one space.

    Mutable, with one owner; its arrays are replaced, never changed.

    Args:
        extent: The span of each axis.
        segments_max: The maximum number of segments.
    """

    def __init__(self, extent: Box, *, segments_max: int = SEGMENTS_MAX) -> None:
        self.frozen = False
        self._extent = extent
        self._segments_max = segments_max
        self._simplified: dict[tuple[Region, ...], tuple[Region, ...]] = {}
        #: Overlays of the present segments.
        self._overlays: dict[tuple[Region, ...], Overlay] = {}
        #: The last overlays, whatever their number of pieces.
        self._latest: tuple[tuple[Region, ...], Overlay] | None = None
        self._take(ends_of([extent]), np.zeros(1, dtype=np.int64))

    @property
    def count(self) -> int:
        """The number of segments."""
        return len(self._boxes_of)

    def dump(self) -> dict[str, Plain]:
        """Return the segments as plain data."""
        return {
            "boxes": self._then.ends.tolist(),
            "owner": self._then.owner.tolist(),
            "frozen": self.frozen,
        }

    def restore(self, boxes: list[Box], owner: list[int], *, frozen: bool) -> None:
        """Take up segments that were dumped.

        Raises:
            ValueError: If a segment has no box.
        """
        self._take(ends_of(boxes), np.array(owner, dtype=np.int64))
        if not self._boxes_of.all():
            raise ValueError("a segment has no box")
        self.frozen = frozen
        self._forget()

    def then(self) -> SegmentsThen:
        """Return the present segments, for later lookups."""
        return self._then

    def everywhere(self, regions: int) -> Overlay:
        """Return the overlay of this many regions that cover everything."""
        inside = np.ones((self.count, regions), dtype=np.bool_)
        fresh = np.zeros(self.count, dtype=np.bool_)
        return Overlay(np.arange(self.count), inside, fresh, {})

    def overlay(self, regions: Sequence[Region]) -> Overlay:
        """Return the cuts if regions were charged separately. Cuts nothing."""
        requested = tuple(regions)
        known = self._overlays.get(requested)
        if known is not None:
            return known
        if self._latest is not None and self._latest[0] == requested:
            return self._latest[1]
        simple = self._simplified.get(requested)
        if simple is None:
            if len(self._simplified) >= OVERLAYS_MAX:
                self._simplified.clear()
            simple = self._simplified[requested] = simplified(self._extent, requested)
        found = self._laid_over(simple)
        if simple != requested:
            found = replace(found, rounded=True)
        if len(found.segments) <= OVERLAY_PIECES_MAX:
            if len(self._overlays) >= OVERLAYS_MAX:
                self._overlays.clear()
            self._overlays[requested] = found
        self._latest = requested, found
        return found

    def _laid_over(self, regions: tuple[Region, ...]) -> Overlay:
        distinct = tuple(dict.fromkeys(regions))
        if distinct == (None,):
            return self.everywhere(len(regions))
        found = self._distinct(distinct)
        if len(distinct) == len(regions):
            return found
        columns = [distinct.index(region) for region in regions]
        return replace(
            found,
            inside=found.inside[:, columns],
            pieces={
                segment: [
                    (box, tuple(sides[column] for column in columns))
                    for box, sides in pieces
                ]
                for segment, pieces in found.pieces.items()
            },
        )

    def _distinct(self, regions: tuple[Region, ...]) -> Overlay:
        inside, touched = self._hits(regions)
        near = np.flatnonzero(touched.any(axis=1))
        segments, of_segment = np.unique(self._then.owner[near], return_inverse=True)
        covered = _counts(of_segment, inside[near], len(segments))
        wholly = covered == self._boxes_of[segments][:, None]
        partly = (inside[near] != touched[near]).any(axis=1)
        torn = ((covered > 0) & ~wholly).any(axis=1)
        torn[of_segment[partly]] = True
        if not torn.any():
            return Overlay(segments, wholly, np.zeros(len(segments), np.bool_), {})
        pieces = self._pieces(segments[torn], inside, touched, regions)
        if pieces is not None and self._has_room_for(pieces):
            return _gathered(segments[~torn], wholly[~torn], pieces)
        half = _counts(of_segment, touched[near], len(segments)) > 0
        fresh = np.zeros(len(segments), dtype=np.bool_)
        return Overlay(segments, half, fresh, {}, whole=True, rounded=True)

    def cut(self, overlay: Overlay) -> Integers:
        """Cut segments so that each piece of an overlay is one; return their numbers.

        Args:
            overlay: A result of `overlay` since the last cut.
        """
        # A rounded part must be found again in the same segments.
        if overlay.whole and not self.frozen:
            self.frozen = True
            self._forget()
        if not overlay.pieces:
            return overlay.segments
        new = np.flatnonzero(overlay.fresh)
        numbers = overlay.segments.copy()
        numbers[new] = np.arange(self.count, self.count + len(new))
        lines = zip(
            overlay.segments.tolist(),
            map(tuple, overlay.inside.tolist()),
            numbers.tolist(),
            strict=True,
        )
        number_of = {(segment, sides): number for segment, sides, number in lines}
        boxes, owner = [], []
        for segment, pieces in overlay.pieces.items():
            for box, sides in pieces:
                boxes.append(box)
                owner.append(number_of[segment, sides])
        kept = ~np.isin(self._then.owner, list(overlay.pieces))
        self._take(
            np.concatenate([self._then.ends[kept], ends_of(boxes)]),
            np.concatenate([self._then.owner[kept], np.array(owner, dtype=np.int64)]),
        )
        return numbers

    def _forget(self) -> None:
        """Clear the overlays of the former segments."""
        self._overlays.clear()
        self._latest = None

    def _take(self, ends: Integers, owner: Integers) -> None:
        self._then = SegmentsThen(ends, owner)
        self._forget()
        self._boxes_of: Integers = np.bincount(owner)

    def _hits(self, regions: Sequence[Region]) -> tuple[Booleans, Booleans]:
        """Return, by box and region, whether one box of it covers or touches it."""
        lows, highs = self._then.ends[:, :, 0], self._then.ends[:, :, 1]
        inside = np.zeros((len(lows), len(regions)), dtype=np.bool_)
        touched = inside.copy()
        for place, region in enumerate(regions):
            if region is None:
                inside[:, place] = touched[:, place] = True
                continue
            for box in region:
                ends: Integers = np.array(box, dtype=np.int64)
                low, high = ends[:, 0], ends[:, 1]
                touched[:, place] |= ((lows <= high) & (highs >= low)).all(axis=1)
                inside[:, place] |= ((lows >= low) & (highs <= high)).all(axis=1)
        return inside, touched

    def _pieces(
        self,
        torn: Integers,
        inside: Booleans,
        touched: Booleans,
        regions: Sequence[Region],
    ) -> dict[int, list[_Piece]] | None:
        """Return the pieces of segments that may not be wholly on one side.

        None if they are far too many.
        """
        near = np.flatnonzero(np.isin(self._then.owner, torn))
        partly = (inside[near] != touched[near]).any(axis=1)
        found = cut(self._then.ends[near[partly]], regions, 2 * BOXES_MAX)
        if found is None:
            return None
        ends = np.concatenate([self._then.ends[near[~partly]], found.ends])
        sides = np.concatenate([inside[near[~partly]], found.sides])
        source = np.concatenate([near[~partly], near[partly][found.source]])
        pieces: dict[int, list[_Piece]] = {int(segment): [] for segment in torn}
        for owner, box, side in zip(
            self._then.owner[source].tolist(),
            ends.tolist(),
            sides.tolist(),
            strict=True,
        ):
            pieces[owner].append((tuple(map(tuple, box)), tuple(side)))
        return {segment: _coalesced(one) for segment, one in pieces.items()}

    def _has_room_for(self, pieces: Mapping[int, Sequence[_Piece]]) -> bool:
        new = sum(len({sides for _, sides in one}) - 1 for one in pieces.values())
        boxes = len(self._then.owner) + sum(map(len, pieces.values()))
        few = boxes <= BOXES_MAX and self.count + new <= self._segments_max
        return new == 0 or (few and not self.frozen)


def _counts(group: Integers, members: Booleans, groups: int) -> Integers:
    """Return, by group and column, how many members there are."""
    columns = [np.bincount(group, one, groups) for one in members.T]
    found: Integers = np.stack(columns, axis=1).astype(np.int64)
    return found


def _gathered(
    segments: Integers, inside: Booleans, pieces: dict[int, list[_Piece]]
) -> Overlay:
    """Return an overlay of segments that stay whole, and of others in pieces."""
    numbers: list[int] = []
    lines: list[tuple[bool, ...]] = []
    fresh: list[bool] = []
    cut: dict[int, list[_Piece]] = {}
    for segment, found in pieces.items():
        sides = list(dict.fromkeys(one for _, one in found))
        numbers += [segment] * len(sides)
        lines += sides
        fresh += [place > 0 for place in range(len(sides))]
        if len(sides) > 1:  # Boxes of a region together may cover it wholly.
            cut[segment] = found
    return Overlay(
        np.concatenate([segments, np.array(numbers, dtype=np.int64)]),
        np.concatenate([inside, np.array(lines, dtype=np.bool_)]),
        np.concatenate([np.zeros(len(segments), np.bool_), np.array(fresh, np.bool_)]),
        cut,
    )


def _coalesced(pieces: list[_Piece]) -> list[_Piece]:
    """Return the same pieces as fewer boxes: those that make up a larger one."""
    by_sides: dict[tuple[bool, ...], list[Box]] = {}
    for box, sides in pieces:
        by_sides.setdefault(sides, []).append(box)
    return [
        (box, sides)
        for sides, boxes in by_sides.items()
        for box in (boxes if len(boxes) == 1 else _joined(boxes))
    ]


def _joined(boxes: list[Box]) -> list[Box]:
    """Return disjoint boxes, joined where they touch along one axis."""
    for axis in range(len(boxes[0])):
        lines: dict[tuple[Box, Box], list[Span]] = {}
        for box in boxes:
            lines.setdefault((box[:axis], box[axis + 1 :]), []).append(box[axis])
        boxes = [
            (*before, span, *after)
            for (before, after), spans in lines.items()
            for span in merged(spans)
        ]
    return boxes
