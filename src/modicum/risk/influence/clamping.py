"""Values outside of public bounds count as the nearer one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from modicum.risk.outputs import Measure, measure_of
from modicum.risk.question import Question
from modicum.risk.sensitivity import PublicBounds

_COUNTED = frozenset({"rows", "count", "distinct"})


def clamped(question: Question, bounds: PublicBounds) -> Question:
    """Return a query whose values lie within their bounds.

    Args:
        question: The query.
        bounds: What is declared; values without bounds stay as they are.
    """
    measures = tuple(_clamped(one, bounds) for one in question.measures)
    return replace(question, measures=measures)


def _clamped(measure: Measure, bounds: PublicBounds) -> Measure:
    declared = bounds.of(measure)
    if declared is None or measure.value is None or measure.aggregate in _COUNTED:
        return measure
    value = exp.cast(exp.paren(measure.value.copy()), "double")
    low, high = (_double(one) for one in declared)
    inside = (
        exp.Case()
        .when(exp.LT(this=value, expression=low), low.copy())
        .when(exp.GT(this=value.copy(), expression=high), high.copy())
        .else_(value.copy())
    )
    return replace(measure, value=inside)


def _double(value: Fraction) -> exp.Expr:
    return exp.cast(exp.Literal.string(repr(float(value))), "double")


def asked_within(question: Question) -> Question:
    """Return a query whose text, too, has the values of its measures.

    Args:
        question: The query, as `clamped` returns it; it has a closed form.
    """
    select = question.select.copy()
    measured = iter(question.measures)
    for output in select.selects:
        plain = output.unalias()
        own = measure_of(plain)
        if own is None:
            continue
        measure = next(measured)
        if measure.value is None or measure.value == own.value:
            continue
        aggregate = plain.this if isinstance(plain, exp.Filter) else plain
        aggregate.set("this", measure.value.copy())  # It has the condition of FILTER.
        if aggregate is not plain:
            plain.replace(aggregate.copy())
    return replace(question, select=select)
