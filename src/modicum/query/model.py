"""A query as a value: its rows, its groups, and its aggregates."""

from __future__ import annotations

import typing
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from modicum.core.errors import Mark
from modicum.query.tables import ColumnType, Table, Tables, Value

Comparison: TypeAlias = typing.Literal["=", "<>", "<", "<=", ">", ">="]
Grain: TypeAlias = typing.Literal["day", "week", "month", "quarter", "year"]
Function: TypeAlias = typing.Literal[
    "count", "count-distinct", "sum", "avg", "variance", "stddev", "quantile"
]
WindowFunction: TypeAlias = typing.Literal["sum", "rank", "row_number", "lag", "lead"]
Measured: TypeAlias = typing.Literal["count", "count-distinct", "sum", "min", "max"]


class ColumnRef(Struct, frozen=True):
    """A column of one of the tables that are read."""

    table: str
    column: str


# --- expressions: functions of one row, in SQL's logic of three values ----------------


class Literal(Struct, frozen=True):
    """A value that is the same in every row; None for NULL."""

    value: Value | None
    type: ColumnType


class Call(Struct, frozen=True, cache_hash=True):
    """A function of other expressions; see `modicum.query.expressions.table`."""

    function: str
    arguments: tuple[Expression, ...]


class Compare(Struct, frozen=True):
    """A column, as it is stored, compared with a value; unknown where it is NULL."""

    column: ColumnRef
    operator: Comparison
    value: Value


class IsIn(Struct, frozen=True):
    """Whether a column, as it is stored, has one of some values."""

    column: ColumnRef
    values: tuple[Value, ...]


class IsNull(Struct, frozen=True):
    """Whether an expression is NULL."""

    value: Expression


class Not(Struct, frozen=True):
    """The opposite; unknown stays unknown."""

    inner: Expression


class AllOf(Struct, frozen=True):
    """Whether all hold; at least two."""

    parts: tuple[Expression, ...]


class AnyOf(Struct, frozen=True):
    """Whether any holds; at least two."""

    parts: tuple[Expression, ...]


class Released(Struct, frozen=True):
    """A key or an aggregate of the answer, by name: in what is computed of answers."""

    name: str


def grouping_of(key: str) -> str:
    """Return the name of whether a group is by a key: 1 if it is not, else 0."""
    return f"GROUPING({key})"


class Window(Struct, frozen=True):
    """A function over the groups of the answer: in what is computed of answers.

    Attributes:
        function: Which one.
        value: Of what; None for `rank` and `row_number`.
        partition: Groups in which these are equal are looked at together.
        order: In which order; a sum is then of all up to the group, and of its equals.
    """

    function: WindowFunction
    value: Expression | None = None
    partition: tuple[Expression, ...] = ()
    order: tuple[Order, ...] = ()


class Order(Struct, frozen=True):
    """One item of an order of groups."""

    value: Expression
    descending: bool = False
    nulls_first: bool = False


#: What may stand where a column may; of answers, `Released` and `Window` as well.
Expression: TypeAlias = (
    ColumnRef
    | Literal
    | Call
    | Compare
    | IsIn
    | IsNull
    | Not
    | AllOf
    | AnyOf
    | Released
    | Window
)
#: An expression of type boolean.
Condition: TypeAlias = Expression


# --- the query ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Key:
    """A grouping key of an answer: a value of each row, or the period of a time.

    Attributes:
        name: Its name in the answer.
        value: The column or expression.
        grain: For a column with a time, the period whose first day is the key.
        mark: Its position in the text.
    """

    name: str
    value: Expression
    grain: Grain | None = None
    mark: Mark | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate of the rows of each group.

    Attributes:
        name: Its name in the answer.
        function: Which one.
        value: Of which column or expression; None for `COUNT(*)`.
        share: For `quantile`, below which share of the values it lies; in 0 to 1.
        population: For `variance` and `stddev`, whether the rows are everybody, so that
            is divided by their number, rather than a sample, and by one less.
        mark: Its position in the text.
    """

    name: str
    function: Function
    value: Expression | None = None
    share: Fraction | None = None
    population: bool = False
    mark: Mark | None = field(default=None, compare=False)


class Output(Struct, frozen=True):
    """A number of the answer, computed of keys and aggregates after the noise."""

    name: str
    value: Expression


class Lookup(Struct, frozen=True):
    """A table of which each row that is read is joined to at most one row.

    Attributes:
        table: The table: a public one, or one with one row for each id.
        on: The column of another table that is looked up in it.
        key: Its own column, in which no value has two rows.
        optional: Whether a row without a match stays, with NULL for every column.
    """

    table: str
    on: ColumnRef
    key: str
    optional: bool


class Query(Struct, frozen=True):
    """A query: rows of one table, or of some that are joined on the privacy id.

    What stands behind the aggregates is computed of noisy answers, at no cost.

    Attributes:
        tables: The tables whose rows are read, in the order of the text; at least one.
        joined_on: The id column that every one of them has; None for one table.
        where: The condition on the rows; None for all.
        keys: The grouping keys; none for one answer over all rows.
        aggregates: The aggregates that are measured, at least one.
        computed: The numbers of the answer; empty if these are the aggregates.
        having: Which groups of the answer are shown; None for all.
        order: Their order.
        limit: How many of them are shown, in this order; None for all.
        offset: How many before them are left out.
        lookups: The tables in which rows are looked up, in this order.
        derived: The tables among these that are computed from others.
        sets: The sets of keys that groups are formed by, as positions of keys; empty if
            that is one set, of all keys.
        unions: The tables among these that have the rows of several.
    """

    tables: tuple[str, ...]
    joined_on: str | None
    where: Condition | None
    keys: tuple[Key, ...]
    aggregates: tuple[Aggregate, ...]
    computed: tuple[Output, ...] = ()
    having: Expression | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    lookups: tuple[Lookup, ...] = ()
    derived: tuple[Derived, ...] = ()
    sets: tuple[tuple[int, ...], ...] = ()
    unions: tuple[Union, ...] = ()

    @property
    def key_sets(self) -> tuple[tuple[int, ...], ...]:
        """The sets of keys that groups are formed by, at least one."""
        return self.sets or (tuple(range(len(self.keys))),)

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The numbers of the answer, in the order of the text."""
        return self.computed or tuple(
            Output(one.name, Released(one.name)) for one in self.aggregates
        )

    @property
    def is_plain(self) -> bool:
        """Whether its answer is the aggregates of all groups, and nothing else."""
        cut = self.order or self.offset or self.limit is not None
        return not (self.computed or self.having is not None or cut or self.sets)

    @property
    def sources(self) -> tuple[str, ...]:
        """The tables of the data that it reads, each once."""
        of: dict[str, list[str]] = {}
        for table, rows in self.inner:
            of.setdefault(table.name, []).extend(rows.sources)
        own = (*self.tables, *(one.table for one in self.lookups))
        return tuple(dict.fromkeys(s for name in own for s in of.get(name, (name,))))

    @property
    def inner(self) -> tuple[tuple[Table, Query], ...]:
        """The tables that are computed, each with rows that it is computed from."""
        unions = ((one.table, part) for one in self.unions for part in one.parts)
        return (*((one.table, one.rows) for one in self.derived), *unions)


class Measure(Struct, frozen=True):
    """A column of a derived table that is computed from all rows of a group.

    Attributes:
        column: Its name there.
        function: How.
        value: Of which expression; None for the number of rows.
    """

    column: str
    function: Measured
    value: Expression | None


class Derived(Struct, frozen=True):
    """A table with one row for each group of the rows of one id.

    Attributes:
        table: The declaration of its columns; its `row_id` are the names of its keys.
        rows: The rows that it is computed from: a query without keys and aggregates.
        keys: Its keys; the first one is the id.
        measures: Its other columns.
    """

    table: Table
    rows: Query
    keys: tuple[Key, ...]
    measures: tuple[Measure, ...]

    @property
    def values(self) -> tuple[Expression | None, ...]:
        """What its columns are computed from."""
        keys = tuple(one.value for one in self.keys)
        return (*keys, *(one.value for one in self.measures))


class Union(Struct, frozen=True):
    """A table with all rows of several others, each as it is.

    Attributes:
        table: The declaration of its columns; rows of no part have an identity here.
        parts: The rows of each part: queries without keys and aggregates.
        values: For each part, what the columns are, in the order of the table.
    """

    table: Table
    parts: tuple[Query, ...]
    values: tuple[tuple[Expression, ...], ...]


def with_derived(tables: Tables, query: Query) -> Tables:
    """Return tables and those that a query derives from them."""
    for table, rows in query.inner:
        tables = with_derived(tables, rows)
        by_name = {**tables.by_name, table.name: table}
        tables = replace(tables, by_name=by_name)
    return tables
