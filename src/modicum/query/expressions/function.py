"""A function of expressions: its types, its SQL and its meaning; and common SQL."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from fractions import Fraction
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from modicum.query.expressions.facts import (
    NARROW_MAX,
    WHOLE_MAX,
    WHOLE_MIN,
    A,
    Facts,
    Misfit,
    common_step,
    too_large,
)
from modicum.query.tables import ColumnType

if TYPE_CHECKING:
    from sqlglot import exp

#: A value in Python: numbers are exact, dates and timestamps those of `datetime`.
Plain: TypeAlias = str | int | bool | Fraction | date | None

_BIGINT: Final = "bigint"
_DECIMAL: Final = "decimal(38, 0)"


class Term(NamedTuple):
    """An argument in SQL, and its facts.

    A number is its steps: a `bigint` if they are narrow, else perhaps a decimal.
    """

    sql: exp.Expression
    facts: Facts


class Function(NamedTuple):
    """One function.

    Attributes:
        typed: From the facts of its arguments to those of its values; raises `Misfit`.
        written: From `sqlglot.exp`, the facts of its values and the arguments in SQL
            to its SQL, which no row makes fail.
        meant: From the values of its arguments to its value.
        words: Its names in the text of a query; operators have none.
        nodes: The classes that sqlglot makes of it.
        parts: The arguments in these classes, in order.
        ignored: What else these classes may say.
        strict: Whether it is NULL if an argument is; then `meant` sees no NULL.
        copies: By argument, how often its SQL holds the argument's; the last number is
            also that of all further arguments.
    """

    typed: Callable[..., Facts]
    written: Callable[..., exp.Expression]
    meant: Callable[..., Any]
    words: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    parts: tuple[str, ...] = ("this",)
    ignored: tuple[str, ...] = ()
    strict: bool = True
    copies: tuple[int, ...] = (1,)


def value_of(function: Function, arguments: tuple[Plain, ...]) -> Plain:
    """Return the value of a function in Python."""
    if function.strict and None in arguments:
        return None
    value: Plain = function.meant(*arguments)
    return value


def needs(name: str, kinds: tuple[ColumnType, ...], *parts: Facts) -> None:
    """Refuse arguments of other types than some.

    Raises:
        Misfit: If there is one.
    """
    for one in parts:
        if one.type not in kinds:
            taken = " or ".join(A[kind] for kind in kinds)
            raise Misfit(f"{name} takes {taken}, and this is {A[one.type]}")


def constant(name: str, part: Facts, kind: ColumnType) -> Any:
    """Return the value of an argument that must be written in the query.

    Raises:
        Misfit: If it is no constant, or of another type.
    """
    if not part.constant or part.value is None or part.type != kind:
        message = f"{name} takes {A[kind]} that is written in the query"
        raise Misfit(message, "", "write the value itself")
    return part.value


# --- common SQL -----------------------------------------------------------------------


def call(x: ModuleType, name: str, *arguments: exp.Expression) -> exp.Expression:
    """Return a call of a function that engines know by the same name."""
    made: exp.Expression = x.Anonymous(this=name, expressions=list(arguments))
    return made


def cast(x: ModuleType, value: exp.Expression, kind: str) -> exp.Expression:
    """Return a value as another type, without a copy of it."""
    made: exp.Expression = x.Cast(this=value, to=_type(x, kind).copy())
    return made


@cache
def _type(x: ModuleType, kind: str) -> exp.Expression:
    """Return a type; sqlglot parses its name each time."""
    made: exp.Expression = x.DataType.build(kind)
    return made


def pair(
    x: ModuleType, sign: str, left: exp.Expression, right: exp.Expression
) -> exp.Expression:
    """Return an operation on two arguments, in brackets.

    Args:
        x: The module `sqlglot.exp`.
        sign: The name of its class there.
        left: The first argument.
        right: The second one.
    """
    made: exp.Expression = x.paren(
        getattr(x, sign)(this=left, expression=right), copy=False
    )
    return made


def whole(x: ModuleType, value: int, *, narrow: bool = True) -> exp.Expression:
    """Return an integer of 64 bits, or of 38 digits."""
    digits = x.Literal.number(abs(value))
    signed = x.Neg(this=digits) if value < 0 else digits
    made: exp.Expression = cast(x, signed, _BIGINT if narrow else _DECIMAL)
    return made


def text(x: ModuleType, value: str) -> exp.Expression:
    """Return a text."""
    made: exp.Expression = x.Literal.string(value)
    return made


def steps(
    x: ModuleType, term: Term, step: Fraction, *, narrow: bool = True
) -> exp.Expression:
    """Return a number in other steps, of which its own is a multiple.

    Args:
        x: The module `sqlglot.exp`.
        term: The number.
        step: The other step.
        narrow: Whether 64 bits are enough for it, and for what is computed of it.
    """
    times = int(term.facts.step / step) if term.facts.farthest else 1
    if term.facts.constant and term.facts.value is not None:
        return whole(x, term.facts.low * times, narrow=narrow)
    value = term.sql if narrow else cast(x, term.sql, _DECIMAL)
    return (
        value if times == 1 else pair(x, "Mul", value, whole(x, times, narrow=narrow))
    )


def aligned(
    x: ModuleType, *terms: Term, step: Fraction | None = None
) -> list[exp.Expression]:
    """Return values that can be compared: numbers in common steps.

    Args:
        x: The module `sqlglot.exp`.
        terms: The values, of one type.
        step: The common step, if it is known.
    """
    known = [one for one in terms if one.facts.numeric and not _is_null(one)]
    if not known:
        return [one.sql for one in terms]
    step = common_step(*(one.facts for one in known)) if step is None else step
    reach = max(one.facts.farthest * int(one.facts.step / step) for one in known)
    narrow = reach <= NARROW_MAX
    return [one.sql if _is_null(one) else steps(x, one, step, narrow=narrow)
            for one in terms]  # fmt: skip


def _is_null(term: Term) -> bool:
    return term.facts.constant and term.facts.value is None


def in_64_bits(part: Facts) -> None:
    """Refuse a number with more than 64 bits.

    Raises:
        Misfit: If it may have more.
    """
    if part.low < WHOLE_MIN or part.high > WHOLE_MAX:
        raise too_large(part.endless)


def bigint(x: ModuleType, term: Term) -> exp.Expression:
    """Return steps as an integer of 64 bits, for which `in_64_bits` holds."""
    made: exp.Expression = term.sql if term.facts.narrow else cast(x, term.sql, _BIGINT)
    return made


def floor_div(
    x: ModuleType, value: exp.Expression, by: int, low: int, high: int
) -> exp.Expression:
    """Return the integer at or below a quotient.

    Engines round integer quotients towards zero, so the dividend is made positive.

    Args:
        x: The module `sqlglot.exp`.
        value: An integer of 64 bits, from low to high.
        by: The divisor, above 0.
        low: The least dividend.
        high: The greatest one.
    """
    if by == 1:
        return value
    more = 0 if low >= 0 else -(low // by)
    if high + more * by > WHOLE_MAX:  # Then the remainder tells the sign.
        rest = x.Mod(this=value.copy(), expression=whole(x, by))
        below = x.LT(this=x.paren(rest), expression=whole(x, 0))
        less = x.Case().when(below, whole(x, 1)).else_(whole(x, 0))
        return pair(x, "Sub", _int_div(x, value, whole(x, by)), less)
    if more:
        value = pair(x, "Add", value, whole(x, more * by))
    found = _int_div(x, value, whole(x, by))
    return pair(x, "Sub", found, whole(x, more)) if more else found


def _int_div(
    x: ModuleType, value: exp.Expression, by: exp.Expression
) -> exp.Expression:
    made: exp.Expression = x.paren(x.IntDiv(this=value, expression=by), copy=False)
    return made


def int_div(x: ModuleType, value: exp.Expression, by: exp.Expression) -> exp.Expression:
    """Return an integer quotient, rounded towards zero; the divisor is never 0."""
    made: exp.Expression = cast(x, _int_div(x, value, by), _BIGINT)
    return made
