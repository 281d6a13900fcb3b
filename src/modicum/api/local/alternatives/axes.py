"""Whose rows a release reads, divided as the ledger divides people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import Any, cast

import numpy as np

from modicum.api.local.alternatives.denied_boxes import Parted, denied_boxes, tells_all
from modicum.api.local.alternatives.part_cuts import denying_spaces, edges, halved
from modicum.api.local.alternatives.part_text import box_words, where_of
from modicum.api.local.alternatives.remainders import remainder
from modicum.api.local.alternatives.trials import Trials
from modicum.ledger.cells.axes import Box, Space
from modicum.ledger.cells.partition import Integers, ends_of
from modicum.release import Partition, Span
from modicum.release.boxes import union
from modicum.release.parts import Box as NamedBox
from modicum.release.parts import Values, merged

#: What is read and not denied is told at once if it has no more boxes than this.
_BOXES_MAX = 2000


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
        told = alike or all(self._divide(space) for space in spaces)
        return Parted(free, rest, told and tells_all(self._trials))

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
        """Yield the boxes of what a mechanism reads."""
        for named in own:
            values = dict(named)
            spans = [
                _numbers(values.get(one.name), one) or [(one.low, one.high)]
                for one in self._axes
            ]
            yield from product(*spans)

    def halves(self, box: Box) -> tuple[Box, ...]:
        """Return two boxes that a box is divided into; none if nothing tells them."""
        return halved(box, self._cuts)

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

    def words(self, boxes: Sequence[Box]) -> list[str]:
        """Return boxes for people, as few as make up the same."""
        found = union(map(self._named, boxes), self._partitions)
        return ["everybody"] if found is None else [box_words(box) for box in found]

    @cached_property
    def _cuts(self) -> list[list[int]]:
        """By axis, the values at which the ledger or the release begins to differ."""
        found: list[set[int]] = [set() for _ in self._axes]
        for unit in {space.unit for _, space in denying_spaces(self._trials)}:
            space = self._trials.look.balances.family(unit).space
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
