"""Which columns the names of a query mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, InputError, Mark
from modicum.query.expressions.analysis import facts_of
from modicum.query.expressions.facts import Facts
from modicum.query.expressions.table import FUNCTIONS
from modicum.query.model import (
    AllOf,
    ColumnRef,
    Compare,
    Derived,
    Expression,
    Lookup,
    Union,
)
from modicum.query.parser.sql_text import SqlText, only
from modicum.query.refusals import Reason, refused
from modicum.query.tables import Column, Table, Tables

if TYPE_CHECKING:
    from sqlglot import exp

T = TypeVar("T")
#: Maximum number of names listed.
_LISTED_MAX = 20


class Named(Struct, frozen=True):
    """A table or subquery that is read, under the name that the query gives it.

    Attributes:
        alias: The name.
        table: Its columns.
        shown: For a subquery, by column its expression.
        base: For a subquery, the tables that these are of.
        inlined: Whether rows of these tables are read already.
        merged: Columns that USING joins: without the table's name, they mean those of
            a table before it.
    """

    alias: str
    table: Table
    shown: Mapping[str, Expression] = {}
    base: tuple[Table, ...] = ()
    inlined: bool = False
    merged: frozenset[str] = frozenset()

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that its columns are of."""
        return self.base or (self.table,)

    def value(self, column: str) -> Expression:
        """Return what a column is."""
        return self.shown.get(column, ColumnRef(self.table.name, column))


class ResolvedColumn(Struct, frozen=True):
    """A column that a name means, and the position of the name."""

    value: Expression
    column: Column
    mark: Mark

    @property
    def reference(self) -> ColumnRef | None:
        """The column of a table; None if it is computed of others."""
        return self.value if isinstance(self.value, ColumnRef) else None

    @property
    def stored(self) -> ColumnRef | None:
        """The column of a table, if it can be compared as it is stored."""
        return None if self.column.counted else self.reference


class Reads:
    """What a query reads: its tables grow while its text is read.

    Args:
        member: Returns the condition of a subquery after IN or EXISTS.

    Attributes:
        tables: The tables whose rows are read.
        joined_on: The id that these are joined on.
        lookups: The tables in which rows are looked up.
        derived: The tables that are computed.
        unions: The tables that have the rows of several.
        conditions: Those of subqueries.
        inner: The tables that only conditions read.
    """

    def __init__(self, member: Callable[[exp.Expr, Scope], Expression]) -> None:
        self.member = member
        self.tables: list[str] = []
        self.joined_on: str | None = None
        self.lookups: list[Lookup] = []
        self.derived: list[Derived] = []
        self.unions: list[Union] = []
        self.conditions: list[Expression] = []
        self.inner: list[Table] = []

    def where(self, condition: Expression | None) -> Expression | None:
        """Return the condition on all rows, with those of subqueries."""
        every = [*self.conditions, *(() if condition is None else (condition,))]
        return AllOf(tuple(every)) if len(every) > 1 else next(iter(every), None)


class Grouped(Protocol):
    """The columns of groups, where names are those of their rows."""

    @property
    def table(self) -> Table:
        """The table of the groups, as far as it is known."""

    def column(self, found: ResolvedColumn) -> ResolvedColumn:
        """Return the key that a column is."""

    def read(self, node: exp.Expr) -> Expression | None:
        """Return an aggregate or a key; None for what is computed of others."""


class Scope(Struct, frozen=True):
    """The tables that are read.

    Attributes:
        sql: The text.
        tables: The tables, in the order of the text.
        joined_on: The column by which they are joined; it means the same in all.
        reads: All that is read, if more may come.
        grouped: The groups that expressions are of, if they are not of rows.
        nonzero: Columns of numbers that are not 0 where an expression counts.
    """

    sql: SqlText
    tables: tuple[Named, ...]
    joined_on: str | None = None
    reads: Reads | None = None
    grouped: Grouped | None = None
    nonzero: frozenset[Expression] = frozenset()

    def column(self, node: exp.Expr) -> ResolvedColumn:
        """Return the column that a node names.

        Raises:
            InputError: If it is no name, or names no column or several.
        """
        from sqlglot import exp

        if type(node) is not exp.Column or type(node.this) is not exp.Identifier:
            star = type(node) is exp.Star
            raise self.sql.unread(node, Reason("", "name a column") if star else None)
        only(self.sql, node, ("this", "table"))
        identifier, qualifier = node.this, node.args.get("table")
        tables = self.tables
        if qualifier is not None:
            tables = (self._table(qualifier),)
        mark = self.sql.mark_of(identifier)
        spend_name(self.sql, identifier)
        found = [
            ResolvedColumn(named.value(column.name), column, mark)
            for named in tables
            for column in matching(identifier, named.table.columns.values())
            if qualifier is not None or column.name not in named.merged
        ]
        one = self._one(found, identifier, tables)
        return one if self.grouped is None else self.grouped.column(one)

    @property
    def declared(self) -> Tables:
        """Return the tables that are read, by their own names."""
        every = [one for named in self.tables for one in named.tables]
        every += () if self.reads is None else self.reads.inner
        every += () if self.grouped is None else (self.grouped.table,)
        return Tables({one.name: one for one in every})

    def facts(self, expression: Expression) -> Facts:
        """Return what is known of an expression's values."""
        return facts_of(expression, self.declared)

    def given(self, condition: Expression | None) -> Scope:
        """Return the same tables, of which only rows count for which it is true."""
        parts = condition.parts if isinstance(condition, AllOf) else (condition,)
        known = {
            one.column
            for one in parts
            if isinstance(one, Compare)
            and isinstance(one.value, int | Fraction)
            and not FUNCTIONS[one.operator].meant(0, one.value)
        }
        return replace(self, nonzero=self.nonzero | known)

    def knows(self, name: exp.Expr) -> bool:
        """Return whether some table has a column that a name may mean."""
        tables = (named.table for named in self.tables)
        return any(matching(name, one.columns.values()) for one in tables)

    def _one(
        self,
        found: Sequence[ResolvedColumn],
        name: exp.Identifier,
        tables: Iterable[Named],
    ) -> ResolvedColumn:
        columns = [one.reference for one in found]
        joined = all(one and one.column == self.joined_on for one in columns)
        if len(found) == 1 or (found and joined):
            return found[0]
        known = [column for named in tables for column in named.table.columns]
        mark = self.sql.mark_of(name)
        if not found:
            raise unknown("column", name.name, mark, known)
        names = ", ".join(
            f'{named.alias}."{column.name}"'
            for named in tables
            for column in matching(name, named.table.columns.values())
        )
        raise refused(
            Code.UNKNOWN_NAME,
            f"`{name.name[:60]}` may mean several columns",
            mark,
            reason=Reason("", f"write one of  {names}"),
        )

    def _table(self, name: exp.Expr) -> Named:
        spend_name(self.sql, name)
        aliases = {named.alias: named for named in self.tables}
        found = [
            named
            for alias, named in aliases.items()
            if alias == name.name
            or (not name.args.get("quoted") and alias.lower() == name.name.lower())
        ]
        if len(found) != 1:
            mark = self.sql.mark_of(name)
            raise unknown("table", name.name, mark, aliases)
        return found[0]


def matching(name: exp.Expr, known: Iterable[T]) -> list[T]:
    """Return the meanings of a name: exact ones, if it is quoted or any exists.

    Args:
        name: The identifier.
        known: Things with names.
    """
    every = list(known)
    exact = [one for one in every if getattr(one, "name", None) == name.name]
    if exact or name.args.get("quoted"):
        return exact
    lower = name.name.lower()
    return [one for one in every if str(getattr(one, "name", "")).lower() == lower]


def spend_name(sql: SqlText, name: exp.Expr) -> None:
    """Note that a name was understood; a text in its place is refused.

    Raises:
        InputError: If it is no name.
    """
    from sqlglot import exp

    is_name = type(name) is exp.Identifier and not sql.is_value(name)
    if not is_name or not sql.spend_node(name):
        raise sql.unread(name, Reason("", 'names are bare or in double quotes: "…"'))


def unknown(what: str, name: str, mark: Mark, known: Iterable[str]) -> InputError:
    """Return the error for an undeclared name, ready to be raised.

    Args:
        what: The expected kind: `column` or `table`.
        name: The name.
        mark: Its position.
        known: The declared ones.
    """
    every = list(known)
    listed = ", ".join(every[:_LISTED_MAX]) or "none"
    more = ", …" if len(every) > _LISTED_MAX else ""
    return refused(
        Code.UNKNOWN_NAME,
        f"unknown {what} `{name[:60]}`",
        mark,
        label=nearest(name, every),
        reason=Reason("", f"known: {listed}{more}"),
    )
