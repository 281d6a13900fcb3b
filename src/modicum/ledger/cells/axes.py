"""The axes that divide the instances of a privacy unit.

A point has one whole number on each axis. A part of the data becomes a region: a
union of boxes of points. A region may always be larger than the part, never smaller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from math import prod
from typing import TypeAlias

from msgspec import Struct

from modicum.ledger.cells.calendar import period_name, period_of
from modicum.release import Part, Partition, Span, Vocabulary
from modicum.release.parts import FIRST_DAY, LAST_DAY, Values, merged
from modicum.release.parts import Box as NamedBox
from modicum.release.units import Period

#: One span on each axis.
Box: TypeAlias = tuple[Span, ...]
#: A union of boxes; None for every point.
Region: TypeAlias = tuple[Box, ...] | None

#: Beyond any period and any group.
FAR = 2**40
#: A part of more boxes than this is charged to a larger one of fewer.
BOXES_OF_A_PART_MAX = 1000

_EVERY_TIME: tuple[Span, ...] = ((-FAR, FAR),)
_EVERY_GROUP: tuple[Span, ...] = ((0, FAR),)


class Space(Struct, frozen=True):
    """The space of the instances of one unit.

    Attributes:
        unit: The unit.
        partitions: The partitioning attributes that are fixed for it, one axis each.
        pairs: Whether neighbors may differ in them, so that a point is a *pair* of
            values on each: before the change, and after it.
        period: Its period, if it has one: an axis.
        detail: The number of periods before and after the present one that are
            distinguished, the present one included; None for all.
        grouped: Whether user groups are an axis.
    """

    unit: str
    partitions: tuple[Partition, ...]
    pairs: bool
    period: Period | None
    detail: int | None
    grouped: bool

    @property
    def extent(self) -> Box:
        """The span of each axis."""
        free = tuple((one.low, one.high) for one in self.partitions)
        kept = (*_EVERY_TIME * self._timed, *_EVERY_GROUP * self.grouped)
        return free * (1 + self.pairs) + kept

    @property
    def _timed(self) -> bool:
        return self.period is not None

    def regions(self, part: Part, day: int, *, timeless: bool) -> tuple[Region, ...]:
        """Return the points at which a mechanism that reads a part is charged.

        Args:
            part: The part.
            day: The day of the decision, as an ordinal: periods around it are
                distinguished.
            timeless: Whether it reads an attribute that concerns every period.

        Returns:
            One region; of pairs two: where the value before the change lies in the
            part, and where the value after it does.
        """
        kept = self._kept(part, day, timeless=timeless)
        free = self._free(part)
        every = tuple((one.low, one.high) for one in self.partitions)
        if not self.pairs:
            return (self._region((*box, *rest) for box in free for rest in kept),)
        return (
            self._region((*box, *every, *rest) for box in free for rest in kept),
            self._region((*every, *box, *rest) for box in free for rest in kept),
        )

    def _region(self, boxes: Iterable[Box]) -> Region:
        found = tuple(dict.fromkeys(boxes))
        return None if self.extent in found else found

    def _free(self, part: Part) -> list[Box]:
        """Return the boxes of a part over the partitioning attributes."""
        found: list[Box] = []
        for box in part.where or ((),):
            found += _boxes([_spans(box, one) for one in self.partitions])
        if len(found) > BOXES_OF_A_PART_MAX:
            return [tuple((one.low, one.high) for one in self.partitions)]
        return found

    def _kept(self, part: Part, day: int, *, timeless: bool) -> list[Box]:
        """Return the boxes of a part on the axes that neighbors share."""
        axes: list[tuple[Span, ...]] = []
        if self.period is not None:
            if timeless or part.periods is None:
                axes.append(_EVERY_TIME)
            else:
                axes.append(self._periods(part.periods, day, self.period))
        if self.grouped:
            axes.append(part.groups or _EVERY_GROUP)
        return _boxes(axes)

    def _periods(
        self, days: tuple[Span, ...], today: int, period: Period
    ) -> tuple[Span, ...]:
        spans = [
            (
                -FAR if first <= FIRST_DAY else period_of(first, period),
                FAR if last >= LAST_DAY else period_of(last, period),
            )
            for first, last in days
        ]
        if self.detail is not None:
            present = period_of(today, period)
            spans = list(_widened(spans, present - self.detail, present + self.detail))
        return merged(spans)

    def charges_every_period(self, part: Part, *, timeless: bool) -> bool:
        """Return whether a part is charged to every period, as it names none.

        Args:
            part: The part.
            timeless: Whether an attribute is read that concerns every period anyway.
        """
        return self._timed and part.periods is None and not timeless

    def text(self, box: Box) -> str:
        """Return a box as text, such as ``country CH, 2026-11``; empty for all."""
        count = len(self.partitions)
        texts, rest = self._people_text(box), box[count:]
        if self.pairs:
            after, rest = self._people_text(rest), rest[count:]
            if after and after != texts:
                texts = [f"between {_or_any(texts)} and {_or_any(after)}"]
        if self.period is not None:
            texts += _period_text(rest[0], self.period)
            rest = rest[1:]
        if self.grouped and rest[0] != _EVERY_GROUP[0]:
            texts.append(f"group {_span_text(rest[0])}")
        return ", ".join(texts)

    def _people_text(self, box: Box) -> list[str]:
        pairs = zip(self.partitions, box, strict=False)
        text = (_partition_text(one, span) for one, span in pairs)
        return [one for one in text if one]


def space_of(unit: str, vocabulary: Vocabulary) -> Space:
    """Return the space of the instances of a unit.

    A property fixed for a unit is fixed for each unit that it covers: an instance of
    the smaller one lies in one of the larger.
    """
    population, relation = vocabulary.population, vocabulary.relation(unit)
    around = vocabulary.covers.get(unit, frozenset()) | {unit}
    fixed = tuple(
        one for one in population.partitions.values() if around & {*one.immutable}
    )
    # A changed instance keeps its key, and all that follows from the key: not a larger
    # instance of another key that contains it.
    keyed = around if relation == "add-remove" else _same_key(unit, vocabulary)
    return Space(
        unit=unit,
        partitions=fixed,
        pairs=bool(fixed) and relation != "add-remove",
        period=_told_period(unit, vocabulary),
        detail=population.time_detail.get(unit),
        grouped=bool(keyed & population.grouped),
    )


def _same_key(unit: str, vocabulary: Vocabulary) -> frozenset[str]:
    """Return the unit, and those in which it is one and the same in every table."""
    return vocabulary.owners.get(unit, frozenset()) | {unit}


def _told_period(unit: str, vocabulary: Vocabulary) -> Period | None:
    """Return the period of a unit, if the periods of releases determine it.

    They use one clock. Where units use several, the clock of a release is ambiguous.
    """
    facts = vocabulary.unit_facts.get(unit)
    return None if facts is None or len(vocabulary.clocks) != 1 else facts.period


def _spans(box: NamedBox, partition: Partition) -> tuple[Span, ...]:
    """Return the spans of a box on one axis; everything, if they are unknown."""
    every = ((partition.low, partition.high),)
    values = dict(box).get(partition.name)
    if values is None:
        return every
    spans = _coded(values, partition)
    inside = all(partition.low <= low and high <= partition.high for low, high in spans)
    return merged(spans) if spans and inside else every


def _coded(values: Values, partition: Partition) -> list[Span]:
    """Return values as numbers; nothing if the domain does not know one of them."""
    if partition.values is None:
        return [one for one in values if not isinstance(one, str)]
    codes = {value: code for code, value in enumerate(partition.values)}
    known = [codes[one] for one in values if isinstance(one, str) and one in codes]
    return [(code, code) for code in known] if len(known) == len(values) else []


def _boxes(axes: list[tuple[Span, ...]]) -> list[Box]:
    """Return the boxes of a product of unions; larger ones, if they are too many."""
    if prod(map(len, axes)) > BOXES_OF_A_PART_MAX:
        axes = [((spans[0][0], spans[-1][1]),) for spans in axes]
    return list(product(*axes))


def _widened(spans: list[Span], before: int, after: int) -> Iterator[Span]:
    """Yield spans that do not cut distant periods."""
    for low, high in spans:
        if low <= before:
            yield -FAR, before
        if high >= after:
            yield after, FAR
        if low < after and high > before:
            yield max(low, before + 1), min(high, after - 1)


def _or_any(parts: list[str]) -> str:
    return " and ".join(parts) or "anybody"


def _partition_text(partition: Partition, span: Span) -> str:
    low, high = span
    if span == (partition.low, partition.high) and low != high:
        return ""
    if partition.values is None:
        return f"{partition.name} {_span_text(span)}"
    names = partition.values[low : high + 1]
    shown = " or ".join(names[:3]) + (" …" if len(names) > 3 else "")
    return f"{partition.name} {shown}"


def _period_text(span: Span, period: Period) -> list[str]:
    low, high = span
    if low == -FAR and high == FAR:
        return []
    if low == -FAR:
        return [f"until {period_name(high, period)}"]
    if high == FAR:
        return [f"from {period_name(low, period)}"]
    first, last = period_name(low, period), period_name(high, period)
    return [first if low == high else f"{first} to {last}"]


def _span_text(span: Span) -> str:
    low, high = span
    if high == FAR:
        return f"{low} and above"
    return str(low) if low == high else f"{low} to {high}"
