"""Functions that choose or compare values: CASE, COALESCE, NULLIF, comparisons."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from modicum.query.expressions.facts import Facts, Misfit, is_null, joined
from modicum.query.expressions.function import Function, Plain, Term, aligned, needs

#: A value is one of at most so many constants.
BOOLEAN: Final = Facts("boolean")


def _case_typed(*parts: Facts) -> Facts:
    """Return the facts of: condition, value, condition, value, …, and another value."""
    needs("WHEN", ("boolean",), *parts[:-1:2])
    return joined(*parts[1::2], parts[-1])


def _case(x: Any, out: Facts, *terms: Term) -> Any:
    values = aligned(x, *terms[1::2], terms[-1], step=out.step)
    found = x.Case()
    for condition, value in zip(terms[:-1:2], values[:-1], strict=True):
        found = found.when(condition.sql, value, copy=False)
    return x.paren(found.else_(values[-1], copy=False), copy=False)


def _case_meant(*values: Plain) -> Plain:
    for condition, value in zip(values[:-1:2], values[1::2], strict=True):
        if condition is True:
            return value
    return values[-1]


def _coalesce(x: Any, out: Facts, *terms: Term) -> Any:
    first, *others = aligned(x, *terms, step=out.step)
    return x.Coalesce(this=first, expressions=others)


def _coalesce_meant(*values: Plain) -> Plain:
    return next((one for one in values if one is not None), None)


def _nullif_typed(one: Facts, other: Facts) -> Facts:
    joined(one, other)  # They are compared.
    zero = other.numeric and other.constant and not other.nonzero
    nonzero = one.nonzero or (zero and not is_null(other))
    return replace(one, nonzero=nonzero, constant=False, value=None)


def _nullif(x: Any, out: Facts, one: Term, other: Term) -> Any:
    if is_null(other.facts):
        return one.sql
    left, right = aligned(x, one, other)
    same = x.EQ(this=left, expression=right)
    found = x.Case().when(same, x.null(), copy=False)
    return x.paren(found.else_(one.sql.copy(), copy=False), copy=False)


def _compared_typed(sign: str) -> Callable[..., Facts]:
    def typed(*parts: Facts) -> Facts:
        found = joined(*parts)
        if found.type == "boolean" and sign not in ("EQ", "NEQ", "NullSafeEQ"):
            raise Misfit("booleans have no order", "", "compare them with = or <>")
        return BOOLEAN

    return typed


def _compared(sign: str) -> Callable[..., Any]:
    def written(x: Any, _out: Facts, one: Term, other: Term) -> Any:
        left, right = aligned(x, one, other)
        return x.paren(getattr(x, sign)(this=left, expression=right), copy=False)

    return written


def _between(x: Any, _out: Facts, *terms: Term) -> Any:
    value, low, high = aligned(x, *terms)
    return x.paren(x.Between(this=value, low=low, high=high), copy=False)


def _between_meant(value: Any, low: Any, high: Any) -> bool | None:
    known = [None if None in (value, one) else sign(value, one)
             for sign, one in ((operator.ge, low), (operator.le, high))]  # fmt: skip
    return False if False in known else None if None in known else True


def _in(x: Any, _out: Facts, *terms: Term) -> Any:
    value, *others = aligned(x, *terms)
    return x.paren(x.In(this=value, expressions=others), copy=False)


def _in_meant(value: Plain, *others: Plain) -> bool | None:
    if value is None:
        return None
    return True if value in others else None if None in others else False


def _comparison(sign: str, meant: Callable[[Any, Any], bool]) -> Function:
    return Function(_compared_typed(sign), _compared(sign), meant)


_COMPARISONS: Final[dict[str, Function]] = {
    "=": _comparison("EQ", operator.eq),
    "<>": _comparison("NEQ", operator.ne),
    "<": _comparison("LT", operator.lt),
    "<=": _comparison("LTE", operator.le),
    ">": _comparison("GT", operator.gt),
    ">=": _comparison("GTE", operator.ge),
    "same": _comparison("NullSafeEQ", operator.eq)._replace(strict=False),
}
CHOICES: Final[dict[str, Function]] = {
    **_COMPARISONS,
    "between": Function(
        _compared_typed("Between"), _between, _between_meant, strict=False,
        copies=(2, 1),
    ),
    "in": Function(
        _compared_typed("EQ"), _in, _in_meant, strict=False
    ),
    "case": Function(_case_typed, _case, _case_meant, strict=False),
    "coalesce": Function(
        joined,
        _coalesce,
        _coalesce_meant,
        ("COALESCE", "IFNULL"),
        nodes=("Coalesce",),
        parts=("this", "expressions"),
        strict=False,
    ),
    "nullif": Function(
        _nullif_typed,
        _nullif,
        lambda one, other: None if one == other else one,
        ("NULLIF",),
        nodes=("Nullif",),
        parts=("this", "expression"),
        strict=False,
        copies=(2, 1),
    ),
}  # fmt: skip
