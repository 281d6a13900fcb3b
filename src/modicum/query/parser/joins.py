"""Which tables are read, and how they are joined: on the id of a unit only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from modicum.core.errors import Code, InputError
from modicum.query.parser.scope import Named, Scope, matching, spend_name, unknown
from modicum.query.parser.sql_text import SqlText, only
from modicum.query.refusals import WORDS, Reason, refused
from modicum.query.tables import Column, Tables

if TYPE_CHECKING:
    from sqlglot import exp

_JOINED = Reason("each row must belong to one id", "write JOIN … USING (id)")
_WITH_MORE = _JOINED._replace(
    remedy="write JOIN … USING (id), and the other conditions in WHERE"
)


def read_tables_of(select: exp.Select, sql: SqlText, tables: Tables) -> Scope:
    """Return the tables that a query reads.

    Raises:
        InputError: If it reads something else, or joins so that one id's rows are not
            bounded.
    """
    clause = select.args.get("from_")
    if clause is None:
        mark = sql.mark(sql.tokens[-1])
        reason = Reason("", "name the table: FROM table")
        raise refused(Code.NOT_IN_SUBSET, "no table is read", mark, reason=reason)
    only(sql, clause, ("this",))
    nodes = [clause.this]
    scope = Scope(sql, (_table(clause.this, sql, tables),))
    joined: Column | None = None
    for join in select.args.get("joins") or ():
        named = _table(join.this, sql, tables)
        _refuse_twice(scope, named, join.this)
        nodes.append(join.this)
        column = _joined_on(join, scope, named, tables.ids)
        _refuse_other(joined, column, join, sql)
        _refuse_no_id(column, tables, join, sql)
        joined = column
        scope = Scope(sql, (*scope.tables, named), column.name)
    if joined is not None:
        _refuse_many(scope, joined.name, tables, nodes)
    return scope


def _table(node: exp.Expr, sql: SqlText, tables: Tables) -> Named:
    from sqlglot import exp

    if type(node) is not exp.Table or type(node.this) is not exp.Identifier:
        reason = Reason("a query reads declared tables only")
        raise sql.unread(node, WORDS.get(sql.called(node), reason))
    if node.args.get("db") is not None:
        reason = Reason("tables must be in the tables file", "write the name alone")
        raise sql.unread(node.args["db"], reason)
    only(sql, node, ("this", "alias"))
    spend_name(sql, node.this)
    found = matching(node.this, tables.by_name.values())
    if len(found) != 1:
        raise unknown("table", node.name, sql.mark_of(node.this), tables.by_name)
    alias = node.args.get("alias")
    if alias is None:
        return Named(found[0].name, found[0])
    only(sql, alias, ("this",))
    spend_name(sql, alias.this)
    return Named(alias.this.name, found[0])


def _refuse_twice(scope: Scope, new: Named, node: exp.Expr) -> None:
    for old in scope.tables:
        same = old.alias.lower() == new.alias.lower()
        if same or old.table.name == new.table.name:
            raise refused(
                Code.NOT_IN_SUBSET,
                f"`{new.alias[:60]}` is read twice",
                scope.sql.mark_of(node),
                reason=Reason(
                    "a table that is joined with itself pairs rows, and the number of"
                    " pairs that one person changes has no bound",
                    "read it once, and count what one row says; what is said of pairs"
                    " of rows of one id must be a column of the data",
                )
                if not same or old.table.name == new.table.name
                else Reason("", "give each table another name"),
            )


# --- the column -----------------------------------------------------------------------


def _joined_on(join: exp.Expr, scope: Scope, new: Named, ids: frozenset[str]) -> Column:
    """Return the column of the new table on which it is joined, by one equality."""
    sql = scope.sql
    only(sql, join, ("this", "using", "on", "kind"))
    using, on = join.args.get("using"), join.args.get("on")
    plain = join.args.get("kind") in (None, "", "INNER")
    if not plain or (not using) == (on is None):
        raise sql.unread(join.this, _to_join(scope, new, ids))
    both = Scope(sql, (*scope.tables, new))
    if using:
        return _using(using, scope, new)
    assert on is not None  # One of the two is there.
    return _on(on, both, new)


def _to_join(scope: Scope, new: Named, ids: frozenset[str]) -> Reason:
    """Return how a table is joined that is only listed, if it can be."""
    tables = [one.table for one in (*scope.tables, new)]
    shared = [
        column
        for column in new.table.columns
        if column in ids and all(column in one.columns for one in tables)
    ]
    if not shared:
        return _JOINED
    alias = "" if new.alias == new.table.name else f" {new.alias}"
    written = f"{new.table.name}{alias} USING ({shared[0]})"
    return _JOINED._replace(remedy=f"write JOIN {written}")


def _using(using: Sequence[exp.Expr], scope: Scope, new: Named) -> Column:
    from sqlglot import exp

    if len(using) != 1:
        raise scope.sql.unread(using[1], _JOINED)
    name = using[0]
    found = [
        Scope(scope.sql, (named,)).column(exp.Column(this=name.copy()))
        for named in (*scope.tables, new)
    ]
    if len({one.column.name for one in found}) != 1:
        raise scope.sql.unread(name, _JOINED)
    _refuse_types([one.column for one in found], name, scope.sql)
    return found[-1].column


def _on(on: exp.Expr, both: Scope, new: Named) -> Column:
    from sqlglot import exp

    while type(on) is exp.Paren:
        on = on.this
    if type(on) is not exp.EQ:
        raise both.sql.unread(on, _WITH_MORE if type(on) is exp.And else _JOINED)
    left, right = both.column(on.this), both.column(on.expression)
    of_new = {one.reference.table == new.table.name for one in (left, right)}
    if len(of_new) != 2 or left.column.name != right.column.name:
        raise both.sql.unread(on, _JOINED)
    _refuse_types([left.column, right.column], on, both.sql)
    return left.column


def _refuse_types(columns: Sequence[Column], node: exp.Expr, sql: SqlText) -> None:
    types = dict.fromkeys(column.type for column in columns)
    if len(types) > 1:
        raise refused(
            Code.DOES_NOT_FIT,
            f"`{columns[0].name}` is {' and '.join(types)} in the tables that it joins",
            sql.mark_of(node),
            reason=Reason("values of several types are never equal"),
        )


# --- bounds on the rows of one id -----------------------------------------------------


def _refuse_other(
    before: Column | None, column: Column, join: exp.Expr, sql: SqlText
) -> None:
    if before is not None and before.name != column.name:
        reason = Reason("all tables are joined on one and the same id")
        message = f"tables are joined on `{before.name}` and on `{column.name}`"
        mark = sql.mark_of(join.this)
        raise refused(Code.NOT_BOUNDED, message, mark, reason=reason)


def _refuse_no_id(column: Column, tables: Tables, join: exp.Expr, sql: SqlText) -> None:
    if column.name in tables.ids:
        return
    ids = ", ".join(sorted(tables.ids)) or "none"
    raise refused(
        Code.NOT_BOUNDED,
        f"tables are joined on `{column.name}`, which is not the id of a unit",
        sql.mark_of(join.this),
        reason=Reason(
            "a row could then join rows of any number of others",
            f"join on the id of a unit: {ids}",
        ),
    )


def _refuse_many(
    scope: Scope, joined: str, tables: Tables, nodes: Sequence[exp.Expr]
) -> None:
    """Refuse two tables with many rows for one id, or with a time each."""
    pairs = list(zip(scope.tables, nodes, strict=True))
    many = [(one.table, node) for one, node in pairs if one.table.one_per != joined]
    timed = [
        (one.table, node)
        for one, node in pairs
        if tables.clocks & set(one.table.columns)
    ]
    if len(many) > 1:
        table, node = many[1]
        raise _several(
            f"`{many[0][0].name}` and `{table.name}` both have many rows for one"
            f" `{joined}`",
            Reason(
                "each row would be paired with many others",
                f"declare  one_per: {joined}  for all tables but one",
            ),
            scope.sql,
            node,
        )
    if len(timed) > 1:
        table, node = timed[1]
        raise _several(
            f"`{timed[0][0].name}` and `{table.name}` both have a time column",
            Reason("the time of a joined row would be ambiguous"),
            scope.sql,
            node,
        )


def _several(message: str, reason: Reason, sql: SqlText, node: exp.Expr) -> InputError:
    return refused(Code.NOT_BOUNDED, message, sql.mark_of(node), reason=reason)
