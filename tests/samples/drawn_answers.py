"""Queries that compute with answers, drawn at random, in the words of two engines."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

#: By the name of a number in a table of released answers, the aggregate that it is.
AGGREGATES: Final[Mapping[str, str]] = {
    "n": "COUNT(*)",
    "p": "COUNT(DISTINCT user_id)",
    "s": "SUM(amount)",
    "f": "COUNT(*) FILTER (WHERE mobile)",
    "m": "AVG(age)",
}
#: By its name there, each key.
KEYS: Final[Mapping[str, str]] = {
    "page": "page",
    "day": "DATE_TRUNC('day', event_time)",
    "decade": "FLOOR(age / 10)",
}
_EXACT: Final = ("n", "p", "s", "f")
_COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=")


@dataclass
class DrawnQuery:
    """A query of answers, with names of `AGGREGATES` and `KEYS` in braces.

    Attributes:
        numbers: What is selected besides the keys.
        having: The condition, or nothing.
        order: The items of ORDER BY.
        ends: LIMIT and OFFSET.
    """

    numbers: list[str]
    having: str = ""
    order: list[str] = field(default_factory=list)
    ends: str = ""

    def asked(self) -> str:
        """Return the query of rows."""
        words = {**AGGREGATES, **KEYS}
        keys = [f"{text} AS {name}" for name, text in KEYS.items()]
        numbers = [f"{one} AS c{place}" for place, one in enumerate(self.numbers)]
        parts = [f"SELECT {', '.join([*keys, *numbers])} FROM views GROUP BY 1, 2, 3"]
        if self.having:
            parts.append(f"HAVING {self.having}")
        if self.order:
            parts.append("ORDER BY " + ", ".join(self.order))
        return " ".join((*parts, self.ends)).format(**words)

    def plain(self, table: str) -> str:
        """Return the same query of a table of released answers."""
        words = {name: name for name in (*AGGREGATES, *KEYS)}
        numbers = [f"{one} AS c{place}" for place, one in enumerate(self.numbers)]
        where = f" WHERE {self.having}" if self.having else ""
        order = ", ".join((*self.order, *KEYS)) if self.order or self.ends else ""
        text = f"SELECT {', '.join([*KEYS, *numbers])} FROM {table}{where}"
        text += f" ORDER BY {order}" if order else ""
        return f"{text} {self.ends}".format(**words)


def drawn_query(dice: random.Random) -> DrawnQuery:
    """Return a query of answers."""
    numbers = [computed(dice) for _ in range(dice.randrange(1, 4))]
    drawn = DrawnQuery(numbers)
    if dice.random() < 0.5:
        drawn.having = condition(dice, 3)
    for _ in range(dice.choice((0, 0, 1, 2))):
        place = dice.randrange(len(KEYS) + len(numbers)) + 1
        named = f"c{place - len(KEYS) - 1}" if place > len(KEYS) else str(place)
        value = dice.choice((exact_number(dice, 2), "{page}", "{day}", named))
        value = _named([value])[0] if value != named else value
        if value == named and "/" in numbers[max(place - len(KEYS) - 1, 0)]:
            value = "{n}"  # Quotients may be equal up to rounding.
        direction = dice.choice(("", " ASC", " DESC"))
        nulls = dice.choice(("", " NULLS FIRST", " NULLS LAST"))
        drawn.order.append(value + direction + nulls)
    if dice.random() < 0.3:
        drawn.ends = f"LIMIT {dice.randrange(8)}"
        drawn.ends += f" OFFSET {dice.randrange(5)}" if dice.random() < 0.5 else ""
    return drawn


def computed(dice: random.Random) -> str:
    """Return a number of which some aggregate is a part; else it would be a key."""
    while True:
        number = any_number(dice)
        if any(f"{{{one}}}" in number for one in AGGREGATES):
            return number


def exact_number(dice: random.Random, depth: int) -> str:
    """Return a number that floats hold exactly, if they hold the aggregates'."""
    if depth == 0 or dice.random() < 0.15:
        return dice.choice((*(f"{{{one}}}" for one in _EXACT), "{decade}", "2", "0.5"))

    def one() -> str:
        return exact_number(dice, depth - 1)

    match dice.randrange(11):
        case 0 | 1 | 2 | 3:
            return f"({one()} {dice.choice(('+', '-', '*'))} {one()})"
        case 4 | 5 | 6:
            function = dice.choice(("COALESCE", "NULLIF", "LEAST", "GREATEST"))
            return f"{function}({one()}, {one()})"
        case 7:
            return f"{dice.choice(('FLOOR', 'CEIL', 'ROUND', 'ABS'))}({one()})"
        case 8:
            other = f" ELSE {one()}" if dice.random() < 0.7 else ""
            return f"CASE WHEN {condition(dice, depth - 1)} THEN {one()}{other} END"
        case 9:
            return f"IF({condition(dice, depth - 1)}, {one()}, -{one()})"
        case _:
            return f"ROUND({one()}, 1)"


def any_number(dice: random.Random) -> str:
    """Return a number that is selected."""
    one, other = exact_number(dice, 2), exact_number(dice, 2)
    match dice.randrange(10):
        case 0 | 1:
            return one
        case 2 | 3:
            return f"100.0 * ({one}) / ({other})"
        case 4:
            return f"({one}) / NULLIF({other}, 0)"
        case 5:
            return f"{{m}} * {one} + CAST({other} AS DOUBLE)"
        case 6:
            return f"SQRT(ABS({one}))"
        case 7:
            return f"SUM({one}) OVER ({window(dice, needed=False)})"
        case 8:
            function = dice.choice(("LAG", "LEAD"))
            whole = f"{window(dice, needed=True)}, {{page}}, {{day}}, {{decade}}"
            return f"({other}) - {function}({one}) OVER ({whole})"
        case _:
            if dice.random() < 0.5:
                return f"RANK() OVER ({window(dice, needed=True)})"
            whole = f"{window(dice, needed=True)}, {{page}}, {{day}}, {{decade}}"
            return f"ROW_NUMBER() OVER ({whole})"


def window(dice: random.Random, *, needed: bool) -> str:
    """Return what stands in the brackets of a window."""
    parts = []
    if dice.random() < 0.4:
        parts.append("PARTITION BY " + dice.choice(("{page}", "{page}, {day}")))
    if needed or dice.random() < 0.5:
        values = ("{day}", "{page}", "{decade}", exact_number(dice, 1))
        orders = [
            dice.choice(values) + dice.choice(("", " DESC", " DESC NULLS FIRST"))
            for _ in range(dice.randrange(1, 3))
        ]
        parts.append("ORDER BY " + ", ".join(_named(orders)))
    return " ".join(parts)


def _named(orders: Sequence[str]) -> list[str]:
    """Return items of an order; engines disagree about constants."""
    return [one if "{" in one else "{n}" for one in orders]


def condition(dice: random.Random, depth: int) -> str:
    """Return a condition on groups."""
    if depth <= 0 or dice.random() < 0.3:
        return _simple(dice)
    left, right = condition(dice, depth - 1), condition(dice, depth - 1)
    match dice.randrange(3):
        case 0:
            return f"({left} AND {right})"
        case 1:
            return f"({left} OR {right})"
        case _:
            return f"NOT ({left})"


def _simple(dice: random.Random) -> str:
    one, other = exact_number(dice, 1), exact_number(dice, 1)
    match dice.randrange(8):
        case 0 | 1 | 2:
            return f"{one} {dice.choice(_COMPARISONS)} {other}"
        case 3:
            return f"{one} BETWEEN {other} AND {exact_number(dice, 1)}"
        case 4:
            return f"{one} IN ({other}, 3)"
        case 5:
            return f"NULLIF({one}, {other}) IS {dice.choice(('', 'NOT '))}NULL"
        case 6:
            return f"{{page}} {dice.choice(_COMPARISONS)} 'help'"
        case _:
            return f"{{day}} {dice.choice(_COMPARISONS)} DATE '2026-11-02'"
