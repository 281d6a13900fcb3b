"""The outputs of a query: groups, and aggregates with one value each."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from sqlglot import exp

from modicum.core.errors import Code, InputError, Problem

Aggregate: TypeAlias = Literal[
    "rows",
    "count",
    "sum",
    "avg",
    "var_pop",
    "var_samp",
    "stddev_pop",
    "stddev_samp",
    "min",
    "max",
    "median",
    "distinct",
]

_AGGREGATES: Final[dict[type[exp.Expr], Aggregate]] = {
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.VariancePop: "var_pop",
    exp.Variance: "var_samp",
    exp.StddevPop: "stddev_pop",
    exp.StddevSamp: "stddev_samp",
    exp.Stddev: "stddev_samp",
    exp.Min: "min",
    exp.Max: "max",
    exp.Median: "median",
}


@dataclass(frozen=True, slots=True)
class Measure:
    """One aggregate of a query.

    Attributes:
        aggregate: Which one; `rows` is COUNT(*).
        value: Its argument, for a row; None for `rows`.
        called: The text of its output, for messages and tables.
    """

    aggregate: Aggregate
    value: exp.Expr | None
    called: str


def outputs_of(select: exp.Select) -> tuple[tuple[str, bool], ...]:
    """Return the names of a query's outputs, and whether each is a key.

    Args:
        select: The query.

    Raises:
        InputError: If none is an aggregate.
    """
    found = tuple(
        (one.alias_or_name or f"output_{number}", not has_aggregate(one))
        for number, one in enumerate(select.selects)
    )
    if all(key for _, key in found):
        raise unread(
            "the query has no aggregate: its answer would be rows",
            "use COUNT, SUM, AVG, VARIANCE, STDDEV, MIN, MAX or MEDIAN",
        )
    return found


def has_aggregate(tree: exp.Expr) -> bool:
    """Return whether an expression contains an aggregate.

    Args:
        tree: The expression.
    """
    return tree.find(exp.AggFunc) is not None


def keys_of(select: exp.Select, columns: Set[str]) -> tuple[exp.Expr, ...]:
    """Return the grouping keys of a query, as row expressions.

    Args:
        select: The query.
        columns: The names of the columns of its tables, in small letters.

    Raises:
        InputError: If it groups by an aggregate, or by a place that there is not.
    """
    group = select.args.get("group")
    if group is None:
        return ()
    by_alias = {one.alias.lower(): one.this for one in select.selects if one.alias}
    found: list[exp.Expr] = []
    for one in group.expressions:
        key = one
        if isinstance(one, exp.Literal) and not one.is_string:
            key = _selected(select, one.this)
        elif isinstance(one, exp.Column) and not one.table:
            named = one.name.lower()
            # A column of that name has precedence, as in the engine.
            key = one if named in columns else by_alias.get(named, one)
        if has_aggregate(key):
            raise unread(
                f"`{one.sql('duckdb')[:60]}` groups by an aggregate",
                "group by columns, or by expressions on one row",
            )
        found.append(key)
    return tuple(found)


def _selected(select: exp.Select, place: str) -> exp.Expr:
    number = int(place) if place.isdecimal() else 0
    if not 1 <= number <= len(select.selects):
        raise unread(
            f"`GROUP BY {place[:20]}` is not the position of an output",
            f"use a position from 1 to {len(select.selects)}, or a column",
        )
    return select.selects[number - 1].unalias()


def measures_of(select: exp.Select) -> tuple[Measure, ...]:
    """Return the outputs of a query that are aggregates, and nothing more.

    Args:
        select: The query.
    """
    return tuple(
        measure
        for one in select.selects
        if (measure := measure_of(one.unalias())) is not None
    )


def measure_of(output: exp.Expr) -> Measure | None:
    """Return the aggregate that an output is; None if it is anything else.

    Args:
        output: The output, without its name.
    """
    called = output.sql("duckdb")
    condition = None
    if isinstance(output, exp.Filter):
        output, condition = output.this, output.expression.this
    value = output.this
    aggregate = _AGGREGATES.get(type(output))
    if isinstance(output, exp.Count):
        aggregate = "count"
        if isinstance(value, exp.Star) or value is None:
            aggregate, value = "rows", None
        elif isinstance(value, exp.Distinct):
            aggregate = "distinct"
            value = value.expressions[0] if len(value.expressions) == 1 else None
            if value is None:
                return None
    if aggregate is None or output.args.get("expressions"):
        return None
    if isinstance(value, exp.Distinct | exp.Order) or (value and has_aggregate(value)):
        return None
    if condition is not None:
        kept = exp.true() if value is None else value
        value = exp.Case().when(condition.copy(), kept.copy())
        aggregate = "count" if aggregate == "rows" else aggregate
    return Measure(aggregate, value, called)


def no_number(called: str, kind: str) -> InputError:
    """Return the error for an answer that is no number.

    Args:
        called: The text or name of the output.
        kind: Its type, such as `a date or time`.
    """
    return InputError(
        Problem(
            Code.DOES_NOT_FIT,
            f"`{called[:60]}` is {kind}, which is not numeric",
            help="select a number instead, such as its seconds,"
            " EXTRACT(epoch FROM …), or its year, EXTRACT(year FROM …)",
        )
    )


def unread(reason: str, remedy: str) -> InputError:
    """Return the error for an unsupported part of a query.

    Args:
        reason: The part.
        remedy: The remedy.
    """
    return InputError(Problem(Code.NOT_IN_SUBSET, reason, help=remedy))
