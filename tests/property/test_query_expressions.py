"""Expressions of rows mean in every engine what the specification says, in every row.

The rows are hostile: NULL everywhere, NaN and infinities, the ends of 64 bits, the
first and the last day, empty texts, texts with quotes, letters beyond A to Z.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from budget import examples, seed
from oracle.row_expressions import Meaning
from samples.drawn_expressions import CONSTRUCTS, REGULAR, Expressions
from samples.spark import spark_or_skip

from modicum.core.errors import InputError
from modicum.engines.duckdb_engine import DuckdbEngine, DuckdbOptions
from modicum.engines.spark_engine import SparkEngine
from modicum.engines.sql_engine import SqlEngine
from modicum.query.expressions.analysis import facts_of
from modicum.query.model import ColumnRef, Expression, Key, Query
from modicum.query.parser import parse_query
from modicum.query.statistics import ExactPlan, Secrets, Statistic
from modicum.query.tables import Column, Table, Tables
from modicum.release.parts import EVERYTHING

COLUMNS = [
    Column("id", "integer"),
    Column("small", "integer", low=Fraction(-5), high=Fraction(70)),
    Column("large", "integer"),
    Column(
        "price", "number", step=Fraction(1, 100), low=Fraction(0), high=Fraction(500)
    ),
    Column("ratio", "number", step=Fraction(1, 3), low=Fraction(-7), high=Fraction(70)),
    Column("free", "number", step=Fraction(1, 4)),
    Column("flag", "boolean"),
    Column("text", "text"),
    Column("page", "text", values=("main", "Main", "é")),
    Column("day", "date"),
    Column("at", "timestamp"),
]
TABLE = Table("t", {one.name: one for one in COLUMNS}, ("id",))
TABLES = Tables({"t": TABLE})
DRAWN = {ColumnRef("t", one.name): one for one in COLUMNS if one.name != "id"}
VALUES: dict[str, list[Any]] = {
    "small": [-6, -5, 0, 1, 69, 71, 2**63 - 1, -(2**63)],
    "large": [0, 1, -1, 7, 2**63 - 1, -(2**63), 2**53 + 1, 2**31, -(2**31)],
    "price": [0.0, -0.0, 0.005, 0.015, 99.995, 499.99, 1e308, -1e308, 1 / 3],
    "ratio": [0.0, -7.5, 1 / 3, 2 / 3, 0.5, 69.9, 1e15, 1 / 6],
    "free": [0.0, 0.125, -0.125, 1e15, -1e15, 2.0**53, 1e308],
    "flag": [True, False],
    "text": ["", "a", "A", "main", " ma in ", "é", "É", "e\u0301", "中文", "😀a", "ßs",
             "İi", "K", "a%b", "_", "!", "back\\slash", "\\%", "a\nb", "it's", "0"],
    "page": ["main", "Main", "é"],
    "day": [date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29), date(2024, 12, 30),
            date(2025, 1, 5), date(1582, 10, 10), date(1900, 1, 1)],
    "at": [
        datetime.fromisoformat(one)
        for one in (
            "0001-01-01", "9999-12-31T23:59:59.999999", "2024-02-29T12:30:07.000001",
            "2021-01-03", "1969-12-31T23:59:59",
        )
    ],
}  # fmt: skip
for _name in ("price", "ratio", "free"):
    VALUES[_name] += [float("nan"), float("inf"), float("-inf")]
TYPES = {
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "text": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}
SECRETS = Secrets("00", "00")


def rows(dice: random.Random, count: int = 60) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for number in range(count):
        row: dict[str, Any] = {"id": number}
        for name, values in VALUES.items():
            row[name] = None if dice.random() < 0.12 else dice.choice(values)
        found.append(row)
    return [{name: None if name != "id" else count for name in TABLE.columns}, *found]


ROWS = rows(random.Random(f"rows {seed()}"))
CLEAN = [
    {"t": {name: None if value != value else value for name, value in row.items()}}
    for row in ROWS
]


def told(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, datetime | date):
        return value.isoformat()
    return value if isinstance(value, str) else int(value)


def plan_of(whats: list[Expression]) -> ExactPlan:
    """A plan with an expression as a key, or as the value of a statistic, or both."""
    statistics = []
    for number, what in enumerate(whats):
        facts = facts_of(what, TABLES)
        statistics += [
            Statistic(f"r{number}", "rows", what),
            Statistic(f"d{number}", "distinct", what),
        ]
        if facts.numeric and facts.farthest < 2**31:
            low, high = facts.low, facts.high
            statistics.append(Statistic(f"s{number}", "total", what, low, high))
    key = Key("id", ColumnRef("t", "id"))
    query = Query(("t",), None, None, (key,), ())
    return ExactPlan(query, TABLES, EVERYTHING, None, (), tuple(statistics), {})


def expected(plan: ExactPlan) -> dict[str, dict[tuple[Any, ...], int]]:
    meaning = Meaning(TABLES)
    found: dict[str, dict[tuple[Any, ...], int]] = {}
    for one in plan.statistics:
        assert one.value is not None
        facts = facts_of(one.value, TABLES)
        numbers = found[one.name] = {}
        for row in CLEAN:
            value = meaning.of(one.value, row)
            number = int(value is not None)
            if facts.numeric and value is not None:
                steps = Fraction(value) / facts.step
                assert steps.denominator == 1, (one.value, value)
                assert facts.low <= steps <= facts.high, (one.value, value, facts)
                assert facts.type == "number" or value == int(value)
                assert not (facts.nonzero and value == 0)
                number = int(steps) if one.kind == "total" else 1
            numbers[(row["t"]["id"],)] = 0 if value is None else number
    return found


def grouped(engine: SqlEngine, what: Expression) -> dict[tuple[Any, ...], int]:
    query = Query(("t",), None, None, (Key("k", what),), ())
    count = Statistic("n", "rows")
    plan = ExactPlan(query, TABLES, EVERYTHING, None, (), (count,), {})
    return dict(engine.run(plan, SECRETS)["n"])


def check(engine: SqlEngine, whats: list[Expression], keys: int = 3) -> Counter[str]:
    """Compare statistics of expressions with their meaning, row by row; and as keys."""
    plan, meaning, seen = plan_of(whats), Meaning(TABLES), Counter[str]()
    found, want = engine.run(plan, SECRETS), expected(plan)
    for one in plan.statistics:
        assert found[one.name] == want[one.name], one
        seen["some"] += any(want[one.name].values())
    for what in whats[:keys]:
        facts = facts_of(what, TABLES)
        if facts.type in {"number", "timestamp"} or isinstance(what, ColumnRef):
            continue
        groups = Counter(told(meaning.of(what, row)) for row in CLEAN)
        answer = grouped(engine, what)
        public = {key for (key,) in answer}
        assert all(groups[key] == number for (key,), number in answer.items()), what
        missing = groups.keys() - public
        assert missing <= {None}, (what, missing)  # No row of a public key is dropped.
        seen["keys"] += 1
    return seen


def in_memory() -> pa.Table:
    return pa.table(
        {
            one.name: pa.array([row[one.name] for row in ROWS], TYPES[one.type])
            for one in COLUMNS
        }
    )


def drawn(construct: str, number: int) -> list[Expression]:
    dice = random.Random(f"{seed()} {construct} {number}")
    maker = Expressions(dice, DRAWN, TABLES)
    return [maker.of_construct(construct) for _ in range(10)]


@pytest.mark.spec("QRY-17")
@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_duckdb_computes_what_expressions_mean(construct: str) -> None:
    seen = Counter[str]()
    with DuckdbEngine({"t": in_memory()}, DuckdbOptions(threads=1)) as engine:
        for number in range(examples(30)):
            seen += check(engine, drawn(construct, number))
    assert seen["some"] > 0
    assert seen["keys"] > 0


@pytest.mark.spec("QRY-17")
@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_spark_computes_what_expressions_mean(construct: str) -> None:
    options = spark_or_skip()
    with SparkEngine({"t": in_memory()}, options) as engine:
        for number in range(examples(8, plain=1)):
            ansi = "true" if number % 2 else "false"
            engine._session.conf.set("spark.sql.ansi.enabled", ansi)
            check(engine, drawn(construct, number), keys=1)


_MOST = 2**62
EDGES = [
    f"(LEAST(GREATEST(large, 0), {_MOST}) + 0) // 3",
    f"(LEAST(GREATEST(large, 0), {_MOST - 1}) + LEAST(ABS(small), {_MOST})) % 7",
    f"(LEAST(GREATEST(large, 0), {_MOST - 1}) * 2) % 7",
    f"LEAST(GREATEST(large, -{_MOST}), {_MOST}) - 1 + 1",
    "large + large",
    "large * large",
    "large - small * 1000",
    "- large",
    "ABS(large)",
    "SIGN(large * large)",
    "large // 3",
    "large % 10",
    "FLOOR(large)",
    "CEIL(large)",
    "large * small < large + 1",
    "LEAST(large * small, 5)",
    "GREATEST(LEAST(large * large, 9), -9)",
    "CASE WHEN flag THEN large ELSE 0.25 END > 3",
    "COALESCE(large, price) = free",
    "ROUND(free / 1000000000000 * 4, 2)",
    "ROUND(free * 1000000, -12)",
    "ROUND(small, -1)",
    "ROUND(ratio)",
    "FLOOR(ratio * -2)",
    "WIDTH_BUCKET(ratio, -1, 2, 7)",
    "WIDTH_BUCKET(large, 0, 10, 5)",
    "small / NULLIF(ratio, 0)",
    "ratio / (small + 6)",
    "price / 3 * 7 - 1",
    "free * free",
    "NULLIF(large, small) = 7",
]


def counted(sql: str) -> Expression:
    (one,) = parse_query(f"SELECT COUNT({sql}) FROM t", TABLES).aggregates
    assert one.value is not None
    return one.value


def engine_of(name: str) -> SqlEngine:
    if name == "duckdb":
        return DuckdbEngine({"t": in_memory()}, DuckdbOptions(threads=1))
    return SparkEngine({"t": in_memory()}, spark_or_skip())


@pytest.mark.spec("QRY-17")
@pytest.mark.parametrize("name", ["duckdb", "spark"])
def test_numbers_at_the_edges_of_64_bits_are_exact(name: str) -> None:
    whats, unread = list[Expression](), list[str]()
    for sql in EDGES:
        try:
            whats.append(counted(sql))
        except InputError:
            unread.append(sql)
    assert unread == ["WIDTH_BUCKET(large, 0, 10, 5)"]
    with engine_of(name) as engine:
        check(engine, whats, keys=0)


#: Times are keys or texts of keys here, so that each value is compared.
LATER = [
    "day + 1",
    "day - 1",
    "day - 3652058",
    "day + INTERVAL 3652058 DAY",
    "DATE_DIFF('month', day, day + INTERVAL 1 MONTH)",
    "day + INTERVAL '1 month'",
    "day - INTERVAL 1 MONTH",
    "day + INTERVAL 6 QUARTERS",
    "day - INTERVAL '2024' YEAR",
    "day + INTERVAL 119987 MONTH",
    "STRFTIME(at, '%d.%m.%Y %H:%M:%S')",
    "STRFTIME(at + INTERVAL 1 SECOND, '%Y-%m-%d %H:%M:%S')",
    "STRFTIME(at - INTERVAL 1 SECOND, '%Y-%m-%d %H:%M:%S')",
    "STRFTIME(at + INTERVAL 26 HOURS, '%Y-%m-%d %H:%M:%S')",
    "STRFTIME(at - INTERVAL 1 MONTH, '%Y-%m-%d %H:%M:%S')",
    "STRFTIME(at + INTERVAL 1 WEEK, '%Y-%m-%d %H:%M:%S')",
    "STRFTIME(day + INTERVAL 90 MINUTE, '%Y-%m-%d %H:%M')",
    "STRFTIME(day, 'in %Y, it''s %m')",
    "CAST(day AS VARCHAR)",
    "day - CAST(at AS DATE)",
    "DATE_DIFF('year', day, at)",
    "DATE_DIFF('quarter', at, day)",
    "at + INTERVAL 1 SECOND > day + INTERVAL 1 DAY",
    "SPLIT_PART(text, 'a', 2)",
    "SPLIT_PART(text, '\\', 2)",
    "SPLIT_PART(text, '😀', 2)",
    "LTRIM(text)",
    "RTRIM(text)",
    "CAST(ratio AS INTEGER)",
    "free::BIGINT",
]


@pytest.mark.spec("QRY-27")
@pytest.mark.parametrize("name", ["duckdb", "spark"])
def test_times_some_time_later_are_those_of_the_calendar(name: str) -> None:
    whats = [counted(sql) for sql in LATER]
    quoted = (one.replace("'", "''") for one in REGULAR)
    whats += [counted(f"REGEXP_MATCHES(text, '{one}')") for one in quoted]
    with engine_of(name) as engine:
        seen = check(engine, whats, keys=len(whats))
        pairs = ["(text, page)", "(text, day, flag)", "(small, flag)"]
        check(engine, [counted(f"DISTINCT {one}") for one in pairs], keys=3)
    assert seen["keys"] == len(whats)
