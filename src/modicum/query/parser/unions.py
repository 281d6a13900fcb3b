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
    parts: list[_Part] = []
    for select in _parts(node, texts.sql):
        parts.append(_Part(select, texts, len(parts)))
        _refuse_other_columns(parts[0], parts[-1], texts.sql)
    name = free_name(alias, texts)
    columns = _Columns(parts, texts)
    table = Table(name, columns.declared, ())
    values = zip(*columns.values.values(), strict=True)
    reads.unions.append(Union(table, tuple(one.rows for one in parts), tuple(values)))
    return Named(
        alias,
        Table(
            alias,
            {
                shown: replace(table.columns[one], name=shown)
                for shown, one in columns.shown.items()
            },
            (),
        ),
        {shown: ColumnRef(name, one) for shown, one in columns.shown.items()},
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


def _refuse_other_columns(first: _Part, other: _Part, sql: SqlText) -> None:
    """Refuse parts with another number of columns, or with * in another order."""
    names = [[one.lower() for one in part.shown] for part in (first, other)]
    if len(names[0]) != len(names[1]):
        message = (
            f"the parts of a union have {len(names[0])} and {len(names[1])} columns"
        )
        remedy = "select as many in each; NULL where there is none"
    elif names[0] != names[1] and (first.has_star or other.has_star):
        message = "`*` of the parts of a union has the columns in another order"
        remedy = "name the columns in each part"
    else:
        return
    mark = sql.mark_of(other.select.expressions[0])
    raise refused(Code.NOT_IN_SUBSET, message, mark, reason=Reason("", remedy))


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
        self.has_star = type(select.expressions[0]).__name__ == "Star"
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


class _Columns:
    """The columns of a union: those that are selected, and those of units.

    The id and time of rows are there if all tables declare them alike, selected or not.

    Attributes:
        declared: The columns by name.
        values: By name, what a column is in each part.
        shown: The selected columns: by the name in the query, the own one.
    """

    def __init__(self, parts: Sequence[_Part], texts: Texts) -> None:
        self._parts, self._texts = parts, texts
        self._units = texts.tables.ids | texts.tables.clocks
        tables = tuple(one for part in parts for one in part.scope.tables)
        self._scope = Scope(texts.sql, tables)
        self.declared: dict[str, Column] = {}
        self.values: dict[str, tuple[Expression, ...]] = {}
        self.shown: dict[str, str] = {}
        items = parts[-1].select.expressions
        for place, name in enumerate(parts[0].shown):
            values = [list(one.shown.values())[place] for one in parts]
            self._select(name, values, items[min(place, len(items) - 1)])  # * is one.
        for name in sorted(self._units - self.declared.keys()):
            if all(name in part.table.columns for part in parts):
                self._add_unit(name)

    def _select(self, name: str, values: list[Expression], node: exp.Expr) -> None:
        unit = next((one for one in self._units if values == self._own(one)), None)
        self.shown[name] = unit or name
        if unit is not None:
            if not self._add_unit(unit):
                raise self._not_alike(unit, node)
            return
        for one in self._units:
            if one.lower() == name.lower():
                raise self._not_of_unit(one, node)
        values = alike(values, node, self._scope)
        whole = fitted("coalesce", values, node, self._scope)
        dated = all(is_dated(one, self._scope, self._texts) for one in values)
        self.declared[name] = computed_column(
            name, self._scope.facts(whole), whole, self._scope, dated=dated
        )
        self.values[name] = tuple(values)

    def _own(self, name: str) -> list[ColumnRef]:
        """Return a column of each table."""
        return [ColumnRef(part.table.name, name) for part in self._parts]

    def _add_unit(self, name: str) -> bool:
        """Add an id or time; return whether it is declared alike in all tables."""
        found = [part.table.columns[name] for part in self._parts]
        if len({(one.type, one.step) for one in found}) > 1:
            return False
        low, high = (
            None if None in ends else extreme(one for one in ends if one is not None)
            for extreme, ends in (
                (min, [one.low for one in found]),
                (max, [one.high for one in found]),
            )
        )
        self.declared[name] = Column(
            name, found[0].type, step=found[0].step, low=low, high=high
        )
        self.values[name] = tuple(self._own(name))
        return True

    def _not_alike(self, name: str, node: exp.Expr) -> InputError:
        return refused(
            Code.DOES_NOT_FIT,
            f"`{name}` is declared with another type in the parts of a union",
            self._texts.sql.mark_of(node),
            reason=Reason("", "declare it alike in the tables file"),
        )

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
