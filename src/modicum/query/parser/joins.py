"""Which tables are read, and how they are joined: to at most one row of each.

Tables of people are joined on the id of a unit, public ones on their key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from modicum.core.errors import Code, InputError
from modicum.query.model import Expression, Lookup
from modicum.query.parser.scope import (
    Named,
    Reads,
    ResolvedColumn,
    Scope,
    matching,
    spend_name,
    unknown,
)
from modicum.query.parser.sql_text import SqlText, only
from modicum.query.refusals import WORDS, Reason, refused
from modicum.query.tables import Column, Tables

if TYPE_CHECKING:
    from sqlglot import exp

_JOINED: Final = Reason("each row must belong to one id", "write JOIN … USING (id)")
_WITH_MORE: Final = _JOINED._replace(
    remedy="write JOIN … USING (id), and the other conditions in WHERE"
)
_KINDS: Final = (None, "", "INNER", "OUTER", "SEMI", "ANTI")


class Nested(NamedTuple):
    """How queries in a query are read; their modules read tables with this one.

    Attributes:
        subquery: Reads one that stands for a table.
        member: Reads a condition on one, such as IN.
        semi_join: Reads a join that only keeps or drops rows; None for another one.
    """

    subquery: Callable[..., Named]
    member: Callable[[exp.Expr, Scope, Texts], Expression]
    semi_join: Callable[[exp.Expr, exp.Expr, Scope, Texts], Expression | None]


class Texts(NamedTuple):
    """What names of tables may mean.

    Attributes:
        sql: The text.
        tables: The declared tables.
        common: The subqueries of WITH that come before, by name.
        nested: How queries in the query are read.
        taken: Names of tables, declared and computed; these grow.
    """

    sql: SqlText
    tables: Tables
    common: Mapping[str, exp.Expr]
    nested: Nested
    taken: set[str]


def common_tables(select: exp.Expr, sql: SqlText) -> Mapping[str, exp.Expr]:
    """Return the subqueries of WITH by name, in order.

    Raises:
        InputError: If one is more than a name and a subquery.
    """
    found: dict[str, exp.Expr] = {}
    with_ = select.args.get("with_")
    if with_ is None:
        return found
    only(sql, with_, ("expressions",))
    sql.spend(0)
    for one in with_.expressions:
        only(sql, one, ("this", "alias"))
        only(sql, one.args["alias"], ("this",))
        name = one.args["alias"].this
        spend_name(sql, name)
        if any(name.name.lower() == other.lower() for other in found):
            raise sql.unread(name, Reason("", "give each subquery another name"))
        found[name.name] = one.this
    return found


def read_tables_of(
    select: exp.Expr, texts: Texts, *, public: bool = False
) -> tuple[Scope, Reads]:
    """Return the tables that a query reads.

    Args:
        select: The query.
        texts: What names mean.
        public: Whether it may read public tables only.

    Raises:
        InputError: If it reads something else, or joins so that one id's rows are not
            bounded.
    """
    sql, clause = texts.sql, select.args.get("from_")
    if clause is None:
        mark = sql.mark(sql.tokens[-1])
        reason = Reason("", "name the table: FROM table")
        raise refused(Code.NOT_IN_SUBSET, "no table is read", mark, reason=reason)
    only(sql, clause, ("this",))
    reads = Reads(lambda node, scope: texts.nested.member(node, scope, texts))
    joins = select.args.get("joins") or []
    first = _item(clause.this, texts, reads, left=False)
    scope = Scope(sql, (first,), reads.joined_on, reads)
    waiting = _is_public(first)
    if not waiting:
        _begin(first, reads)
    for join in joins:
        nested = texts.nested
        member = None if waiting else nested.semi_join(join, select, scope, texts)
        if member is not None:
            reads.conditions.append(member)
            continue
        left = _is_left(join, sql)
        new = _item(join.this, texts, reads, left=left)
        _refuse_twice(scope, new, join.this)
        if waiting:
            # A public table that comes first is looked up in the second one.
            if left or _is_public(new):
                raise _is_only_public(first, clause.this, sql)
            before, scope = scope.tables[0], Scope(sql, (new,), None, reads)
            _begin(new, reads)
            scope = _joined(join, scope, before, texts, left=False)
            waiting = False
            continue
        scope = _joined(join, scope, new, texts, left=left)
    if waiting and not public:
        raise _is_only_public(first, clause.this, sql)
    return scope, reads


def _is_only_public(first: Named, node: exp.Expr, sql: SqlText) -> InputError:
    return refused(
        Code.NOT_IN_SUBSET,
        f"`{first.alias[:60]}` is public: no private SQL is needed for it",
        sql.mark_of(node),
        reason=Reason("", "read it anywhere, or begin with a table of people"),
    )


def _begin(first: Named, reads: Reads) -> None:
    """Note that rows of a table are read, unless a subquery did."""
    if not first.inlined:
        reads.tables.append(first.tables[0].name)


def _is_public(named: Named) -> bool:
    return all(one.key is not None for one in named.tables)


def table_item(node: exp.Expr, texts: Texts) -> Named:
    """Return a declared table under the name that the query gives it.

    Raises:
        InputError: If it is none.
    """
    from sqlglot import exp

    common = {one.lower() for one in texts.common}
    if type(node) is not exp.Table or node.name.lower() in common:
        reason = Reason("", "write WHERE id IN (SELECT id FROM …)")
        raise texts.sql.unread(node, reason)
    return _item(node, texts, Reads(_nothing), left=False)


def _nothing(node: exp.Expr, scope: Scope) -> Expression:
    raise scope.sql.unread(node)


def _item(node: exp.Expr, texts: Texts, reads: Reads, *, left: bool) -> Named:
    """Return a table or subquery under the name that the query gives it."""
    from sqlglot import exp

    sql = texts.sql
    if type(node) is exp.Subquery:
        only(sql, node, ("this", "alias"))
        alias = node.args.get("alias")
        name = "subquery" if alias is None else _alias(alias, sql)
        return texts.nested.subquery(node.this, name, texts, reads, left=left)
    if type(node) is not exp.Table or type(node.this) is not exp.Identifier:
        reason = Reason("a query reads declared tables only")
        raise sql.unread(node, WORDS.get(sql.called(node), reason))
    if node.args.get("db") is not None:
        reason = Reason("tables must be in the tables file", "write the name alone")
        raise sql.unread(node.args["db"], reason)
    only(sql, node, ("this", "alias"))
    spend_name(sql, node.this)
    alias = node.args.get("alias")
    common = [one for one in texts.common if one.lower() == node.name.lower()]
    if common:
        name = common[0] if alias is None else _alias(alias, sql)
        earlier = list(texts.common.items())
        earlier = earlier[: list(texts.common).index(common[0])]
        inner = texts._replace(common=dict(earlier))
        return texts.nested.subquery(
            texts.common[common[0]], name, inner, reads, left=left
        )
    found = matching(node.this, texts.tables.by_name.values())
    if len(found) != 1:
        known = (*texts.common, *texts.tables.by_name)
        raise unknown("table", node.name, sql.mark_of(node.this), known)
    return Named(found[0].name if alias is None else _alias(alias, sql), found[0])


def _alias(alias: exp.Expr, sql: SqlText) -> str:
    only(sql, alias, ("this",))
    spend_name(sql, alias.this)
    name: str = alias.this.name
    return name


def _refuse_twice(scope: Scope, new: Named, node: exp.Expr) -> None:
    for old in scope.tables:
        same = old.alias.lower() == new.alias.lower()
        ours, theirs = ({one.name for one in each.tables} for each in (old, new))
        if same or not ours.isdisjoint(theirs):
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
                if not same or not ours.isdisjoint(theirs)
                else Reason("", "give each table another name"),
            )


# --- one join -------------------------------------------------------------------------


def _is_left(join: exp.Expr, sql: SqlText) -> bool:
    """Return whether a join is LEFT [OUTER] JOIN; its words are understood then."""
    if join.args.get("side") != "LEFT":
        return False
    spend_words(join, ("OUTER", "LEFT"), sql)
    return True


def spend_words(join: exp.Expr, words: tuple[str, ...], sql: SqlText) -> None:
    """Note that words before JOIN were understood, from the last one to the first."""
    place = sql.first(join.this) or 0
    while place and sql.word(place) != "JOIN":
        place -= 1
    for word in words:
        if sql.word(place - 1) == word:
            place -= 1
            sql.spend(place)


def _joined(
    join: exp.Expr, scope: Scope, new: Named, texts: Texts, *, left: bool
) -> Scope:
    """Return the tables with one more; note how it is read."""
    sql, reads = texts.sql, scope.reads
    assert reads is not None  # More is read.
    only(sql, join, ("this", "using", "on", "kind", "side"))
    public = _is_public(new)
    ours, own = columns_joined(join, scope, new, texts.tables.ids, left=left)
    _refuse_types([ours.column, own.column], join.this, sql)
    if public:
        _look_up(ours, own, join, scope, texts, left=left)
        using = {own.column.name} if join.args.get("using") else set[str]()
        new = replace(new, merged=frozenset(using))
        return replace(scope, tables=(*scope.tables, new))
    name = own.column.name if own.reference is None else own.reference.column
    _refuse_other(reads.joined_on or scope.joined_on, name, join, sql)
    _refuse_no_id(ours, own, texts.tables, join, sql)
    if left:
        _refuse_many_left(new, name, join, sql)
        assert ours.reference is not None  # It is the id.
        table = new.tables[0].name
        reads.lookups.append(Lookup(table, ours.reference, name, optional=True))
    else:
        _begin(new, reads)
        reads.joined_on = name
    both = Scope(sql, (*scope.tables, new), name, reads)
    _refuse_many(both, name, texts.tables, join.this)
    return both


def _look_up(
    ours: ResolvedColumn,
    own: ResolvedColumn,
    join: exp.Expr,
    scope: Scope,
    texts: Texts,
    *,
    left: bool,
) -> None:
    """Note that rows of a public table are looked up by its key."""
    reads = scope.reads
    assert reads is not None  # More is read.
    assert own.reference is not None  # A public table has no computed columns.
    table = texts.tables.by_name[own.reference.table]
    if own.reference.column != table.key:
        raise refused(
            Code.NOT_BOUNDED,
            f"`{own.column.name}` is not the key of the public table `{table.name}`",
            own.mark,
            reason=Reason(
                "a row could be paired with many", f"join on its key `{table.key}`"
            ),
        )
    refuse_odd_lookup(ours, texts)
    assert ours.reference is not None  # Else it was refused.
    reads.lookups.append(Lookup(table.name, ours.reference, table.key, optional=left))


def refuse_odd_lookup(ours: ResolvedColumn, texts: Texts) -> None:
    """Refuse to look up what is computed, or identifies people or rows.

    Raises:
        InputError: If so.
    """
    reference = ours.reference
    declared = None if reference is None else texts.tables.by_name.get(reference.table)
    if reference is None or declared is None:
        raise refused(
            Code.NOT_IN_SUBSET,
            f"`{ours.column.name}` is computed, and cannot be looked up",
            ours.mark,
            reason=Reason("", "join the public table in the subquery"),
        )
    if reference.column in {*texts.tables.ids, *declared.row_id}:
        raise refused(
            Code.NOT_BOUNDED,
            f"`{ours.column.name}` identifies a person or a row, and is looked up in a"
            " public table",
            ours.mark,
            reason=Reason("a public table holds nothing about people"),
        )


def columns_joined(
    join: exp.Expr, scope: Scope, new: Named, ids: frozenset[str], *, left: bool
) -> tuple[ResolvedColumn, ResolvedColumn]:
    """Return the columns that one equality joins: of tables before, and the new one.

    Raises:
        InputError: If it is joined by something else.
    """
    sql = scope.sql
    using, on = join.args.get("using"), join.args.get("on")
    plain = join.args.get("kind") in _KINDS and (left or not join.args.get("side"))
    if not plain or (not using) == (on is None):
        raise sql.unread(join.this, _to_join(scope, new, ids))
    if using:
        return _using(using, scope, new)
    assert on is not None  # One of the two is there.
    return _on(on, scope, new)


def _to_join(scope: Scope, new: Named, ids: frozenset[str]) -> Reason:
    """Return how a table is joined that is only listed, if it can be."""
    tables = [one.table for one in (*scope.tables, new)]
    shared = [
        column
        for column in new.table.columns
        if column in ids and all(column in one.columns for one in tables)
    ]
    if new.table.key is not None:
        shared = [new.table.key]
    if not shared:
        return _JOINED
    alias = "" if new.alias == new.table.name else f" {new.alias}"
    written = f"{new.table.name}{alias} USING ({shared[0]})"
    return _JOINED._replace(remedy=f"write JOIN {written}")


def _using(
    using: Sequence[exp.Expr], scope: Scope, new: Named
) -> tuple[ResolvedColumn, ResolvedColumn]:
    from sqlglot import exp

    if len(using) != 1:
        raise scope.sql.unread(using[1], _JOINED)
    name = using[0]
    column = exp.Column(this=name.copy())
    own = Scope(scope.sql, (new,)).column(column)
    return scope.column(column), own


def _on(
    on: exp.Expr, scope: Scope, new: Named
) -> tuple[ResolvedColumn, ResolvedColumn]:
    from sqlglot import exp

    sql = scope.sql
    while type(on) is exp.Paren:
        on = on.this
    if type(on) is not exp.EQ:
        raise sql.unread(on, _WITH_MORE if type(on) is exp.And else _JOINED)
    both = replace(scope, tables=(*scope.tables, new))
    sides = [(both.column(one), one) for one in (on.this, on.expression)]
    owned = [found.reference is not None and _owns(new, found) for found, _ in sides]
    if sum(owned) != 1:
        raise sql.unread(on, _JOINED)
    (ours, _), (own, _) = sides if owned[1] else reversed(sides)
    return ours, own


def _owns(named: Named, found: ResolvedColumn) -> bool:
    """Return whether a column is one of a table that is joined."""
    return found.value in [named.value(name) for name in named.table.columns]


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


def _refuse_other(before: str | None, name: str, join: exp.Expr, sql: SqlText) -> None:
    if before is not None and before != name:
        reason = Reason("all tables are joined on one and the same id")
        message = f"tables are joined on `{before}` and on `{name}`"
        mark = sql.mark_of(join.this)
        raise refused(Code.NOT_BOUNDED, message, mark, reason=reason)


def _refuse_no_id(
    ours: ResolvedColumn,
    own: ResolvedColumn,
    tables: Tables,
    join: exp.Expr,
    sql: SqlText,
) -> None:
    names = [
        one.column.name if one.reference is None else one.reference.column
        for one in (ours, own)
    ]
    if names[0] == names[1] and names[0] in tables.ids:
        return
    ids = ", ".join(sorted(tables.ids)) or "none"
    wrong = names[0] if names[1] in tables.ids else names[1]
    raise refused(
        Code.NOT_BOUNDED,
        f"tables are joined on `{wrong}`, which is not the id of a unit",
        sql.mark_of(join.this),
        reason=Reason(
            "a row could then join rows of any number of others",
            f"join on the id of a unit: {ids}; or declare the table  public: true  if"
            " it holds nothing about people",
        ),
    )


def _refuse_many_left(new: Named, joined: str, join: exp.Expr, sql: SqlText) -> None:
    """Refuse a LEFT JOIN of a table with many rows for one id."""
    table = new.tables[0]
    if table.one_per == joined:
        return
    raise _several(
        f"`{new.alias[:60]}` has many rows for one `{joined}`",
        Reason(
            "each row would be paired with many others",
            f"join  ({_per_id(joined, 'COUNT(*) AS n', table.name)}) AS t  , or write"
            f"  WHERE {joined} NOT IN (…)",
        ),
        sql,
        join.this,
    )


def _refuse_many(scope: Scope, joined: str, tables: Tables, node: exp.Expr) -> None:
    """Refuse two tables with many rows for one id, or with a time each."""
    read = [one for named in scope.tables for one in named.tables]
    private = [one for one in read if one.key is None]
    many = [one for one in private if one.one_per != joined]
    timed = [one for one in private if tables.clocks & set(one.columns)]
    sql = scope.sql
    if len(many) > 1:
        raise _several(
            f"`{many[0].name}` and `{many[1].name}` both have many rows for one"
            f" `{joined}`",
            Reason(
                "each row would be paired with many others",
                f"declare  one_per: {joined}  for all tables but one; or join"
                f"  ({_per_id(joined, '…', many[1].name)}) AS t",
            ),
            sql,
            node,
        )
    if len(timed) > 1:
        raise _several(
            f"`{timed[0].name}` and `{timed[1].name}` both have a time column",
            Reason("the time of a joined row would be ambiguous"),
            sql,
            node,
        )


def _per_id(joined: str, more: str, table: str) -> str:
    """Return the text of a subquery with one row for each id."""
    return " ".join(["SELECT", f"{joined},", more, "FROM", table, "GROUP BY", joined])


def _several(message: str, reason: Reason, sql: SqlText, node: exp.Expr) -> InputError:
    return refused(Code.NOT_BOUNDED, message, sql.mark_of(node), reason=reason)
