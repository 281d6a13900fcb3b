"""The closed set of words a release may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

#: Which tables are neighbors for a unit. `add-remove`: they differ by one whole
#: instance of the unit.
NeighboringRelation: TypeAlias = Literal["add-remove"]

#: Open text that a release may carry besides its labels.
METADATA = ("purpose", "requester", "dataset", "audience")


@dataclass(frozen=True, slots=True)
class Label:
    """A closed label: its values and the one that holds when none is given."""

    values: tuple[str, ...]
    default: str


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a policy declares and a release may refer to.

    Attributes:
        attributes: Names of the attributes of the data.
        labels: Closed labels by name.
        units: Names of the privacy units; every mechanism states a loss for each.
        neighbors: The neighboring relation all losses are proven under.
    """

    attributes: frozenset[str]
    labels: Mapping[str, Label]
    units: tuple[str, ...]
    neighbors: NeighboringRelation
