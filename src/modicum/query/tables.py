"""Declarations of tables that queries may read; never taken from the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

from modicum.core.errors import Mark

#: The types of columns. `number` has a step, and is read as whole multiples of it.
ColumnType: TypeAlias = Literal[
    "text", "integer", "number", "boolean", "date", "timestamp"
]
TYPES: tuple[ColumnType, ...] = get_args(ColumnType)

_DAY: Final = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME: Final = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?"
#: The format of values in a file without types. Anything else is NULL.
WRITTEN: Final[Mapping[ColumnType, str]] = {
    "boolean": "(?i:true|false)",
    "integer": "[+-]?[0-9]{1,19}",
    "number": "[+-]?[0-9]{1,40}([.][0-9]{1,40})?([eE][+-]?[0-9]{1,2})?",
    "date": _DAY,
    "timestamp": f"{_DAY}[ T]{_TIME}Z?",  # A zone is that of the whole world.
}

#: A value of a column, as in a query or in a list of public values. Dates and
#: timestamps are ISO texts without a zone.
Value: TypeAlias = str | int | bool | Fraction


@dataclass(frozen=True, slots=True)
class Column:
    """One column, as declared.

    Attributes:
        name: Its name in the table.
        type: Its type.
        attribute: The attribute of the policy that it holds; None for a column that
            only identifies a row, its instance or its time.
        partition: The partitioning attribute of the policy that it holds, if any.
        step: For `number` and `integer`, the unit to which values are rounded; 1 for
            `integer`.
        low: The least value that is counted as it is; smaller ones count as this.
        high: The greatest one. Both or neither are there.
        values: Every value that may be distinguished in an answer, if they are public.
        counted: Whether it is computed, and a number is stored as its whole steps.
        dated: Whether it is computed, and a time on the days that are read.
        mark: Its position.
    """

    name: str
    type: ColumnType
    attribute: str | None = None
    partition: str | None = None
    step: Fraction = Fraction(1)
    low: Fraction | None = None
    high: Fraction | None = None
    values: tuple[Value, ...] | None = None
    counted: bool = False
    dated: bool = False
    mark: Mark | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Table:
    """One table, as declared.

    Attributes:
        name: Its name in queries.
        columns: Its columns by name; others cannot be named.
        row_id: The columns that together identify a row permanently. Empty if there are
            none: a cap then orders rows by a keyed hash of the columns that the query
            reads.
        one_per: The id column of which each value has at most one row, as in a table
            of people; where it is joined to another table, more are cut to one. None if
            it may have many.
        group: The column with the user group of whose row it is, if there is one.
        key: For a public table, which has no rows of people, the column in which each
            value has at most one row; more are cut to one.
        mark: Its position.
    """

    name: str
    columns: Mapping[str, Column]
    row_id: tuple[str, ...]
    one_per: str | None = None
    group: str | None = None
    key: str | None = None
    mark: Mark | None = field(default=None, compare=False)


class Tables(Struct, frozen=True):
    """All declared tables.

    Attributes:
        by_name: The tables by name.
        ids: The columns that identify, for some unit of the policy, a row's instance.
        clocks: The columns with the time of a row.
    """

    by_name: Mapping[str, Table]
    ids: frozenset[str] = frozenset()
    clocks: frozenset[str] = frozenset()
