"""Functions of numbers: exact, in integers of steps."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from modicum.query.expressions.facts import (
    NARROW_MAX,
    NUMERIC,
    A,
    Facts,
    Misfit,
    at_step,
    common_step,
    joined,
    number,
    too_large,
)
from modicum.query.expressions.function import (
    Function,
    Term,
    aligned,
    bigint,
    call,
    cast,
    constant,
    floor_div,
    in_64_bits,
    int_div,
    needs,
    pair,
    steps,
    whole,
)

if TYPE_CHECKING:
    pass

#: A quotient of two expressions is rounded to a multiple of this.
QUOTIENT_STEP: Final = Fraction(1, 10**6)
_DIGITS_MAX: Final = 12
_BUCKETS_MAX: Final = 100_000


def _whole(*parts: Facts) -> bool:
    return all(one.type == "integer" for one in parts)


def _corners(one: Facts, other: Facts) -> tuple[int, int]:
    found = [a * b for a in (one.low, one.high) for b in (other.low, other.high)]
    return min(found), max(found)


# --- sums and products ----------------------------------------------------------------


def _plus_typed(one: Facts, other: Facts) -> Facts:
    needs("+", NUMERIC, one, other)
    step = common_step(one, other)
    (low, high), (less, more) = at_step(one, step), at_step(other, step)
    both = one, other
    number(step, min(low, less), max(high, more), *both)  # It is computed with them.
    return number(step, low + less, high + more, *both, whole=_whole(*both))


def _plus(x: Any, out: Facts, one: Term, other: Term, sign: str = "Add") -> Any:
    narrow = out.narrow and all(
        max(map(abs, at_step(term.facts, out.step))) <= NARROW_MAX
        for term in (one, other)
    )
    left, right = (steps(x, term, out.step, narrow=narrow) for term in (one, other))
    return pair(x, sign, left, right)


def _minus_typed(one: Facts, other: Facts) -> Facts:
    needs("-", NUMERIC, one, other)
    return _plus_typed(one, _negative_typed(other))


def _minus(x: Any, out: Facts, one: Term, other: Term) -> Any:
    return _plus(x, out, one, other, "Sub")


def _negative_typed(one: Facts) -> Facts:
    needs("-", NUMERIC, one)
    return number(one.step, -one.high, -one.low, one, whole=_whole(one))


def _negative(x: Any, out: Facts, one: Term) -> Any:
    return pair(x, "Sub", whole(x, 0), steps(x, one, out.step, narrow=out.narrow))


def _times_typed(one: Facts, other: Facts) -> Facts:
    needs("*", NUMERIC, one, other)
    if _whole(one, other):
        return number(Fraction(1), *_corners(one, other), one, other, whole=True)
    for factor, part in ((one, other), (other, one)):
        if factor.constant and factor.nonzero:
            return _scaled(part, factor.step * factor.low)
    return number(one.step * other.step, *_corners(one, other), one, other)


def _scaled(part: Facts, factor: Fraction) -> Facts:
    """Return the facts of a number times a constant: only its step changes."""
    ends = (part.low, part.high) if factor > 0 else (-part.high, -part.low)
    return number(part.step * abs(factor), *ends, part)


def _times(x: Any, out: Facts, one: Term, other: Term) -> Any:
    if not _whole(one.facts, other.facts):
        for factor, term in ((one.facts, other), (other.facts, one)):
            if factor.constant and factor.nonzero:
                return _rescaled(x, term, negative=factor.low < 0)
    narrow = out.narrow and one.facts.narrow and other.facts.narrow
    left, right = (
        steps(x, term, term.facts.step, narrow=narrow) for term in (one, other)
    )
    return pair(x, "Mul", left, right)


def _rescaled(x: Any, term: Term, *, negative: bool) -> Any:
    return _negative(x, term.facts, term) if negative else term.sql


# --- quotients ------------------------------------------------------------------------


def _divided_typed(one: Facts, other: Facts) -> Facts:
    _refuse_zero(one, other)
    return _scaled(one, 1 / (other.step * other.low))


def _refuse_zero(one: Facts, other: Facts) -> None:
    needs("/", NUMERIC, one, other)
    if not other.nonzero and other.low <= 0 <= other.high:
        raise Misfit(
            "this may divide by 0",
            "engines disagree about it",
            "write x / NULLIF(y, 0), which is NULL where y is 0; or WHERE y > 0",
        )


def _ratio_typed(one: Facts, other: Facts) -> Facts:
    _refuse_zero(one, other)
    least = max(other.low, -other.high, 1)
    most = math.ceil(one.farthest * one.step / (other.step * least) / QUOTIENT_STEP) + 1
    up, down = _factors(one, other)
    if max(max(one.farthest, 1) * up, other.farthest * down) > 2**60:
        raise too_large(one.endless or other.endless)
    low = 0 if one.low >= 0 and other.low >= 0 else -most
    return number(QUOTIENT_STEP, low, most, one, other)


def _factors(one: Facts, other: Facts) -> tuple[int, int]:
    """Return by what steps are multiplied, so that their quotient is the result's."""
    ratio = one.step / other.step / QUOTIENT_STEP
    return ratio.numerator, ratio.denominator


def _divided(x: Any, out: Facts, one: Term, other: Term) -> Any:
    return _rescaled(x, one, negative=other.facts.low < 0)


def _ratio(x: Any, out: Facts, one: Term, other: Term) -> Any:
    up, down = _factors(one.facts, other.facts)
    above = pair(x, "Mul", bigint(x, one), whole(x, 2 * up))
    below = pair(x, "Mul", bigint(x, other), whole(x, down))
    size = below.copy() if other.facts.low >= 0 else call(x, "ABS", below.copy())
    if one.facts.low < 0:
        minus = pair(x, "Sub", whole(x, 0), size.copy())
        negative = x.LT(this=one.sql.copy(), expression=whole(x, 0))
        size = x.Case().when(negative, minus).else_(size)
    above = pair(x, "Add", above, x.paren(size))
    return int_div(x, above, pair(x, "Mul", below, whole(x, 2)))


def _nearest(value: Fraction) -> int:
    """Return the nearest integer, of two the one farther from 0."""
    found = math.floor(abs(value) + Fraction(1, 2))
    return found if value >= 0 else -found


def _ratio_meant(one: Fraction, other: Fraction) -> Fraction:
    return _nearest(Fraction(one) / Fraction(other) / QUOTIENT_STEP) * QUOTIENT_STEP


def _modulo_typed(one: Facts, other: Facts) -> Facts:
    needs("%", NUMERIC, one, other)
    if not other.constant or not other.nonzero:
        raise Misfit("% takes a constant other than 0 on its right side")
    step = common_step(one, other)
    low, high = at_step(one, step)
    most = abs(at_step(other, step)[0]) - 1
    _refuse_long(one, low, high, most)
    ends = max(low, -most) if low < 0 else 0, min(high, most) if high > 0 else 0
    return Facts("integer" if _whole(one, other) else "number", step, *ends)


def _modulo(x: Any, out: Facts, one: Term, other: Term) -> Any:
    by = abs(at_step(other.facts, out.step)[0])
    value = bigint(x, Term(steps(x, one, out.step), one.facts))
    return pair(x, "Mod", value, whole(x, by))


def _modulo_meant(one: Fraction, other: Fraction) -> Fraction:
    rest = abs(Fraction(one)) % abs(Fraction(other))
    return rest if one >= 0 else -rest


def _floor_quotient_typed(one: Facts, other: Facts) -> Facts:
    needs("//", ("integer",), one, other)
    if not other.constant or other.low <= 0:
        raise Misfit("// takes a constant above 0 on its right side")
    in_64_bits(one)
    low, high = (_cut(end, other.low) for end in (one.low, one.high))
    return number(Fraction(1), low, high, whole=True)


def _cut(value: int, by: int) -> int:
    return value // by if value >= 0 else -(-value // by)


def _floor_quotient(x: Any, out: Facts, one: Term, other: Term) -> Any:
    return int_div(x, bigint(x, one), whole(x, other.facts.low))


# --- rounding -------------------------------------------------------------------------


def _refuse_long(part: Facts, *numbers: int) -> None:
    """Refuse integers that are computed of a number and have more than 64 bits."""
    in_64_bits(number(Fraction(1), min(numbers), max(numbers), part))


def _floor_typed(one: Facts) -> Facts:
    needs("FLOOR", NUMERIC, one)
    times, by = one.step.numerator, one.step.denominator
    _refuse_long(one, one.low * times, one.high * times, 2 * by)
    low, high = (math.floor(end * one.step) for end in (one.low, one.high))
    return number(Fraction(1), low, high, one, whole=True)


def _floor(x: Any, out: Facts, one: Term) -> Any:
    return _floored(x, one, one.facts.step)


def _floored(x: Any, one: Term, step: Fraction) -> Any:
    """Return the integers at or below numbers whose step is given."""
    times, by = step.numerator, step.denominator
    value = bigint(x, one)
    if times != 1:
        value = pair(x, "Mul", value, whole(x, times))
    return floor_div(x, value, by, one.facts.low * times, one.facts.high * times)


def _ceil_typed(one: Facts) -> Facts:
    needs("CEIL", NUMERIC, one)
    if one.step.denominator == 1:
        return _floor_typed(one)
    return _negative_typed(_floor_typed(_negative_typed(one)))


def _ceil(x: Any, out: Facts, one: Term) -> Any:
    if one.facts.step.denominator == 1:
        return _floor(x, out, one)
    turned = Term(_negative(x, one.facts, one), _negative_typed(one.facts))
    found = _floored(x, turned, one.facts.step)
    return pair(x, "Sub", whole(x, 0), found)


def _round_typed(one: Facts, *more: Facts) -> Facts:
    needs("ROUND", NUMERIC, one)
    digits = constant("ROUND", more[0], "integer") if more else 0
    if not -_DIGITS_MAX <= digits <= _DIGITS_MAX:
        message = f"ROUND takes -{_DIGITS_MAX} to {_DIGITS_MAX} digits"
        raise Misfit(message, "", "write fewer digits: ROUND(column, 2)")
    if one.type == "integer" and digits >= 0:
        return one
    to = Fraction(10) ** -digits
    ratio = one.step / to
    times, by = ratio.numerator, ratio.denominator
    _refuse_long(one, 4 * one.low * times, 4 * one.high * times, 4 * times, 4 * by)
    low, high = (_nearest(end * ratio) for end in (one.low, one.high))
    if digits > 0:
        return number(to, low, high, one)
    return number(Fraction(1), low * int(to), high * int(to), one, whole=True)


def _round(x: Any, out: Facts, one: Term, *more: Term) -> Any:
    digits = int(more[0].facts.low) if more else 0
    if one.facts.type == "integer" and digits >= 0:
        return one.sql
    to = Fraction(10) ** -digits
    ratio, back = one.facts.step / to, int(to / out.step)
    by = ratio.denominator
    value = pair(x, "Mul", bigint(x, one), whole(x, 2 * ratio.numerator))
    half = whole(x, by)
    if one.facts.low < 0:
        negative = x.LT(this=one.sql.copy(), expression=whole(x, 0))
        half = x.paren(x.Case().when(negative, whole(x, -by)).else_(whole(x, by)))
    found = int_div(x, pair(x, "Add", value, half), whole(x, 2 * by))
    if back == 1:
        return found
    if not out.narrow:
        found = cast(x, found, "decimal(38, 0)")
    return pair(x, "Mul", found, whole(x, back, narrow=out.narrow))


def _round_meant(one: Fraction, digits: int = 0) -> Fraction:
    to = Fraction(10) ** -digits
    return _nearest(Fraction(one) / to) * to


# --- others ---------------------------------------------------------------------------


def _abs_typed(one: Facts) -> Facts:
    needs("ABS", NUMERIC, one)
    low = 0 if one.low < 0 < one.high else min(abs(one.low), abs(one.high))
    return number(one.step, low, one.farthest, one, whole=_whole(one))


def _abs(x: Any, out: Facts, one: Term) -> Any:
    return call(x, "ABS", steps(x, one, out.step, narrow=one.facts.narrow))


def _sign_typed(one: Facts) -> Facts:
    needs("SIGN", NUMERIC, one)
    return Facts("integer", low=-1, high=1)


def _sign(x: Any, out: Facts, one: Term) -> Any:
    return cast(x, call(x, "SIGN", one.sql), "bigint")


def _extremes(parts: tuple[Facts, ...]) -> tuple[Facts, list[tuple[int, int]]]:
    """Return the facts of one of some numbers, and the limits of those never NULL."""
    found = joined(*parts)
    if not found.numeric:
        raise Misfit(f"LEAST and GREATEST take numbers, and this is {A[found.type]}")
    sure = [one for one in parts if one.constant and one.value is not None]
    return found, [at_step(one, found.step) for one in sure]


def _least_typed(*parts: Facts) -> Facts:
    found, sure = _extremes(parts)  # NULL is skipped: the others may not count.
    return replace(found, high=min([found.high, *(high for _, high in sure)]))


def _greatest_typed(*parts: Facts) -> Facts:
    found, sure = _extremes(parts)
    return replace(found, low=max([found.low, *(low for low, _ in sure)]))


def _least(x: Any, out: Facts, *terms: Term) -> Any:
    return call(x, "LEAST", *aligned(x, *terms, step=out.step))


def _greatest(x: Any, out: Facts, *terms: Term) -> Any:
    return call(x, "GREATEST", *aligned(x, *terms, step=out.step))


def _least_meant(*values: Fraction | None) -> Fraction | None:
    return min((one for one in values if one is not None), default=None)


def _greatest_meant(*values: Fraction | None) -> Fraction | None:
    return max((one for one in values if one is not None), default=None)


def _bucket_typed(one: Facts, low: Facts, high: Facts, count: Facts) -> Facts:
    needs("WIDTH_BUCKET", NUMERIC, one, low, high)
    many = constant("WIDTH_BUCKET", count, "integer")
    if not (low.constant and high.constant) or low.value is None or high.value is None:
        raise Misfit("WIDTH_BUCKET takes constant limits")
    if not 1 <= many <= _BUCKETS_MAX:
        raise Misfit(
            f"WIDTH_BUCKET takes 1 to {_BUCKETS_MAX} bands",
            "each of them is a group",
            "write fewer: WIDTH_BUCKET(column, 0, 100, 10)",
        )
    first, last = Fraction(low.value), Fraction(high.value)
    if not first < last:
        raise Misfit(
            "WIDTH_BUCKET takes a lower limit and then a higher one",
            "",
            "write WIDTH_BUCKET(column, 0, 100, 10)",
        )
    lowest, highest = (
        _bucket_meant(end * one.step, first, last, many) for end in (one.low, one.high)
    )
    times, off, by = _bucket_numbers(one.step, first, last, many)
    ends = one.low * times, one.high * times, off, 2 * by, times
    _refuse_long(one, *(2 * end for end in ends), -2 * sum(map(abs, ends)))
    return number(Fraction(1), lowest, highest, whole=True)


def _bucket_numbers(
    step: Fraction, first: Fraction, last: Fraction, many: int
) -> tuple[int, int, int]:
    """Return integers so that n steps lie in bucket (n * times - off) / by, from 0."""
    rate, start = many / (last - first) * step, many / (last - first) * first
    by = math.lcm(rate.denominator, start.denominator)
    return int(rate * by), int(start * by), by


def _bucket(x: Any, out: Facts, one: Term, low: Term, high: Term, count: Term) -> Any:
    first, last = (Fraction(end.facts.low) * end.facts.step for end in (low, high))
    many = count.facts.low
    times, off, by = _bucket_numbers(one.facts.step, first, last, many)
    value = pair(x, "Mul", bigint(x, one), whole(x, times))
    value = pair(x, "Sub", value, whole(x, off))
    ends = (end * times - off for end in (one.facts.low, one.facts.high))
    found = pair(x, "Add", floor_div(x, value, by, *ends), whole(x, 1))
    limited = call(
        x, "GREATEST", whole(x, 0), call(x, "LEAST", found, whole(x, many + 1))
    )
    known = x.Not(this=x.Is(this=one.sql.copy(), expression=x.null()))
    return x.paren(x.Case().when(known, limited))


def _bucket_meant(one: Fraction, first: Fraction, last: Fraction, many: int) -> int:
    place = math.floor((Fraction(one) - first) * many / (Fraction(last) - first)) + 1
    return min(max(place, 0), many + 1)


_BOTH: Final = ("this", "expression")
_MANY: Final = ("this", "expressions")
_SUMS: Final[dict[str, Function]] = {
    "plus": Function(
        _plus_typed, _plus, lambda a, b: a + b, nodes=("Add",), parts=_BOTH
    ),
    "minus": Function(
        _minus_typed, _minus, lambda a, b: a - b, nodes=("Sub",), parts=_BOTH
    ),
    "negative": Function(_negative_typed, _negative, lambda a: -a, nodes=("Neg",)),
    "times": Function(
        _times_typed, _times, lambda a, b: a * b, nodes=("Mul",), parts=_BOTH
    ),
    "divided": Function(_divided_typed, _divided, lambda a, b: Fraction(a) / b),
    "ratio": Function(_ratio_typed, _ratio, _ratio_meant, copies=(2, 3)),
    "quotient": Function(
        _floor_quotient_typed,
        _floor_quotient,
        lambda a, b: _cut(int(a), int(b)),
        nodes=("IntDiv",),
        parts=_BOTH,
    ),
    "modulo": Function(
        _modulo_typed, _modulo, _modulo_meant, ("MOD",), nodes=("Mod",), parts=_BOTH
    ),
}
NUMBERS: Final[dict[str, Function]] = {
    **_SUMS,
    "floor": Function(
        _floor_typed, _floor, math.floor, ("FLOOR",), nodes=("Floor",), copies=(2,)
    ),
    "ceil": Function(
        _ceil_typed, _ceil, math.ceil, ("CEIL", "CEILING"), nodes=("Ceil",), copies=(2,)
    ),
    "round": Function(
        _round_typed,
        _round,
        _round_meant,
        ("ROUND",),
        nodes=("Round",),
        parts=("this", "decimals"),
        copies=(2, 1),
    ),
    "abs": Function(_abs_typed, _abs, abs, ("ABS",), nodes=("Abs",)),
    "sign": Function(
        _sign_typed, _sign, lambda a: (a > 0) - (a < 0), ("SIGN",), nodes=("Sign",)
    ),
    "least": Function(
        _least_typed,
        _least,
        _least_meant,
        ("LEAST",),
        nodes=("Least",),
        parts=_MANY,
        ignored=("ignore_nulls",),
        strict=False,
    ),
    "greatest": Function(
        _greatest_typed,
        _greatest,
        _greatest_meant,
        ("GREATEST",),
        nodes=("Greatest",),
        parts=_MANY,
        ignored=("ignore_nulls",),
        strict=False,
    ),
    "width_bucket": Function(
        _bucket_typed,
        _bucket,
        _bucket_meant,
        ("WIDTH_BUCKET",),
        nodes=("WidthBucket",),
        parts=("this", "min_value", "max_value", "num_buckets"),
        copies=(2, 1),
    ),
}
