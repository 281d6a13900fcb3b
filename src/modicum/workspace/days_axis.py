"""Of when a release reads rows, divided as the ledger divides time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from modicum.ledger.cells.axes import FAR, Box, Space
from modicum.ledger.cells.calendar import period_name, period_of
from modicum.release import Span
from modicum.release.parts import FIRST_DAY, LAST_DAY, merged
from modicum.release.period_words import days_of
from modicum.release.periods import PERIODS
from modicum.release.units import Period
from modicum.workspace.part_cuts import denying_spaces, edges, halved
from modicum.workspace.part_words import days_words, periods_of
from modicum.workspace.trials import Trials


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

    def halves(self, box: Box) -> tuple[Box, ...]:
        """Return two boxes that a box is divided into; none if nothing tells them."""
        return halved(box, [self._cuts])

    def probe(self, box: Box) -> Box | None:
        """Return the first period of a box of several."""
        ((low, high),) = box
        last = self._last_day(low)
        return ((low, last),) if last < high else None

    def bisected(self, box: Box) -> tuple[Box, ...]:
        """Return a box in two, at the end of a period about its middle."""
        ((low, high),) = box
        last = self._last_day((low + high) // 2)
        if last >= high:
            last = self._last_day(low)
        return ((low, last),), ((last + 1, high),)

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

    def _last_day(self, day: int) -> int:
        return _days(period_of(day, self._finest), self._finest)[1]

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
    axis = len(space.partitions) * (1 + space.pairs)
    numbers = edges(trials, space.unit, axis)
    if space.detail is not None:
        present = period_of(trials.look.day, period)
        numbers |= {present - space.detail + 1, present + space.detail}
    last = period_of(LAST_DAY, period)
    for number in numbers:
        if -FAR < number <= last and number > period_of(FIRST_DAY, period):
            yield _days(number, period)[0]


def _days(number: int, period: Period) -> Span:
    """Return the first and the last day of a period."""
    days = days_of(period_name(number, period))
    assert days is not None
    return days
