"""The axes that a denied release is cut along: people and time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import Any, cast

import numpy as np

from modicum.api.local.alternatives.denied_boxes import (
    Parted,
    apart,
    denied_boxes,
    denying_spaces,
    edges,
    halved,
    is_denied_throughout,
    remainder,
)
from modicum.api.local.alternatives.part_text import (
    box_text,
    days_text,
    periods_of,
    where_of,
)
from modicum.api.local.alternatives.trials import Trials
from modicum.api.local.explanation.release_text import with_mechanisms
from modicum.ledger.cells.axes import FAR, Box, Space
from modicum.ledger.cells.calendar import period_name, period_of
from modicum.ledger.cells.partition import Integers, ends_of
from modicum.release import Partition, Span
from modicum.release.boxes import union
from modicum.release.parts import FIRST_DAY, LAST_DAY, Values, merged
from modicum.release.parts import Box as NamedBox
from modicum.release.period_text import days_of
from modicum.release.periods import PERIODS
from modicum.release.units import Period

#: The allowed part is described directly if it has at most this many boxes.
_BOXES_MAX = 2000


class PeopleAxes:
    """The partitioning attributes that divide the units of the rules that deny.

    Values are numbers here: of a list, their places in it.

    Args:
        trials: The release, and the ledger it is tried on.
        chosen: The places of the mechanisms that are varied.
    """

    def __init__(self, trials: Trials, chosen: frozenset[int]) -> None:
        vocabulary = trials.head_view.balances.compiled.policy.vocabulary
        self._trials = trials
        self._partitions = vocabulary.population.partitions
        self._own = {
            place: trials.recorded.mechanisms[place].part.where or ((),)
            for place in chosen
        }
        hidden = {
            name
            for place in chosen
            for name in vocabulary.attributes
            - {*trials.recorded.mechanisms[place].attributes}
        }
        dividing = {
            one.name: one
            for _, space in denying_spaces(trials)
            for one in space.partitions
        }
        # In the order in which unions of boxes are joined.
        self._axes = [dividing[name] for name in sorted({*dividing} - hidden)]
        self._hidden = sorted(set(dividing) & hidden)

    @property
    def whole(self) -> Box:
        """The box of everybody."""
        return tuple((one.low, one.high) for one in self._axes)

    def helpless(self) -> str:
        """Return why no smaller part of the population can help; empty if one may."""
        alike = len(set(self._own.values())) == 1  # Else, one may have nothing left.
        for rule, space in denying_spaces(self._trials):
            if alike and not space.partitions:
                return (
                    f"{rule} denies, and no attribute that is fixed for its"
                    f" unit `{space.unit}` divides the population"
                )
        if not self._axes and not self._hidden:
            return (
                "no attribute that is fixed for the units of these rules divides"
                " the population"
            )
        if not self._axes:
            return (
                f"it does not read `{self._hidden[0]}`: filtering rows by it"
                " would make further rules match"
            )
        return ""

    def meets(self, place: int, box: Box) -> bool:
        """Return whether a mechanism reads anything in a box."""
        return any(
            self._common(own, self._named(box)) is not None for own in self._own[place]
        )

    def parted(self) -> Parted | None:
        """Return whom no rule denies, and others; None if they are too many boxes."""
        denied = [
            side
            for space, ends in denied_boxes(self._trials)
            for side in self._projected(space, ends)
        ]
        if not denied:
            return None
        own = ends_of([box for each in self._own.values() for box in self._boxes(each)])
        free = remainder(own, np.concatenate(denied), _BOXES_MAX)
        kept = ends_of(free) if free else own[:0]
        rest = remainder(own, kept, _BOXES_MAX)
        if free is None or rest is None:
            return None
        spaces = [space for _, space in denying_spaces(self._trials)]
        alike = len(set(self._own.values())) == 1
        exhaustive = alike or all(self._divide(space) for space in spaces)
        return Parted(free, rest, exhaustive and is_denied_throughout(self._trials))

    def _divide(self, space: Space) -> bool:
        """Return whether a space has all of the axes."""
        return {one.name for one in self._axes} <= {
            one.name for one in space.partitions
        }

    def _projected(self, space: Space, ends: Integers) -> Iterator[Integers]:
        """Yield whom boxes of a space hold, at any time; of pairs, either side."""
        names = [one.name for one in space.partitions]
        for side in range(1 + space.pairs):
            found = np.empty((len(ends), len(self._axes), 2), dtype=np.int64)
            for place, one in enumerate(self._axes):
                if one.name in names:
                    axis = side * len(names) + names.index(one.name)
                    found[:, place] = ends[:, axis]
                else:
                    found[:, place] = one.low, one.high
            yield found

    def _boxes(self, own: Sequence[NamedBox]) -> Iterator[Box]:
        """Yield the boxes that a mechanism reads."""
        for named in own:
            values = dict(named)
            spans = [
                _numbers(values.get(one.name), one) or [(one.low, one.high)]
                for one in self._axes
            ]
            yield from product(*spans)

    def halves(self, box: Box) -> tuple[Box, ...]:
        """Return the two halves of a box; none if it cannot be divided."""
        return halved(box, self._cuts)

    def probe(self, box: Box) -> Box | None:
        """Return None: who is charged alike is allowed or denied alike."""
        return None

    def bisected(self, box: Box) -> tuple[Box, ...]:
        """Return nothing: boxes are divided along cuts only."""
        return ()

    def within(self, place: int, boxes: Sequence[Box]) -> Any:
        """Return the population that a mechanism reads within boxes; None for all."""
        common = (
            self._common(own, self._named(box))
            for own in self._own[place]
            for box in boxes
        )
        found = union((one for one in common if one is not None), self._partitions)
        return None if found is None else where_of(found)

    def texts(self, boxes: Sequence[Box]) -> list[str]:
        """Return boxes for display, as few as make up the same."""
        found = union(map(self._named, boxes), self._partitions)
        return ["everybody"] if found is None else [box_text(box) for box in found]

    @cached_property
    def _cuts(self) -> list[list[int]]:
        """By axis, the values at which the ledger or the release begins to differ."""
        found: list[set[int]] = [set() for _ in self._axes]
        for unit in {space.unit for _, space in denying_spaces(self._trials)}:
            space = self._trials.head_view.balances.family(unit).space
            names = [one.name for one in space.partitions] * (1 + space.pairs)
            for place, one in enumerate(self._axes):
                for axis, name in enumerate(names):
                    if name == one.name:
                        found[place] |= edges(self._trials, unit, axis)
        for mechanism in self._trials.recorded.mechanisms:
            for own in mechanism.part.where or ():
                for place, one in enumerate(self._axes):
                    for low, high in _numbers(dict(own).get(one.name), one):
                        found[place] |= {low, high + 1}
        return [sorted(one) for one in found]

    def _named(self, box: Box) -> NamedBox:
        pairs = zip(self._axes, box, strict=True)
        return tuple(
            sorted(
                (one.name, _values(one, span))
                for one, span in pairs
                if span != (one.low, one.high)
            )
        )

    def _common(self, one: NamedBox, other: NamedBox) -> NamedBox | None:
        """Return the intersection of two boxes; None if it is empty."""
        found = dict(one)
        for name, values in other:
            both = _both(found.get(name, values), values)
            if not both:
                return None
            found[name] = both
        return tuple(sorted(found.items()))


def _values(partition: Partition, span: Span) -> Values:
    low, high = span
    if partition.values is None:
        return (span,)
    return tuple(sorted(partition.values[low : high + 1]))


def _numbers(values: Values | None, partition: Partition) -> list[Span]:
    if values is None:
        return []
    if partition.values is None:
        return list(cast("tuple[Span, ...]", values))
    places = [partition.values.index(cast("str", one)) for one in values]
    return list(merged([(place, place) for place in places]))


def _both(one: Values, other: Values) -> Values:
    """Return the values that are in both."""
    if isinstance(one[0], str):
        return tuple(sorted({*cast("Any", one)} & {*cast("Any", other)}))
    spans = (
        (max(low, first), min(high, last))
        for low, high in cast("Any", one)
        for first, last in cast("Any", other)
    )
    return merged([(low, high) for low, high in spans if low <= high])


class DaysAxis:
    """The days by which the units of the denying rules are divided.

    Args:
        trials: The release, and the ledger it is tried on.
        chosen: The places of the mechanisms that are varied.
    """

    def __init__(self, trials: Trials, chosen: frozenset[int]) -> None:
        self._trials = trials
        self._own = {
            place: trials.recorded.mechanisms[place].part.periods
            or ((FIRST_DAY, LAST_DAY),)
            for place in chosen
        }
        vocabulary = trials.head_view.balances.compiled.policy.vocabulary
        self._static = {
            place: sorted(
                vocabulary.population.static
                & {*trials.recorded.mechanisms[place].attributes}
            )
            for place in chosen
        }
        known = {one.period for one in vocabulary.unit_facts.values()}
        self._finest: Period = next((one for one in PERIODS if one in known), "day")

    @property
    def whole(self) -> Box:
        """The days from the first to the last that is read."""
        spans = [span for own in self._own.values() for span in own]
        return ((min(low for low, _ in spans), max(high for _, high in spans)),)

    def helpless(self) -> str:
        """Return why no fewer periods can help; empty if they may."""
        alike = len(set(self._own.values())) == 1  # Else, one may have nothing left.
        for rule, space in denying_spaces(self._trials):
            if alike and space.period is None:
                return f"{rule} denies, and its unit `{space.unit}` has no periods"
        timeless = [names[0] for names in self._static.values() if names]
        if len(timeless) == len(self._own):
            return f"it reads `{timeless[0]}`, which covers all periods"
        return ""

    def meets(self, place: int, box: Box) -> bool:
        """Return whether a mechanism reads any day of a box."""
        return bool(self._common(place, [box]))

    def parted(self) -> Parted | None:
        """Return the days that no rule denies, and the others, the nearest first."""
        spaces = [space for _, space in denying_spaces(self._trials)]
        denied = [
            (_first_day(low, period), _last_day(high, period))
            for space, ends in denied_boxes(self._trials)
            if (period := space.period) is not None
            for low, high in np.unique(ends[:, _axis(space)], axis=0).tolist()
        ]
        if not denied:
            return None
        own = [span for each in self._own.values() for span in each]
        free = tuple(apart(own, denied))
        rest = [(one,) for one in apart(own, free)]
        exhaustive = (
            len(set(self._own.values())) == 1
            and all(one.period for one in spaces)
            and not any(self._static.values())
            and is_denied_throughout(self._trials)
            and self._costs_alike(spaces)
        )
        return Parted([(one,) for one in free], self._nearest_first(rest), exhaustive)

    def _costs_alike(self, spaces: Sequence[Space]) -> bool:
        """Return whether one day alone would cost a unit as much as all days do."""
        ((low, _), *_), *_ = self._own.values()
        day = {"periods": days_text(low, low)}
        mechanisms = [one | day for one in self._trials.base["mechanisms"]]
        alone = self._trials.priced(with_mechanisms(self._trials.base, mechanisms))
        return alone is not None and all(
            one.losses.get(space.unit) == whole.losses.get(space.unit)
            for one, whole in zip(
                alone.mechanisms, self._trials.recorded.mechanisms, strict=True
            )
            for space in spaces
        )

    def halves(self, box: Box) -> Sequence[Box]:
        """Return the two halves of a box; none if it cannot be divided."""
        return self._nearest_first(halved(box, [self._cuts]))

    def probe(self, box: Box) -> Box | None:
        """Return the period of a box of several that is nearest to the present.

        None where an open end is so far away that single days do not matter.
        """
        ((low, high),) = box
        first, last = self._near
        if (low == FIRST_DAY and high < first) or (high == LAST_DAY and low > last):
            return None
        day = min(max(self._trials.head_view.day, low), high)
        found = _days(period_of(day, self._finest), self._finest)
        inside = max(found[0], low), min(found[1], high)
        return (inside,) if inside != (low, high) else None

    def bisected(self, box: Box) -> Sequence[Box]:
        """Return a box in two, at the end of a long period about its middle.

        Open ends are cut off first.
        """
        ((low, high),) = box
        first, last = self._near
        if low == FIRST_DAY and high >= first > low:
            cut = first
        elif high == LAST_DAY and low <= last < high:
            cut = last + 1
        else:
            cut = self._middle(low, high)
        return self._nearest_first((((low, cut - 1),), ((cut, high),)))

    def _middle(self, low: int, high: int) -> int:
        """Return the first day of a period in a span of days, the longest there is."""
        for period in reversed(PERIODS):
            for day in ((low + high + 1) // 2, high):
                cut = _days(period_of(day, period), period)[0]
                if low < cut:
                    return cut
        return high

    def _nearest_first(self, boxes: Sequence[Box]) -> list[Box]:
        day = self._trials.head_view.day
        return sorted(boxes, key=lambda box: max(box[0][0] - day, day - box[0][1], 0))

    @cached_property
    def _near(self) -> Span:
        """The days from a year before this one to a year after it."""
        year = period_of(self._trials.head_view.day, "year")
        return _days(year - 1, "year")[0], _days(year + 1, "year")[1]

    def within(self, place: int, boxes: Sequence[Box]) -> Any:
        """Return the days that a mechanism reads within boxes."""
        days = self._common(place, boxes)
        return None if days == ((FIRST_DAY, LAST_DAY),) else periods_of(days)

    def texts(self, boxes: Sequence[Box]) -> list[str]:
        """Return spans of days for display, as few as make up the same."""
        return [days_text(*span) for span in merged([box[0] for box in boxes])]

    def _common(self, place: int, boxes: Sequence[Box]) -> tuple[Span, ...]:
        spans = (
            (max(low, first), min(high, last))
            for low, high in self._own[place]
            for ((first, last),) in boxes
        )
        return merged([(low, high) for low, high in spans if low <= high])

    @cached_property
    def _cuts(self) -> list[int]:
        """The days on which the ledger or the release begins to differ."""
        found = {day for own in self._own.values() for low, _ in own for day in [low]}
        found |= {high + 1 for own in self._own.values() for _, high in own}
        for _, space in denying_spaces(self._trials):
            found.update(_days_told_apart(self._trials, space))
        return sorted(day for day in found if FIRST_DAY < day <= LAST_DAY)


def _days_told_apart(trials: Trials, space: Space) -> Iterator[int]:
    """Yield the first days of periods at which a unit begins to differ."""
    period = space.period
    if period is None:
        return
    numbers = edges(trials, space.unit, _axis(space))
    if space.detail is not None:
        present = period_of(trials.head_view.day, period)
        numbers |= {present - space.detail + 1, present + space.detail}
    last = period_of(LAST_DAY, period)
    for number in numbers:
        if -FAR < number <= last and number > period_of(FIRST_DAY, period):
            yield _days(number, period)[0]


def _axis(space: Space) -> int:
    """Return which axis of a space is that of its periods."""
    return len(space.partitions) * (1 + space.pairs)


def _first_day(number: int, period: Period) -> int:
    """Return the first day of a period; the first of all if it is too far away."""
    far = number <= period_of(FIRST_DAY, period)
    return FIRST_DAY if far else _days(number, period)[0]


def _last_day(number: int, period: Period) -> int:
    far = number >= period_of(LAST_DAY, period)
    return LAST_DAY if far else _days(number, period)[1]


def _days(number: int, period: Period) -> Span:
    """Return the first and the last day of a period."""
    days = days_of(period_name(number, period))
    assert days is not None
    return days
