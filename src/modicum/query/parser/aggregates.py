"""Aggregates: those that are read, each by its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from modicum.core.errors import Code, Mark
from modicum.query.expressions.facts import NUMERIC, A
from modicum.query.model import (
    Aggregate,
    Call,
    ColumnRef,
    Expression,
    Function,
    Literal,
)
from modicum.query.parser.arguments import fitted
from modicum.query.parser.expressions import read_whole
from modicum.query.parser.keys import label_of
from modicum.query.parser.literals import read_literal, read_number
from modicum.query.parser.periods import needed
from modicum.query.parser.scope import Scope
from modicum.query.parser.sql_text import SqlText, only
from modicum.query.refusals import SEVERAL, Reason, refused

if TYPE_CHECKING:
    from sqlglot import exp


class _Moment(NamedTuple):
    """A function of numbers, and the names that it has."""

    function: Function
    names: tuple[str, ...]
    population: bool = False


#: By the class that sqlglot makes of it.
_MOMENTS: Final[Mapping[str, _Moment]] = {
    "Sum": _Moment("sum", ("SUM",)),
    "Avg": _Moment("avg", ("AVG",)),
    "Variance": _Moment("variance", ("VARIANCE", "VAR_SAMP")),
    "VariancePop": _Moment("variance", ("VAR_POP",), population=True),
    "Stddev": _Moment("stddev", ("STDDEV",)),
    "StddevSamp": _Moment("stddev", ("STDDEV_SAMP",)),
    "StddevPop": _Moment("stddev", ("STDDEV_POP",), population=True),
}


def read_aggregate(node: exp.Expr, scope: Scope) -> Aggregate:
    """Return an aggregate, with its default name.

    Args:
        node: One for which `is_aggregate` holds.
        scope: The tables that are read.

    Raises:
        InputError: If it is of something else than one expression that fits it.
    """
    return _AGGREGATES[type(node).__name__](node, scope)


def _count(node: exp.Expr, scope: Scope) -> Aggregate:
    from sqlglot import exp

    sql = scope.sql
    only(sql, node, ("this", "big_int"))
    mark = _named(node, sql, ("COUNT",))
    counted = node.args.get("this")
    if type(counted) is exp.Literal:
        read_literal(counted, sql)
        return Aggregate("count", "count", mark=mark)  # COUNT(1) counts all rows.
    if counted is None:
        reason = Reason("", "write COUNT(*), or COUNT(column) where it is not NULL")
        message = "COUNT has no argument"
        raise refused(Code.NOT_IN_SUBSET, message, mark, reason=reason)
    if type(counted) is exp.Star:
        only(sql, counted, ())
        return Aggregate("count", "count", mark=mark)
    if node.args.get("expressions"):
        raise sql.unread(node.args["expressions"][0], SEVERAL)
    if type(counted) is not exp.Distinct:
        return _of("count", read_whole(counted, scope), mark)
    only(sql, counted, ("expressions",))
    columns = counted.args["expressions"]
    if len(columns) != 1:
        raise sql.unread(columns[-1], SEVERAL)
    if type(columns[0]) is exp.Tuple:
        return _of("count-distinct", _packed(columns[0], scope), mark)
    return _of("count-distinct", read_whole(columns[0], scope), mark)


def _packed(node: exp.Expr, scope: Scope) -> Expression:
    """Return a text that differs wherever one of some values does."""
    only(scope.sql, node, ("expressions",))
    parts = [read_whole(one, scope) for one in node.args["expressions"]]
    return fitted("packed", parts, node, scope)


def _approximate(node: exp.Expr, scope: Scope) -> Aggregate:
    """Return APPROX_COUNT_DISTINCT(expression): COUNT(DISTINCT expression)."""
    only(scope.sql, node, ("this",))
    value = read_whole(needed(node, "this", scope.sql), scope)
    mark = _named(node, scope.sql, ("APPROX_COUNT_DISTINCT",))
    return _of("count-distinct", value, mark)


def _count_if(node: exp.Expr, scope: Scope) -> Aggregate:
    """Return COUNT_IF(condition): the number of rows for which it is true."""
    only(scope.sql, node, ("this",))
    condition = read_whole(node.this, scope, condition=True)
    mark = _named(node, scope.sql, ("COUNT_IF", "COUNTIF"))
    chosen = condition, Literal(True, "boolean"), Literal(None, "boolean")  # noqa: FBT003
    return replace(_of("count", Call("case", chosen), mark), name="count_if")


def _filtered(node: exp.Expr, scope: Scope) -> Aggregate:
    """Return an aggregate FILTER (WHERE condition): that of CASE WHEN condition."""
    from sqlglot import exp

    sql, where = scope.sql, node.expression
    only(sql, node, ("this", "expression"))
    if type(node.this).__name__ not in _AGGREGATES or type(where) is not exp.Where:
        raise sql.unread(node)
    only(sql, where, ("this",))
    condition = read_whole(where.this, scope, condition=True)
    found = read_aggregate(node.this, scope.given(condition))
    behind = sql.last(node.this) or 0
    sql.spend(sql.keyword("FILTER", after=behind))
    value = Literal(True, "boolean") if found.value is None else found.value  # noqa: FBT003
    other = Literal(None, scope.facts(value).type)
    chosen = fitted("case", (condition, value, other), node, scope)
    return replace(found, name=f"{found.name}_if", value=chosen)


def _moment(node: exp.Expr, scope: Scope) -> Aggregate:
    moment = _MOMENTS[type(node).__name__]
    only(scope.sql, node, ("this",))
    value = numbers(needed(node, "this", scope.sql), node, scope)
    mark = _named(node, scope.sql, moment.names)
    found = _of(moment.function, value, mark)
    return replace(found, population=moment.population)


def _median(node: exp.Expr, scope: Scope) -> Aggregate:
    only(scope.sql, node, ("this",))
    value = numbers(needed(node, "this", scope.sql), node, scope)
    mark = _named(node, scope.sql, ("MEDIAN",))
    return _of_share(value, Fraction(1, 2), mark, "median")


def _quantile(node: exp.Expr, scope: Scope) -> Aggregate:
    sql, part = scope.sql, "quantile"
    if type(node).__name__ not in ("Quantile", "ApproxQuantile"):
        part = "expression"
        if not sql.name_of_call(node).startswith("QUANTILE"):
            raise sql.unread(node)
    only(sql, node, ("this", part))
    value = numbers(needed(node, "this", sql), node, scope)
    share = _share(needed(node, part, sql), sql)
    names = "QUANTILE", "APPROX_QUANTILE", "QUANTILE_CONT", "QUANTILE_DISC"
    mark = _named(node, sql, names)
    return _of_share(value, share, mark)


def _within_group(node: exp.Expr, scope: Scope) -> Aggregate:
    """Return PERCENTILE_CONT(share) WITHIN GROUP (ORDER BY expression)."""
    from sqlglot import exp

    sql, called, order = scope.sql, node.this, node.args["expression"]
    only(sql, node, ("this", "expression"))
    known = type(called) in (exp.PercentileCont, exp.PercentileDisc)
    if not known or called.args.get("expression"):
        raise sql.unread(called)
    only(sql, called, ("this",))
    only(sql, order, ("expressions",))
    orders = order.args["expressions"]
    only(sql, orders[0], ("this", "desc", "nulls_first"))  # Their keywords are left.
    share = _share(needed(called, "this", sql), sql)
    mark = _named(called, sql, ("PERCENTILE_CONT", "PERCENTILE_DISC"))
    begin = sql.keyword("ORDER BY", after=sql.first(called) or 0)
    value = numbers(needed(orders[0], "this", sql), called, scope)
    words = [sql.word(place) for place in range(begin - 3, begin + 1)]
    if len(orders) != 1 or words != ["WITHIN", "GROUP", "(", "ORDER BY"]:
        raise sql.unread(orders[-1])
    sql.spend(begin - 3, begin - 2, begin)
    return _of_share(value, share, mark)


def _named(node: exp.Expr, sql: SqlText, names: tuple[str, ...]) -> Mark:
    """Return the position of a function's name, which must be one of some."""
    return sql.mark(sql.tokens[sql.spend_call(node, names)])


def _of(function: Function, value: Expression, mark: Mark) -> Aggregate:
    name = f"{function.replace('-', '_')}_{label_of(value)}"
    return Aggregate(name, function, value, mark=mark)


def _of_share(
    value: Expression, share: Fraction, mark: Mark, name: str = "quantile"
) -> Aggregate:
    named = f"{name}_{label_of(value)}"
    return Aggregate(named, "quantile", value, share, mark=mark)


def _share(node: exp.Expr, sql: SqlText) -> Fraction:
    share = read_number(node, sql)
    if not 0 < share < 1:
        raise refused(
            Code.DOES_NOT_FIT,
            "the fraction of a quantile must be strictly between 0 and 1",
            sql.mark_of(node),
            reason=Reason("the minimum and the maximum are those of a single row"),
        )
    return share


def numbers(node: exp.Expr, of: exp.Expr, scope: Scope) -> Expression:
    """Return the expression that an aggregate of numbers is of.

    Args:
        node: The expression.
        of: The aggregate.
        scope: The tables that are read.

    Raises:
        InputError: If it is none, or not of numbers.
    """
    from sqlglot import exp

    if type(node) is exp.Distinct:
        reason = Reason("a value counts as often as rows have it", "leave DISTINCT out")
        raise scope.sql.unread_at((scope.sql.first(node) or 1) - 1, reason)
    mark, value = scope.sql.mark_of(node), read_whole(node, scope)
    kind = scope.facts(value).type
    if kind not in NUMERIC:
        column = isinstance(value, ColumnRef)
        shown = f"`{value.column}`" if isinstance(value, ColumnRef) else "this"
        remedy = "use COUNT, or another column"
        if kind == "boolean" and not column:
            remedy = "write COUNT(CASE WHEN … THEN 1 END)"
        raise refused(
            Code.DOES_NOT_FIT,
            f"{scope.sql.name_of_call(of)} takes numbers, and {shown} is {A[kind]}",
            mark,
            reason=Reason("", remedy),
        )
    return value


_AGGREGATES: Final = {
    "Count": _count,
    "CountIf": _count_if,
    "Filter": _filtered,
    "Median": _median,
    "Quantile": _quantile,
    "ApproxQuantile": _quantile,
    "PercentileCont": _quantile,
    "PercentileDisc": _quantile,
    "ApproxDistinct": _approximate,
    "WithinGroup": _within_group,
    **dict.fromkeys(_MOMENTS, _moment),
}
