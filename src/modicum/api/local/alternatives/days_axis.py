"""Of when a release reads rows, divided as the ledger divides time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from modicum.api.local.alternatives.denied_boxes import Parted, denied_boxes, tells_all
from modicum.api.local.alternatives.part_cuts import denying_spaces, edges, halved
from modicum.api.local.alternatives.part_text import days_words, periods_of
from modicum.api.local.alternatives.remainders import apart
from modicum.api.local.alternatives.trials import Trials
from modicum.api.local.explanation.release_text import with_mechanisms
from modicum.ledger.cells.axes import FAR, Box, Space
from modicum.ledger.cells.calendar import period_name, period_of
from modicum.release import Span
from modicum.release.parts import FIRST_DAY, LAST_DAY, merged
from modicum.release.period_text import days_of
from modicum.release.periods import PERIODS
from modicum.release.units import Period


class DaysAxis:
    """The days that the units of the rules that deny are told apart by.

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
        vocabulary = trials.look.balances.compiled.policy.vocabulary
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
            return f"it reads `{timeless[0]}`, which tells about all periods"
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
        told = (
            len(set(self._own.values())) == 1
            and all(one.period for one in spaces)
            and not any(self._static.values())
            and tells_all(self._trials)
            and self._costs_alike(spaces)
        )
        return Parted([(one,) for one in free], self._nearest_first(rest), told)

    def _costs_alike(self, spaces: Sequence[Space]) -> bool:
        """Return whether one day alone would cost a unit as much as all days do."""
        ((low, _), *_), *_ = self._own.values()
        day = {"periods": days_words(low, low)}
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
        """Return two boxes that a box is divided into; none if nothing tells them."""
        return self._nearest_first(halved(box, [self._cuts]))

    def probe(self, box: Box) -> Box | None:
        """Return the period of a box of several that is nearest to the present.

        Nothing, where an open end is so far away that nobody asks for single days.
        """
        ((low, high),) = box
        first, last = self._near
        if (low == FIRST_DAY and high < first) or (high == LAST_DAY and low > last):
            return None
        day = min(max(self._trials.look.day, low), high)
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
        day = self._trials.look.day
        return sorted(boxes, key=lambda box: max(box[0][0] - day, day - box[0][1], 0))

    @cached_property
    def _near(self) -> Span:
        """The days from a year before this one to a year after it."""
        year = period_of(self._trials.look.day, "year")
        return _days(year - 1, "year")[0], _days(year + 1, "year")[1]

    def within(self, place: int, boxes: Sequence[Box]) -> Any:
        """Return the days that a mechanism reads within boxes, in words."""
        days = self._common(place, boxes)
        return None if days == ((FIRST_DAY, LAST_DAY),) else periods_of(days)

    def words(self, boxes: Sequence[Box]) -> list[str]:
        """Return spans of days for people, as few as make up the same."""
        return [days_words(*span) for span in merged([box[0] for box in boxes])]

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
        present = period_of(trials.look.day, period)
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
