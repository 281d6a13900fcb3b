"""Conditions on one row: a column and values, joined by AND, OR and NOT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from modicum.core.errors import Code
from modicum.core.reader import Problems
from modicum.query.model import (
    AllOf,
    AnyOf,
    Compare,
    Comparison,
    Condition,
    IsIn,
    IsNull,
    Not,
)
from modicum.query.parser.functions import is_aggregate
from modicum.query.parser.literals import name_for_value, read_value
from modicum.query.parser.scope import ResolvedColumn, Scope
from modicum.query.parser.sql_text import only
from modicum.query.refusals import (
    INNER_QUERY,
    Reason,
    is_of_time,
    refused,
)

if TYPE_CHECKING:
    from sqlglot import exp

#: More values of one column are refused.
VALUES_MAX: Final = 10_000

_COMPARISONS: Final[Mapping[str, Comparison]] = {
    "EQ": "=",
    "NEQ": "<>",
    "LT": "<",
    "LTE": "<=",
    "GT": ">",
    "GTE": ">=",
}
#: The comparison with its sides exchanged.
_FLIPPED: Final[Mapping[Comparison, Comparison]] = {
    "=": "=",
    "<>": "<>",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}
_ONE_COLUMN: Final = Reason(
    "a condition compares one column with a value",
    "compute it in the data, declare a boolean column for it, and name that",
)
_NO_COLUMN: Final = Reason(
    "a condition compares one column with a value",
    "leave it out: it has no effect on a row",
)
_OF_GROUPS: Final = Reason(
    "conditions apply to single rows",
    "leave it out, and drop groups of the answer: that costs nothing",
)

_ITSELF: Final = Reason(
    "a condition compares a column itself with a value",
    "give a range: column >= '2026-11-01' AND column < '2026-12-01'",
)


def read_condition(node: exp.Expr, scope: Scope) -> Condition:
    """Return the condition of a node.

    Raises:
        InputError: If it is none that is read.
    """
    kind = type(node).__name__
    if kind in _COMPARISONS:
        return _compared(node, scope)
    reader = _READERS.get(kind)
    if reader is None:
        raise scope.sql.unread(node)
    return reader(node, scope)


def _joined(node: exp.Expr, scope: Scope) -> Condition:
    """Return a chain of one operator, however long, without a call for each link."""
    kind, waiting = type(node), [node]
    links: list[exp.Expr] = []
    while waiting:
        one = waiting.pop()
        if type(one) is kind:
            only(scope.sql, one, ("this", "expression"))
            waiting.extend((one.expression, one.this))
        else:
            links.append(one)
    found = Problems()
    parts: list[Condition] = []
    for one in links:
        with found.guard():
            parts.append(read_condition(one, scope))
    found.raise_any()
    return AllOf(tuple(parts)) if kind.__name__ == "And" else AnyOf(tuple(parts))


def _not(node: exp.Expr, scope: Scope) -> Condition:
    only(scope.sql, node, ("this",))
    return Not(read_condition(node.this, scope))


def _in_brackets(node: exp.Expr, scope: Scope) -> Condition:
    only(scope.sql, node, ("this",))
    return read_condition(node.this, scope)


def _compared(node: exp.Expr, scope: Scope) -> Condition:
    from sqlglot import exp

    only(scope.sql, node, ("this", "expression"))
    operator = _COMPARISONS[type(node).__name__]
    left, right = node.this, node.expression
    flipped = type(right) is exp.Column and type(left) is not exp.Column
    if flipped:
        left, right, operator = right, left, _FLIPPED[operator]
    if type(left) is not exp.Column or type(right) is exp.Column:
        raise _not_one_column(node, scope)
    found = scope.column(left)
    value = read_value(right, found.column, scope.sql)
    if operator not in ("=", "<>"):
        _refuse_unordered(found)
    return Compare(found.reference, operator, value)


def _not_one_column(node: exp.Expr, scope: Scope) -> Exception:
    """Return why two sides are no comparison of a column with a value."""
    from sqlglot import exp

    sides = (node.this, node.expression)
    for side in sides:
        if not isinstance(side, exp.Column | exp.Literal | exp.Neg | exp.Boolean):
            return _not_itself(side, scope)
    columns = [one for one in sides if type(one) is exp.Column]
    if len(columns) < 2:
        says_nothing = node.find(exp.Column) is None
        return scope.sql.unread(node, _NO_COLUMN if says_nothing else _ONE_COLUMN)
    for one in columns:
        if not one.args.get("table") and not scope.knows(one.this):
            return name_for_value(one, scope.sql)
    left, right = columns
    if type(node) is exp.EQ and left.name == right.name:
        remedy = f"write JOIN … USING ({left.name[:60]}) after FROM, and leave it out"
        reason = Reason("joins are not conditions", remedy)
        return scope.sql.unread(node, reason)
    return scope.sql.unread(node, _ONE_COLUMN)


def _not_itself(node: exp.Expr, scope: Scope) -> Exception:
    """Return why something that is computed is not compared."""
    from sqlglot import exp

    if any(is_aggregate(one) for one in node.walk()):
        return scope.sql.unread(node, _OF_GROUPS)
    known = isinstance(node, exp.TimestampTrunc | exp.Cast | exp.Date)
    of_time = known or is_of_time(scope.sql.called(node))
    return scope.sql.unread(node, _ITSELF if of_time else None)


def _column(node: exp.Expr, scope: Scope) -> ResolvedColumn:
    """Return the column that a condition is about."""
    from sqlglot import exp

    if type(node) is not exp.Column:
        raise _not_itself(node, scope)
    return scope.column(node)


def _refuse_unordered(found: ResolvedColumn) -> None:
    if found.column.type == "boolean":
        raise refused(
            Code.DOES_NOT_FIT,
            f"`{found.column.name}` is a boolean, and has no order",
            found.mark,
            reason=Reason("", "compare it with = or <>"),
        )


def _between(node: exp.Expr, scope: Scope) -> Condition:
    only(scope.sql, node, ("this", "low", "high"))
    found = _column(node.this, scope)
    _refuse_unordered(found)
    low = read_value(node.args["low"], found.column, scope.sql)
    high = read_value(node.args["high"], found.column, scope.sql)
    reference = found.reference
    return AllOf((Compare(reference, ">=", low), Compare(reference, "<=", high)))


def _in_values(node: exp.Expr, scope: Scope) -> Condition:
    if node.args.get("query") is not None:
        raise scope.sql.unread(node.args["query"], INNER_QUERY)
    only(scope.sql, node, ("this", "expressions"))
    found = _column(node.this, scope)
    values = node.args.get("expressions") or []
    if not 1 <= len(values) <= VALUES_MAX:
        raise refused(
            Code.NOT_IN_SUBSET,
            f"IN has 1 to {VALUES_MAX} values, not {len(values)}",
            found.mark,
            reason=Reason(),
        )
    read = (read_value(value, found.column, scope.sql) for value in values)
    return IsIn(found.reference, tuple(read))


def _is_null(node: exp.Expr, scope: Scope) -> Condition:
    from sqlglot import exp

    only(scope.sql, node, ("this", "expression"))
    if type(node.expression) is not exp.Null:
        if type(node.expression) is exp.Column:
            raise name_for_value(node.expression, scope.sql)
        remedy = Reason("", "write IS NULL, IS NOT NULL, or compare it with =")
        raise scope.sql.unread(node.expression, remedy)
    return IsNull(_column(node.this, scope).reference)


def _truth(node: exp.Expr, scope: Scope) -> Condition:
    """Return the condition that a boolean column alone is."""
    found = scope.column(node)
    if found.column.type != "boolean":
        raise refused(
            Code.DOES_NOT_FIT,
            f"`{found.column.name}` is not a condition: it is not a boolean",
            found.mark,
            reason=Reason("", "compare it with a value"),
        )
    return Compare(found.reference, "=", value=True)


_READERS: Final = {
    "And": _joined,
    "Or": _joined,
    "Not": _not,
    "Paren": _in_brackets,
    "Between": _between,
    "In": _in_values,
    "Is": _is_null,
    "Column": _truth,
}
