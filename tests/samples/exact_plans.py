"""Random tables and plans for engines: odd values, odd types, ties and duplicates."""

from __future__ import annotations

import csv
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import structs

from modicum.query.contribution_bounds import in_order
from modicum.query.expressions.analysis import facts_of
from modicum.query.model import (
    AllOf,
    AnyOf,
    Call,
    ColumnRef,
    Compare,
    Comparison,
    Condition,
    Expression,
    Grain,
    IsIn,
    IsNull,
    Key,
    Literal,
    Not,
    Query,
    with_derived,
)
from modicum.query.statistics import Cap, ExactPlan, Sample, Statistic, StatisticKind
from modicum.query.tables import TYPES, Column, ColumnType, Table, Tables
from modicum.release.parts import Part
from modicum.release.units import Unit
from samples.drawn_expressions import Expressions, columns_of

Rows = list[dict[str, Any]]

TEXTS = (
    "main", "help", "Main", "ma in", "é", "e\u0301", "中文", "😀", "it's", 'say "x"',
    "back\\slash", "\\n", "\\%", "\\u0041", "\\101", "${spark.x}", "a\nb",
    "tab\t", "%_", "--", "; drop", "NULL", " lead", "0", "{}", ":p", "?", "$1",
)  # fmt: skip
COUNTRIES = ("AT", "CH", "DE", "it's")
#: Days around the turns of weeks, months, quarters and years.
DAYS = [
    date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1), date(2024, 3, 3),
    date(2024, 3, 4), date(2024, 12, 29), date(2024, 12, 30), date(2024, 12, 31),
    date(2025, 1, 1), date(2025, 1, 5), date(2025, 1, 6), date(2025, 3, 31),
    date(2025, 4, 1), date(1969, 12, 31), date(1970, 1, 1), date(1, 1, 1),
    date(9999, 12, 31),
]  # fmt: skip
UNITS = {
    "user": Unit("user", "user"),
    "user-day": Unit(
        "user-day", "user", "day", "at", within=("user-week", "user-month")
    ),
    "user-week": Unit("user-week", "user", "week", "at", within=("user",)),
    "user-month": Unit("user-month", "user", "month", "at", within=("user",)),
    "device": Unit("device", "device", within=("user",)),
}
#: Zeros with a sign, numbers between steps, and numbers that are none.
FLOATS = (
    0.0, -0.0, 0.005, 0.015, -0.015, 1.0, 2.675, 0.1 + 0.2, 1e-300, -7.5, 99.995,
    1e15, -1e15, 1e308, float("inf"), float("-inf"), float("nan"), 1 / 3, 2 / 3,
)  # fmt: skip


_CLOCKS: tuple[ColumnType, ...] = ("date", "timestamp")
_IDS: tuple[ColumnType, ...] = ("text", "integer")
_GRAINS: tuple[Grain, ...] = ("day", "week", "month", "quarter", "year")
_KINDS: tuple[StatisticKind, ...] = (
    "rows", "rows", "total", "squares", "distinct", "histogram",
)  # fmt: skip
#: The types of keys that are computed.
_KEY_TYPES: tuple[ColumnType, ...] = ("text", "integer", "boolean", "date")
_SIGNS: tuple[Comparison, ...] = ("=", "<>", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Case:
    """A plan and its tables."""

    seed: int
    plan: ExactPlan
    data: dict[str, Rows]
    types: dict[str, dict[str, pa.DataType]]
    order_key: str
    sample_seed: str

    def arrow(self, table: str) -> pa.Table:
        """The rows of a table in memory."""
        types = self.types[table]
        rows = self.data[table]
        return pa.table(
            {
                name: pa.array([_stored(row[name], kind) for row in rows], kind)
                for name, kind in types.items()
            }
        )

    def in_memory(self) -> dict[str, object]:
        """The tables in memory."""
        return {name: self.arrow(name) for name in self.data}

    def parquet(self, folder: Path) -> dict[str, object]:
        """Write the tables as Parquet files, and say where they are."""
        found: dict[str, object] = {}
        for name in self.data:
            path = folder / f"{self.seed}-{name}.parquet"
            pq.write_table(self.arrow(name), path)
            found[name] = str(path)
        return found

    def csv(self, folder: Path) -> dict[str, object]:
        """Write the tables as CSV files, and say where they are."""
        found: dict[str, object] = {}
        for name, rows in self.data.items():
            path = folder / f"{self.seed}-{name}.csv"
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(self.types[name])
                for row in rows:
                    writer.writerow([_written(row[one]) for one in self.types[name]])
            found[name] = str(path)
        return found


def case_of(seed: int, *, written: bool = False) -> Case:
    """Return a random case; `written` for one that a CSV file can hold exactly."""
    return Maker(seed, written=written).case()


class Maker:
    """Makes one random case after the other choice."""

    def __init__(self, seed: int, *, written: bool) -> None:
        self.random, self.seed, self.written = Random(f"case {seed}"), seed, written
        self.joined = self.random.random() < 0.4
        self.at: ColumnType = self.random.choice(_CLOCKS)
        self.user: ColumnType = self.random.choice(_IDS)
        self.people = self.random.choice([("user",), ("person",), ("person", "home")])
        self.step = self.random.choice(
            [Fraction(1), Fraction(1, 100), Fraction(1, 3), Fraction(5, 2)]
        )

    def all_tables(self) -> dict[str, Table]:
        """The tables of the case, by name."""
        found = {"events": self.events()}
        return found | ({"people": self.table_of_people()} if self.joined else {})

    def case(self) -> Case:
        tables = self.all_tables()
        data = {name: self.rows(table) for name, table in tables.items()}
        types = {name: self.types(table) for name, table in tables.items()}
        for name, rows in data.items():
            for row in rows:
                for column, kind in types[name].items():
                    row[column] = _as_read(row[column], kind, self.written)
        self.tables = Tables(tables, clocks=frozenset({"at"}))
        plan = self.plan(self.tables)
        key, seed = (self.random.randbytes(32).hex() for _ in range(2))
        return Case(self.seed, plan, data, types, key, seed)

    # --- tables -----------------------------------------------------------------------

    def events(self) -> Table:
        pages = self.random.sample(TEXTS, 4) if self.random.random() < 0.5 else None
        amount = self.bounds(self.step)
        numbers = self.random.choice([None, (-3, 0, 7)])
        qty = Fraction(-5), Fraction(70)
        columns = [
            Column("event", "text"),
            Column("seq", "integer"),
            Column("user", self.user),
            Column("device", "text"),
            Column("at", self.at),
            Column("page", "text", values=None if pages is None else tuple(pages)),
            Column("country", "text", partition="country"),
            Column("age", "integer", partition="age"),
            Column("group", "integer"),
            Column("flag", "boolean", values=self.random.choice([None, (True, False)])),
            Column("seen", "date"),
            Column("when", "timestamp"),
            Column("Amount", "number", step=self.step, low=amount[0], high=amount[1]),
            Column("qty", "integer", low=qty[0], high=qty[1], values=numbers),
        ]  # fmt: skip
        ids = self.random.choice(
            [("event",), ("event", "seq"), ("seq",), ("flag", "Amount", "seen", "when")]
        )
        return Table("events", {c.name: c for c in columns}, ids, group="group")

    def table_of_people(self) -> Table:
        score = Fraction(0), Fraction(10)
        columns = [
            Column("person", "integer"),
            Column("user", self.user),
            Column("home", "text", partition="country"),
            Column("born", "date"),
            Column("score", "number", step=Fraction(1, 2), low=score[0], high=score[1]),
        ]  # fmt: skip
        return Table(
            "people", {c.name: c for c in columns}, self.people, one_per="user"
        )

    def bounds(self, step: Fraction) -> tuple[Fraction, Fraction]:
        low = self.random.choice([-1000, -7, 0, 3])
        return low * step, (low + self.random.choice([0, 1, 9, 10000, 2**30])) * step

    def rows(self, table: Table) -> Rows:
        random = self.random
        number = random.choice([0, 3, 30, 60, 120])
        rows = [
            {name: self.value(c) for name, c in table.columns.items()}
            for _ in range(number)
        ]
        if rows and random.random() < 0.3:
            rows += [dict(random.choice(rows)) for _ in range(5)]
            rows += (
                [{**random.choice(rows), "event": "e1"} for _ in range(5)]
                if table.name == "events"
                else []
            )
        return rows

    def value(self, column: Column) -> Any:
        random, name = self.random, column.name
        if random.random() < (0.02 if name in {"user", "device", "at"} else 0.12):
            return None
        if name == "event":
            return (
                f"e{random.randrange(40)}"
                if random.random() < 0.8
                else random.choice(TEXTS)
            )
        if name == "user":
            return (
                random.randrange(4)
                if column.type == "integer"
                else f"u{random.randrange(4)}"
            )
        if name == "device":
            return f"d{random.randrange(6)}"
        if name in {"country", "home"}:
            return random.choice(COUNTRIES)
        if name in {"age", "group", "seq", "person"}:
            return random.choice(
                [random.randrange(12), random.randrange(12), -1, 2**31 - 1]
            )
        return self.any_value(column)

    def any_value(self, column: Column) -> Any:
        random = self.random
        if column.type == "text":
            return random.choice([*(column.values or ()), *TEXTS])
        if column.type == "boolean":
            return random.random() < 0.5
        if column.type == "integer":
            return random.choice(
                [-3, 0, 7, 8, random.randrange(-10, 100), 2**31 - 1, -(2**31)]
            )
        if column.type == "number":
            return random.choice(
                [
                    *FLOATS,
                    random.uniform(-20, 120),
                    float(random.randrange(200) * self.step),
                ]
            )
        day = (
            random.choice(DAYS)
            if random.random() < 0.5
            else date(2025, 1, 1) + timedelta(random.randrange(40))
        )
        if column.type == "date":
            return day
        clock = random.choice(
            [(0, 0, 0, 0), (23, 59, 59, 999999), (12, 30, 0, 120000), (6, 0, 1, 7)]
        )
        return datetime.combine(day, time(*clock))

    def types(self, table: Table) -> dict[str, pa.DataType]:
        return {name: self.type_of(c) for name, c in table.columns.items()}

    def type_of(self, column: Column) -> pa.DataType:
        choices = {
            "text": [pa.string()],
            "boolean": [pa.bool_()],
            "date": [pa.date32()],
            "timestamp": [pa.timestamp("us"), pa.timestamp("us", "UTC")],
            "integer": [pa.int64(), pa.int32(), pa.decimal128(12, 0)],
            "number": [
                pa.float64(),
                pa.float32(),
                pa.decimal128(12, 2),
                pa.decimal128(30, 10),
                pa.int64(),
            ],
        }
        return self.random.choice(choices[column.type])

    # --- plans ------------------------------------------------------------------------

    def relations(self, tables: Tables) -> Query:
        """The tables that are read: a query without condition, keys and aggregates."""
        names = tuple(tables.by_name)
        if self.joined and self.random.random() < 0.3:
            names = names[::-1]
        return Query(names, "user" if self.joined else None, None, (), ())

    def plan(self, tables: Tables) -> ExactPlan:
        random, query = self.random, self.relations(tables)
        tables = self.tables = with_derived(tables, query)
        names = (*query.tables, *(one.table for one in query.lookups))
        own = {c for t in query.tables for c in tables.by_name[t].columns}
        units = {
            name: UNITS[name]
            for name in random.sample(list(UNITS), random.randrange(1, 6))
        }
        units.setdefault("user", UNITS["user"])
        units = {name: units[name] for name in UNITS if name in units}
        units = {
            name: structs.replace(
                one, within=tuple(w for w in one.within if w in units)
            )
            for name, one in units.items()
        }
        part = self.part(units, tables)
        computed = {table.name for table, _ in query.inner}
        placed = all("events" in rows.tables for _, rows in query.inner)
        if not placed or (computed and not {"events", *computed} & set(query.tables)):
            part = Part()  # Nothing tells where rows lie.
        references = [ColumnRef(t, c) for t in names for c in tables.by_name[t].columns]
        kinds = {
            one: tables.by_name[one.table].columns[one.column] for one in references
        }
        keys = self.keys(kinds)
        where = self.condition(kinds, 3) if random.random() < 0.5 else None
        statistics = [
            structs.replace(self.statistic(f"s{n}", kinds), keys=self.some(len(keys)))
            for n in range(random.randrange(1, 5))
        ]
        caps = in_order(
            [
                Cap(one, random.randrange(1, 5))
                for one, unit in units.items()
                if random.random() < 0.6 and {unit.id, unit.column} - {None} <= own
            ],
            units,
        )
        sample = (
            Sample(
                "user" if query.inner else random.choice(list(units)),
                random.choice([2**59, 2**60 * 9 // 10]),
            )
            if random.random() < 0.2
            else None
        )
        selection = (
            Statistic("keys", "distinct", ColumnRef(query.tables[0], "user"))
            if random.random() < 0.3
            else None
        )
        query = structs.replace(query, where=where, keys=keys)
        return ExactPlan(
            query, tables, part, sample, caps, tuple(statistics), units, selection
        )

    def part(self, units: dict[str, Unit], tables: Tables) -> Part:
        random = self.random
        where = periods = groups = None
        if random.random() < 0.25:
            boxes: list[Any] = [
                (("country", tuple(sorted(random.sample(COUNTRIES, 2)))),)
            ]
            if random.random() < 0.5:
                boxes.append((("age", ((-1, 3), (7, 2**31 - 1))), ("country", ("CH",))))
            where = tuple(boxes)
        if random.random() < 0.35 and any(one.column for one in units.values()):
            day = date(2024, 12, 28).toordinal()
            periods = random.choice(
                [
                    ((day, day + 9),),
                    ((day, day + 2), (day + 4, day + 25)),
                    ((1, date(2025, 1, 1).toordinal()),),
                ]
            )
        if random.random() < 0.2:
            groups = ((0, 5), (9, 9))
        return Part(where, periods, groups)

    def keys(self, kinds: dict[ColumnRef, Column]) -> tuple[Key, ...]:
        found = []
        for n in range(self.random.choice([0, 1, 1, 2])):
            reference = self.random.choice(
                [r for r, c in kinds.items() if c.type != "number"]
            )
            grain: Grain | None = None
            if (
                kinds[reference].type in {"date", "timestamp"}
                and self.random.random() < 0.8
            ):
                grain = self.random.choice(_GRAINS)
            key = Key(f"k{n}", reference, grain)
            if self.random.random() < 0.35:
                kind = self.random.choice(_KEY_TYPES)
                key = Key(f"k{n}", self.expression(kinds, kind))
            found.append(key)
        return tuple(found)

    def some(self, keys: int) -> tuple[int, ...] | None:
        """Positions of some keys; mostly all of them."""
        if self.random.random() < 0.8:
            return None
        return tuple(one for one in range(keys) if self.random.random() < 0.5)

    def statistic(self, name: str, kinds: dict[ColumnRef, Column]) -> Statistic:
        random = self.random
        kind = random.choice(_KINDS)
        if random.random() < 0.35:
            return self.of_expression(name, kind, kinds)
        if kind == "rows":
            return Statistic(name, "rows", random.choice([None, *kinds]))
        if kind == "distinct":
            return Statistic(name, "distinct", random.choice(list(kinds)))
        bounded = [r for r, c in kinds.items() if c.low is not None and _is_small(c)]
        if not bounded:
            return Statistic(name, "rows", None)
        reference = random.choice(bounded)
        column = kinds[reference]
        assert column.low is not None
        assert column.high is not None
        low, high = int(column.low / column.step), int(column.high / column.step)
        center = (
            (low + high) // 2
            if kind == "squares"
            else random.choice([0, (low + high) // 2])
        )
        width = random.choice([1, 3, -(-(high - low + 1) // 8)])
        return Statistic(
            name,
            kind,
            reference,
            low,
            high,
            0 if kind == "histogram" else center,
            width,
        )

    def expression(
        self, kinds: dict[ColumnRef, Column], kind: ColumnType
    ) -> Expression:
        """An expression of some type that reads a column."""
        maker = Expressions(self.random, kinds, self.tables)
        while True:
            made = maker.of_type(kind)
            if columns_of(made) and not isinstance(made, ColumnRef):
                return made

    def of_expression(
        self, name: str, kind: StatisticKind, kinds: dict[ColumnRef, Column]
    ) -> Statistic:
        random = self.random
        if kind in {"rows", "distinct"}:
            value = self.expression(kinds, random.choice(TYPES))
            return Statistic(name, kind, value)
        while True:
            value = self.expression(kinds, random.choice(["integer", "number"]))
            facts = facts_of(value, self.tables)
            if facts.farthest >= 2**40 and facts.farthest < 2**100:
                ends = Literal(0, "integer"), Literal(1000, "integer")
                value = Call("least", (Call("greatest", (value, ends[0])), ends[1]))
                facts = facts_of(value, self.tables)
            if facts.farthest < 2**31:
                break
        low, high = facts.low, facts.high
        center = 0 if kind == "histogram" else random.choice([0, (low + high) // 2])
        width = -(-(high - low + 1) // random.choice([1, 8]))
        return Statistic(name, kind, value, low, high, center, width)

    def condition(self, kinds: dict[ColumnRef, Column], depth: int) -> Condition:
        random = self.random
        if random.random() < 0.3:
            return self.expression(kinds, "boolean")
        if depth and random.random() < 0.5:
            parts = tuple(self.condition(kinds, depth - 1) for _ in range(2))
            made: list[Condition] = [AllOf(parts), AnyOf(parts), Not(parts[0])]
            return random.choice(made)
        reference = random.choice([r for r, c in kinds.items() if not c.counted])
        make: Callable[[], Any] = lambda: self.literal(kinds[reference])  # noqa: E731
        if random.random() < 0.15:
            return IsNull(reference)
        if random.random() < 0.25:
            return IsIn(
                reference, tuple(make() for _ in range(random.choice([1, 2, 12])))
            )
        signs = _SIGNS[:2] if kinds[reference].type == "boolean" else _SIGNS
        return Compare(reference, random.choice(signs), make())

    def literal(self, column: Column) -> Any:
        value = self.value(replace(column, values=None))
        while (
            value is None
            or (column.type == "number" and abs(value) in {float("inf")})
            or value != value
        ):
            value = self.value(replace(column, values=None))
        if column.type == "number":
            return self.random.choice(
                [Fraction(value), Fraction(round(value, 2)), Fraction(0)]
            )
        if column.type == "integer" and self.random.random() < 0.1:
            return self.random.choice([2**63, -(2**70), 10**40])
        return value.isoformat() if isinstance(value, date) else value


def _is_small(column: Column) -> bool:
    ends = (abs(Fraction(one or 0)) / column.step for one in (column.low, column.high))
    return all(one < 2**31 for one in ends)


# --- what a column of some type holds -------------------------------------------------


def _as_read(value: Any, kind: pa.DataType, written: bool) -> Any:
    """A value as it is after it was stored as some type."""
    if value is None or (written and value == ""):
        return None
    if isinstance(value, float) and not written:
        return _number_as(value, kind)
    if isinstance(value, float) and value and not 1e-30 < abs(value) < 1e30:
        return None  # In a file of texts, exponents have two digits.
    return value


def _number_as(value: float, kind: pa.DataType) -> Any:
    if pa.types.is_float64(kind):
        return value
    if pa.types.is_float32(kind):
        return (
            struct.unpack("f", struct.pack("f", value))[0]
            if not 3e38 < abs(value) < float("inf")
            else float("inf")
        )
    if not abs(value) < 1e9:
        return None
    if pa.types.is_int64(kind):
        return int(value)
    return round(Decimal(value), kind.scale)


def _stored(value: Any, kind: pa.DataType) -> Any:
    if value is not None and pa.types.is_timestamp(kind) and kind.tz:
        return value.replace(tzinfo=UTC)
    return (
        Decimal(value)
        if pa.types.is_decimal(kind) and isinstance(value, int)
        else value
    )


def _written(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "True" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)
