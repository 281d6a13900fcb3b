"""Subqueries: rows that are filtered or computed, and one row for each id.

A subquery without groups is read as if its expressions stood where its columns are
named, and its condition among those of the query. One with groups of one id is a table
that is derived: its aggregates are columns, and so are the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace as replaced

from modicum.core.errors import Code
from modicum.query.attributes import columns_in
from modicum.query.expressions.analysis import only_column
from modicum.query.expressions.facts import NARROW_MAX, Facts
from modicum.query.expressions.public_values import public_values
from modicum.query.expressions.times import period_name
from modicum.query.model import (
    Call,
    ColumnRef,
    Derived,
    Expression,
    Key,
    Measure,
    Measured,
    Query,
)
from modicum.query.parser.aggregates import read_aggregate
from modicum.query.parser.arguments import is_aggregate
from modicum.query.parser.expressions import read_whole
from modicum.query.parser.joins import Texts, read_tables_of
from modicum.query.parser.keys import at_position, label_of, read_key
from modicum.query.parser.scope import (
    Named,
    Reads,
    ResolvedColumn,
    Scope,
    spend_name,
)
from modicum.query.parser.sql_text import SqlText, only
from modicum.query.refusals import INNER_QUERY, Reason, refused
from modicum.query.tables import Column, Table

if TYPE_CHECKING:
    from sqlglot import exp

#: More rows than one id has.
_ROWS_MAX: Final = 2**40
CLAUSES: Final = ("expressions", "from_", "joins", "where")
_GROUPED: Final = (*CLAUSES, "group", "having", "distinct")
_OF_ROWS: Final = {
    "Min": (("MIN",), "min"),
    "Max": (("MAX",), "max"),
    "LogicalOr": (("BOOL_OR", "LOGICAL_OR"), "max"),
    "LogicalAnd": (("BOOL_AND", "LOGICAL_AND"), "min"),
}
_ONE_ROW: Final = Reason(
    "each row must be computed of rows of one id",
    "write FROM (SELECT id, COUNT(*) AS n FROM table GROUP BY id) AS t",
)


def read_subquery(
    select: exp.Expr, alias: str, texts: Texts, reads: Reads, *, left: bool
) -> Named:
    """Return a subquery under its name; note what it reads.

    Args:
        select: The subquery.
        alias: Its name.
        texts: What names of tables mean in it.
        reads: What the query reads.
        left: Whether rows without a match stay, and are not those of its conditions.

    Raises:
        InputError: If it is neither rows, nor groups of one id.
    """
    from sqlglot import exp

    if type(select) is not exp.Select:
        raise texts.sql.unread(select, INNER_QUERY)
    if not is_grouped(select):
        return _inlined(select, alias, texts, reads, left=left)
    groups, shown, having = grouped_rows(select, alias, texts, reads)
    if having is not None:
        if left:
            node = select.args["having"]
            remedy = "leave it out, and write CASE WHEN … in the query around it"
            raise texts.sql.unread(node.this, Reason("", remedy))
        reads.conditions.append(having)
    return _named(alias, shown, (groups.table,), groups.scope, inlined=False)


def is_grouped(select: exp.Expr) -> bool:
    """Return whether a subquery has groups, of which each is one row."""
    grouped = any(select.args.get(one) for one in ("group", "having", "distinct"))
    return grouped or any(_aggregates(select.expressions))


def _aggregates(nodes: Iterable[exp.Expr]) -> Iterator[exp.Expr]:
    for node in nodes:
        for one in node.walk():
            if is_aggregate(one) or type(one).__name__ in _OF_ROWS:
                yield one


def _named(
    alias: str,
    shown: dict[str, Expression],
    base: tuple[Table, ...],
    scope: Scope,
    *,
    inlined: bool,
) -> Named:
    columns: dict[str, Column] = {}
    for name, value in shown.items():
        if isinstance(value, ColumnRef):
            declared = scope.declared.by_name[value.table].columns[value.column]
            columns[name] = replace(declared, name=name)
        else:
            columns[name] = Column(name, scope.facts(value).type)
    return Named(alias, Table(alias, columns, ()), shown, base, inlined)


def condition_of(select: exp.Expr, scope: Scope) -> Expression | None:
    """Return the condition of a subquery on its rows; None for all."""
    where = select.args.get("where")
    if where is None:
        return None
    only(scope.sql, where, ("this",))
    return read_whole(where.this, scope, condition=True)


def columns_of(
    select: exp.Expr,
    scope: Scope,
    groups: Groups | None = None,
    *,
    part: int | None = None,
) -> dict[str, Expression]:
    """Return the columns of a subquery by name, as expressions.

    Args:
        select: The subquery.
        scope: The tables that it reads.
        groups: Its groups, if it has any.
        part: Its number in a union: it may have constants, and the first one names the
            columns.
    """
    from sqlglot import exp

    shown: dict[str, Expression] = {}
    for node in select.expressions:
        inner, name = _selected(node, scope.sql)
        if type(inner) is exp.Star and len(select.expressions) == 1 and groups is None:
            only(scope.sql, inner, ())
            return _all_columns(inner, scope)
        if type(inner) is exp.Star or (type(inner) is exp.Column and inner.is_star):
            raise scope.sql.unread(inner, Reason("", "name the columns"))
        if groups is not None:
            groups.alias = name if any(_aggregates([inner])) else ""
        value = read_whole(inner, scope, constant=part is not None)
        if type(inner) is exp.Column and not name:
            name = scope.column(inner).column.name
        name = name or label_of(value)
        if part:
            name = _unused(name, shown)
        if any(name.lower() == one.lower() for one in shown):
            raise refused(
                Code.NOT_IN_SUBSET,
                f"two columns of a subquery are named `{name[:60]}`",
                scope.sql.mark_of(inner),
                reason=Reason("", "give it another name: … AS name"),
            )
        shown[name] = value
    return shown


def _all_columns(star: exp.Expr, scope: Scope) -> dict[str, Expression]:
    """Return the columns that * means; refuse names that several tables have."""
    shown: dict[str, Expression] = {}
    for named in scope.tables:
        for name in named.table.columns:
            if name in named.merged or (name == scope.joined_on and name in shown):
                continue
            if any(name.lower() == one.lower() for one in shown):
                remedy = f"name the columns: several tables have `{name}`"
                raise scope.sql.unread(star, Reason("", remedy))
            shown[name] = named.value(name)
    return shown


def _selected(node: exp.Expr, sql: SqlText) -> tuple[exp.Expr, str]:
    """Return an item of a select list, and its alias."""
    from sqlglot import exp

    if type(node) is not exp.Alias:
        return node, ""
    only(sql, node, ("this", "alias"))
    spend_name(sql, node.args["alias"])
    return node.this, node.alias


# --- without groups -------------------------------------------------------------------


def _inlined(
    select: exp.Expr, alias: str, texts: Texts, reads: Reads, *, left: bool
) -> Named:
    sql = texts.sql
    only(sql, select, CLAUSES)
    scope, inner = read_tables_of(select, texts, public=True)
    condition = inner.where(condition_of(select, scope))
    shown = columns_of(select, scope.given(condition))
    _merge(inner, reads, select, sql)
    single = len(scope.tables) == 1 and not scope.tables[0].base
    if left and not (single and condition is None):
        place = select.args.get("where") or select.args["from_"]
        remedy = "name the table itself, or group the subquery by its id"
        raise sql.unread(place.this, Reason("rows without a match stay", remedy))
    if condition is not None:
        reads.conditions.append(condition)
    base = tuple(one for named in scope.tables for one in named.tables)
    private = any(one.key is None for one in base)
    return _named(alias, shown, base, scope, inlined=private and not left)


def _merge(inner: Reads, reads: Reads, node: exp.Expr, sql: SqlText) -> None:
    """Note in a query what a subquery without groups reads."""
    both = {reads.joined_on, inner.joined_on} - {None}
    if len(both) > 1:
        raise refused(
            Code.NOT_BOUNDED,
            "tables are joined on " + " and on ".join(f"`{one}`" for one in both),
            sql.mark_of(node),
            reason=Reason("all tables are joined on one and the same id"),
        )
    reads.joined_on = next(iter(both), None)
    reads.tables += inner.tables
    reads.lookups += inner.lookups
    reads.derived += inner.derived
    reads.unions += inner.unions
    reads.inner += inner.inner


# --- groups ---------------------------------------------------------------------------


class Groups:
    """The columns of the groups of an id, as they are named one after the other."""

    def __init__(
        self, name: str, keys: Sequence[Key], rows: Scope, texts: Texts
    ) -> None:
        self._name, self._rows, self._texts = name, rows, texts
        self._ids = {*texts.tables.ids, *texts.tables.clocks}
        self._taken: set[str] = set()
        self.measures: list[Measure] = []
        self.keys: list[Key] = []
        self._columns: dict[str, Column] = {}
        self.alias = ""
        self._by_key: dict[tuple[Expression, object], str] = {}
        for number, key in enumerate(keys):
            column = self._of_key(key, is_id=number == 0)
            self._by_key[key.value, key.grain] = column
        self.scope = replaced(rows, reads=None, grouped=self)

    @property
    def table(self) -> Table:
        """The table of the groups, as far as it is known."""
        names = tuple(key.name for key in self.keys)
        one_per = names[0] if len(names) == 1 else None
        return Table(self._name, dict(self._columns), names, one_per)

    def made(self, reads: Reads, where: Expression | None) -> Derived:
        """Return the table, with the rows that it is computed from."""
        rows = Query(
            tuple(reads.tables),
            reads.joined_on,
            where,
            (),
            (),
            lookups=tuple(reads.lookups),
            derived=tuple(reads.derived),
            unions=tuple(reads.unions),
        )
        return Derived(self.table, rows, tuple(self.keys), tuple(self.measures))

    def column(self, found: ResolvedColumn) -> ResolvedColumn:
        """Return the key that a column is."""
        name = self._by_key.get((found.value, None))
        if name is None:
            raise refused(
                Code.NOT_IN_SUBSET,
                f"`{found.column.name}` is neither in an aggregate nor in GROUP BY",
                found.mark,
                reason=Reason("", "add it to GROUP BY"),
            )
        return ResolvedColumn(
            ColumnRef(self._name, name), self._columns[name], found.mark
        )

    def read(self, node: exp.Expr) -> Expression | None:
        """Return an aggregate or a key; None for what is computed of others."""
        from sqlglot import exp

        if is_aggregate(node) or type(node).__name__ in _OF_ROWS:
            return self._measured(node)
        if type(node) is exp.Column or any(_aggregates([node])):
            return None
        if node.find(exp.Column) is None:
            return None
        key = read_key(node, self._rows)
        name = self._by_key.get((key.value, key.grain))
        return None if name is None else ColumnRef(self._name, name)

    def _of_key(self, key: Key, *, is_id: bool) -> str:
        """Return the column of a key; one that follows from the id is no key."""
        facts = self._rows.facts(key.value)
        if is_id:
            reference = key.value
            assert isinstance(reference, ColumnRef)  # It is an id.
            column = self._rows.declared.by_name[reference.table].columns[
                reference.column
            ]
            self._columns[column.name] = replace(column, attribute=None)
            self._taken.add(column.name)
            self.keys.append(replace(key, name=column.name))
            return column.name
        if self._follows(key):
            value = key.value
            if key.grain is not None:
                value = Call(period_name(key.grain), (value,))
            return self._add(Measure(key.name, "min", value), self._rows.facts(value))
        if key.grain is not None:
            facts = Facts("date")
        name = self._free(key.name)
        self.keys.append(replace(key, name=name))
        whole_days = key.grain in (None, "day")  # Others may begin before the days.
        self._columns[name] = self._typed(
            name, facts, key.value if whole_days else None
        )
        return name

    def _follows(self, key: Key) -> bool:
        """Return whether all rows of an id have the same value of a key."""
        declared = self._rows.declared.by_name
        of = self.keys[0].name
        return all(declared[one.table].one_per == of for one in columns_in(key.value))

    def _typed(self, name: str, facts: Facts, value: Expression | None) -> Column:
        dated = value is not None and is_dated(value, self._rows, self._texts)
        return computed_column(name, facts, value, self._rows, dated=dated)

    def _measured(self, node: exp.Expr) -> Expression:
        """Return the column of an aggregate."""
        kind, sql = type(node).__name__, self._rows.sql
        value: Expression | None
        function: Measured
        if kind in _OF_ROWS:
            function, value = self._extreme(node)
        else:
            found = read_aggregate(node, self._rows)
            if found.function not in ("count", "count-distinct", "sum"):
                remedy = "select SUM(…) and COUNT(…), and compute with these"
                raise sql.unread(node, Reason("", remedy))
            function, value = found.function, found.value
        for one in self.measures:
            if (one.function, one.value) == (function, value):
                return ColumnRef(self._name, one.column)
        label = function.replace("-", "_")
        wanted = self.alias or (
            label if value is None else f"{label}_{label_of(value)}"
        )
        facts = self._measure_facts(function, value)
        name = self._add(Measure(wanted, function, value), facts)
        return ColumnRef(self._name, name)

    def _extreme(self, node: exp.Expr) -> tuple[Measured, Expression]:
        sql, kind = self._rows.sql, type(node).__name__
        words, function = _OF_ROWS[kind]
        only(sql, node, ("this",))
        value = read_whole(node.this, self._rows, condition=kind.startswith("Logical"))
        sql.spend_call(node, words)
        facts = self._rows.facts(value)
        if facts.type == "boolean" and kind in ("Min", "Max"):
            raise refused(
                Code.DOES_NOT_FIT,
                f"{words[0]} takes numbers, times and texts, and this is a boolean",
                sql.mark_of(node),
                reason=Reason("", "write BOOL_OR(column), or BOOL_AND(column)"),
            )
        return ("min" if function == "min" else "max"), value

    def _measure_facts(self, function: Measured, value: Expression | None) -> Facts:
        """Return what is known of a measure; numbers outside count as the last."""
        if value is None:
            return Facts("integer", low=1, high=_ROWS_MAX)
        if function in ("count", "count-distinct"):
            return Facts("integer", low=0, high=_ROWS_MAX)
        facts = self._rows.facts(value)
        if not facts.numeric:
            return Facts(facts.type)
        times = _ROWS_MAX if function == "sum" else 1
        low = min(facts.low, facts.low * times)
        high = max(facts.high, facts.high * times)
        return Facts(facts.type, facts.step, low, high)

    def _add(self, measure: Measure, facts: Facts) -> str:
        name = self._free(measure.column)
        self.measures.append(replaced(measure, column=name))
        same = measure.value if measure.function in ("min", "max") else None
        self._columns[name] = self._typed(name, facts, same)
        return name

    def _free(self, wanted: str) -> str:
        """Return a name that is no column's here, and no id's or time's anywhere."""
        name = _unused(wanted, {*self._taken, *self._ids})
        self._taken.add(name)
        return name


def grouped_rows(
    select: exp.Expr, alias: str, texts: Texts, reads: Reads
) -> tuple[Groups, dict[str, Expression], Expression | None]:
    """Return the groups of a subquery, its columns, and its condition on groups."""
    sql = texts.sql
    only(sql, select, _GROUPED)
    scope, inner = read_tables_of(select, texts)
    where = inner.where(condition_of(select, scope))
    scope = scope.given(where)
    keys = _keys(select, scope)
    first = _id_of(keys, scope, texts, select)
    groups = Groups(
        free_name(alias, texts),
        [first, *(key for key in keys if key is not first)],
        scope,
        texts,
    )
    shown = columns_of(select, groups.scope, groups)
    having = select.args.get("having")
    condition = None
    if having is not None:
        only(sql, having, ("this",))
        sql.spend_before(having, "HAVING")
        condition = read_whole(having.this, groups.scope, condition=True)
    reads.derived.append(groups.made(inner, where))
    return groups, shown, condition


def _keys(select: exp.Expr, scope: Scope) -> list[Key]:
    """Return the keys of a subquery: those of GROUP BY, or all that is DISTINCT."""
    from sqlglot import exp

    sql = scope.sql
    items = [
        (node.this, node.alias) if type(node) is exp.Alias else (node, "")
        for node in select.expressions
    ]
    group, distinct = select.args.get("group"), select.args.get("distinct")
    if distinct is not None:
        only(sql, distinct, ())
        if group is not None or any(_aggregates(select.expressions)):
            raise sql.unread(items[0][0], Reason("", "leave DISTINCT out"))
        nodes = [inner for inner, _ in items]
    elif group is None:
        raise sql.unread(items[0][0], _ONE_ROW)
    else:
        only(sql, group, ("expressions",))
        nodes = [_meant(one, items, scope) for one in group.expressions]
    keys = [
        replace(read_key(node, scope), name=_called(node, items, scope))
        for node in nodes
    ]
    return list({(key.value, key.grain): key for key in keys}.values())


def _meant(
    node: exp.Expr, items: Sequence[tuple[exp.Expr, str]], scope: Scope
) -> exp.Expr:
    """Return what an item of GROUP BY means: a position, an alias, or itself."""
    from sqlglot import exp

    sql = scope.sql
    if type(node) is exp.Literal and not node.is_string:
        return at_position(node, items, sql)[0]
    plain = type(node) is exp.Column and not node.args.get("table")
    if plain and not scope.knows(node.this):
        for inner, alias in items:
            if alias and alias.lower() == node.name.lower():
                spend_name(sql, node.this)
                return inner
    return node


def _called(node: exp.Expr, items: Sequence[tuple[exp.Expr, str]], scope: Scope) -> str:
    """Return the name of a key: that of the item that it is."""
    from sqlglot import exp

    for inner, alias in items:
        if alias and (inner is node or inner == node):
            return alias
    if type(node) is exp.Column:
        return scope.column(node).column.name
    return "key"


def _id_of(keys: Sequence[Key], scope: Scope, texts: Texts, select: exp.Expr) -> Key:
    """Return the key that is the id of a unit."""
    found = [
        key
        for key in keys
        if isinstance(key.value, ColumnRef)
        and key.grain is None
        and key.value.column in texts.tables.ids
        and _declares_id(key.value, scope)
    ]
    for key in found:
        assert isinstance(key.value, ColumnRef)  # It was looked at.
        if key.value.column == scope.joined_on:
            return key
    if found:
        return found[0]
    ids = ", ".join(sorted(texts.tables.ids)) or "none"
    raise refused(
        Code.NOT_BOUNDED,
        "the groups of a subquery are not those of one id",
        scope.sql.mark_of(select.expressions[0]),
        reason=Reason(
            "a group of rows of many people may change with each of them",
            f"group by the id of a unit: {ids}; or group the query itself",
        ),
    )


def _declares_id(reference: ColumnRef, scope: Scope) -> bool:
    return scope.declared.by_name[reference.table].key is None


def computed_column(
    name: str, facts: Facts, value: Expression | None, rows: Scope, *, dated: bool
) -> Column:
    """Return the declaration of a column that is computed.

    Args:
        name: Its name.
        facts: What is known of its values.
        value: An expression of rows that has all of its values; None if none has.
        rows: These rows.
        dated: Whether it is a time on the days that are read.
    """
    column = Column(name, facts.type, counted=facts.numeric, dated=dated)
    if facts.numeric:
        step = facts.step
        low, high = (
            max(min(one, NARROW_MAX), -NARROW_MAX) * step
            for one in (facts.low, facts.high)
        )
        column = replace(column, step=step, low=low, high=high)
    listed = facts.type in ("text", "boolean") or (
        facts.type == "integer" and facts.narrow
    )
    if value is not None and listed:
        column = replace(column, values=public_values(value, rows.declared, None))
    return column


def is_dated(value: Expression, rows: Scope, texts: Texts) -> bool:
    """Return whether a value is a time of rows, on the days that are read."""
    if isinstance(value, Call) and value.function == period_name("day"):
        (value,) = value.arguments
    of = only_column(value)
    if of is None:
        return False
    declared = rows.declared.by_name[of.table].columns[of.column]
    return declared.dated or of.column in texts.tables.clocks


def free_name(wanted: str, texts: Texts) -> str:
    """Return the name of a table that is computed, as no other one has anywhere."""
    name = _unused(wanted, texts.taken)
    texts.taken.add(name)
    return name


def _unused(wanted: str, taken: Iterable[str]) -> str:
    """Return a name as wanted, perhaps with a number behind it."""
    lower = {one.lower() for one in taken}
    name, number = wanted, 1
    while name.lower() in lower:
        number += 1
        name = f"{wanted}_{number}"
    return name
