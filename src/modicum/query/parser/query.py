"""A query as a whole: its clauses, in the order in which they are understood."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from modicum.core.errors import Code, InputError
from modicum.core.reader import Problems
from modicum.query.model import Aggregate, ColumnRef, Expression, Grain, Key, Query
from modicum.query.parser.expressions import read_whole
from modicum.query.parser.joins import Texts, common_tables, read_tables_of
from modicum.query.parser.outputs import Outputs, read_key, read_outputs
from modicum.query.parser.scope import Scope, spend_name
from modicum.query.parser.sql_text import only
from modicum.query.parser.syntax_tree import read_tree
from modicum.query.refusals import Reason, refused
from modicum.query.tables import Tables

if TYPE_CHECKING:
    from sqlglot import exp


#: A key: its value, and its period if it is one of a column with a time.
_Group: TypeAlias = tuple[Expression, Grain | None]


def match_groups(
    group: exp.Expr | None,
    selected: Sequence[exp.Expr],
    outputs: Outputs,
    scope: Scope,
) -> None:
    """Refuse a GROUP BY that does not name exactly the selected keys.

    Args:
        group: The clause; None if there is none.
        selected: The expressions that are selected.
        outputs: Their values.
        scope: The tables that are read.

    Raises:
        InputError: If it names others, or fewer.
    """
    from sqlglot import exp

    grouped: set[_Group] = set()
    aliases = {
        node.alias.lower(): output
        for node, output in zip(selected, outputs.every, strict=True)
        if type(node) is exp.Alias
    }
    if group is not None:
        only(scope.sql, group, ("expressions",))
        if not group.args.get("expressions"):
            raise scope.sql.unread(group)
        for node in group.args["expressions"]:
            grouped.add(_grouped(node, aliases, outputs, scope))
    selected_keys = {(key.value, key.grain): key for key in outputs.keys}
    if len(selected_keys) < len(outputs.keys):
        raise _key_problem(outputs.keys[-1], "is a key that is selected twice")
    for group_key, key in selected_keys.items():
        if group_key not in grouped:
            raise _key_problem(
                key, "is neither in an aggregate nor in GROUP BY", "add it to GROUP BY"
            )


def _key_problem(key: Key, wrong: str, remedy: str = "") -> InputError:
    message = f"`{key.name}` {wrong}"
    reason = Reason("", remedy)
    return refused(Code.NOT_IN_SUBSET, message, key.mark, reason=reason)


def _grouped(
    node: exp.Expr,
    aliases: dict[str, Key | Aggregate],
    outputs: Outputs,
    scope: Scope,
) -> _Group:
    """Return the key that one item of GROUP BY means: a position, a name, a value."""
    from sqlglot import exp

    output: Key | Aggregate | None = None
    if type(node) is exp.Literal:
        output = _at_position(node, outputs, scope)
    elif type(node) is exp.Column and not node.args.get("table"):
        output = aliases.get(node.name.lower())
        if output is not None:
            _refuse_ambiguous(node, output, scope)
    if output is None:
        key = read_key(node, scope)
        if not any((key.value, key.grain) == (k.value, k.grain) for k in outputs.keys):
            raise refused(
                Code.NOT_IN_SUBSET,
                f"`{_shown(key)}` is a key of GROUP BY and not selected",
                key.mark,
                reason=Reason(
                    "groups without their key are meaningless",
                    "select it as well",
                ),
            )
        return key.value, key.grain
    if isinstance(output, Aggregate):
        reason = Reason("an aggregate cannot be a key")
        raise scope.sql.unread(node, reason)
    return output.value, output.grain


def _shown(key: Key) -> str:
    """Return the column of a key, or its name if it is computed."""
    return key.value.column if isinstance(key.value, ColumnRef) else key.name


def _at_position(node: exp.Expr, outputs: Outputs, scope: Scope) -> Key | Aggregate:
    text = node.name
    known = len(outputs.every)
    valid = not node.is_string and text.isascii() and text.isdigit() and len(text) < 4
    if not valid or not 1 <= int(text) <= known:
        reason = Reason("", f"a position is an integer from 1 to {known}")
        raise scope.sql.unread(node, reason)
    scope.sql.spend_node(node, "NUMBER")
    return outputs.every[int(text) - 1]


def _refuse_ambiguous(node: exp.Expr, output: Key | Aggregate, scope: Scope) -> None:
    """Refuse a name that is a column's too, as engines disagree which is meant."""
    spend_name(scope.sql, node.this)
    lower = node.name.lower()
    columns = [
        named.value(name)
        for named in scope.tables
        for name in named.table.columns
        if name.lower() == lower
    ]
    is_column = isinstance(output, Key) and output.grain is None
    if columns and not (is_column and columns == [output.value]):
        raise refused(
            Code.UNKNOWN_NAME,
            f"`{node.name[:60]}` is both a column and the name of another output",
            scope.sql.mark_of(node),
            reason=Reason(
                "engines resolve it differently",
                "group by its position, such as GROUP BY 1, or give it another name",
            ),
        )


_CLAUSES = ("expressions", "from_", "joins", "where", "group")


def parse_query(text: str, tables: Tables, source: str = "query") -> Query:
    """Return the query of a text.

    Args:
        text: SQL: one SELECT of keys and aggregates.
        tables: The declarations of the tables that it may read.
        source: The name of the text in messages.

    Raises:
        InputError: If it is no SQL, or SQL that is not read, or does not fit the
            tables; with the place of the token that is wrong.
    """
    select, sql = read_tree(text, source, _names(tables))
    if select.args.get("distinct") is not None:
        raise sql.unread_at(sql.keyword("DISTINCT"))
    only(sql, select, (*_CLAUSES, "with_"))
    scope, reads = read_tables_of(
        select, Texts(sql, tables, common_tables(select, sql))
    )
    where = select.args.get("where")
    condition = None
    found = Problems()
    with found.guard():
        if where is not None:
            only(sql, where, ("this",))
            condition = read_whole(where.this, scope, condition=True)
    selected = select.args["expressions"]
    with found.guard():
        outputs = read_outputs(selected, scope, tables)
    found.raise_any()
    match_groups(select.args.get("group"), selected, outputs, scope)
    sql.refuse_left()
    return Query(
        tables=tuple(reads.tables),
        joined_on=reads.joined_on,
        where=reads.where(condition),
        keys=outputs.keys,
        aggregates=outputs.aggregates,
        lookups=tuple(reads.lookups),
        derived=tuple(reads.derived),
    )


def _names(tables: Tables) -> Iterator[str]:
    for name, table in tables.by_name.items():
        yield name
        yield from table.columns
