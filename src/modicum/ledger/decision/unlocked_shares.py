"""The unlocked fractions of limits, by unit and user group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from modicum.ledger.cells.axes import FAR, Space
from modicum.ledger.cells.family import ReleaseCosts
from modicum.ledger.cells.partition import Integers
from modicum.ledger.cells.segments import SegmentsThen
from modicum.ledger.state.rounds import Planning
from modicum.policy.model import Retired, RotationRule
from modicum.release import Span
from modicum.release.memo import Memo
from modicum.release.parts import merged


class Locked(NamedTuple):
    """Why nothing is unlocked in a cell. Spans of groups are in order, and disjoint.

    Attributes:
        gap: What the ledger has lost, if it has; then nothing else matters.
        unit: Whether the open round unlocks nothing of its unit; then groups do not
            matter.
        unnamed: Whether the release names no groups, and so reads all future ones.
        ahead: The groups in it that have not begun.
        never: The groups that never will be: their rounds are over.
        closed: Retired groups, whose unused budget nobody may use.
        open: All groups of which something is unlocked, in the cell or not.
    """

    gap: str = ""
    unit: bool = False
    unnamed: bool = False
    ahead: tuple[Span, ...] = ()
    never: tuple[Span, ...] = ()
    closed: tuple[Span, ...] = ()
    open: tuple[Span, ...] = ()


class Groups:
    """The user groups with an unlocked budget.

    Args:
        shares: The unlocked fraction, by number of a group that ever started.
        rounds: The number of opened rounds; a group begins in the one of its number.
    """

    def __init__(self, shares: Mapping[int, Fraction], rounds: int) -> None:
        self._rounds = rounds
        self._open = merged([(one, one) for one, share in shares.items() if share])
        self._closed = merged([(one, one) for one, part in shares.items() if not part])

    def locked(self, spans: Iterable[Span], read: Sequence[Span]) -> Locked:
        """Return of which groups of a cell nothing is unlocked."""
        here = _both(spans, read)
        missing = tuple(_without(here, merged([*self._open, *self._closed])))
        return Locked(
            ahead=_both(missing, [(self._rounds + 1, FAR)]),
            never=_both(missing, [(0, self._rounds)]),
            closed=_both(here, self._closed),
            open=self._open,
        )


def _both(some: Iterable[Span], others: Sequence[Span]) -> tuple[Span, ...]:
    """Return the intersection of spans."""
    common = [
        (max(low, first), min(high, last))
        for low, high in some
        for first, last in others
        if low <= last and first <= high
    ]
    return merged(common)


def _without(spans: Iterable[Span], known: Iterable[Span]) -> Iterator[Span]:
    """Yield the parts of spans outside of known ones; those are in order."""
    for low, high in spans:
        begin = low
        for first, last in known:
            if first <= high and last >= begin:
                if begin < first:
                    yield begin, first - 1
                begin = last + 1
        if begin <= high:
            yield begin, high


#: Events of rounds store fractions in millionths.
MILLION = 1_000_000
#: Maximum number of spans of groups whose fractions are cached.
_SPANS_MAX = 10_000
WHOLE = Fraction(1)


class Shares(NamedTuple):
    """The unlocked fraction of the limits, for each piece of a release.

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
#: While losses of the past are not known.
NOTHING_UNLOCKED = Shares((Fraction(0),))


class Unlocked:
    """The unlocked fractions of all limits.

    A cell's fraction is that of its unit times that of its user group, where the unit's
    instances stay in one group for life and groups rotate. A group that was never
    active has none, and neither has an unknown one. One that completed its rounds
    counts as retired.

    Args:
        rotation: The rotation of user groups; None if there is none.
        planning: Rounds and groups, up to the head. It is looked at again whenever
            it changes.
    """

    def __init__(self, rotation: RotationRule | None, planning: Planning) -> None:
        self._rotation = rotation
        self._planning = planning
        self._revision = -1
        self._by_group: Mapping[int, Fraction] = MappingProxyType({})
        self._groups = Groups(self._by_group, 0)
        self._of_spans: Memo[Span, Fraction] = Memo(_SPANS_MAX)

    @property
    def whole(self) -> bool:
        """Whether everything is unlocked, as no round was opened."""
        return not (self._rotation or self._planning.rounds or self.gap)

    @property
    def gap(self) -> str:
        """What the ledger has lost, so that every limit counts as full; else empty."""
        return next((one.text() for one in self._planning.gaps.open.values()), "")

    def pieces(
        self, space: Space, inquiry: ReleaseCosts, then: SegmentsThen, places: Integers
    ) -> Shares:
        """Return the unlocked fraction of the limits, for each piece of a release."""
        if self.gap:
            return NOTHING_UNLOCKED
        if self.whole:
            return EVERYTHING_UNLOCKED
        everybody = self.of_unit(space.unit)
        if self._rotation is None or not space.grouped:
            return Shares((everybody,))
        self._recompute()
        overlay = inquiry.overlay
        touched = overlay.segments[places]
        of_segment = self._of_segments(then, touched, _groups_read(inquiry))
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

    def locked(
        self, space: Space, inquiry: ReleaseCosts, then: SegmentsThen, place: int
    ) -> Locked:
        """Return why nothing is unlocked in a piece of a release.

        Args:
            space: The space of a unit.
            inquiry: The release.
            then: The segments that its regions are laid over.
            place: A piece whose part is 0.
        """
        if self.gap:
            return Locked(gap=self.gap)
        if not self.of_unit(space.unit):
            return Locked(unit=True)
        self._recompute()
        boxes = then.all_boxes(inquiry.overlay, place)
        found = self._groups.locked([box[-1] for box in boxes], _groups_read(inquiry))
        return found._replace(unnamed=_reads_all_groups(inquiry, place))

    def _of_segments(
        self, then: SegmentsThen, segments: Integers, read: Sequence[Span]
    ) -> dict[int, Fraction]:
        """Return the fraction common to all groups read in a segment, by segment.

        A segment may be touched in part only, where none is cut any more. Its charge is
        no less than that of the groups that are read.
        """
        near = np.isin(then.owner, segments)
        groups = then.ends[near, -1].tolist()
        found = dict.fromkeys(segments.tolist(), WHOLE)
        for segment, (low, high) in zip(then.owner[near].tolist(), groups, strict=True):
            for first, last in read:
                if low <= last and first <= high:
                    least = self._least((max(low, first), min(high, last)))
                    found[segment] = min(found[segment], least)
        return found

    def _least(self, span: Span) -> Fraction:
        """Return the part that every group of a span of groups may have used."""
        found = self._of_spans.get(span)
        if found is None:
            low, high = span
            shares = [
                self._by_group[one] for one in self._by_group if low <= one <= high
            ]
            # An unknown group has no fraction.
            known = len(shares) == high - low + 1
            least = min(shares) if known else Fraction(0)
            found = self._of_spans.keep(span, least)
        return found

    def of_unit(self, unit: str) -> Fraction:
        """Return the part that everybody may have used of a unit's limits."""
        if self.gap:
            return Fraction(0)
        opened = self._planning.present_round
        millionths = opened.unlocked.get(unit) if opened else None
        return WHOLE if millionths is None else Fraction(millionths, MILLION)

    def _recompute(self) -> None:
        """Find the part of each group, if rounds or groups changed."""
        if self._revision == self._planning.revision or self._rotation is None:
            return
        open_ = self._rotation.retired is Retired.FIRST_COME
        retired = dict.fromkeys(self._planning.groups, Fraction(open_))
        schedule = self._rotation.schedule
        active = {
            group: schedule.share(age)
            for group, age in self._planning.ages().items()
            if age <= schedule.rounds  # Another policy may have allowed more rounds.
        }
        self._by_group = {**retired, **active}
        self._groups = Groups(self._by_group, len(self._planning.rounds))
        self._of_spans = Memo(_SPANS_MAX)
        self._revision = self._planning.revision


def _groups_read(inquiry: ReleaseCosts) -> Sequence[Span]:
    """Return the groups that are read; all of them, if something reads everything."""
    if not inquiry.regions or None in inquiry.regions:
        return ((-FAR, FAR),)
    return merged([box[-1] for region in inquiry.regions for box in region or ()])


def _reads_all_groups(inquiry: ReleaseCosts, place: int) -> bool:
    """Return whether something that covers a piece names no groups."""
    inside = inquiry.overlay.inside[place].tolist()
    return any(
        region is None or any(box[-1][1] == FAR for box in region)
        for region, covers in zip(inquiry.regions, inside, strict=True)
        if covers
    )
