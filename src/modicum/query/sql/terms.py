"""Expressions in SQL."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from typing import Final

from sqlglot import exp

from modicum.query.expressions.facts import (
    NARROW_MAX,
    Facts,
    of_column,
    of_constant,
)
from modicum.query.expressions.function import Term, cast, whole
from modicum.query.expressions.table import FUNCTIONS
from modicum.query.model import (
    AllOf,
    AnyOf,
    Call,
    ColumnRef,
    Compare,
    Comparison,
    Expression,
    IsIn,
    IsNull,
    Literal,
    Not,
)
from modicum.query.sql import expressions as sql
from modicum.query.sql.names import Names
from modicum.query.tables import Column, ColumnType, Value

_OPERATORS: Final[dict[Comparison, type[exp.Expression]]] = {
    "=": exp.EQ,
    "<>": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}
_BOOLEAN: Final = Facts("boolean")


def term(what: Expression, names: Names) -> Term:
    """Return an expression in SQL, with its facts; unknown where SQL defines it so."""
    match what:
        case ColumnRef():
            column = names.declared(what)
            return Term(_read(names.column(what), column), of_column(column))
        case Literal(value=value, type=kind):
            return _constant(value, kind)
        case Call(function=name, arguments=arguments):
            return _called(name, [term(one, names) for one in arguments])
        case _:
            return Term(exp.paren(condition(what, names), copy=False), _BOOLEAN)


def condition(what: Expression, names: Names) -> exp.Expression:
    """Return a condition on one row; unknown where SQL defines it so."""
    match what:
        case Compare(column=column) | IsIn(column=column) if (
            names.declared(column).counted  # It is stored in steps.
        ):
            return term(_as_call(what, names.declared(column).type), names).sql
        case Compare(column=column, operator=operator, value=value):
            right = sql.literal(value, names.declared(column).type)
            return _OPERATORS[operator](this=names.column(column), expression=right)
        case IsIn(column=column, values=values):
            kind = names.declared(column).type
            literals = [sql.literal(value, kind) for value in values]
            return exp.In(this=names.column(column), expressions=literals)
        case IsNull(value=value):
            inner = (
                names.column(value)
                if isinstance(value, ColumnRef)
                else term(value, names).sql
            )
            return exp.Is(this=inner, expression=exp.null())
        case Not(inner=inner):
            return exp.Not(this=exp.paren(condition(inner, names), copy=False))
        case AllOf(parts=parts):
            return sql.all_of(condition(part, names) for part in parts)
        case AnyOf(parts=parts):
            return sql.any_of(condition(part, names) for part in parts)
        case _:
            return term(what, names).sql


def _as_call(what: Compare | IsIn, kind: ColumnType) -> Call:
    """Return a comparison of a stored column as one of an expression."""
    if isinstance(what, Compare):
        return Call(what.operator, (what.column, Literal(what.value, kind)))
    listed = (Literal(value, kind) for value in what.values)
    return Call("in", (what.column, *listed))


def _read(value: exp.Expression, column: Column) -> exp.Expression:
    """Return a column as it counts in an expression."""
    facts = of_column(column)
    if column.type == "number" or (facts.numeric and not facts.endless):
        return sql.in_steps(value, column, facts.low, facts.high)
    if column.type in ("date", "timestamp"):
        ours = sql.on_days(value.copy(), column.type, date.min, date.max)
        return exp.paren(exp.Case().when(ours, value, copy=False))
    return value


def _constant(value: Value | None, kind: ColumnType) -> Term:
    facts = of_constant(value, kind)
    if value is None:
        steps = "integer" if facts.numeric else kind
        return Term(exp.cast(exp.null(), sql.sql_type(steps)), facts)
    if facts.numeric:
        return Term(whole(exp, facts.low, narrow=facts.narrow), facts)
    return Term(sql.literal(value, kind), facts)


def _called(name: str, parts: list[Term]) -> Term:
    """Return the call of a function; steps that are narrow have 64 bits."""
    function = FUNCTIONS[name]
    facts = function.typed(*(one.facts for one in parts))
    written = function.written(exp, facts, *parts)
    if (
        facts.numeric
        and facts.narrow
        and any(_may_be_wide(one, facts) for one in parts)
    ):
        written = cast(exp, written, "bigint")
    return Term(written, facts)


def _may_be_wide(part: Term, result: Facts) -> bool:
    """Return whether an argument may be a decimal in the steps of a result."""
    facts = part.facts
    times = max(facts.step / result.step, Fraction(1))
    return facts.numeric and facts.farthest * times > NARROW_MAX
