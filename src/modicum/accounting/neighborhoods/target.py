"""What axes and targets must be like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from modicum.accounting.neighborhoods.entries import Relation
from modicum.accounting.neighborhoods.regions import Axis, NumericAxis
from modicum.accounting.neighborhoods.targets import (
    Attributes,
    Group,
    Target,
    Users,
)
from modicum.core.errors import Code, InputError, Problem

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
        modicum.core.errors.InputError: two axes are called `day`
    """
    found: dict[str, Axis] = {}
    for axis in axes:
        if axis.name in found:
            raise _wrong(Code.DUPLICATE_NAME, f"two axes are called `{axis.name}`")
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
        >>> from modicum.accounting.neighborhoods.targets import AddRemove
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
            Code.UNKNOWN_ATTRIBUTE, f"no axis with numbers is called `{target.along}`"
        )
    if target.along is None and (target.windows or target.at_most):
        raise _wrong(Code.MISSING_KEY, "windows and bounds on days need an axis")
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
            "a user's records are there or not, or change in any way",
        )
    for window in target.windows or ():
        if window.low.denominator != 1 or window.high.denominator != 1:
            raise _wrong(Code.OUT_OF_RANGE, f"a window has whole ends, got {window}")


def _wrong(code: Code, message: str) -> InputError:
    return InputError(Problem(code, message))
