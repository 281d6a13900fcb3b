"""Expressions that are drawn, by construct, and written as SQL."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from modicum.query.expressions.analysis import facts_of
from modicum.query.expressions.facts import Misfit
from modicum.query.expressions.times import of_days
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
from modicum.query.tables import Column, ColumnType, Tables

#: The functions that are drawn, by the construct of the reference they are of.
CONSTRUCTS: dict[str, tuple[str, ...]] = {
    "case": ("case",),
    "times": (
        "year", "quarter", "month", "week", "day", "dayofyear", "dayofweek", "isodow",
        "hour", "minute", "second", "first_of_day", "first_of_week", "first_of_month",
        "first_of_quarter", "first_of_year", "days_between", "timestamp", "strftime",
        "days_later", "months_later", "seconds_later",
    ),
    "comparisons": ("=", "<>", "<", "<=", ">", ">=", "between", "in"),
    "arithmetic": (
        "plus", "minus", "negative", "times", "divided", "ratio", "quotient", "modulo",
        "abs", "sign", "round", "floor", "ceil", "least", "greatest",
    ),
    "bands": ("width_bucket", "floor", "case"),
    "missing": ("coalesce", "nullif", "same"),
    "texts": (
        "like", "ilike", "upper", "lower", "trim", "ltrim", "rtrim", "substring",
        "left", "right", "split_part", "concat", "joined", "length",
        "starts_with", "ends_with", "contains", "replace", "text", "regexp_matches",
    ),
    "booleans": ("same", "case", "=", "<>"),
}  # fmt: skip
_PARTS = CONSTRUCTS["times"][:8]
_CLOCK = ("hour", "minute", "second", "seconds_later")
_FORMATS = ["%Y-%m", "%Y-%m-%d %H:%M:%S", "%d.%m.%Y", "Q%m", "%H", "it's %M"]
#: By function, numbers of units; in some years, none of ours is as much later.
_LATER = {
    "days_later": (1, -1, 7, -30, 400, -800_000, 3_652_058),
    "months_later": (1, -1, 3, -12, 11, 1200, -119_987),
    "seconds_later": (1, -60, 3600, 86_399, -3_000_000_000),
}
_TEXTS = ["", "a", "main", "Main", " ma in ", "é", "ÉCOLE", "e\u0301", "中文", "😀",
          "ß", "İ", "it's", "%", "_", "!", "back\\slash", "a\nb", "K"]  # fmt: skip
_PATTERNS = ["%", "", "ma%", "%a%", "_a__", "%!%", "M_in", "%é", "_", "a!_b", "\\%",
             "%\\%", "%\n%", "😀", "__", "%k%"]  # fmt: skip
REGULAR = [r"^a", "a$", "a.b", "^$", "[^a]", r"\\\\", r"\d", r"^\w+$", r"\s", "é|É",
           "^(m|M)ain$", "[a-m]{2}", "o|^.{1,2}$", "[%_!]", "[^\\s]?n$", "^[^a-z]*$",
           "^.$", "😀", "[^é]$", "ma? *in", r"^[\w!-]",
           r"\!|\'|\/|\&|\-|\<|\~|\#"]  # fmt: skip
_NUMERIC: tuple[ColumnType, ...] = ("integer", "number")


class Expressions:
    """Draws expressions over some columns.

    Args:
        dice: What is drawn with.
        columns: The columns.
        tables: Their declarations.
        favored: Functions that are taken wherever one fits; all, if none.
    """

    def __init__(
        self,
        dice: random.Random,
        columns: Mapping[ColumnRef, Column],
        tables: Tables,
        favored: Sequence[str] = (),
    ) -> None:
        self.dice, self.columns, self.tables = dice, columns, tables
        self.favored = favored

    def of_construct(self, construct: str) -> Expression:
        """An expression with a function of some construct on top."""
        while True:
            name = self.dice.choice(CONSTRUCTS[construct])
            made = self.made(name, self.dice.choice([1, 1, 2]))
            if made is not None and any(True for _ in columns_of(made)):
                return made

    def of_type(self, kind: ColumnType, depth: int = 2) -> Expression:
        """An expression of some type."""
        dice = self.dice
        if depth <= 0 or dice.random() < 0.25:
            return self.leaf(kind)
        names = _BY_TYPE[kind]
        for _ in range(20):
            made = self.made(dice.choice(names), depth - 1, kind)
            if made is not None and facts_of(made, self.tables).type == kind:
                return made
        return self.leaf(kind)

    def leaf(self, kind: ColumnType) -> Expression:
        fitting = [one for one, column in self.columns.items() if column.type == kind]
        if fitting and self.dice.random() < 0.75:
            return self.dice.choice(fitting)
        if kind == "boolean":
            return self.condition(0)
        return self.constant(kind)

    def constant(self, kind: ColumnType) -> Literal:
        dice = self.dice
        day = (
            f"{dice.choice([1, 1900, 2024, 2025, 9999]):04}-{dice.randint(1, 12):02}-28"
        )
        values: dict[ColumnType, Any] = {
            "text": dice.choice(_TEXTS),
            "integer": dice.choice([0, 1, -1, 2, 7, 10, -40, 100, 2**40]),
            "number": Fraction(
                dice.choice([1, -5, 25, 333]), dice.choice([2, 4, 100, 1000])
            ),
            "boolean": dice.random() < 0.5,
            "date": day,
            "timestamp": f"{day}T{dice.randint(0, 23):02}:00:07",
        }
        value = values[kind]
        if kind == "number" and value.denominator == 1:
            value += Fraction(1, 4)
        return Literal(value, kind)

    # --- by name ----------------------------------------------------------------------

    def made(
        self, name: str, depth: int, kind: ColumnType | None = None
    ) -> Expression | None:
        """A call of a function; None if what was drawn does not fit it."""
        arguments = self.arguments(name, depth, kind)
        if _is_read_otherwise(name, arguments):
            return None
        call = Call(name, tuple(arguments))
        try:
            facts_of(call, self.tables)
        except Misfit:
            return None
        return call

    def arguments(
        self, name: str, depth: int, kind: ColumnType | None
    ) -> list[Expression]:
        dice = self.dice
        kinds: list[ColumnType] = ["text", "integer", "number", "boolean", "date"]
        some = dice.choice(kinds) if kind is None else kind
        if name in _CHOOSING:
            return self.of_choices(name, some, depth)
        if name in _TIMED:
            times: list[ColumnType] = ["timestamp"] if name in _CLOCK else [*_TIMES]
            if name in _LATER:
                count = Literal(dice.choice(_LATER[name]), "integer")
                return [self.of_type(dice.choice(times), depth), count]
            if name == "strftime":
                timed, form = dice.choice(times), dice.choice(_FORMATS)
                time = self.of_type(timed, depth)
                if timed == "timestamp" and of_days(form):
                    time = Call("first_of_day", (time,))  # As it is read.
                return [time, Literal(form, "text")]
            sides = 2 if name == "days_between" else 1
            return [self.of_type(dice.choice(times), depth) for _ in range(sides)]
        if name in CONSTRUCTS["arithmetic"] or name == "width_bucket":
            return self.of_numbers(name, depth)
        return self.of_texts(name, depth)

    def of_choices(self, name: str, some: ColumnType, depth: int) -> list[Expression]:
        dice = self.dice
        if name == "case":
            found: list[Expression] = []
            for _ in range(dice.randint(1, 3)):
                found += [self.condition(depth), self.branch(some, depth)]
            none = dice.random() < 0.3
            return [*found, Literal(None, some) if none else self.branch(some, depth)]
        kinds = _NUMERIC if name in ("least", "greatest") else (some,)
        counts = {
            "between": 3,
            "coalesce": dice.randint(2, 4),
            "in": dice.randint(2, 4),
        }
        count = counts.get(name, 2)
        return [self.branch(dice.choice(kinds), depth) for _ in range(count)]

    def of_numbers(self, name: str, depth: int) -> list[Expression]:
        dice = self.dice
        one = self.of_type(dice.choice(_NUMERIC), depth)
        if name in ("plus", "minus", "times"):
            return [one, self.of_type(dice.choice(_NUMERIC), depth)]
        if name in ("divided", "modulo"):
            return [one, self.constant(dice.choice(_NUMERIC))]
        if name == "ratio":
            below = self.of_type(dice.choice(_NUMERIC), depth)
            return [one, Call("nullif", (below, Literal(0, "integer")))]
        if name == "quotient":
            by = Literal(dice.choice([1, 3, 10]), "integer")
            return [self.of_type("integer", depth), by]
        if name == "round" and dice.random() < 0.6:
            return [one, Literal(dice.choice([-2, -1, 0, 1, 2]), "integer")]
        if name == "width_bucket":
            low = Fraction(dice.choice([-10, 0, 1]), dice.choice([1, 2]))
            high = low + dice.choice([Fraction(1), Fraction(100), Fraction(1, 8)])
            count = Literal(dice.choice([1, 3, 10]), "integer")
            return [one, _constant(low), _constant(high), count]
        return [one]

    def of_texts(self, name: str, depth: int) -> list[Expression]:
        dice = self.dice
        text = self.of_type("text", depth)
        count = Literal(dice.choice([0, 1, 2, 5, 100]), "integer")
        if name in ("like", "ilike"):
            return [text, Literal(dice.choice(_PATTERNS), "text")]
        if name == "regexp_matches":
            return [text, Literal(dice.choice(REGULAR), "text")]
        if name in ("starts_with", "ends_with", "contains"):
            return [text, Literal(dice.choice(_TEXTS), "text")]
        if name == "substring":
            start = Literal(dice.choice([1, 2, 4]), "integer")
            return [text, start, count] if dice.random() < 0.7 else [text, start]
        if name in ("left", "right"):
            return [text, count]
        if name in ("replace", "split_part"):
            old = Literal(dice.choice([one for one in _TEXTS if one]), "text")
            new = Literal(dice.choice(_TEXTS), "text")
            place = Literal(dice.choice([1, 2, 3]), "integer")
            return [text, old, new if name == "replace" else place]
        if name == "joined":
            return [text, self.of_type("text", depth)]
        if name == "concat":
            return [self.branch("text", depth) for _ in range(dice.randint(1, 3))]
        if name == "text":
            return [self.of_type(dice.choice(["integer", "text"]), depth)]
        return [text]

    def branch(self, kind: ColumnType, depth: int) -> Expression:
        """One of several values of a type, perhaps NULL, or an integer for a number."""
        if self.dice.random() < 0.1:
            return Literal(None, kind)
        if kind == "number" and self.dice.random() < 0.3:
            kind = "integer"
        return self.of_type(kind, depth)

    def condition(self, depth: int) -> Expression:
        dice, choice = self.dice, self.dice.random()
        if depth > 0 and choice < 0.2:
            parts = tuple(self.condition(depth - 1) for _ in range(2))
            made: list[Expression] = [AllOf(parts), AnyOf(parts), Not(parts[0])]
            return dice.choice(made)
        if depth > 0 and choice < 0.6:
            for _ in range(20):
                found = self.made(dice.choice(_BY_TYPE["boolean"]), depth - 1)
                if found and facts_of(found, self.tables).type == "boolean":
                    return found
        if depth > 0 and choice < 0.7:
            return IsNull(self.of_type(dice.choice(["text", "integer", "date"]), depth))
        reference, column = dice.choice(list(self.columns.items()))
        value = self.constant(column.type).value
        assert value is not None
        if choice < 0.85:
            return IsIn(reference, (value, value))
        signs: tuple[Comparison, ...] = (
            ("=", "<>") if column.type == "boolean" else ("<", ">=", "=", "<>")
        )
        return Compare(reference, dice.choice(signs), value)


_TIMES: tuple[ColumnType, ...] = ("date", "timestamp")
_TIMED = frozenset(CONSTRUCTS["times"])
_CHOOSING = frozenset(
    {"case", "coalesce", "nullif", "same", "least", "greatest"}
    | {*CONSTRUCTS["comparisons"]}
)
_BY_TYPE: dict[ColumnType, tuple[str, ...]] = {
    "text": (
        "case", "coalesce", "nullif", "upper", "lower", "trim", "ltrim", "rtrim",
        "substring", "left", "right", "split_part", "concat", "joined", "replace",
        "text", "strftime",
    ),
    "integer": (
        "case", "coalesce", "nullif", "plus", "minus", "times", "negative", "abs",
        "floor", "ceil", "round", "sign", "quotient", "modulo", "least", "greatest",
        "width_bucket", "length", "days_between", *_PARTS, *_CLOCK,
    ),
    "number": (
        "case", "coalesce", "nullif", "plus", "minus", "times", "divided", "ratio",
        "negative", "abs", "round", "modulo", "least", "greatest",
    ),
    "boolean": (
        "=", "<>", "<", "<=", ">", ">=", "between", "in", "same", "like", "ilike",
        "starts_with", "ends_with", "contains", "regexp_matches", "case", "coalesce",
    ),
    "date": ("case", "coalesce", "first_of_day", "first_of_week", "first_of_month",
             "first_of_quarter", "first_of_year", "days_later", "months_later"),
    "timestamp": ("case", "coalesce", "timestamp", "days_later", "months_later",
                  "seconds_later"),
}  # fmt: skip


def _is_read_otherwise(name: str, arguments: Sequence[Expression]) -> bool:
    """Whether SQL that is read never becomes such a call: a simpler thing is read."""
    constant = [isinstance(one, Literal) for one in arguments]
    values = [*arguments[1::2], arguments[-1]] if name == "case" else arguments
    if all(isinstance(one, Literal) and one.value is None for one in values):
        return True  # It is of no type.
    first = isinstance(arguments[0], ColumnRef) or constant[0]
    if name == "negative" or name in _LATER:
        return constant[0]
    if name in ("in", "between"):
        unread = all(constant[1:]) and first
    else:
        both = [isinstance(one, ColumnRef | Literal) for one in arguments]
        unread = (
            name in ("=", "<>", "<", "<=", ">", ">=") and all(both) and any(constant)
        )
    compared = name in ("=", "<>", "<", "<=", ">", ">=", "in", "between", "same")
    return unread or (compared and not any(map(columns_of, arguments)))


def _constant(value: Fraction) -> Literal:
    if value.denominator == 1:
        return Literal(int(value), "integer")
    return Literal(value, "number")


def columns_of(what: Any) -> Sequence[ColumnRef]:
    """The columns that an expression names."""
    match what:
        case ColumnRef():
            return [what]
        case Compare(column=column) | IsIn(column=column):
            return [column]
        case IsNull(value=inner) | Not(inner=inner):
            return columns_of(inner)
        case AllOf(parts=parts) | AnyOf(parts=parts) | Call(arguments=parts):
            return [one for part in parts for one in columns_of(part)]
        case _:
            return []
