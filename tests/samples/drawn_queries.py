"""Queries that are drawn as values, and written as SQL in one of many ways.

The writer knows nothing of the parser: reading what it writes must give the value back.
"""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

from budget import seed

from modicum.core.rationals import number_text
from modicum.query.model import (
    Aggregate,
    AllOf,
    AnyOf,
    ColumnRef,
    Compare,
    Comparison,
    Condition,
    Expression,
    Function,
    Grain,
    IsIn,
    IsNull,
    Key,
    Not,
    Query,
)
from modicum.query.tables import TYPES, Column, ColumnType, Value
from samples.declared import TABLES
from samples.drawn_expressions import Expressions, columns_of
from samples.written_expressions import Written

#: Which tables are read together, and what they are joined on.
_READ: list[tuple[tuple[str, ...], str | None]] = [
    (("views",), None),
    (("users",), None),
    (("orders",), None),
    (("views", "users"), "user_id"),
    (("users", "orders", "people"), "user_id"),
]
_OPERATORS: list[Comparison] = ["=", "<>", "<", "<=", ">", ">="]
_GRAINS: list[Grain] = ["day", "week", "month", "quarter", "year"]
_MOMENTS: list[tuple[Function, bool, list[str]]] = [
    ("sum", False, ["SUM"]),
    ("avg", False, ["AVG"]),
    ("variance", False, ["VARIANCE", "VAR_SAMP"]),
    ("variance", True, ["VAR_POP"]),
    ("stddev", False, ["STDDEV", "STDDEV_SAMP"]),
    ("stddev", True, ["STDDEV_POP"]),
]
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TEXTS = ["", "main", "it's", "é ß", "a--b", "/* no */", "AND", '"', "1", "x;y", "%"]


# --- drawing a query ------------------------------------------------------------------


class Drawer:
    """Draws queries over the declared tables."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice

    def query(self) -> Query:
        tables, joined = self.dice.choice(_READ)
        columns = [
            (ColumnRef(name, column.name), column)
            for name in tables
            for column in TABLES.by_name[name].columns.values()
            if not (name != tables[0] and column.name == joined)
        ]
        condition = self.condition(columns, 3) if self.dice.random() < 0.7 else None
        keys = tuple(self.keys(columns))
        aggregates = tuple(
            replace(self.aggregate(columns), name=f"a{place}")
            for place in range(self.dice.randint(1, 3))
        )
        return Query(tables, joined, condition, keys, aggregates)

    def keys(self, columns: list[tuple[ColumnRef, Column]]) -> list[Key]:
        found: dict[tuple[Expression, Grain | None], Key] = {}
        for place in range(self.dice.choice([0, 0, 1, 2, 3])):
            reference, column = self.dice.choice(columns)
            grain: Grain | None = None
            if column.type == "timestamp" or (
                column.type == "date" and self.dice.random() < 0.5
            ):
                grain = self.dice.choice(_GRAINS)
            if column.type == "number" or column.name.endswith("_id"):
                continue
            key = Key(f"k{place}", reference, grain)
            if self.dice.random() < 0.3:
                kind: ColumnType = self.dice.choice(["text", "integer", "boolean"])
                key = Key(f"k{place}", self.expression(columns, kind))
                if any(one.column.endswith("_id") for one in columns_of(key.value)):
                    continue
            found.setdefault((key.value, key.grain), key)
        return list(found.values())

    def expression(
        self, columns: list[tuple[ColumnRef, Column]], kind: ColumnType
    ) -> Expression:
        """An expression of some type that reads a column, and is none."""
        maker = Expressions(self.dice, dict(columns), TABLES)
        while True:
            made = maker.of_type(kind)
            if columns_of(made) and not isinstance(made, ColumnRef):
                return made

    def aggregate(self, columns: list[tuple[ColumnRef, Column]]) -> Aggregate:
        reference: Expression = self.dice.choice(columns)[0]
        if self.dice.random() < 0.3:
            reference = self.expression(columns, self.dice.choice(TYPES))
        bounded = [one for one, column in columns if column.low is not None]
        kind = self.dice.choice(["rows", "count", "distinct", "moment", "quantile"])
        if kind == "rows":
            return Aggregate("", "count")
        if kind == "count" or not bounded:
            return Aggregate("", "count", reference)
        if kind == "distinct":
            return Aggregate("", "count-distinct", reference)
        number: Expression = self.dice.choice(bounded)
        if self.dice.random() < 0.3:
            number = self.expression(columns, self.dice.choice(["integer", "number"]))
        if kind == "moment":
            function, population, _ = self.dice.choice(_MOMENTS)
            return Aggregate("", function, number, population=population)
        share = Fraction(self.dice.choice([1, 250, 500, 999]), 1000)
        return Aggregate("", "quantile", number, share)

    def condition(
        self, columns: list[tuple[ColumnRef, Column]], depth: int
    ) -> Condition:
        kind = self.dice.choice(["leaf"] * 3 + ["all", "any", "not"]) if depth else ""
        if kind in ("all", "any"):
            count = self.dice.randint(2, 3)
            parts = tuple(self.condition(columns, depth - 1) for _ in range(count))
            return AllOf(parts) if kind == "all" else AnyOf(parts)
        if kind == "not":
            return Not(self.condition(columns, depth - 1))
        reference, column = self.dice.choice(columns)
        choice = self.dice.random()
        if choice > 0.8:
            return self.expression(columns, "boolean")
        if choice < 0.15:
            return IsNull(reference)
        if choice < 0.35:
            count = self.dice.randint(1, 3)
            return IsIn(reference, tuple(self.value(column) for _ in range(count)))
        ordered = column.type != "boolean"
        operator = self.dice.choice(_OPERATORS if ordered else _OPERATORS[:2])
        return Compare(reference, operator, self.value(column))

    def value(self, column: Column) -> Value:
        dice = self.dice
        day = f"2026-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}"
        moment = f"T{dice.randint(0, 23):02}:{dice.randint(0, 59):02}:07"
        part = dice.choice(["", ".500000", ".000001"])
        values: dict[str, Value] = {
            "text": dice.choice(_TEXTS),
            "integer": dice.choice([0, 1, -7, 2**63 - 1, dice.randint(-99, 99)]),
            "number": Fraction(dice.randint(-9999, 9999), dice.choice([1, 4, 100])),
            "boolean": dice.random() < 0.5,
            "date": day,
            "timestamp": day + moment + part,
        }
        return values[column.type]


# --- writing it -----------------------------------------------------------------------


class Writer:
    """Writes a query as SQL: one of the many ways that mean the same."""

    def __init__(self, dice: random.Random, query: Query) -> None:
        self.dice = dice
        self.query = query
        self.aliases = {
            table: self.dice.choice([table, f"t{place}"])
            for place, table in enumerate(query.tables)
        }

    def text(self) -> str:
        selected: list[tuple[Key | Aggregate, str]] = [
            *((key, self.key(key)) for key in self.query.keys),
            *((one, self.aggregate(one)) for one in self.query.aggregates),
        ]
        items = [
            f"{sql}{self.dice.choice([' AS ', ' '])}{self.output(one.name)}"
            for one, sql in selected
        ]
        parts = [self.word("SELECT"), ", ".join(items), self.word("FROM"), self.read()]
        if self.query.where is not None:
            parts += [self.word("WHERE"), self.condition(self.query.where, 0)]
        if self.query.keys:
            groups = [self.group(place) for place in range(len(self.query.keys))]
            self.dice.shuffle(groups)
            gap = self.dice.choice([" ", "\n", "  "])
            clause = self.word("GROUP") + gap + self.word("BY")
            parts += [clause, ", ".join(groups)]
        space = self.dice.choice(
            [" ", "\n", "  ", "\t", " /* SELECT 'x */ ", " -- '\n"]
        )
        return space.join(parts) + self.dice.choice(["", ";", " ; "])

    def word(self, word: str) -> str:
        return self.dice.choice([word, word.lower(), word.title()])

    def identifier(self, name: str) -> str:
        if name == "select":
            return '"select"'
        return self.dice.choice([name, name.upper(), f'"{name}"'])

    def output(self, name: str) -> str:
        """Return a name that is given, which keeps its capital letters."""
        return self.dice.choice([name, f'"{name}"'])

    def read(self) -> str:
        query, text = self.query, ""
        for place, table in enumerate(query.tables):
            alias = self.aliases[table]
            named = self.identifier(table)
            if alias != table:
                named += self.dice.choice([" AS ", " "]) + alias
            if not place:
                text = named
                continue
            inner = self.dice.choice(["JOIN", "INNER JOIN"])
            column = self.identifier(query.joined_on or "")
            first = self.dice.choice(query.tables[:place])
            both = [f"{self.aliases[one]}.{column}" for one in (first, table)]
            self.dice.shuffle(both)
            on = self.dice.choice([f"USING ({column})", "ON " + " = ".join(both)])
            text += f" {inner} {named} {on}"
        return text

    def column(self, reference: ColumnRef) -> str:
        name = self.identifier(reference.column)
        alike = [
            table
            for table in self.query.tables
            if reference.column in TABLES.by_name[table].columns
        ]
        alone = len(alike) == 1 or reference.column == self.query.joined_on
        if alone and self.dice.random() < 0.6:
            return name
        return f"{self.aliases[reference.table]}.{name}"

    def key(self, key: Key) -> str:
        column = self.value_of(key.value)
        if key.grain is None:
            return column
        ways = [f"{self.word('DATE_TRUNC')}('{self.word(key.grain)}', {column})"]
        if key.grain == "day":
            ways += [f"CAST({column} AS DATE)", f"{column}::date", f"DATE({column})"]
        return self.dice.choice(ways)

    def value_of(self, value: Expression) -> str:
        return Written(self.column, self.dice).text(value)

    def group(self, place: int) -> str:
        key = self.query.keys[place]
        ways = [str(place + 1), self.identifier(key.name), self.key(key)]
        return self.dice.choice(ways)

    def aggregate(self, one: Aggregate) -> str:
        if one.value is None:
            return self.word("COUNT") + "(*)"
        column = self.value_of(one.value)
        if one.function == "count":
            return f"{self.word('COUNT')}({column})"
        if one.function == "count-distinct":
            return f"COUNT({self.word('DISTINCT')} {column})"
        if one.share is not None:
            share = number_text(one.share)
            ways = [
                f"QUANTILE({column}, {share})",
                f"APPROX_QUANTILE({column}, {share})",
                f"PERCENTILE_CONT({share}) WITHIN GROUP (ORDER BY {column})",
            ]
            if one.share == Fraction(1, 2):
                ways.append(f"MEDIAN({column})")
            return self.dice.choice(ways)
        names = next(
            n for f, p, n in _MOMENTS if (f, p) == (one.function, one.population)
        )
        return f"{self.word(self.dice.choice(names))}({column})"

    def condition(self, one: Condition, binds: int) -> str:
        """Return a condition; in brackets if what is around it binds more tightly."""
        own, text = self._condition(one)
        return f"({text})" if own < binds or self.dice.random() < 0.1 else text

    def _condition(self, one: Condition) -> tuple[int, str]:
        match one:
            case AnyOf(parts):
                return 1, " OR ".join(self.condition(part, 2) for part in parts)
            case AllOf(parts):
                return 2, " AND ".join(self.condition(part, 3) for part in parts)
            case Not(IsNull(ColumnRef() as column)) if self.dice.random() < 0.5:
                return 4, f"{self.column(column)} IS NOT NULL"
            case Not(IsIn(column, values)) if self.dice.random() < 0.5:
                return (
                    4,
                    f"{self.column(column)} NOT IN ({self.listed(column, values)})",
                )
            case Not(inner):
                return 3, f"{self.word('NOT')} {self.condition(inner, 3)}"
            case IsNull(ColumnRef() as column):
                return 4, f"{self.column(column)} IS NULL"
            case IsIn(column, values):
                return 4, f"{self.column(column)} IN ({self.listed(column, values)})"
            case Compare(column, operator, value):
                return 4, self.compared(column, operator, value)
            case _:
                return 4, self.value_of(one)

    def listed(self, column: ColumnRef, values: tuple[Value, ...]) -> str:
        return ", ".join(self.value(column, value) for value in values)

    def compared(self, column: ColumnRef, operator: Comparison, value: Value) -> str:
        left, right = self.column(column), self.value(column, value)
        if value is True and operator == "=" and self.dice.random() < 0.5:
            return left
        sign: str = operator
        if self.dice.random() < 0.3:
            left, right, sign = right, left, _FLIPPED[operator]
        if sign == "<>":
            sign = self.dice.choice(["<>", "!="])
        return f"{left} {sign} {right}"

    def value(self, column: ColumnRef, value: Value) -> str:
        kind = TABLES.by_name[column.table].columns[column.column].type
        if isinstance(value, bool):
            return self.word("TRUE" if value else "FALSE")
        if isinstance(value, Fraction | int):
            exact = number_text(Fraction(value))
            more = "0" if "." in exact else self.dice.choice(["", ".0", "e0"])
            return exact + self.dice.choice(["", more])
        text = "'" + value.replace("'", "''") + "'"
        if kind == "date":
            ways = [text, f"DATE {text}", f"CAST({text} AS DATE)", f"{text}::DATE"]
            return self.dice.choice(ways)
        if kind == "timestamp":
            other = text.replace("T", " ")
            ways = [text, other, f"TIMESTAMP {other}", f"CAST({text} AS TIMESTAMP)"]
            return self.dice.choice(ways)
        return text


def drawn(place: int) -> tuple[Query, str]:
    """Return a query and a text of it."""
    dice = random.Random(f"{seed()} {place}")
    query = Drawer(dice).query()
    return query, Writer(dice, query).text()


# --- noise ----------------------------------------------------------------------------

_MANY = """SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT AND OR NOT IN IS NULL BETWEEN
 JOIN LEFT USING ON AS DISTINCT CASE WHEN THEN END OVER FILTER UNION WITH CAST DATE
 TIMESTAMP INTERVAL EXISTS ANY ALL COUNT SUM MIN QUANTILE WITHIN page age views users
 user_id t0 'x' 3 1.5 ( ) , . * = < > + - / :: ; ' " /* */ -- $ ? : [ ] { } -> || ! @ #
 TRUE FALSE LIKE ESCAPE COLLATE PIVOT VALUES UNNEST STRUCT MAP ARRAY LAMBDA $$ E'x' 0x1
 EXTRACT POSITION TRIM SUBSTRING GROUPING SETS QUALIFY WINDOW PARTITION SEMI ASOF AT
 INTERVAL DAY TABLESAMPLE EXCLUDE REPLACE COLUMNS FOR UPDATE INTO OFFSET FETCH
"""
WORDS = _MANY.split()


def spoiled(dice: random.Random, text: str) -> str:
    """Return a text with something taken away, put in, doubled or exchanged."""
    for _ in range(dice.choice([1, 1, 1, 2, 5])):
        place = dice.randrange(len(text) + 1)
        end = min(len(text), place + dice.choice([1, 1, 3, 10]))
        way = dice.randrange(5)
        if way == 0:
            text = text[:place] + text[end:]
        elif way == 1:
            text = text[:place] + f" {dice.choice(WORDS)} " + text[place:]
        elif way == 2:
            text = text[:end] + text[place:]
        elif way == 3:
            text = text[:place]
        else:
            one = chr(dice.choice([0, 9, 39, 34, 96, 92, 0x7F, 0xE9, 0x2028, 0x1F98B]))
            text = text[:place] + one + text[end:]
    return text
