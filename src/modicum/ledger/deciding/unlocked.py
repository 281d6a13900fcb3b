"""What part of their limits may have been used by now, by unit and user group."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from modicum.ledger.cells.axes import Space
from modicum.ledger.cells.cutting import Integers
from modicum.ledger.cells.segments import Overlay, SegmentsThen
from modicum.ledger.state.planning import Planning
from modicum.policy.model import Retired, RotationRule
from modicum.release import Span

#: In the events of rounds, shares are told in millionths.
_MILLION = 1_000_000
WHOLE = Fraction(1)


class Shares(NamedTuple):
    """What part of its limits each piece of a release may have used.

    Attributes:
        shares: The different parts, rising.
        of_piece: By piece, the place of its part; None if it is the first for all.
    """

    shares: tuple[Fraction, ...]
    of_piece: Integers | None = None

    def at(self, piece: int) -> Fraction:
        """Return the part of one piece."""
        return self.shares[0 if self.of_piece is None else int(self.of_piece[piece])]


#: Nothing is held back.
EVERYTHING_UNLOCKED = Shares((WHOLE,))


class Unlocked:
    """The parts of all limits that may have been used by now.

    A cell's part is that of its unit times that of its user group, where the unit's
    instances stay in one group for life and groups take turns. A group that was never
    active has none, and neither has one whose number nobody told.

    Args:
        rotation: How user groups take turns; None if they do not.
        planning: Rounds and groups, up to the head. It is looked at again whenever
            it changes.
    """

    def __init__(self, rotation: RotationRule | None, planning: Planning) -> None:
        self._rotation = rotation
        self._planning = planning
        self._revision = -1
        self._by_group: Mapping[int, Fraction] = MappingProxyType({})
        self._of_spans: dict[Span, Fraction] = {}

    @property
    def whole(self) -> bool:
        """Whether nothing is held back from anybody, now that no round was opened."""
        return self._rotation is None and not self._planning.rounds

    def pieces(
        self, space: Space, overlay: Overlay, then: SegmentsThen, places: Integers
    ) -> Shares:
        """Return what part of its limits each piece of a release may have used.

        Args:
            space: Where the instances of a unit lie.
            overlay: The regions of a release.
            then: The segments that they are laid over.
            places: The pieces that are asked about, at least one.
        """
        if self.whole:
            return EVERYTHING_UNLOCKED
        everybody = self._unit(space.unit)
        if self._rotation is None or not space.grouped:
            return Shares((everybody,))
        self._look_again()
        touched = overlay.segments[places]
        of_segment = self._of_segments(then, touched)
        found = [
            min(self._least(box[-1]) for box in then.all_boxes(overlay, place))
            if segment in overlay.pieces
            else of_segment[segment]
            for place, segment in zip(places.tolist(), touched.tolist(), strict=True)
        ]
        different = sorted(set(found))
        shares = tuple(everybody * one for one in different)
        if len(shares) == 1:
            return Shares(shares)
        place_of = {one: place for place, one in enumerate(different)}
        return Shares(shares, np.array([place_of[one] for one in found], np.int64))

    def _of_segments(
        self, then: SegmentsThen, segments: Integers
    ) -> dict[int, Fraction]:
        """Return the part that every group of a segment may have used, by segment."""
        near = np.isin(then.owner, segments)
        groups = then.ends[near, -1].tolist()
        found: dict[int, Fraction] = {}
        for segment, (low, high) in zip(then.owner[near].tolist(), groups, strict=True):
            found[segment] = min(found.get(segment, WHOLE), self._least((low, high)))
        return found

    def _least(self, span: Span) -> Fraction:
        """Return the part that every group of a span of groups may have used."""
        found = self._of_spans.get(span)
        if found is None:
            low, high = span
            shares = [
                self._by_group[one] for one in self._by_group if low <= one <= high
            ]
            # A group that nobody told of has no part at all.
            known = len(shares) == high - low + 1
            found = self._of_spans[span] = min(shares) if known else Fraction(0)
        return found

    def _unit(self, unit: str) -> Fraction:
        opened = self._planning.present_round
        millionths = opened.unlocked.get(unit) if opened else None
        return WHOLE if millionths is None else Fraction(millionths, _MILLION)

    def _look_again(self) -> None:
        """Find the part of each group, if rounds or groups changed."""
        if self._revision == self._planning.revision or self._rotation is None:
            return
        open_ = self._rotation.retired is Retired.FIRST_COME
        retired = dict.fromkeys(self._planning.groups, Fraction(open_))
        schedule = self._rotation.schedule
        active = {
            group: schedule.share(age) for group, age in self._planning.ages().items()
        }
        self._by_group = {**retired, **active}
        self._of_spans.clear()
        self._revision = self._planning.revision
