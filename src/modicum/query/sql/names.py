"""The names of a query's columns in its SQL, and their locations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import structs
from sqlglot import exp

from modicum.core.errors import Code
from modicum.query.aggregates import column_of
from modicum.query.attributes import columns_in
from modicum.query.expressions.analysis import facts_of
from modicum.query.expressions.facts import Facts
from modicum.query.model import ColumnRef, Expression, Lookup, Query, Union
from modicum.query.problems import refused
from modicum.query.sql import expressions as sql
from modicum.query.statistics import ExactPlan, Statistic
from modicum.query.tables import Column, Table


class Names:
    """The columns that a plan reads, by purpose.

    Args:
        plan: The plan.
        relations: By table, its relation; by default they are numbered.
        also: What else is read of rows.

    Attributes:
        plan: The plan.
        main: The table whose rows are counted; of each other one, a row joins at most
            one row.
        derived: By name, the tables that are computed, and the columns of each.
        unions: By name, the parts of those with the rows of several.

    Raises:
        InputError: If several tables may have many rows of an id.
    """

    def __init__(
        self,
        plan: ExactPlan,
        relations: Mapping[str, str] | None = None,
        also: Sequence[Expression | None] = (),
    ) -> None:
        self.plan = plan
        self._also = also
        self._relations = _relations(plan.query) if relations is None else relations
        self.derived = {
            one.table.name: (one, self._inner(one.rows, one.values))
            for one in plan.query.derived
        }
        self._tables = [plan.tables.by_name[name] for name in plan.query.tables]
        on = plan.query.joined_on
        many = [table for table in self._tables if on is None or table.one_per != on]
        if len(many) > 1:
            raise refused(
                Code.DOES_NOT_FIT,
                f"tables `{many[0].name}` and `{many[1].name}` may both have many rows"
                f" for one `{on}`",
                None,
                help=f"declare `one_per: {on}` of all tables but one",
            )
        self.main = (many or self._tables)[0]
        if on is not None:
            self._check_joined(on)
        self.unions = {one.table.name: self._parts(one) for one in plan.query.unions}

    def _parts(self, union: Union) -> list[tuple[Names, dict[str, Expression]]]:
        """Return the parts of a union, each with its columns that are read."""
        needed = self.needed(union.table)
        parts = []
        for rows, values in zip(union.parts, union.values, strict=True):
            of = dict(zip(union.table.columns, values, strict=True))
            read = {name: of[name] for name in needed}
            parts.append((self._inner(rows, list(read.values())), read))
        return parts

    def _inner(self, rows: Query, values: Sequence[Expression | None]) -> Names:
        """Return the columns of the rows that a table is computed from."""
        plan = structs.replace(
            self.plan,
            query=rows,
            sample=None,
            caps=(),
            statistics=(),
            selection=None,
            block=None,
        )
        return Names(plan, self._relations, values)

    def _check_joined(self, on: str) -> None:
        types = {self.declared(ColumnRef(one.name, on)).type for one in self._tables}
        if len(types) > 1 or "number" in types:
            raise refused(
                Code.DOES_NOT_FIT,
                f"column `{on}` is declared {' and '.join(sorted(types))}: tables are"
                " joined on texts or on integers",
                None,
            )

    @property
    def others(self) -> list[Table]:
        """The tables that are joined to the main one."""
        return [table for table in self._tables if table is not self.main]

    @property
    def tables(self) -> list[Table]:
        """All tables, the main one first."""
        return [self.main, *self.others]

    @property
    def statistics(self) -> list[Statistic]:
        """All statistics, that of the key selection included."""
        plan = self.plan
        return [*plan.statistics, *([plan.selection] if plan.selection else ())]

    def relation(self, table: str) -> str:
        """Return the name of a table."""
        return self._relations[table]

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """The tables in which rows are looked up."""
        return self.plan.query.lookups

    def read_of(self) -> dict[str, tuple[str, ...]]:
        """Return by table of the data the columns that are read, here or below."""
        parts = (inner for one in self.unions.values() for inner, _ in one)
        names = [self, *(inner for _, inner in self.derived.values()), *parts]
        found: dict[str, tuple[str, ...]] = {}
        for table in self.plan.query.sources:
            read = {
                column
                for one in names
                for column in (
                    one.needed(self.plan.tables.by_name[table])
                    if one is self
                    else one.read_of().get(table, ())
                )
            }
            declared = self.plan.tables.by_name[table].columns
            found[table] = tuple(name for name in declared if name in read)
        return found

    def column(self, reference: ColumnRef) -> exp.Column:
        """Return a column of one of the tables, as its declared type."""
        return sql.named(reference.column, self.relation(reference.table))

    def identity(self, reference: ColumnRef) -> exp.Expression:
        """Return what distinguishes a column's values: numbers as whole steps."""
        column, value = self.declared(reference), self.column(reference)
        if column.type == "number":
            return sql.in_steps(value, column, -sql.STEPS_MAX, sql.STEPS_MAX)
        return value

    def identity_text(
        self, reference: ColumnRef, identity: exp.Expression | None = None
    ) -> exp.Expression:
        """Return a column's value as text, for a hash.

        Args:
            reference: The column.
            identity: What distinguishes its values, if already computed.
        """
        if identity is None:
            identity = self.identity(reference)
        if self.declared(reference).type == "text":
            return identity
        return exp.cast(identity, "text")

    def declared(self, reference: ColumnRef) -> Column:
        """Return the declaration of a column."""
        return column_of(reference, self.plan.tables)

    def facts(self, expression: Expression) -> Facts:
        """Return what is known of an expression's values."""
        return facts_of(expression, self.plan.tables)

    def find(self, column: str) -> ColumnRef | None:
        """Return the location of a unit's column, the main table before others.

        Args:
            column: Its name.
        """
        for table in self.tables:
            if column in table.columns:
                return ColumnRef(table.name, column)
        return None

    def row_id(self, table: Table) -> list[ColumnRef]:
        """Return the columns that identify the rows of a table, if any do."""
        return [ColumnRef(table.name, name) for name in table.row_id]

    def holding(self, attribute: str) -> list[ColumnRef]:
        """Return the columns that hold a partitioning attribute."""
        return [
            ColumnRef(table.name, column.name)
            for table in self.tables
            for column in table.columns.values()
            if column.partition == attribute
        ]

    def groups(self) -> list[ColumnRef]:
        """Return the columns with the user group of a row."""
        return [
            ColumnRef(table.name, table.group)
            for table in self.tables
            if table.group is not None
        ]

    def needed(self, table: Table) -> list[str]:
        """Return the columns of a table that are read, in the order of its declaration.

        Args:
            table: The table.
        """
        names = {one.column for one in self._read() if one.table == table.name}
        return [name for name in table.columns if name in names]

    def _read(self) -> Iterator[ColumnRef]:
        plan, query = self.plan, self.plan.query
        for table in self.tables:
            yield from self.row_id(table)
            if query.joined_on is not None:
                yield ColumnRef(table.name, query.joined_on)
        for lookup in query.lookups:
            yield lookup.on
            table = plan.tables.by_name[lookup.table]
            yield ColumnRef(table.name, lookup.key)
            yield from self.row_id(table)
            yield from self._of_part(table)
            # Which row of a key is kept goes by all contents, whatever is read.
            for column in table.columns if table.key is not None else ():
                yield ColumnRef(table.name, column)
        yield from self._of_units()
        for table in self.tables:
            yield from self._of_part(table)
        read = [*(key.value for key in query.keys), query.where, *self._also]
        read += [statistic.value for statistic in self.statistics]
        for one in read:
            if one is not None:
                yield from columns_in(one)

    def _of_part(self, table: Table) -> Iterator[ColumnRef]:
        """Yield the columns of a table that a part of the data is about."""
        part = self.plan.part
        attributes = {name for box in part.where or () for name, _ in box}
        for column in table.columns.values():
            grouped = part.groups is not None and column.name == table.group
            if grouped or column.partition in attributes:
                yield ColumnRef(table.name, column.name)

    def _of_units(self) -> Iterator[ColumnRef]:
        for unit in self.plan.units.values():
            for name in (unit.id, unit.column):
                found = None if name is None else self.find(name)
                if found is not None:
                    yield found


def _relations(query: Query) -> dict[str, str]:
    """Return the relation of each table that a query reads."""
    found = {name: f"table_{number}" for number, name in enumerate(query.sources)}
    for name in dict.fromkeys(_all_computed(query)):
        found[name] = f"derived_{len(found)}"
    return found


def _all_computed(query: Query) -> Iterator[str]:
    for table, rows in query.inner:
        yield from _all_computed(rows)
        yield table.name
