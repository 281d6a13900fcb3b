"""The keys of an answer, and columns of it by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from modicum.core.errors import Code
from modicum.query.attributes import columns_in
from modicum.query.expressions.analysis import only_column
from modicum.query.expressions.times import GRAINS
from modicum.query.model import Call, ColumnRef, Expression, Key
from modicum.query.parser.expressions import read_whole
from modicum.query.parser.scope import Scope
from modicum.query.parser.sql_text import SqlText
from modicum.query.refusals import Reason, refused
from modicum.query.tables import Tables

if TYPE_CHECKING:
    from sqlglot import exp

T = TypeVar("T")

#: The longest name that is made up.
_NAME_MAX = 60


def read_key(node: exp.Expr, scope: Scope) -> Key:
    """Return a key, with its default name.

    Raises:
        InputError: If it is no expression that is read.
    """
    from sqlglot import exp

    mark, value = scope.sql.mark_of(node), read_whole(node, scope)
    if type(node) is exp.Column:
        return Key(scope.column(node).column.name, value, None, mark)
    match value:
        case Call(name, (ColumnRef() as time,)) if name in GRAINS:
            grain, named = GRAINS[name], time.column
            if type(node.this) is exp.Column:
                found = scope.column(node.this)
                named, mark = found.column.name, found.mark
            return Key(f"{named}_{grain}", time, grain, mark)
    return Key(label_of(value), value, None, mark)


def label_of(expression: Expression) -> str:
    """Return the name of an expression: a column's, or its function's and theirs."""
    if isinstance(expression, ColumnRef):
        return expression.column
    word = expression.function if isinstance(expression, Call) else "condition"
    columns = dict.fromkeys(one.column for one in columns_in(expression))
    label = "_".join((word if word.isidentifier() else "condition", *columns))
    return label if len(label) <= _NAME_MAX else label[:_NAME_MAX].rstrip("_")


def refuse_key(key: Key, scope: Scope, tables: Tables) -> None:
    """Refuse a key that identifies a person or a row, or that has too many values.

    Raises:
        InputError: If it does.
    """
    if key.grain is not None:
        return
    column = only_column(key.value)
    if column is not None and (
        column.column in tables.ids or column.column in _row_ids(column, tables)
    ):
        raise refused(
            Code.NOT_BOUNDED,
            f"groups cannot be formed by `{column.column}`, which identifies a"
            " person or a row",
            key.mark,
            reason=Reason("each group would reveal one of them"),
        )
    plain = isinstance(key.value, ColumnRef)
    remedies = {
        "timestamp": "choose a period: DATE_TRUNC('day', column)",
        "number": "declare it as an integer, or group by another column"
        if plain
        else "round it to integers: FLOOR(…)",
    }
    kind = scope.facts(key.value).type
    if kind in remedies:
        raise refused(
            Code.DOES_NOT_FIT,
            f"groups cannot be formed by `{key.name}`, which is of type {kind}",
            key.mark,
            reason=Reason("almost every row would be a group", remedies[kind]),
        )


def _row_ids(reference: ColumnRef, tables: Tables) -> tuple[str, ...]:
    table = tables.by_name.get(reference.table)  # Rows of a derived one have no id.
    return () if table is None else table.row_id


def at_position(node: exp.Expr, outputs: Sequence[T], sql: SqlText) -> T:
    """Return the column of the answer that a position means.

    Raises:
        InputError: If there is none.
    """
    text, known = node.name, len(outputs)
    valid = not node.is_string and text.isascii() and text.isdigit() and len(text) < 4
    if not valid or not 1 <= int(text) <= known:
        reason = Reason("", f"a position is an integer from 1 to {known}")
        raise sql.unread(node, reason)
    sql.spend_node(node, "NUMBER")
    return outputs[int(text) - 1]
