"""Validation of axes and targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from modicum.accounting.neighborhoods.entries import Relation
from modicum.accounting.neighborhoods.regions import Axis, NumericAxis, Span
from modicum.core.errors import Code, InputError, Problem


@dataclass(frozen=True, slots=True)
class AddRemove:
    """Neighbors differ by one record that is there or is not."""


@dataclass(frozen=True, slots=True)
class Substitute:
    """Neighbors differ by one record that is replaced by any other."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """Neighbors differ in at most this many attributes of one record.

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
        of: The other target.
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
        change: `ADD_REMOVE` if all the records in the window are present or absent,
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
        points: The possible points of the record.
        distance: How far two points are apart, >= 0; infinity is None.
        within: Only moves of at most this distance count; all finite ones if None.
    """

    points: tuple[Point, ...]
    distance: Callable[[Point, Point], Fraction | None]
    within: Fraction | None = None


Target: TypeAlias = AddRemove | Substitute | Attributes | Group | Users | Metric


#: Larger groups are refused: their bounds would be useless, and slow to compute.
_GROUP_MAX = 100
#: A bound on active days beyond this is as good as none.
_DAYS_MAX = 1000


def axes_by_name(axes: Sequence[Axis]) -> dict[str, Axis]:
    """Return the axes by name.

    Raises:
        InputError: If two have one name, or one has no values.

    Examples:
        >>> from fractions import Fraction
        >>> from modicum.accounting.neighborhoods.regions import Span
        >>> day = NumericAxis("day", Span(Fraction(0), Fraction(365)))
        >>> list(axes_by_name([day]))
        ['day']
        >>> axes_by_name([day, day])
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: two axes are named `day`
    """
    found: dict[str, Axis] = {}
    for axis in axes:
        if axis.name in found:
            raise _wrong(Code.DUPLICATE_NAME, f"two axes are named `{axis.name}`")
        empty = (
            axis.span.low >= axis.span.high
            if isinstance(axis, NumericAxis)
            else not axis.values
        )
        if empty:
            raise _wrong(Code.OUT_OF_RANGE, f"the axis `{axis.name}` has no values")
        found[axis.name] = axis
    return found


def check_target(target: Target, axes: Mapping[str, Axis]) -> None:
    """Check that a target makes sense with these axes.

    Raises:
        InputError: If it does not.

    Examples:
        >>> from modicum.accounting.neighborhoods.target import AddRemove
        >>> check_target(Group(101, AddRemove()), {})
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: a group has 1 to 100 records, got 101
    """
    match target:
        case Attributes(at_most=count) if count < 1:
            raise _wrong(
                Code.OUT_OF_RANGE, f"at least 1 attribute changes, got {count}"
            )
        case Group(size=size) if not 1 <= size <= _GROUP_MAX:
            raise _wrong(
                Code.OUT_OF_RANGE, f"a group has 1 to {_GROUP_MAX} records, got {size}"
            )
        case Users():
            _check_users(target, axes)
        case _:
            pass


def _check_users(target: Users, axes: Mapping[str, Axis]) -> None:
    if target.along is not None and not isinstance(axes.get(target.along), NumericAxis):
        raise _wrong(
            Code.UNKNOWN_ATTRIBUTE, f"no numeric axis is named `{target.along}`"
        )
    if target.along is None and (target.windows or target.at_most):
        raise _wrong(
            Code.MISSING_KEY, "windows and bounds on days need an axis of time"
        )
    if target.at_most is not None and not 1 <= target.at_most <= _DAYS_MAX:
        raise _wrong(
            Code.OUT_OF_RANGE,
            f"a user has 1 to {_DAYS_MAX} active days, got {target.at_most};"
            " leave the bound out if it is larger",
        )
    for name in sorted(target.fixed):
        if name not in axes or name == target.along:
            raise _wrong(Code.UNKNOWN_ATTRIBUTE, f"`{name}` is not an axis to be fixed")
    if target.change not in {Relation.ADD_REMOVE, Relation.ANY}:
        raise _wrong(
            Code.UNKNOWN_CHOICE,
            "use either presence or any change for a user's records",
        )
    for window in target.windows or ():
        if window.low.denominator != 1 or window.high.denominator != 1:
            raise _wrong(
                Code.OUT_OF_RANGE, f"the ends of a window are integers, got {window}"
            )


def _wrong(code: Code, message: str) -> InputError:
    return InputError(Problem(code, message))
