"""Targets: the neighboring relations that a joint loss can be asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from modicum.accounting.neighborhoods.entries import Relation
from modicum.accounting.neighborhoods.regions import Span


@dataclass(frozen=True, slots=True)
class AddRemove:
    """Neighbors differ by one record that is there or is not."""


@dataclass(frozen=True, slots=True)
class Substitute:
    """Neighbors differ by one record that is replaced by any other."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """Neighbors differ in at most so many attributes of one record.

    Attributes:
        at_most: How many, >= 1.
        among: The attributes that may differ; all if None. One name is label-DP.
    """

    at_most: int = 1
    among: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbors differ by several changes of another target.

    Attributes:
        size: How many changes, from 1 to 100.
        of: What changes.
    """

    size: int
    of: AddRemove | Substitute


@dataclass(frozen=True, slots=True)
class Users:
    """Neighbors differ in the records of one user, within one window of an axis.

    Attributes:
        along: The axis, with numbers, whose whole numbers are a user's sub-units,
            such as days; None if there is none.
        windows: The windows; a user-day has one for each day. None for all of the
            user's records.
        at_most: How many sub-units of the window a user has records in, if that is
            enforced; None if it is not.
        change: `ADD_REMOVE` if all the records in the window are there or are not,
            `ANY` if they change in any way.
        fixed: Axes on which all records of a user have the same value, for life.
    """

    along: str | None = None
    windows: tuple[Span, ...] | None = None
    at_most: int | None = None
    change: Relation = Relation.ADD_REMOVE
    fixed: frozenset[str] = frozenset()


#: A place as the caller names it: a number or a value for every axis.
Point: TypeAlias = Mapping[str, Fraction | str]


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """Neighbors differ by one record that moves from one point to another.

    This is d-privacy (Chatzikokolakis et al. 2013) for one moving record.

    Attributes:
        points: Where the record may be.
        distance: How far two points are apart, >= 0; infinity is None.
        within: Only moves of at most this distance count; all finite ones if None.
    """

    points: tuple[Point, ...]
    distance: Callable[[Point, Point], Fraction | None]
    within: Fraction | None = None


Target: TypeAlias = AddRemove | Substitute | Attributes | Group | Users | Metric
