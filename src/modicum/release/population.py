"""The public division of the population: attributes, groups and recent periods."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from msgspec import Struct, field

from modicum.core.errors import Mark
from modicum.release.parts import Values


class Was(Struct, frozen=True):
    """The present meaning of some former values of an attribute.

    Attributes:
        old: Values of the attribute under the policy before, in order.
        now: Their possible present values, in order; at least one.
    """

    old: Values
    now: Values


@dataclasses.dataclass(frozen=True, slots=True)
class Partition:
    """A public attribute by which the population is divided.

    Attributes:
        name: Its name.
        values: Its values, if they are listed.
        low: The least of its whole numbers, if it is a range.
        high: The greatest of them.
        immutable: Units whose instances never change their value.
        mark: Its position.
        was: The former names or meanings of its values, under the policy before.
    """

    name: str
    values: tuple[str, ...] | None
    low: int
    high: int
    immutable: tuple[str, ...]
    mark: Mark | None = dataclasses.field(compare=False)
    was: tuple[Was, ...] = ()


class Population(Struct, frozen=True):
    """The public facts about the population, and the granularity of accounting.

    Attributes:
        partitions: Public attributes that divide the population, by name.
        grouped: Units whose instances stay in one user group for life.
        time_detail: For time units, the number of periods before and after the present
            one that are distinguished, the present one included; all by default.
        static: Attributes of the data whose values have no meaningful time: who
            reads one, reads every period.
        clocks: The time columns of units that have periods.
    """

    partitions: Mapping[str, Partition] = field(default_factory=dict)
    grouped: frozenset[str] = frozenset()
    time_detail: Mapping[str, int] = field(default_factory=dict)
    static: frozenset[str] = frozenset()
    clocks: frozenset[str] = frozenset()
