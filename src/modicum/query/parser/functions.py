"""Aggregates, and periods of time: the functions that are read, each by its name."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple, get_args

from modicum.core.errors import Code, Mark
from modicum.query.model import Aggregate, Function, Grain
from modicum.query.parser.literals import read_number, spend_type
from modicum.query.parser.scope import ResolvedColumn, Scope
from modicum.query.parser.sql_text import SqlText, only
from modicum.query.refusals import Reason, refused

if TYPE_CHECKING:
    from sqlglot import exp

_GRAINS: Final[tuple[Grain, ...]] = get_args(Grain)


class _Moment(NamedTuple):
    """A function of one number column, and the names that it has."""

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
_NUMERIC: Final = ("integer", "number")


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether a node is one of the aggregates that are read."""
    return type(node).__name__ in _AGGREGATES


def read_aggregate(node: exp.Expr, scope: Scope) -> Aggregate:
    """Return an aggregate, with its default name.

    Args:
        node: One for which `is_aggregate` holds.
        scope: The tables that are read.

    Raises:
        InputError: If it is of something else than one column that fits it.
    """
    return _AGGREGATES[type(node).__name__](node, scope)


# --- aggregates -----------------------------------------------------------------------


def _count(node: exp.Expr, scope: Scope) -> Aggregate:
    from sqlglot import exp

    sql = scope.sql
    only(sql, node, ("this", "big_int"))
    mark = _spend_function(node, sql, ("COUNT",))
    counted = node.args.get("this")
    if counted is None or type(counted) is exp.Literal:
        message = "COUNT takes * or one column"
        reason = Reason("", "write COUNT(*)")
        raise refused(Code.NOT_IN_SUBSET, message, mark, reason=reason)
    if type(counted) is exp.Star:
        only(sql, counted, ())
        return Aggregate("count", "count", mark=mark)
    if type(counted) is not exp.Distinct:
        found = scope.column(counted)
        name = f"count_{found.column.name}"
        return Aggregate(name, "count", found.reference, mark=mark)
    only(sql, counted, ("expressions",))
    columns = counted.args["expressions"]
    if len(columns) != 1:
        raise sql.unread(columns[1], Reason("COUNT(DISTINCT …) takes one column"))
    found = scope.column(columns[0])
    name = f"count_distinct_{found.column.name}"
    return Aggregate(name, "count-distinct", found.reference, mark=mark)


def _moment(node: exp.Expr, scope: Scope) -> Aggregate:
    moment = _MOMENTS[type(node).__name__]
    only(scope.sql, node, ("this",))
    mark = _spend_function(node, scope.sql, moment.names)
    found = _numbers(_needed(node, "this", scope.sql), scope)
    return Aggregate(
        f"{moment.function}_{found.column.name}",
        moment.function,
        found.reference,
        population=moment.population,
        mark=mark,
    )


def _median(node: exp.Expr, scope: Scope) -> Aggregate:
    only(scope.sql, node, ("this",))
    mark = _spend_function(node, scope.sql, ("MEDIAN",))
    found = _numbers(_needed(node, "this", scope.sql), scope)
    half = Fraction(1, 2)
    name = f"median_{found.column.name}"
    return Aggregate(name, "quantile", found.reference, half, mark=mark)


def _quantile(node: exp.Expr, scope: Scope) -> Aggregate:
    only(scope.sql, node, ("this", "quantile"))
    names = ("QUANTILE", "APPROX_QUANTILE")
    mark = _spend_function(node, scope.sql, names)
    found = _numbers(_needed(node, "this", scope.sql), scope)
    share = _share(_needed(node, "quantile", scope.sql), scope.sql)
    return _of_share(found, share, mark)


def _within_group(node: exp.Expr, scope: Scope) -> Aggregate:
    """Return PERCENTILE_CONT(share) WITHIN GROUP (ORDER BY column)."""
    from sqlglot import exp

    sql, called, order = scope.sql, node.this, node.args["expression"]
    only(sql, node, ("this", "expression"))
    if type(called) is not exp.PercentileCont or called.args.get("expression"):
        raise sql.unread(called)
    mark = _spend_function(called, sql, ("PERCENTILE_CONT",))
    only(sql, called, ("this",))
    only(sql, order, ("expressions",))
    orders = order.args["expressions"]
    only(sql, orders[0], ("this", "desc", "nulls_first"))  # Their keywords are left.
    share = _share(_needed(called, "this", sql), sql)
    found = _numbers(_needed(orders[0], "this", sql), scope)
    begin = sql.first(orders[0]) or 0
    words = [sql.word(place) for place in range(begin - 4, begin)]
    if len(orders) != 1 or words != ["WITHIN", "GROUP", "(", "ORDER BY"]:
        raise sql.unread(orders[-1])
    sql.spend(begin - 4, begin - 3, begin - 1)
    return _of_share(found, share, mark)


def _of_share(found: ResolvedColumn, share: Fraction, mark: Mark) -> Aggregate:
    name = f"quantile_{found.column.name}"
    return Aggregate(name, "quantile", found.reference, share, mark=mark)


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


def _numbers(node: exp.Expr, scope: Scope) -> ResolvedColumn:
    """Return the column that a function of numbers is of."""
    from sqlglot import exp

    if type(node) is exp.Distinct:
        reason = Reason("a value counts as often as rows have it", "leave DISTINCT out")
        raise scope.sql.unread_at((scope.sql.first(node) or 1) - 1, reason)
    found = scope.column(node)
    if found.column.type not in _NUMERIC:
        raise refused(
            Code.DOES_NOT_FIT,
            f"`{found.column.name}` is not numeric: it is of type {found.column.type}",
            found.mark,
            reason=Reason("", "use COUNT, or another column"),
        )
    return found


# --- periods of time ------------------------------------------------------------------


def read_period(node: exp.Expr, scope: Scope) -> tuple[ResolvedColumn, Grain] | None:
    """Return the column and the period of a node; None for something else.

    Args:
        node: DATE_TRUNC('day', column), CAST(column AS DATE), column::DATE or
            DATE(column), perhaps.
        scope: The tables that are read.

    Raises:
        InputError: If it is one of these, and not as it is read.
    """
    from sqlglot import exp

    sql = scope.sql
    if type(node) is exp.TimestampTrunc or type(node) is exp.DateTrunc:
        only(sql, node, ("this", "unit"))
        _spend_function(node, sql, ("DATE_TRUNC",))
        grain = _grain(node, sql)
        return _timed(_needed(node, "this", sql), scope), grain
    if type(node) is exp.Date:
        only(sql, node, ("this",))
        _spend_function(node, sql, ("DATE",))
        return _timed(_needed(node, "this", sql), scope), "day"
    if type(node) is exp.Cast:
        found = _timed(_needed(node, "this", sql), scope)
        if spend_type(node, sql) != "date":
            raise sql.unread(node, Reason("", "write CAST(column AS DATE)"))
        return found, "day"
    return None


def _grain(node: exp.Expr, sql: SqlText) -> Grain:
    """Return the quoted word after the bracket of DATE_TRUNC."""
    place = (sql.first(node) or 0) + 2
    written = sql.tokens[place].text.lower()
    if sql.kind(place) != "STRING" or written not in _GRAINS:
        mark = sql.mark(sql.tokens[place])
        raise refused(
            Code.NOT_IN_SUBSET,
            "DATE_TRUNC supports days, weeks, months, quarters and years",
            mark,
            reason=Reason("", "write DATE_TRUNC('day', column)"),
        )
    sql.spend(place)
    return written


def _timed(node: exp.Expr, scope: Scope) -> ResolvedColumn:
    found = scope.column(node)
    if found.column.type not in ("date", "timestamp"):
        raise refused(
            Code.DOES_NOT_FIT,
            f"`{found.column.name}` is not a time: it is of type {found.column.type}",
            found.mark,
            reason=Reason(),
        )
    return found


# --- names and arguments of functions -------------------------------------------------


def _needed(node: exp.Expr, key: str, sql: SqlText) -> exp.Expr:
    """Return a required argument of a function."""
    argument: exp.Expr | None = node.args.get(key)
    if argument is None:
        raise refused(
            Code.NOT_IN_SUBSET,
            "an argument of the function is missing",
            sql.mark_of(node),
            reason=Reason(),
        )
    return argument


def _spend_function(node: exp.Expr, sql: SqlText, names: tuple[str, ...]) -> Mark:
    """Return the position of a function's name, which must be one of some."""
    first = sql.first(node) or 0
    place = first if node.meta.get("start") is not None else first - 2
    if sql.word(place) not in names or sql.word(place + 1) != "(":
        raise sql.unread(node)
    sql.spend(place)
    return sql.mark(sql.tokens[place])


_AGGREGATES: Final = {
    "Count": _count,
    "Median": _median,
    "Quantile": _quantile,
    "ApproxQuantile": _quantile,
    "WithinGroup": _within_group,
    **dict.fromkeys(_MOMENTS, _moment),
}
