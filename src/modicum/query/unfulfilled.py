"""Conditions that no row can fulfil, whatever the data has."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from modicum.query.model import (
    AllOf,
    ColumnRef,
    Compare,
    Comparison,
    Condition,
    IsIn,
    IsNull,
)
from modicum.query.tables import Value


def contradicted(where: Condition) -> tuple[ColumnRef, ...]:
    """Return the columns of which a condition asks what no value can be.

    It is found where conditions on one column are joined by AND. What is within OR or
    NOT is not looked at.

    Args:
        where: The condition.
    """
    by_column: dict[ColumnRef, list[Condition]] = {}
    for one in _joined(where):
        if isinstance(one, Compare | IsIn | IsNull):
            by_column.setdefault(one.column, []).append(one)
    return tuple(
        column for column, asked in by_column.items() if _is_contradiction(asked)
    )


def _joined(where: Condition) -> Iterator[Condition]:
    if not isinstance(where, AllOf):
        yield where
        return
    for part in where.parts:
        yield from _joined(part)


def _is_contradiction(asked: Sequence[Condition]) -> bool:
    """Return whether no value of a column fulfils all of some conditions."""
    compared = [one for one in asked if isinstance(one, Compare)]
    listed = [one.values for one in asked if isinstance(one, IsIn)]
    listed += [(one.value,) for one in compared if one.operator == "="]
    if any(isinstance(one, IsNull) for one in asked):
        return bool(compared or listed)  # NULL is neither equal, nor less, nor greater.
    if listed:
        left = set(listed[0]).intersection(*listed[1:])
        return not any(_fits(value, compared) for value in left)
    return _is_empty(compared)


_HOLDS: Final[Mapping[Comparison, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _fits(value: Value, compared: Iterable[Compare]) -> bool:
    return all(_HOLDS[one.operator](value, one.value) for one in compared)


def _is_empty(compared: Sequence[Compare]) -> bool:
    """Return whether a lower limit is above an upper one, or meets it and excludes."""
    lows = [one for one in compared if one.operator in (">", ">=")]
    highs = [one for one in compared if one.operator in ("<", "<=")]
    for low in lows:
        for high in highs:
            both = (low.operator, high.operator) == (">=", "<=")
            within = _HOLDS["<=" if both else "<"]
            if not within(low.value, high.value):
                return True
    return False
