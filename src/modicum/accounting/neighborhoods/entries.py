"""Entries: what was released about which records, and what its loss was proven for."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import TypeAlias

from modicum.accounting.curves import Curve
from modicum.accounting.neighborhoods.regions import EVERYTHING, Region


class Relation(Enum):
    """Which change of one instance a loss was proven for."""

    #: The whole instance is there or is not.
    ADD_REMOVE = "add-remove"
    #: The instance is replaced by another one.
    SUBSTITUTE = "substitute"
    #: Any change of the rows of one instance, in number and in value.
    ANY = "any"
    #: A record moves; the loss is for each unit of distance (d-privacy).
    METRIC = "metric"


class Part(Enum):
    """Units that are not a stretch of an axis."""

    #: One record.
    ROW = "row"
    #: One attribute of one record.
    ATTRIBUTE = "attribute"
    #: All records of one user.
    USER = "user"


@dataclass(frozen=True, slots=True)
class UserPer:
    """All records of one user within one block of an axis, such as a day.

    Attributes:
        axis: The axis, with numbers.
        length: The length of a block; blocks begin at multiples of it.
    """

    axis: str
    length: Fraction


#: Whose change a loss was proven for.
Unit: TypeAlias = Part | UserPer


@dataclass(frozen=True, slots=True)
class Native:
    """The neighboring relation that a loss was proven for.

    Attributes:
        relation: Which change of an instance.
        unit: An instance of what.
        size_public: Whether the proof takes the number of records in the region to
            be public, so that nothing is proven for a record that enters or leaves.
    """

    relation: Relation = Relation.ADD_REMOVE
    unit: Unit = Part.ROW
    size_public: bool = False


@dataclass(frozen=True, slots=True)
class RowBound:
    """An enforced bound on the records that one user contributes.

    Attributes:
        rows: At most so many, >= 1.
        per: In each block of an axis; in all if None.
    """

    rows: int
    per: UserPer | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One release, or many of the same shape.

    Attributes:
        id: Its name.
        curve: What one native change costs.
        region: The records that it reads. The region must not depend on the data.
        reads: The attributes whose values it uses, beyond choosing the region; all
            of them if None.
        native: What `curve` was proven for.
        stay: What a record that stays in the region and changes its values costs,
            if something less than the general rule is proven (0 for a count).
        rows: An enforced bound on a user's records, for losses proven per record.
    """

    id: str
    curve: Curve
    region: Region = EVERYTHING
    reads: frozenset[str] | None = None
    native: Native = field(default_factory=Native)
    stay: Curve | None = None
    rows: RowBound | None = None
