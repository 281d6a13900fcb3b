"""How the ledger divides what a release reads: its people, and its days."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, cast

from modicum.ledger.cells.axes import FAR, Box, Space
from modicum.ledger.cells.calendar import period_name, period_of
from modicum.release import Partition, Span
from modicum.release.boxes import union
from modicum.release.parts import FIRST_DAY, LAST_DAY, Values, merged
from modicum.release.parts import Box as NamedBox
from modicum.release.period_words import days_of
from modicum.release.periods import PERIODS
from modicum.release.units import Period
from modicum.workspace.part_words import (
    box_words,
    days_words,
    periods_of,
    where_of,
)
from modicum.workspace.trials import Trials


def _denying_spaces(trials: Trials) -> Iterator[tuple[str, Space]]:
    """Yield the rules that deny a release, and where their units lie."""
    for loss in trials.verdict.losses:
        if not loss.allowed:
            yield loss.rule.id, trials.look.balances.family(loss.rule.unit).space


def _edges(trials: Trials, unit: str, axis: int) -> set[int]:
    """Return the numbers along an axis at which segments of a unit begin."""
    ends = trials.look.balances.family(unit).segments.then().ends[:, axis]
    return {*ends[:, 0].tolist(), *(ends[:, 1] + 1).tolist()}


def _halved(box: Box, cuts: Sequence[Sequence[int]]) -> tuple[Box, ...]:
    """Return a box in two, cut in the middle of the axis that has the most cuts."""
    inner = [
        [cut for cut in own if low < cut <= high]
        for own, (low, high) in zip(cuts, box, strict=True)
    ]
    axis = max(range(len(box)), key=lambda one: len(inner[one]), default=0)
    if not box or not inner[axis]:
        return ()
    low, high = box[axis]
    cut = inner[axis][len(inner[axis]) // 2]
    before, after = box[:axis], box[axis + 1 :]
    return (*before, (low, cut - 1), *after), (*before, (cut, high), *after)


# --- whose rows -----------------------------------------------------------------------


class PeopleAxes:
    """The partitioning attributes that divide the units of the rules that deny.

    Values are numbers here: of a list, their places in it.

    Args:
        trials: The release, and the ledger it is tried on.
        chosen: The places of the mechanisms that are varied.
    """

    def __init__(self, trials: Trials, chosen: frozenset[int]) -> None:
        vocabulary = trials.look.balances.compiled.policy.vocabulary
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
            for _, space in _denying_spaces(trials)
            for one in space.partitions
        }
        self._axes = [one for one in dividing.values() if one.name not in hidden]
        self._hidden = sorted(set(dividing) & hidden)

    @property
    def whole(self) -> Box:
        """The box of everybody."""
        return tuple((one.low, one.high) for one in self._axes)

    def helpless(self) -> str:
        """Return why no smaller part of the population can help; empty if one may."""
        alike = len(set(self._own.values())) == 1  # Else, one may have nothing left.
        for rule, space in _denying_spaces(self._trials):
            if alike and not space.partitions:
                return (
                    f"{rule} denies, and nothing that is fixed for its unit"
                    f" `{space.unit}` divides the population"
                )
        if not self._axes and not self._hidden:
            return "nothing that is fixed for the units of these rules divides them"
        if not self._axes:
            return (
                f"it does not read `{self._hidden[0]}`: choosing rows by it would"
                " make it fall under further rules"
            )
        return ""

    def meets(self, place: int, box: Box) -> bool:
        """Return whether a mechanism reads anybody in a box."""
        return any(
            self._common(own, self._named(box)) is not None for own in self._own[place]
        )

    def halves(self, box: Box) -> tuple[Box, ...]:
        """Return two boxes that a box is divided into; none if nothing tells them."""
        return _halved(box, self._cuts)

    def probe(self, box: Box) -> Box | None:
        """Return None: who is charged alike is allowed or denied alike."""
        return None

    def bisected(self, box: Box) -> tuple[Box, ...]:
        """Return nothing: boxes are divided along cuts only."""
        return ()

    def within(self, place: int, boxes: Sequence[Box]) -> Any:
        """Return whom a mechanism reads within boxes, in words; None for everybody."""
        common = (
            self._common(own, self._named(box))
            for own in self._own[place]
            for box in boxes
        )
        found = union((one for one in common if one is not None), self._partitions)
        return None if found is None else where_of(found)

    def words(self, box: Box) -> str:
        """Return a box for people."""
        return box_words(self._named(box)) or "everybody"

    @cached_property
    def _cuts(self) -> list[list[int]]:
        """By axis, the values at which the ledger or the release begins to differ."""
        found: list[set[int]] = [set() for _ in self._axes]
        for unit in {space.unit for _, space in _denying_spaces(self._trials)}:
            space = self._trials.look.balances.family(unit).space
            names = [one.name for one in space.partitions] * (1 + space.pairs)
            for place, one in enumerate(self._axes):
                for axis, name in enumerate(names):
                    if name == one.name:
                        found[place] |= _edges(self._trials, unit, axis)
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
        """Return what lies in two boxes; None if nothing does."""
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


# --- of when --------------------------------------------------------------------------


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
        for rule, space in _denying_spaces(self._trials):
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
        return _halved(box, [self._cuts])

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

    def words(self, box: Box) -> str:
        """Return a box for people."""
        return days_words(*box[0])

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
        for _, space in _denying_spaces(self._trials):
            found.update(_days_told_apart(self._trials, space))
        return sorted(day for day in found if FIRST_DAY < day <= LAST_DAY)


def _days_told_apart(trials: Trials, space: Space) -> Iterator[int]:
    """Yield the first days of periods at which a unit begins to differ."""
    period = space.period
    if period is None:
        return
    axis = len(space.partitions) * (1 + space.pairs)
    numbers = _edges(trials, space.unit, axis)
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
