"""Every point of a unit, and which of them a stored mechanism is charged at."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import combinations_with_replacement, product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from modicum.policy import CompiledPolicy
from modicum.release import Vocabulary
from modicum.release.units import Period

#: What is read from a stored row.
Plain: TypeAlias = Mapping[str, Any]
Bools: TypeAlias = npt.NDArray[np.bool_]
Numbers: TypeAlias = npt.NDArray[np.int64]


@dataclass
class Extent:
    """The days and groups that a log names anywhere."""

    first: int = date.max.toordinal()
    last: int = date.min.toordinal()
    groups: set[int] = field(default_factory=set)

    def note(self, day: int) -> None:
        self.first, self.last = min(self.first, day), max(self.last, day)


class Points:
    """Every point of a unit: a segment, or a pair of them; a period; a group."""

    def __init__(self, compiled: CompiledPolicy, unit: str, extent: Extent) -> None:
        vocabulary = compiled.policy.vocabulary
        population = vocabulary.population
        over = vocabulary.covers.get(unit, frozenset()) | {unit}
        axes: dict[str, Sequence[str | int]] = {
            name: partition.values or range(partition.low, partition.high + 1)
            for name, partition in population.partitions.items()
            if over & set(partition.immutable)
        }
        segments = list(product(*axes.values()))
        self._values = {
            name: np.array([segment[n] for segment in segments])
            for n, name in enumerate(axes)
        }
        self._segments = len(segments)
        self._pairs = None
        if vocabulary.relation(unit) != "add-remove":
            pairs = combinations_with_replacement(range(len(segments)), 2)
            self._pairs = np.array(list(pairs))
        self._period = _period_of(unit, vocabulary)
        self._detail = population.time_detail.get(unit)
        self._static = population.static
        self._periods = self._dense_periods(extent)
        if self._pairs is not None:  # What changes keeps its key, and nothing more.
            over = vocabulary.owners.get(unit, frozenset()) | {unit}
        grouped = bool(over & population.grouped)
        named = sorted(extent.groups)
        self._groups = np.array([*named, (named or [0])[-1] + 1]) if grouped else None
        self._known: dict[str, Bools] = {}
        self.count = (
            (len(self._pairs) if self._pairs is not None else self._segments)
            * len(self._periods)
            * (len(self._groups) if self._groups is not None else 1)
        )

    def _dense_periods(self, extent: Extent) -> Numbers:
        if self._period is None:
            return np.zeros(1, np.int64)
        reach = self._detail or 0
        first = self._number(extent.first) - reach - 1
        return np.arange(first, self._number(extent.last) + reach + 2)

    def _number(self, day: int) -> int:
        """Return the running number of the period of a day."""
        on = date.fromordinal(day)
        numbers = {
            "day": day,
            "week": (day - 1) // 7,  # The first day of the first year was a Monday.
            "month": on.year * 12 + on.month - 1,
            "quarter": (on.year * 12 + on.month - 1) // 3,
            "year": on.year,
        }
        assert self._period is not None
        return numbers[self._period]

    def read_by(self, mechanism: Plain, day: int) -> Bools:
        """Return at which points a mechanism is charged."""
        timed = None if self._detail is None else day
        part = [mechanism["where"], mechanism["periods"], mechanism["groups"]]
        static = bool(self._static & set(mechanism["attributes"]))
        key = json.dumps([part, static, timed])
        if key not in self._known:
            segments = self._segments_of(mechanism["where"])
            periods = self._periods_of(None if static else mechanism["periods"], day)
            groups = self._groups_of(mechanism["groups"])
            whole = segments[:, None, None] & periods[None, :, None] & groups
            if len(self._known) > 50_000:
                self._known.clear()
            self._known[key] = whole.reshape(-1)
        return self._known[key]

    def _segments_of(self, where: Any) -> Bools:
        found = np.full(self._segments, where is None)
        for box in where or ():
            inside = np.ones(self._segments, np.bool_)
            for name, values in box.items():
                if name in self._values:
                    inside &= _among(self._values[name], values)
            found |= inside
        if self._pairs is None:
            return found
        # Losses under this relation cost the same within a cell and between cells.
        first, second = self._pairs.T
        either: Bools = found[first] | found[second]
        return either

    def _periods_of(self, spans: Any, day: int) -> Bools:
        if spans is None or self._period is None:
            return np.ones(len(self._periods), np.bool_)
        found = np.zeros(len(self._periods), np.bool_)
        for first, last in spans:
            after = first is None or self._periods >= self._number(ordinal(first))
            before = last is None or self._periods <= self._number(ordinal(last))
            found |= after & before
        if self._detail is not None:
            now, reach = self._number(day), self._detail - 1
            for beyond in (self._periods < now - reach, self._periods > now + reach):
                if found[beyond].any():
                    found |= beyond
        return found

    def _groups_of(self, spans: Any) -> Bools:
        if self._groups is None:
            return np.ones(1, np.bool_)
        found = np.full(len(self._groups), spans is None)
        for low, high in spans or ():
            found |= (self._groups >= low) & (self._groups <= high)
        return found


def _period_of(unit: str, vocabulary: Vocabulary) -> Period | None:
    """Return the period of a unit, unless nobody knows which of several clocks."""
    units = vocabulary.unit_facts
    clocks = {one.column for one in units.values() if one.period is not None}
    return units[unit].period if unit in units and len(clocks) == 1 else None


def _among(values: npt.NDArray[Any], chosen: Sequence[Any]) -> Bools:
    found = np.zeros(len(values), np.bool_)
    for one in chosen:
        if isinstance(one, str):
            found |= values == one
        else:
            found |= (values >= one[0]) & (values <= one[1])
    return found


def ordinal(text: str) -> int:
    """Return the number of a day."""
    return date.fromisoformat(text).toordinal()
