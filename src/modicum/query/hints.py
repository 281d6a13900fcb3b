"""Hints for authors before a query runs: likely mistakes, and cheaper forms.

No remark repeats a value of the query: it may be one of a person.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from modicum.core.document import Entries, from_python
from modicum.core.errors import InputError
from modicum.query.aggregates import column_of
from modicum.query.model import (
    AllOf,
    AnyOf,
    ColumnRef,
    Compare,
    Comparison,
    Condition,
    IsIn,
    IsNull,
    Not,
)
from modicum.query.query_file import QueryFile, read_query_file
from modicum.query.request import QueryRequest
from modicum.query.tables import Column, Value
from modicum.release.vocabulary import Vocabulary


def contradicted(where: Condition) -> tuple[ColumnRef, ...]:
    """Return the columns on which a condition is unsatisfiable.

    This detects contradictions of conditions on one column joined by AND. Conditions
    within OR or NOT are ignored.
    """
    by_column: dict[ColumnRef, list[Condition]] = {}
    for one in _joined(where):
        if isinstance(one, Compare | IsIn):
            by_column.setdefault(one.column, []).append(one)
        elif isinstance(one, IsNull) and isinstance(one.value, ColumnRef):
            by_column.setdefault(one.value, []).append(one)
    return tuple(
        column
        for column, conditions in by_column.items()
        if _is_contradiction(conditions)
    )


def _joined(where: Condition) -> Iterator[Condition]:
    if not isinstance(where, AllOf):
        yield where
        return
    for part in where.parts:
        yield from _joined(part)


def _is_contradiction(conditions: Sequence[Condition]) -> bool:
    """Return whether no value of a column fulfils all of some conditions."""
    compared = [one for one in conditions if isinstance(one, Compare)]
    listed = [one.values for one in conditions if isinstance(one, IsIn)]
    listed += [(one.value,) for one in compared if one.operator == "="]
    if any(isinstance(one, IsNull) for one in conditions):
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


def remarks(query: QueryFile, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return remarks on a query, as text."""
    where = query.request.query.where
    if where is None:
        return ()
    return (
        *_unfulfilled(query.request, where),
        *_undeclared(query.request, where),
        *_chargeable(query, where, vocabulary),
    )


def _unfulfilled(conditions: QueryRequest, where: Condition) -> Iterator[str]:
    """Yield the columns with a condition that no value satisfies."""
    names = (column_of(one, conditions.tables).name for one in contradicted(where))
    for name in dict.fromkeys(names):
        yield f"WHERE matches no row: no value of `{name}` satisfies all conditions"


def _undeclared(conditions: QueryRequest, where: Condition) -> Iterator[str]:
    """Yield which columns are compared with values that no row is declared to have."""
    names = [
        column.name
        for column, values in _compared(conditions, where)
        if column.values is not None and not set(values) <= set(column.values)
    ]
    for name in dict.fromkeys(names):
        yield (
            f"WHERE compares `{name}` with a value that is not one of its declared"
            " `values`"
        )


def _chargeable(
    query: QueryFile, where: Condition, vocabulary: Vocabulary
) -> Iterator[str]:
    """Yield conditions that could be in `where` as well, at a lower cost.

    A part of the data is charged to the cells that it touches; a condition is not. Rows
    that a condition drops anyway are those that the part leaves out.
    """
    if query.request.part.where is not None:
        return
    conditions = where.parts if isinstance(where, AllOf) else (where,)
    picking = [one for one in conditions if _picks(one)]
    for one in picking:
        for column, values in _compared(query.request, one):
            name = column.partition
            if name is None or not vocabulary.population.partitions[name].immutable:
                continue  # Its cells are charged together.
            if _reads(query, name, values, vocabulary):
                yield (
                    f"WHERE picks values of `{column.name}`: also list them in"
                    f" `where: {{{name}: […]}}` of the query file, so that only their"
                    " cells are charged"
                )


def _picks(condition: Condition) -> bool:
    """Return whether a condition holds for some listed values only."""
    match condition:
        case Compare(operator="=") | IsIn():
            return True
        case _:
            return False


def _reads(
    query: QueryFile, name: str, values: tuple[Value, ...], vocabulary: Vocabulary
) -> bool:
    """Return whether a query file is accepted with these values in its `where`."""
    added = from_python({"where": {name: list(values)}})
    assert isinstance(added, Entries)  # It is a mapping.
    assert isinstance(query.file, Entries)  # It was read as one.
    node = Entries((*query.file.entries, *added.entries), query.file.mark)
    try:
        read_query_file(node, query.request.tables, vocabulary, query.policy)
    except InputError:
        return False
    return True


def _compared(
    conditions: QueryRequest, condition: Condition
) -> Iterator[tuple[Column, tuple[Value, ...]]]:
    """Yield columns, and the values that they are compared with."""
    match condition:
        case Compare(column=column, operator="=" | "<>", value=value):
            yield column_of(column, conditions.tables), (_plain(value),)
        case IsIn(column=column, values=values):
            yield column_of(column, conditions.tables), tuple(map(_plain, values))
        case Not(inner=inner):
            yield from _compared(conditions, inner)
        case AllOf(parts=parts) | AnyOf(parts=parts):
            for part in parts:
                yield from _compared(conditions, part)
        case _:
            return


def _plain(value: Value) -> Value:
    """Return a whole number as one."""
    if isinstance(value, Fraction) and value.denominator == 1:
        return int(value)
    return value
