"""Rows of several tables that are read as those of one: UNION ALL.

A part has the rows of one table, each as it is. So one row of the data is at most one
row of each part, and belongs to the same instances there; caps of the rows of all parts
together bound what one instance has of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from modicum.core.errors import Code, InputError
from modicum.query.model import ColumnRef, Expression, Query, Union
from modicum.query.parser.arguments import alike, fitted
from modicum.query.parser.joins import Texts, read_tables_of
from modicum.query.parser.scope import Named, Reads, Scope
from modicum.query.parser.sql_text import SqlText, only
from modicum.query.parser.subqueries import (
    CLAUSES,
    columns_of,
    computed_column,
    condition_of,
    free_name,
    is_dated,
    is_grouped,
    read_subquery,
)
from modicum.query.refusals import Reason, refused
from modicum.query.tables import Column, Table

if TYPE_CHECKING:
    from sqlglot import exp

#: The maximum number of parts.
_PARTS_MAX: Final = 16
_OF_TABLE: Final = Reason(
    "a part of UNION ALL has the rows of one table, each as it is",
    "read one declared table in each part; join and group around the union",
)
_EQUAL_ROWS: Final = Reason(
    "which rows are equal may depend on several people",
    "write UNION ALL, and COUNT(DISTINCT id) or SELECT DISTINCT id, … around it",
)


def read_source(
    node: exp.Expr, alias: str, texts: Texts, reads: Reads, *, left: bool
) -> Named:
    """Return a subquery, or a union of some, under its name; note what it reads.

    Args:
        node: The subquery.
        alias: Its name.
        texts: What names of tables mean in it.
        reads: What the query reads.
        left: Whether rows without a match stay.

    Raises:
        InputError: If it is not read.
    """
    from sqlglot import exp

    if type(node) is not exp.Union:
        return read_subquery(node, alias, texts, reads, left=left)
    sql, parts = texts.sql, []
    for select in _parts(node, texts.sql):
        parts.append(_Part(select, texts, len(parts)))
        first, number = parts[0], len(parts[-1].shown)
        if number != len(first.shown):
            message = (
                f"the parts of a union have {len(first.shown)} and {number} columns"
            )
            mark = sql.mark_of(select.expressions[0])
            remedy = "select as many in each; NULL where there is none"
            raise refused(Code.NOT_IN_SUBSET, message, mark, reason=Reason("", remedy))
    name = free_name(alias, texts)
    columns, values = _Columns(name, parts, texts).all()
    rows = tuple(one.rows for one in parts)
    table = Table(name, {one.name: one for one in columns}, ())
    reads.unions.append(Union(table, rows, tuple(zip(*values, strict=True))))
    shown = [columns[place].name for place in range(len(parts[0].shown))]
    return Named(
        alias,
        Table(alias, {one: table.columns[one] for one in shown}, ()),
        {one: ColumnRef(name, one) for one in shown},
        (table,),
    )


def _parts(node: exp.Expr, sql: SqlText) -> Iterator[exp.Select]:
    """Yield the parts of a union, in order."""
    from sqlglot import exp

    above, behind = node, []
    while type(above) is exp.Union:
        only(sql, above, ("this", "expression", "distinct"))
        behind.append(above.expression)
        above = above.this
    if len(behind) >= _PARTS_MAX:
        raise sql.unread(node, Reason("", f"write at most {_PARTS_MAX} parts"))
    for number, one in enumerate([above, *reversed(behind)]):
        select = one
        if type(select) is exp.Subquery:
            only(sql, select, ("this",))
            select = select.this
        if type(select) is not exp.Select or is_grouped(select):
            raise sql.unread(select, _OF_TABLE)
        if number:
            place = max(
                at for at in range(sql.first(select) or 0) if sql.word(at) == "UNION"
            )
            if sql.word(place + 1) != "ALL":
                raise sql.unread_at(place, _EQUAL_ROWS)
            sql.spend(place, place + 1)
        yield select


class _Part:
    """One part: its rows, and its columns by name."""

    def __init__(self, select: exp.Select, texts: Texts, number: int) -> None:
        sql = texts.sql
        only(sql, select, CLAUSES)
        self.select = select
        scope, reads = read_tables_of(select, texts)
        condition = condition_of(select, scope)
        self.scope = scope.given(condition)
        self.shown = columns_of(select, self.scope, part=number)
        joined = [texts.tables.by_name.get(one.table) for one in reads.lookups]
        plain = all(one is not None and one.key is not None for one in joined)
        if len(reads.tables) > 1 or reads.derived or reads.unions or not plain:
            raise sql.unread(select.args["from_"].this, _OF_TABLE)
        self.rows = Query(
            tuple(reads.tables),
            None,
            reads.where(condition),
            (),
            (),
            lookups=tuple(reads.lookups),
        )
        self.table = texts.tables.by_name[reads.tables[0]]

    def own(self, name: str) -> ColumnRef:
        """Return a column of its table."""
        return ColumnRef(self.table.name, name)


class _Columns:
    """The columns of a union: those that are selected, and those of units."""

    def __init__(self, name: str, parts: Sequence[_Part], texts: Texts) -> None:
        self._name, self._parts, self._texts = name, parts, texts
        self._units = texts.tables.ids | texts.tables.clocks
        tables = tuple(one for part in parts for one in part.scope.tables)
        self._scope = Scope(texts.sql, tables)

    def all(self) -> tuple[list[Column], list[tuple[Expression, ...]]]:
        """Return the columns, and of each its value in each part.

        The id and time of rows are there if all tables have them, selected or not.
        """
        columns, values = [], []
        for place, name in enumerate(self._parts[0].shown):
            several = [list(one.shown.values())[place] for one in self._parts]
            column, meant = self._column(name, several, place)
            columns.append(column)
            values.append(meant)
        shown = {one.name for one in columns}
        for name in sorted(self._units - shown):
            if all(name in part.table.columns for part in self._parts):
                columns.append(self._of_units(name))
                values.append(tuple(part.own(name) for part in self._parts))
        return columns, values

    def _column(
        self, name: str, values: list[Expression], place: int
    ) -> tuple[Column, tuple[Expression, ...]]:
        items = self._parts[-1].select.expressions
        node = items[min(place, len(items) - 1)]  # * is one.
        known = {one.lower(): one for one in self._units}
        if name.lower() in known:
            name = known[name.lower()]
            if any(
                value != part.own(name)
                for value, part in zip(values, self._parts, strict=True)
            ):
                raise self._not_of_unit(name, node)
            return self._of_units(name), tuple(values)
        values = alike(values, node, self._scope)
        whole = fitted("coalesce", values, node, self._scope)
        dated = all(is_dated(one, self._scope, self._texts) for one in values)
        facts = self._scope.facts(whole)
        column = computed_column(name, facts, whole, self._scope, dated=dated)
        return column, tuple(values)

    def _of_units(self, name: str) -> Column:
        """Return the declaration of an id or time; it must be one and the same."""
        found = [part.table.columns[name] for part in self._parts]
        kinds = {(one.type, one.step) for one in found}
        if len(kinds) > 1:
            types = " and ".join(sorted({one.type for one in found}))
            raise refused(
                Code.DOES_NOT_FIT,
                f"column `{name}` of the parts of a union is declared {types}",
                self._texts.sql.mark_of(self._parts[-1].select.expressions[0]),
                reason=Reason("", "declare it alike in the tables file"),
            )
        return replace(found[0], attribute=None, partition=None, values=None)

    def _not_of_unit(self, name: str, node: exp.Expr) -> InputError:
        return refused(
            Code.NOT_BOUNDED,
            f"`{name}` is the id or time of rows, and not that of every part",
            self._texts.sql.mark_of(node),
            reason=Reason(
                "rows would count as those of others",
                f"select `{name}` itself in each part, or use another name",
            ),
        )
