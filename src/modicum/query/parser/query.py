"""A query as a whole: its clauses, in the order in which they are understood."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Final, TypeAlias

from modicum.core.errors import Code, InputError
from modicum.core.reader import Problems
from modicum.query.model import (
    Aggregate,
    ColumnRef,
    Expression,
    Grain,
    Key,
    Order,
    Output,
    Query,
)
from modicum.query.parser.expressions import read_whole
from modicum.query.parser.joins import Nested, Texts, common_tables, read_tables_of
from modicum.query.parser.keys import at_position, read_key
from modicum.query.parser.literals import read_number
from modicum.query.parser.members import read_member, read_semi_join
from modicum.query.parser.outputs import Outputs, must_measure, read_outputs
from modicum.query.parser.scope import Scope, spend_name
from modicum.query.parser.sql_text import SqlText, only
from modicum.query.parser.syntax_tree import read_tree
from modicum.query.parser.unions import read_source
from modicum.query.parser.windows import is_computed
from modicum.query.refusals import Reason, refused
from modicum.query.tables import Tables

if TYPE_CHECKING:
    from sqlglot import exp


#: A key: its value, and its period if it is one of a column with a time.
_Group: TypeAlias = tuple[Expression, Grain | None]
_Output: TypeAlias = Key | Aggregate | Output
#: The maximum number of sets of keys.
_SETS_MAX: Final = 64


def key_sets(
    group: exp.Expr | None,
    selected: Sequence[exp.Expr],
    outputs: Outputs,
    scope: Scope,
) -> tuple[tuple[int, ...], ...]:
    """Return the sets of keys of a GROUP BY, which must name exactly the selected keys.

    Args:
        group: The clause; None if there is none.
        selected: The expressions that are selected.
        outputs: Their values.
        scope: The tables that are read.

    Returns:
        Each set once, as positions of keys; none if it is one set of all keys.

    Raises:
        InputError: If it names others, or fewer.
    """
    from sqlglot import exp

    aliases = {
        node.alias.lower(): output
        for node, output in zip(selected, outputs.every, strict=True)
        if type(node) is exp.Alias
    }
    sets: list[frozenset[_Group]] = [frozenset()]
    if group is not None:
        sets = _all_sets(
            group, lambda node: _grouped(node, aliases, outputs, scope), scope
        )
    grouped = frozenset[_Group]().union(*sets)
    selected_keys = {(key.value, key.grain): key for key in outputs.keys}
    if len(selected_keys) < len(outputs.keys):
        raise _key_problem(outputs.keys[-1], "is a key that is selected twice")
    for group_key, key in selected_keys.items():
        if group_key not in grouped:
            raise _key_problem(
                key, "is neither in an aggregate nor in GROUP BY", "add it to GROUP BY"
            )
    if set(sets) == {grouped}:
        return ()
    every = [(key.value, key.grain) for key in outputs.keys]
    return tuple(
        tuple(place for place, key in enumerate(every) if key in one)
        for one in dict.fromkeys(sets)
    )


def _all_sets(
    group: exp.Expr, read: Callable[[exp.Expr], _Group], scope: Scope
) -> list[frozenset[_Group]]:
    """Return the sets of keys that a GROUP BY stands for: its items' combined."""
    for word in ("ROLLUP", "CUBE"):
        if group.args.get(word.lower()):  # WITH ROLLUP, of other databases.
            raise scope.sql.unread_at(scope.sql.keyword(word))
    only(scope.sql, group, ("expressions",))
    if not group.args.get("expressions"):
        raise scope.sql.unread(group)
    sets: list[frozenset[_Group]] = [frozenset()]
    for node in group.args["expressions"]:
        several = _sets(node, read, scope)
        if not several:
            raise scope.sql.unread(node)
        if len(sets) * len(several) > _SETS_MAX:
            raise _too_many(node, scope)
        sets = [one | other for one in sets for other in several]
    return sets


def _too_many(node: exp.Expr, scope: Scope) -> InputError:
    message = f"the groups have more than {_SETS_MAX} sets of keys"
    reason = Reason("", "list fewer: GROUP BY GROUPING SETS ((a), (b))")
    mark = scope.sql.mark_of(node)
    return refused(Code.NOT_IN_SUBSET, message, mark, reason=reason)


def _sets(
    node: exp.Expr, read: Callable[[exp.Expr], _Group], scope: Scope
) -> list[frozenset[_Group]]:
    """Return the sets of keys that an item of GROUP BY stands for, in SQL's order."""
    kind, parts = type(node).__name__, node.args.get("expressions") or []
    if kind == "Paren":
        return _sets(node.this, read, scope)
    if kind not in ("Rollup", "Cube", "GroupingSets", "Tuple"):
        return [frozenset((read(node),))]
    only(scope.sql, node, ("expressions",))
    if kind == "GroupingSets":
        return [one for part in parts for one in _sets(part, read, scope)]
    if kind == "Tuple":
        return [frozenset(map(read, parts))]
    units = []
    for part in parts:
        several = _sets(part, read, scope)
        if len(several) != 1:  # Sets of sets are no SQL.
            raise scope.sql.unread(part)
        units += several
    if kind == "Cube" and len(units) >= _SETS_MAX.bit_length():
        raise _too_many(node, scope)
    numbers = range(len(units), -1, -1)
    chosen = (
        (units[:number] for number in numbers)
        if kind == "Rollup"
        else (one for number in numbers for one in combinations(units, number))
    )
    return [frozenset().union(*one) for one in chosen]


def _key_problem(key: Key, wrong: str, remedy: str = "") -> InputError:
    message = f"`{key.name}` {wrong}"
    reason = Reason("", remedy)
    return refused(Code.NOT_IN_SUBSET, message, key.mark, reason=reason)


def _grouped(
    node: exp.Expr,
    aliases: dict[str, _Output],
    outputs: Outputs,
    scope: Scope,
) -> _Group:
    """Return the key that one item of GROUP BY means: a position, a name, a value."""
    from sqlglot import exp

    output: _Output | None = None
    if type(node) is exp.Literal:
        output = at_position(node, outputs.every, scope.sql)
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
    if not isinstance(output, Key):
        reason = Reason("an aggregate cannot be a key")
        raise scope.sql.unread(node, reason)
    return output.value, output.grain


def _shown(key: Key) -> str:
    """Return the column of a key, or its name if it is computed."""
    return key.value.column if isinstance(key.value, ColumnRef) else key.name


def _refuse_ambiguous(node: exp.Expr, output: _Output, scope: Scope) -> None:
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


_CLAUSES = (
    "expressions",
    "from_",
    "joins",
    "where",
    "group",
    "having",
    "order",
    "limit",
    "offset",
)
#: Larger limits show all groups that there may be.
_ROWS_MAX: Final = 10**9


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
    _refuse_distinct(select, sql)
    only(sql, select, (*_CLAUSES, "distinct", "with_"))
    nested = Nested(read_source, read_member, read_semi_join)
    common = common_tables(select, sql)
    texts = Texts(sql, tables, common, nested, set(tables.by_name))
    scope, reads = read_tables_of(select, texts)
    where = select.args.get("where")
    condition = None
    found = Problems()
    with found.guard():
        if where is not None:
            only(sql, where, ("this",))
            condition = read_whole(where.this, scope, condition=True)
    scope = scope.given(condition)
    selected = select.args["expressions"]
    with found.guard():
        outputs = read_outputs(selected, scope, tables)
    found.raise_any()
    sets = key_sets(select.args.get("group"), selected, outputs, scope)
    having = _having(select, outputs, sql)
    order = _order(select, outputs, sql)
    must_measure(outputs, scope)
    limit, offset = (_number(select, one, sql) for one in ("LIMIT", "OFFSET"))
    sql.refuse_left()
    return Query(
        tables=tuple(reads.tables),
        joined_on=reads.joined_on,
        where=reads.where(condition),
        keys=outputs.keys,
        aggregates=tuple(outputs.reader.aggregates),
        computed=outputs.computed,
        having=having,
        order=order,
        limit=limit,
        offset=offset or 0,
        lookups=tuple(reads.lookups),
        derived=tuple(reads.derived),
        sets=sets,
        unions=tuple(reads.unions),
    )


def _refuse_distinct(select: exp.Expr, sql: SqlText) -> None:
    """Refuse DISTINCT but of groups, where it says nothing: these differ in their keys.

    Raises:
        InputError: If it is of rows.
    """
    distinct = select.args.get("distinct")
    if distinct is None:
        return
    grouped = any(map(is_computed, select.expressions))
    if distinct.args.get("on") is not None or not grouped:
        raise sql.unread_at(sql.keyword("DISTINCT"))
    only(sql, distinct, ())


def _having(select: exp.Expr, outputs: Outputs, sql: SqlText) -> Expression | None:
    having = select.args.get("having")
    if having is None:
        return None
    only(sql, having, ("this",))
    sql.spend_before(having, "HAVING")
    return outputs.reader.condition(having.this)


def _order(select: exp.Expr, outputs: Outputs, sql: SqlText) -> tuple[Order, ...]:
    order = select.args.get("order")
    if order is None:
        return ()
    sql.spend_before(order, "ORDER BY")
    return outputs.reader.orders(order)


def _number(select: exp.Expr, clause: str, sql: SqlText) -> int | None:
    """Return the number of LIMIT or OFFSET; None if there is no such clause."""
    node = select.args.get(clause.lower())
    if node is None:
        return None
    number, reason = (
        node.args["expression"],
        Reason("", f"write an integer: {clause} 10"),
    )
    if any(value for part, value in node.args.items() if part != "expression"):
        raise sql.unread(number, reason)
    if type(number).__name__ != "Literal":
        raise sql.unread(number, reason)
    value = read_number(number, sql)
    if value.denominator != 1 or not 0 <= value <= _ROWS_MAX:
        raise sql.unread(number, reason)
    sql.spend_before(node, clause)
    return value.numerator


def _names(tables: Tables) -> Iterator[str]:
    for name, table in tables.by_name.items():
        yield name
        yield from table.columns
