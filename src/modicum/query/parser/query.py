"""A query as a whole: its clauses, in the order in which they are understood."""

from __future__ import annotations

from collections.abc import Iterator

from modicum.core.reader import Problems
from modicum.query.model import Query
from modicum.query.parser.conditions import read_condition
from modicum.query.parser.grouping import match_groups
from modicum.query.parser.joins import read_tables_of
from modicum.query.parser.outputs import read_outputs
from modicum.query.parser.sql_text import only
from modicum.query.parser.syntax_tree import read_tree
from modicum.query.tables import Tables

_CLAUSES = ("expressions", "from_", "joins", "where", "group")


def parse_query(text: str, tables: Tables, source: str = "query") -> Query:
    """Return the query that a text is.

    Args:
        text: SQL: one SELECT of keys and aggregates.
        tables: What is declared about the tables that it may read.
        source: What the text is called in messages.

    Raises:
        InputError: If it is no SQL, or SQL that is not read, or does not fit the
            tables; with the place of the token that is wrong.
    """
    select, sql = read_tree(text, source, _names(tables))
    if select.args.get("distinct") is not None:
        raise sql.unread_at(sql.keyword("DISTINCT"))
    only(sql, select, _CLAUSES)
    scope = read_tables_of(select, sql, tables)
    where = select.args.get("where")
    condition = None
    found = Problems()
    with found.guard():
        if where is not None:
            only(sql, where, ("this",))
            condition = read_condition(where.this, scope)
    selected = select.args["expressions"]
    with found.guard():
        outputs = read_outputs(selected, scope, tables)
    found.raise_any()
    match_groups(select.args.get("group"), selected, outputs, scope)
    sql.refuse_left()
    return Query(
        tables=tuple(named.table.name for named in scope.tables),
        joined_on=scope.joined_on,
        where=condition,
        keys=outputs.keys,
        aggregates=outputs.aggregates,
    )


def _names(tables: Tables) -> Iterator[str]:
    for name, table in tables.by_name.items():
        yield name
        yield from table.columns
