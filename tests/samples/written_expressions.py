"""Expressions as SQL: in one of many ways that mean the same, or with all brackets."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from modicum.core.rationals import number_text
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
)

_INFIX = {
    "plus": "+", "minus": "-", "times": "*", "divided": "/", "ratio": "/",
    "quotient": "//", "modulo": "%", "joined": "||", "like": "LIKE", "ilike": "ILIKE",
    "same": "IS NOT DISTINCT FROM", "=": "=", "<>": "<>", "<": "<", "<=": "<=",
    ">": ">", ">=": ">=",
}  # fmt: skip
_EXTRACTED = {
    "year": "YEAR", "quarter": "QUARTER", "month": "MONTH", "week": "WEEK",
    "day": "DAY", "dayofyear": "DOY", "dayofweek": "DOW", "isodow": "ISODOW",
    "hour": "HOUR", "minute": "MINUTE", "second": "SECOND",
}  # fmt: skip
_UNITS = {"days_later": "DAY", "months_later": "MONTH", "seconds_later": "SECOND"}
_WORDS = {"substring": ("SUBSTRING", "SUBSTR"), "ceil": ("CEIL", "CEILING"),
          "coalesce": ("COALESCE",), "week": ("WEEK", "WEEKOFYEAR"),
          "day": ("DAY", "DAYOFMONTH")}  # fmt: skip


class Written:
    """Writes expressions.

    Args:
        column: Writes a column.
        dice: What a way is drawn with; None for always the same.
    """

    def __init__(
        self, column: Callable[[ColumnRef], str], dice: random.Random | None = None
    ) -> None:
        self.column, self.dice = column, dice

    def one_of(self, *ways: str) -> str:
        return ways[0] if self.dice is None else self.dice.choice(ways)

    def text(self, what: Expression) -> str:
        match what:
            case ColumnRef():
                return self.column(what)
            case Literal(value=value, type=kind):
                return value_text(value, kind)
            case Call(function=name, arguments=arguments):
                return self.call(name, arguments)
            case AllOf(parts=parts):
                return "(" + " AND ".join(map(self.text, parts)) + ")"
            case AnyOf(parts=parts):
                return "(" + " OR ".join(map(self.text, parts)) + ")"
            case Not(inner=inner):
                return f"(NOT {self.text(inner)})"
            case IsNull(value=inner):
                return f"({self.text(inner)} IS NULL)"
            case IsIn(column=column, values=values):
                listed = ", ".join(value_text(one, "") for one in values)
                return f"({self.column(column)} IN ({listed}))"
            case Compare(column=column, operator=sign, value=value):
                return f"({self.column(column)} {sign} {value_text(value, '')})"
            case _:
                raise AssertionError(what)  # It is of answers.

    def call(self, name: str, arguments: tuple[Expression, ...]) -> str:
        texts = [self.text(one) for one in arguments]
        if name == "case":
            return self.case(texts, arguments)
        if name in _INFIX:
            ways = [f"({texts[0]} {_INFIX[name]} {texts[1]})"]
            if name == "modulo":
                ways.append(f"MOD({texts[0]}, {texts[1]})")
            return self.one_of(*ways)
        if name == "negative":
            return f"(- ({texts[0]}))"
        if name == "between":
            return f"({texts[0]} BETWEEN {texts[1]} AND {texts[2]})"
        if name == "in":
            return f"({texts[0]} IN ({', '.join(texts[1:])}))"
        if name.startswith("first_of_") or name in ("timestamp", "text"):
            return self.cast(name, texts[0])
        if name in _UNITS:
            return self.later(_UNITS[name], texts[0], arguments[1])
        if name == "days_between":
            return f"DATE_DIFF('day', {texts[0]}, {texts[1]})"
        return self.function(name, texts)

    def later(self, unit: str, time: str, count: Expression) -> str:
        assert isinstance(count, Literal)
        number = int(count.value or 0)
        sign, size = "-" if number < 0 else "+", abs(number)
        ways = (f"INTERVAL {size} {unit}", f"INTERVAL '{size} {unit.lower()}s'")
        return f"({time} {sign} {self.one_of(*ways)})"

    def cast(self, name: str, text: str) -> str:
        grain = name.removeprefix("first_of_")
        to = {"day": "DATE", "timestamp": "TIMESTAMP", "text": "VARCHAR"}.get(grain)
        if to is None:
            return f"DATE_TRUNC('{grain}', {text})"
        return self.one_of(f"CAST({text} AS {to})", f"({text})::{to}")

    def function(self, name: str, texts: list[str]) -> str:
        word = self.one_of(*_WORDS.get(name, (name.upper(),)))
        ways = [f"{word}({', '.join(texts)})", f"{word.lower()} ({', '.join(texts)})"]
        if name in _EXTRACTED:
            part = _EXTRACTED[name]
            ways.append(f"EXTRACT({part} FROM {texts[0]})")
            ways.append(f"DATE_PART('{part.lower()}', {texts[0]})")
        if name == "coalesce" and len(texts) == 2:
            ways.append(f"IFNULL({', '.join(texts)})")
        return self.one_of(*ways)

    def case(self, texts: list[str], arguments: tuple[Expression, ...]) -> str:
        *pairs, other = texts
        last = arguments[-1]
        null = isinstance(last, Literal) and last.value is None
        text = "CASE"
        for place in range(0, len(pairs), 2):
            text += f" WHEN {pairs[place]} THEN {pairs[place + 1]}"
        text += "" if null and self.one_of("", "ELSE") == "" else f" ELSE {other}"
        ways = [text + " END"]
        if len(pairs) == 2:
            ways.append(f"IF({pairs[0]}, {pairs[1]}, {other})")
        return self.one_of(*ways)


def value_text(value: Any, kind: str) -> str:
    """A value as SQL, in brackets if it has a sign."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        quoted = "'" + value.replace("'", "''") + "'"
        return f"{kind.upper()} {quoted}" if kind in ("date", "timestamp") else quoted
    number = number_text(Fraction(value))
    return f"({number})" if value < 0 and kind else number


def untyped(what: Any) -> Any:
    """An expression in which NULL has no type, and no AND is in an AND."""
    match what:
        case Literal(value=None):
            return Literal(None, "text")
        case Call(function=name, arguments=arguments):
            return Call(name, tuple(map(untyped, arguments)))
        case Not(inner=inner):
            return Not(untyped(inner))
        case IsNull(value=inner):
            return IsNull(untyped(inner))
        case AllOf(parts=parts) | AnyOf(parts=parts):
            kind = type(what)
            found: list[Any] = []
            for part in map(untyped, parts):
                found.extend(part.parts if isinstance(part, kind) else [part])
            return kind(tuple(found))
        case _:
            return what
