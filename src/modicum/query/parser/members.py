"""Conditions that rows of the same id exist: IN (SELECT …) and EXISTS (SELECT …)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from modicum.core.errors import Code, InputError
from modicum.query.model import (
    AllOf,
    Call,
    ColumnRef,
    Expression,
    IsNull,
    Key,
    Literal,
    Lookup,
    Not,
)
from modicum.query.parser.expressions import read_whole
from modicum.query.parser.joins import (
    Texts,
    columns_joined,
    read_tables_of,
    refuse_odd_lookup,
    spend_words,
    table_item,
)
from modicum.query.parser.scope import Reads, ResolvedColumn, Scope, matching
from modicum.query.parser.sql_text import only
from modicum.query.parser.subqueries import (
    CLAUSES,
    Groups,
    columns_of,
    condition_of,
    free_name,
    grouped_rows,
    is_grouped,
)
from modicum.query.refusals import INNER_QUERY, Reason, refused

if TYPE_CHECKING:
    from sqlglot import exp


class _Rows(NamedTuple):
    """The rows of a subquery: its tables, what it reads, and their condition."""

    scope: Scope
    reads: Reads
    where: Expression | None


class _Sought(NamedTuple):
    """A column that is looked for in other rows.

    Attributes:
        column: The column.
        scope: The tables of the query that it is of.
        texts: What names of tables mean.
    """

    column: ResolvedColumn
    scope: Scope
    texts: Texts

    @property
    def reads(self) -> Reads:
        """What the query reads."""
        assert self.scope.reads is not None  # The caller looked.
        return self.scope.reads

    def in_rows(self, value: ColumnRef, rows: _Rows) -> Expression:
        """Return whether rows have the value: rows of its id, or of a public table."""
        if rows.scope.declared.by_name[value.table].key is not None:
            return self._listed(value, rows)
        if value.column not in self.texts.tables.ids:
            raise self.not_of_id()
        name = free_name("members", self.texts)
        key = Key(value.column, value)
        groups = Groups(name, [key], rows.scope, self.texts)
        self.reads.derived.append(groups.made(rows.reads, rows.where))
        return self.in_groups(groups, None)

    def in_groups(self, groups: Groups, having: Expression | None) -> Expression:
        """Return whether a group of the id is there, and meets a condition."""
        reads, table = self.reads, groups.table
        own, reference = table.one_per, self.column.reference
        if own is None or reference is None or reference.column != own:
            raise self.not_of_id()
        known = self.texts.tables.by_name
        public = {name for name, one in known.items() if one.key is not None}
        joined = {one.key for one in reads.lookups if one.table not in public}
        if {reads.joined_on, *joined} - {None, own}:
            raise self.not_of_id()
        reads.lookups.append(Lookup(table.name, reference, own, optional=True))
        reads.inner.append(table)
        there = Not(IsNull(ColumnRef(table.name, own)))
        return there if having is None else AllOf((there, _surely(having)))

    def _listed(self, value: ColumnRef, rows: _Rows) -> Expression:
        """Return whether a public table has the value."""
        reads, declared = self.reads, self.texts.tables.by_name[value.table]
        taken = {one.table for one in reads.lookups}
        if value.column != declared.key or rows.reads.lookups or value.table in taken:
            raise refused(
                Code.NOT_IN_SUBSET,
                f"`{value.column}` is not the key of one public table that is read"
                " once",
                self.column.mark,
                reason=Reason("", f"JOIN {value.table}, and write conditions in WHERE"),
            )
        refuse_odd_lookup(self.column, self.texts)
        reference = self.column.reference
        assert reference is not None  # Else it was refused.
        if self.column.column.type != declared.columns[value.column].type:
            raise self.not_of_id()
        reads.lookups.append(
            Lookup(value.table, reference, value.column, optional=True)
        )
        reads.inner.append(declared)
        there: Expression = Not(IsNull(value))
        return there if rows.where is None else AllOf((there, _surely(rows.where)))

    def unless_null(self, found: Expression) -> Expression:
        """Return a condition that is unknown where there is nothing to look for."""
        reference = self.column.reference
        ids = self.texts.tables.ids
        if (
            reference is not None
            and reference.table in self.reads.tables
            and reference.column in ids
        ):
            return found  # Rows without an id are not read.
        unknown = Literal(None, "boolean")
        return Call("case", (IsNull(self.column.value), unknown, found))

    def not_of_id(self) -> InputError:
        """Return the refusal of rows that are not those of the id."""
        ids = ", ".join(sorted(self.texts.tables.ids)) or "none"
        return refused(
            Code.NOT_BOUNDED,
            "a subquery in a condition is not about the rows of the same id",
            self.column.mark,
            reason=Reason(
                "whether a row counts must depend on rows of the same id",
                f"compare the id of a unit with those of rows: {ids}",
            ),
        )


def read_member(node: exp.Expr, scope: Scope, texts: Texts) -> Expression:
    """Return the condition that a subquery has a row of the same id.

    Args:
        node: column IN (SELECT …), or EXISTS (SELECT …).
        scope: The tables of the query around it.
        texts: What names of tables mean.

    Raises:
        InputError: If it is one of other rows.
    """
    from sqlglot import exp

    sql = texts.sql
    if type(node) is exp.Exists:
        only(sql, node, ("this",))
        sql.spend_before(node, "EXISTS")
        return _exists(node.this, scope, texts)
    only(sql, node, ("this", "query"))
    select = node.args["query"].this
    if type(node.this) is not exp.Column or not isinstance(select, exp.Query):
        raise sql.unread(node, INNER_QUERY)
    only(sql, node.args["query"], ("this",))
    sought = _Sought(scope.column(node.this), scope, texts)
    if type(select) is not exp.Select:
        return sought.unless_null(_in_union(select, sought))
    if len(select.expressions) != 1:
        raise sql.unread(select.expressions[1], Reason("IN takes one column"))
    if is_grouped(select):
        groups, shown, having = grouped_rows(select, "members", texts, sought.reads)
        (value,) = shown.values()
        if value != ColumnRef(groups.table.name, groups.keys[0].name):
            raise sought.not_of_id()
        return sought.unless_null(sought.in_groups(groups, having))
    only(sql, select, CLAUSES)
    tables, reads = read_tables_of(select, texts, public=True)
    rows = _Rows(tables, reads, reads.where(condition_of(select, tables)))
    (value,) = columns_of(select, tables).values()
    if not isinstance(value, ColumnRef):
        raise sought.not_of_id()
    return sought.unless_null(sought.in_rows(value, rows))


def _in_union(union: exp.Expr, sought: _Sought) -> Expression:
    """Return whether a union has a row of the same id."""
    texts = sought.texts
    reads = Reads(lambda node, inner: read_member(node, inner, texts))
    named = texts.nested.subquery(union, "members", texts, reads, left=False)
    if len(named.shown) != 1:
        raise texts.sql.unread(union, Reason("IN takes one column"))
    reads.tables.append(named.tables[0].name)
    (value,) = named.shown.values()
    assert isinstance(value, ColumnRef)  # It is one of the union.
    return sought.in_rows(value, _Rows(Scope(texts.sql, (named,)), reads, None))


def read_semi_join(
    join: exp.Expr, select: exp.Expr, scope: Scope, texts: Texts
) -> Expression | None:
    """Return the condition that SEMI JOIN means, or ANTI JOIN: the opposite.

    LEFT JOIN is an ANTI JOIN where WHERE keeps the rows without a match only.

    Args:
        join: The join.
        select: The query that it is of; what it says of missing rows is taken out.
        scope: The tables before it.
        texts: What names of tables mean.

    Returns:
        The condition; None for other joins.

    Raises:
        InputError: If it is not by an id, or by the key of a public table.
    """
    sql, kind = texts.sql, join.args.get("kind")
    kept = kind in ("SEMI", "ANTI")
    missing = None if kept else _missing(join, select, texts)
    if not kept and missing is None:
        return None
    only(sql, join, ("this", "using", "on", "kind", "side"))
    new = table_item(join.this, texts)
    spend_words(join, (str(kind),) if kept else ("OUTER", "LEFT"), sql)
    left = missing is not None
    ours, own = columns_joined(join, scope, new, texts.tables.ids, left=left)
    reads = Reads(lambda node, inner: read_member(node, inner, texts))
    reads.tables.append(new.table.name)
    rows = _Rows(Scope(sql, (new,), None, reads), reads, None)
    assert own.reference is not None  # A declared table has no computed columns.
    found = _Sought(ours, scope, texts).in_rows(own.reference, rows)
    if missing is not None:
        rows.scope.column(missing.this)  # Its tokens are understood.
        _take_out(missing, select)
    return found if kind == "SEMI" else Not(found)


def _missing(join: exp.Expr, select: exp.Expr, texts: Texts) -> exp.Expr | None:
    """Return the condition that a row of a LEFT JOIN has no match, if there is one.

    The table has many rows for one id. Its row id, or what it is joined on, IS NULL: no
    row that matches has that.
    """
    from sqlglot import exp

    where, item = select.args.get("where"), join.this
    if join.args.get("side") != "LEFT" or where is None or type(item) is not exp.Table:
        return None
    common = {one.lower() for one in texts.common}
    tables = [] if item.name.lower() in common else [*texts.tables.by_name.values()]
    found = matching(item.this, tables)
    if len(found) != 1 or found[0].one_per or found[0].key:
        return None
    on = join.args.get("on")
    joined = join.args.get("using") or ([] if on is None else on.find_all(exp.Column))
    known = {one.name for one in joined}
    if len(found[0].row_id) == 1:
        known.update(found[0].row_id)
    for part in _parts(where.this):
        column = part.this
        if (
            type(part) is exp.Is
            and type(part.expression) is exp.Null
            and type(column) is exp.Column
            and column.table.lower() == item.alias_or_name.lower()
            and column.name in known
        ):
            return part
    return None


def _take_out(part: exp.Expr, select: exp.Expr) -> None:
    """Take a condition out of WHERE."""
    from sqlglot import exp

    above = part.parent
    assert above is not None  # It is within WHERE.
    if type(above) is exp.Where:
        select.set("where", None)
    else:
        above.replace(above.this if above.expression is part else above.expression)


def _exists(select: exp.Expr, scope: Scope, texts: Texts) -> Expression:
    """Return whether rows of the same id exist: their id is compared in WHERE."""
    from sqlglot import exp

    sql = texts.sql
    if type(select) is not exp.Select or is_grouped(select):
        raise sql.unread(select, INNER_QUERY)
    only(sql, select, CLAUSES)
    for item in select.expressions:
        if type(item) is exp.Literal and not item.is_string:
            sql.spend_node(item, "NUMBER")
        elif type(item) is not exp.Star:
            raise sql.unread(item, Reason("", "write EXISTS (SELECT 1 FROM …)"))
    inner, inner_reads = read_tables_of(select, texts)
    where = select.args.get("where")
    only(sql, where, ("this",)) if where is not None else None
    matches, others = [], []
    for part in _parts(None if where is None else where.this):
        pair = _correlated(part, inner, scope)
        matches += [pair] if pair is not None else []
        others += [] if pair is not None else [part]
    if len(matches) != 1:
        raise refused(
            Code.NOT_BOUNDED,
            "EXISTS is not about the rows of one id",
            sql.mark_of(select),
            reason=Reason(
                "whether a row counts must depend on rows of the same id",
                "compare the ids in the subquery: WHERE inner.id = outer.id",
            ),
        )
    ((theirs, ours),) = matches
    conditions = [read_whole(one, inner, condition=True) for one in others]
    inner_reads.conditions += conditions
    sought = _Sought(ours, scope, texts)
    if theirs.reference is None:
        raise sought.not_of_id()
    rows = _Rows(inner, inner_reads, inner_reads.where(None))
    return sought.in_rows(theirs.reference, rows)


def _parts(node: exp.Expr | None) -> list[exp.Expr]:
    """Return the conditions that AND connects."""
    from sqlglot import exp

    if node is None:
        return []
    if type(node) is exp.Paren and type(node.this) is exp.And:
        return _parts(node.this)
    if type(node) is exp.And:
        return [*_parts(node.this), *_parts(node.expression)]
    return [node]


def _correlated(
    node: exp.Expr, inner: Scope, outer: Scope
) -> tuple[ResolvedColumn, ResolvedColumn] | None:
    """Return the columns of an equality: of the subquery, and of the query around."""
    from sqlglot import exp

    if type(node) is not exp.EQ:
        return None
    sides = [node.this, node.expression]
    if not all(type(one) is exp.Column and one.args.get("table") for one in sides):
        return None
    mine = [
        any(one.args["table"].name.lower() == named.alias.lower()
            for named in inner.tables)
        for one in sides
    ]  # fmt: skip
    if sum(mine) != 1:
        return None
    theirs, ours = sides if mine[0] else reversed(sides)
    return inner.column(theirs), outer.column(ours)


def _surely(condition: Expression) -> Expression:
    """Return whether a condition is true; false where it is unknown."""
    return Call("same", (condition, Literal(True, "boolean")))  # noqa: FBT003
