"""The outputs of an answer: the keys of its groups, and their aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from modicum.core.document import Kind, Scalar
from modicum.core.errors import Code, Mark
from modicum.core.reader import Problems
from modicum.core.reader import name as house_name
from modicum.query.expressions.analysis import only_column
from modicum.query.model import Aggregate, ColumnRef, Key
from modicum.query.parser.aggregates import read_aggregate
from modicum.query.parser.arguments import is_aggregate
from modicum.query.parser.expressions import read_whole
from modicum.query.parser.names import label_of
from modicum.query.parser.periods import read_period
from modicum.query.parser.scope import Scope, spend_name
from modicum.query.parser.sql_text import only
from modicum.query.refusals import ROUNDED, Reason, refused
from modicum.query.tables import Tables

if TYPE_CHECKING:
    from sqlglot import exp

#: The message about arithmetic on aggregates.
COMPUTED: Final = Reason(
    "each aggregate has its own noise",
    "select the aggregates separately, and compute with the answers: that costs"
    " nothing more",
)
_AVERAGE: Final = Reason("a sum divided by a count is an average", "write AVG(column)")

#: An answer has no more columns than this.
_OUTPUTS_MAX: Final = 100


class Outputs(NamedTuple):
    """The columns of an answer.

    Attributes:
        every: All of them, in the order of the text.
        keys: The keys among them.
        aggregates: The aggregates among them.
    """

    every: tuple[Key | Aggregate, ...]
    keys: tuple[Key, ...]
    aggregates: tuple[Aggregate, ...]


def read_outputs(nodes: Sequence[exp.Expr], scope: Scope, tables: Tables) -> Outputs:
    """Return the outputs of a SELECT.

    Raises:
        InputError: If it returns rows, or something unsupported.
    """
    if len(nodes) > _OUTPUTS_MAX:
        message = f"more than {_OUTPUTS_MAX} outputs are selected"
        mark = scope.sql.mark_of(nodes[_OUTPUTS_MAX])
        raise refused(Code.NOT_IN_SUBSET, message, mark, reason=Reason())
    found = Problems()
    every: list[Key | Aggregate] = []
    for node in nodes:
        with found.guard():
            every.append(_output(node, scope, tables))
    found.raise_any()
    _refuse_same_names(every)
    keys = tuple(one for one in every if isinstance(one, Key))
    aggregates = tuple(one for one in every if isinstance(one, Aggregate))
    if not aggregates:
        raise refused(
            Code.NOT_IN_SUBSET,
            "no aggregate is selected",
            scope.sql.mark(scope.sql.tokens[0]),
            reason=Reason(
                "rows, and the group of a row, are never released",
                "add an aggregate: COUNT(*)",
            ),
        )
    return Outputs(tuple(every), keys, aggregates)


def _output(node: exp.Expr, scope: Scope, tables: Tables) -> Key | Aggregate:
    from sqlglot import exp

    alias: exp.Expr | None = None
    if type(node) is exp.Alias:
        only(scope.sql, node, ("this", "alias"))
        node, alias = node.this, node.args["alias"]
    if is_aggregate(node):
        aggregate = read_aggregate(node, scope)
        name = _name(alias, aggregate.name, aggregate.mark, scope)
        return replace(aggregate, name=name)
    if type(node) is exp.Star or type(node.this) is exp.Star:
        reason = Reason("rows are never released", "name keys and aggregates")
        raise scope.sql.unread(node, reason)
    _refuse_computed(node, scope)
    key = read_key(node, scope)
    _refuse_key(key, scope, tables)
    return replace(key, name=_name(alias, key.name, key.mark, scope))


def _refuse_computed(node: exp.Expr, scope: Scope) -> None:
    """Refuse arithmetic on aggregates."""
    from sqlglot import exp

    if not any(is_aggregate(one) for one in node.walk()):
        return
    if type(node) is exp.Paren:
        raise scope.sql.unread(node, Reason("", "leave the brackets out"))
    if type(node) is exp.Round:
        raise scope.sql.unread(node, ROUNDED)
    mean = type(node) is exp.Div and type(node.this) is exp.Sum
    counted = mean and type(node.expression) is exp.Count
    raise scope.sql.unread(node, _AVERAGE if counted else COMPUTED)


def _name(alias: exp.Expr | None, usual: str, mark: Mark | None, scope: Scope) -> str:
    """Return the name of a column of the answer, if it is valid."""
    if alias is None:
        given = Scalar(Kind.TEXT, usual, quoted=False, mark=mark)
    else:
        spend_name(scope.sql, alias)
        place = scope.sql.mark_of(alias)
        given = Scalar(Kind.TEXT, alias.name, quoted=False, mark=place)
    return house_name(given, "the name of a column of the answer")


def _refuse_same_names(every: Sequence[Key | Aggregate]) -> None:
    seen: dict[str, str] = {}
    for one in every:
        lower = one.name.lower()
        if lower in seen:
            raise refused(
                Code.NOT_IN_SUBSET,
                f"two columns of the answer are named `{one.name[:60]}`",
                one.mark,
                reason=Reason("", "give it another name: … AS name"),
            )
        seen[lower] = one.name


# --- keys -----------------------------------------------------------------------------


def read_key(node: exp.Expr, scope: Scope) -> Key:
    """Return a key, with its default name.

    Raises:
        InputError: If it is no expression that is read.
    """
    from sqlglot import exp

    mark = scope.sql.mark_of(node)
    period = read_period(node, scope)
    if period is not None:
        found, grain = period
        return Key(f"{found.column.name}_{grain}", found.value, grain, found.mark)
    value = read_whole(node, scope)
    column = type(node) is exp.Column
    name = scope.column(node).column.name if column else label_of(value)
    return Key(name, value, None, mark)


def _refuse_key(key: Key, scope: Scope, tables: Tables) -> None:
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
