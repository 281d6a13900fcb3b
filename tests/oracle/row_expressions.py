"""What an expression is in one row, by the clauses of the specification. Slow, obvious.

Numbers are fractions, exactly; NULL is None. Nothing of the product is called but the
classes that an expression is made of.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

from modicum.query.model import (
    AllOf,
    AnyOf,
    Call,
    ColumnRef,
    Compare,
    Expression,
    IsIn,
    IsNull,
    Literal,
    Not,
    Released,
    Window,
)
from modicum.query.tables import Column, Tables

Row = Mapping[str, Mapping[str, Any]]
_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def steps_of(value: Any, column: Column, low: int, high: int) -> int:
    """A value in whole steps, as the definition of numbers says, in floats."""
    if column.counted:
        exact = Fraction(value) / column.step
        return min(max(int(exact), low), high)
    if column.type == "integer":
        return int(min(max(value, low), high))
    bounded: float = min(
        max(value, float(low * column.step)), float(high * column.step)
    )
    if (1 / column.step).denominator == 1:
        return math.floor(bounded * float(1 / column.step) + 0.5)
    return math.floor(bounded / float(column.step) + 0.5)


class Meaning:
    """The meaning of expressions over the columns of some tables."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables

    def column(self, reference: ColumnRef) -> Column:
        return self.tables.by_name[reference.table].columns[reference.column]

    def of(self, what: Expression, row: Row) -> Any:
        """The value of an expression in a row, in which NaN is NULL already."""
        match what:
            case ColumnRef(table=table, column=name):
                return self.read(row[table][name], self.column(what))
            case Literal(value=value, type=kind):
                return _typed(value, kind)
            case Call(function=name, arguments=arguments):
                values = [self.of(one, row) for one in arguments]
                return called(name, values, arguments)
            case IsNull(value=ColumnRef(table=table, column=name)):
                return row[table][name] is None
            case IsNull(value=inner):
                return self.of(inner, row) is None
            case Released() | Window():
                raise AssertionError(what)  # They are of answers.
            case _:
                return self.holds(what, row)

    def holds(
        self, what: Not | AllOf | AnyOf | Compare | IsIn, row: Row
    ) -> bool | None:
        """Whether a condition holds in a row; None for unknown."""
        match what:
            case Not(inner=inner):
                found = self.of(inner, row)
                return None if found is None else not found
            case AllOf(parts=parts):
                each = [self.of(part, row) for part in parts]
                return False if False in each else None if None in each else True
            case AnyOf(parts=parts):
                each = [self.of(part, row) for part in parts]
                return True if True in each else None if None in each else False
            case Compare(column=reference, operator=sign, value=value):
                left = row[reference.table][reference.column]
                right = self.literal(value, reference)
                return None if left is None else bool(_SIGNS[sign](left, right))
            case IsIn(column=reference, values=listed):
                left = row[reference.table][reference.column]
                if left is None:
                    return None
                return left in [self.literal(one, reference) for one in listed]

    def literal(self, value: Any, reference: ColumnRef) -> Any:
        """A value that a stored column is compared with."""
        kind, counted = self.column(reference).type, self.column(reference).counted
        if counted:
            return Fraction(value)
        return float(value) if kind == "number" else _typed(value, kind)

    def read(self, value: Any, column: Column) -> Any:
        """A column as it counts in an expression."""
        if value is None or column.type not in {"integer", "number"}:
            return value
        if column.low is not None and column.high is not None:
            low, high = int(column.low / column.step), int(column.high / column.step)
        elif column.type == "integer":
            return Fraction(value)
        else:
            low, high = -(2**53), 2**53
        return steps_of(value, column, low, high) * column.step


def _typed(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "date":
        return date.fromisoformat(value)
    if kind == "timestamp":
        return datetime.fromisoformat(value)
    return Fraction(value) if kind in {"integer", "number"} else value


def called(name: str, values: list[Any], arguments: tuple[Expression, ...]) -> Any:
    """The value of a function."""
    lazy = _LAZY.get(name)
    if lazy is not None:
        return lazy(values)
    if None in values:
        return None
    if name in _SIGNS:
        return bool(_SIGNS[name](*values))
    return _STRICT[name](*values)


def _case(values: list[Any]) -> Any:
    *pairs, other = values
    for place in range(0, len(pairs), 2):
        if pairs[place] is True:
            return pairs[place + 1]
    return other


def _known(values: list[Any]) -> list[Any]:
    return [one for one in values if one is not None]


def _in(values: list[Any]) -> Any:
    value, *listed = values
    if value is None:
        return None
    return True if value in _known(listed) else None if None in listed else False


def _between(values: list[Any]) -> Any:
    value, low, high = values
    above = None if None in (value, low) else value >= low
    below = None if None in (value, high) else value <= high
    if above is False or below is False:
        return False
    return None if above is None or below is None else True


def _nullif(values: list[Any]) -> Any:
    value, other = values
    return None if value is not None and value == other else value


_LAZY: dict[str, Callable[[list[Any]], Any]] = {
    "case": _case,
    "coalesce": lambda values: next(iter(_known(values)), None),
    "nullif": _nullif,
    "same": lambda values: values[0] == values[1],
    "in": _in,
    "between": _between,
    "least": lambda values: min(_known(values), default=None),
    "greatest": lambda values: max(_known(values), default=None),
    "concat": lambda values: "".join(_known(values)),
    "packed": lambda values: "".join(map(_packed, values)),
}


def _cut(value: Fraction) -> int:
    """The integer next to a number, towards 0."""
    return math.floor(value) if value >= 0 else math.ceil(value)


def _round(value: Fraction, digits: Fraction = Fraction(0)) -> Fraction:
    """The nearest number with some digits; of two, the one that is farther from 0."""
    scaled = value * Fraction(10) ** int(digits)
    half = Fraction(1, 2) if scaled >= 0 else Fraction(-1, 2)
    return _cut(scaled + half) / Fraction(10) ** int(digits)


def _bucket(value: Any, low: Any, high: Any, count: Any) -> int:
    if value < low:
        return 0
    if value >= high:
        return int(count) + 1
    width = (high - low) / count
    return next(n for n in range(1, int(count) + 1) if value < low + n * width)


_LOWER = {chr(n): chr(n + 32) for n in range(ord("A"), ord("Z") + 1)}
_UPPER = {small: large for large, small in _LOWER.items()}


def _letters(text: str, turned: Mapping[str, str]) -> str:
    return "".join(turned.get(one, one) for one in text)


def _like(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(_like(text[n:], pattern[1:]) for n in range(len(text) + 1))
    first = bool(text) and pattern[0] in ("_", text[0])
    return first and _like(text[1:], pattern[1:])


def _trim(text: str) -> str:
    while text[:1] == " ":
        text = text[1:]
    while text[-1:] == " ":
        text = text[:-1]
    return text


def _packed(value: Any) -> str:
    """A value behind its length; nothing else has the same text."""
    if value is None:
        return "-"
    shown = str(int(value)) if isinstance(value, Fraction) else str(value)
    shown = shown.lower() if isinstance(value, bool) else shown
    return f"{len(shown)}:{shown}"


def _split(text: str, by: str, place: Fraction) -> str:
    """What stands before the next separator, behind some of them."""
    for _ in range(int(place) - 1):
        _, found, text = text.partition(by)
        if not found:
            return ""
    return text.partition(by)[0]


def _on_calendar(year: int, month: int, day: int, moment: Any) -> Any:
    """The day of a month, or the last one before that the month has."""
    if not 1 <= year <= 9999:
        return None
    while True:
        try:
            return moment.replace(year=year, month=month, day=day)
        except ValueError:
            day -= 1


def _months_later(moment: Any, count: Fraction) -> Any:
    month, year = moment.month + int(count) % 12, moment.year + int(count) // 12
    return _on_calendar(
        year + (month - 1) // 12, (month - 1) % 12 + 1, moment.day, moment
    )


def _later(moment: Any, step: timedelta) -> Any:
    try:
        return moment + step
    except OverflowError:
        return None  # In no year that there is.


def _formatted(moment: Any, form: str) -> str:
    clock = moment if isinstance(moment, datetime) else datetime(1, 1, 1)  # noqa: DTZ001
    shown = {
        "%Y": moment.year, "%m": moment.month, "%d": moment.day,
        "%H": clock.hour, "%M": clock.minute, "%S": clock.second,
    }  # fmt: skip
    for directive, value in shown.items():
        form = form.replace(directive, f"{value:0{4 if directive == '%Y' else 2}}")
    return form


def _found(pattern: str, text: str) -> bool:
    """Whether a text has a match; `$` is its end, and `.` no new line."""
    at_end = re.sub(r"(?<!\\)[$]", r"\\Z", pattern)
    return re.search(at_end, text, re.ASCII) is not None


def _day(moment: Any) -> date:
    return moment.date() if isinstance(moment, datetime) else moment


def _week(moment: Any) -> int:
    """The number of the week: the first one has most days in its year."""
    thursday = _day(moment) + timedelta(days=3 - _day(moment).weekday())
    return (thursday - date(thursday.year, 1, 1)).days // 7 + 1


def _period(grain: str) -> Callable[[Any], date]:
    def start(moment: Any) -> date:
        day = _day(moment)
        if grain == "week":
            return day - timedelta(days=day.weekday())
        month = {"month": day.month, "quarter": 3 * ((day.month - 1) // 3) + 1}
        if grain != "day":
            return date(day.year, month.get(grain, 1), 1)
        return day

    return start


_STRICT: dict[str, Callable[..., Any]] = {
    "plus": lambda a, b: a + b,
    "minus": lambda a, b: a - b,
    "negative": lambda a: -a,
    "times": lambda a, b: a * b,
    "divided": lambda a, b: a / b,
    "ratio": lambda a, b: _round(a / b, Fraction(6)),
    "quotient": lambda a, b: _cut(a / b),
    "modulo": lambda a, b: a - b * _cut(a / b),
    "floor": math.floor,
    "ceil": math.ceil,
    "round": _round,
    "abs": abs,
    "sign": lambda a: (a > 0) - (a < 0),
    "width_bucket": _bucket,
    "lower": lambda a: _letters(a, _LOWER),
    "upper": lambda a: _letters(a, _UPPER),
    "trim": _trim,
    "ltrim": lambda a: _trim(a + "|")[:-1],
    "rtrim": lambda a: _trim("|" + a)[1:],
    "split_part": _split,
    "substring": lambda a, start, length=2**40: a[
        int(start) - 1 : int(start) - 1 + int(length)
    ],
    "left": lambda a, count: a[: int(count)],
    "right": lambda a, count: a[-int(count) :] if count else "",
    "replace": lambda a, old, new: new.join(a.split(old)),
    "joined": lambda a, b: a + b,
    "length": len,
    "like": _like,
    "ilike": lambda a, b: _like(_letters(a, _LOWER), _letters(b, _LOWER)),
    "starts_with": lambda a, b: a[: len(b)] == b,
    "ends_with": lambda a, b: a[len(a) - len(b) :] == b if len(b) <= len(a) else False,
    "contains": lambda a, b: b in a,
    "regexp_matches": lambda a, pattern: _found(pattern, a),
    "text": lambda a: a if isinstance(a, str) else str(int(a)),
    "year": lambda a: a.year,
    "quarter": lambda a: (a.month - 1) // 3 + 1,
    "month": lambda a: a.month,
    "week": _week,
    "day": lambda a: a.day,
    "dayofyear": lambda a: (_day(a) - date(a.year, 1, 1)).days + 1,
    "dayofweek": lambda a: (_day(a).weekday() + 1) % 7,
    "isodow": lambda a: _day(a).weekday() + 1,
    "hour": lambda a: a.hour,
    "minute": lambda a: a.minute,
    "second": lambda a: a.second,
    **{
        f"first_of_{grain}": _period(grain)
        for grain in ("day", "week", "month", "quarter", "year")
    },
    "days_between": lambda a, b: (_day(b) - _day(a)).days,
    "days_later": lambda a, n: _later(a, timedelta(days=int(n))),
    "months_later": _months_later,
    "seconds_later": lambda a, n: _later(a, timedelta(seconds=int(n))),
    "strftime": _formatted,
    "timestamp": lambda a: datetime.fromisoformat(a.isoformat()),
}
