"""Expressions as they are read, what is known of them, and what is refused of them."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from samples import asked
from samples.declared import TABLES

from modicum.core.errors import Code, InputError
from modicum.engines.duckdb_engine import DuckdbEngine
from modicum.query.attributes import attributes_read
from modicum.query.expressions.table import BY_NODE, BY_WORD, FUNCTIONS
from modicum.query.groups import values_of
from modicum.query.model import (
    Aggregate,
    Call,
    ColumnRef,
    Compare,
    Expression,
    IsNull,
    Key,
    Literal,
    Not,
    Query,
)
from modicum.query.parser import parse_query
from modicum.query.statistics import ExactPlan, Secrets, Statistic
from modicum.query.tables import Column, Table, Tables
from modicum.release.parts import EVERYTHING, Part


def of_views(column: str) -> ColumnRef:
    return ColumnRef("views", column)


AGE, CLICKS, PAGE = of_views("age"), of_views("clicks"), of_views("page")
TIME, DAY, MOBILE = of_views("event_time"), of_views("event_date"), of_views("mobile")
AMOUNT = of_views("amount")


def whole(number: int) -> Literal:
    return Literal(number, "integer")


def counted(sql: str) -> Expression | None:
    """Return the expression that is counted."""
    query = parse_query(f"SELECT COUNT({sql}) FROM views", TABLES)
    return query.aggregates[0].value


ADULT = Compare(AGE, ">=", 18)
_READ: list[tuple[str, Expression]] = [
    (
        "CASE WHEN age >= 18 THEN 1 ELSE 0 END",
        Call("case", (ADULT, whole(1), whole(0))),
    ),
    ("IF(age >= 18, 1, 0)", Call("case", (ADULT, whole(1), whole(0)))),
    ("IIF(age >= 18, 1, 0)", Call("case", (ADULT, whole(1), whole(0)))),
    (
        "CASE WHEN age >= 18 THEN 1 END",
        Call("case", (ADULT, whole(1), Literal(None, "integer"))),
    ),
    (
        "CASE page WHEN 'help' THEN 'h' WHEN 'main' THEN 'm' END",
        Call(
            "case",
            (
                Compare(PAGE, "=", "help"),
                Literal("h", "text"),
                Compare(PAGE, "=", "main"),
                Literal("m", "text"),
                Literal(None, "text"),
            ),
        ),
    ),
    (
        "CASE age + 1 WHEN 3 THEN age END",
        Call(
            "case",
            (
                Call("=", (Call("plus", (AGE, whole(1))), whole(3))),
                AGE,
                Literal(None, "integer"),
            ),
        ),
    ),
    ("EXTRACT(HOUR FROM event_time)", Call("hour", (TIME,))),
    ("DATE_PART('dow', event_time)", Call("dayofweek", (TIME,))),
    ("event_time::DATE = event_date", Call("=", (Call("first_of_day", (TIME,)), DAY))),
    (
        "event_time > event_date",
        Call(">", (TIME, Call("timestamp", (DAY,)))),
    ),
    (
        "DATE_TRUNC('week', event_time) >= '2026-11-02'",
        Call(">=", (Call("first_of_week", (TIME,)), Literal("2026-11-02", "date"))),
    ),
    (
        "DATEDIFF('day', DATE '2026-11-02', event_time)",
        Call("days_between", (Literal("2026-11-02", "date"), TIME)),
    ),
    ("event_date + 7", Call("days_later", (DAY, whole(7)))),
    ("7 + event_date", Call("days_later", (DAY, whole(7)))),
    ("event_date - 7", Call("days_later", (DAY, whole(-7)))),
    ("event_date - INTERVAL '2 weeks'", Call("days_later", (DAY, whole(-14)))),
    ("event_time + INTERVAL '1' YEAR", Call("months_later", (TIME, whole(12)))),
    (
        "event_date + INTERVAL 2 HOURS",
        Call("seconds_later", (Call("timestamp", (DAY,)), whole(7200))),
    ),
    (
        "event_date - INTERVAL 1 DAY + INTERVAL 1 MONTH",
        Call("months_later", (Call("days_later", (DAY, whole(-1))), whole(1))),
    ),
    (
        "event_time::DATE - event_date",
        Call("days_between", (DAY, Call("first_of_day", (TIME,)))),
    ),
    (
        "event_date = DATE '2026-03-31' - INTERVAL 1 MONTH",
        Call("=", (DAY, Literal("2026-02-28", "date"))),
    ),
    (
        "DATE_DIFF('year', event_date, event_time)",
        Call("minus", (Call("year", (TIME,)), Call("year", (DAY,)))),
    ),
    (
        "STRFTIME(event_time, '%Y-%m')",
        Call("strftime", (Call("first_of_day", (TIME,)), Literal("%Y-%m", "text"))),
    ),
    ("STRFTIME(event_time, '%H')", Call("strftime", (TIME, Literal("%H", "text")))),
    ("CAST(amount AS INTEGER)", Call("round", (AMOUNT,))),
    ("TRY_CAST(amount AS BIGINT)", Call("round", (AMOUNT,))),
    (
        "CAST(event_date AS VARCHAR)",
        Call("strftime", (DAY, Literal("%Y-%m-%d", "text"))),
    ),
    (
        "event_date - '2026-11-01'",
        Call("days_between", (Literal("2026-11-01", "date"), DAY)),
    ),
    ("DATE_ADD(event_date, INTERVAL 7 DAY)", Call("days_later", (DAY, whole(7)))),
    ("event_date + 0", Call("days_later", (DAY, whole(0)))),
    ("RTRIM(page)", Call("rtrim", (PAGE,))),
    ("DISTINCT (page, age)", Call("packed", (PAGE, AGE))),
    (
        "CASE WHEN age <> 0 THEN amount / age END",
        Call(
            "case",
            (
                Compare(AGE, "<>", 0),
                Call("ratio", (AMOUNT, Call("nullif", (AGE, whole(0))))),
                Literal(None, "number"),
            ),
        ),
    ),
    ("age > clicks", Call(">", (AGE, CLICKS))),
    (
        "age BETWEEN clicks AND 9",
        Call("between", (AGE, CLICKS, whole(9))),
    ),
    ("3 IN (age, clicks)", Call("in", (whole(3), AGE, CLICKS))),
    (
        "age + clicks * 2 - 1",
        Call(
            "minus",
            (Call("plus", (AGE, Call("times", (CLICKS, whole(2))))), whole(1)),
        ),
    ),
    ("-(age)", Call("negative", (AGE,))),
    ("age - -1", Call("minus", (AGE, whole(-1)))),
    ("amount / 2", Call("divided", (AMOUNT, whole(2)))),
    (
        "amount / NULLIF(age, 0)",
        Call("ratio", (AMOUNT, Call("nullif", (AGE, whole(0))))),
    ),
    ("age // 10", Call("quotient", (AGE, whole(10)))),
    ("MOD(age, 10)", Call("modulo", (AGE, whole(10)))),
    ("FLOOR(FLOOR(amount))", Call("floor", (Call("floor", (AMOUNT,)),))),
    ("ROUND(amount, -1)", Call("round", (AMOUNT, whole(-1)))),
    ("IFNULL(age, 0)", Call("coalesce", (AGE, whole(0)))),
    ("CAST(age AS DOUBLE)", AGE),
    ("(age)::BIGINT", AGE),
    (
        "CAST(mobile AS INTEGER)",
        Call(
            "case",
            (MOBILE, whole(1), IsNull(MOBILE), Literal(None, "integer"), whole(0)),
        ),
    ),
    ("page NOT LIKE 'm%'", Not(Call("like", (PAGE, Literal("m%", "text"))))),
    ("CONCAT(page, '-')", Call("concat", (PAGE, Literal("-", "text")))),
    ("LEFT(page, 1)", Call("left", (PAGE, whole(1)))),
    ("page IS DISTINCT FROM 'x'", Not(Call("same", (PAGE, Literal("x", "text"))))),
    (
        "mobile IS NOT TRUE",
        Not(Call("same", (Compare(MOBILE, "=", True), Literal(True, "boolean")))),
    ),
    ("age + 1 IS NULL", IsNull(Call("plus", (AGE, whole(1))))),
]


@pytest.mark.spec("QRY-17")
@pytest.mark.parametrize(("sql", "expected"), _READ, ids=[sql for sql, _ in _READ])
def test_an_expression_is_read(sql: str, expected: Expression) -> None:
    assert counted(sql) == expected
    assert sql.startswith("DISTINCT") or counted(f"( {sql} )") == expected


def test_every_function_has_one_way_into_the_language() -> None:
    words = [word for one in FUNCTIONS.values() for word in one.words]
    nodes = [node for one in FUNCTIONS.values() for node in one.nodes]
    assert len(words) == len(set(words)) == len(BY_WORD)
    assert len(nodes) == len(set(nodes)) == len(BY_NODE)


def test_count_if_counts_where_a_condition_is_true() -> None:
    query = parse_query("SELECT COUNT_IF(age >= 18) FROM views", TABLES)
    none = Literal(None, "boolean")
    chosen = Call("case", (ADULT, Literal(True, "boolean"), none))
    assert query.aggregates == (Aggregate("count_if", "count", chosen),)


@pytest.mark.parametrize("group", ["1", "band", "FLOOR(age / 10) * 10"])
def test_a_key_is_named_by_its_position_its_name_or_itself(group: str) -> None:
    text = f"SELECT FLOOR(age/10)*10 AS band, COUNT(*) FROM views GROUP BY {group}"
    tens = Call("floor", (Call("divided", (AGE, whole(10))),))
    band = Call("times", (tens, whole(10)))
    assert parse_query(text, TABLES).keys == (Key("band", band),)


def test_an_expression_has_a_readable_name() -> None:
    text = (
        "SELECT HOUR(event_time), AVG(amount * age), SUM(2 * age) FROM views GROUP BY 1"
    )
    query = parse_query(text, TABLES)
    assert query.keys[0].name == "hour_event_time"
    names = [one.name for one in query.aggregates]
    assert names == ["avg_times_amount_age", "sum_times_age"]


# --- public values --------------------------------------------------------------------

NOVEMBER = date(2026, 11, 1).toordinal()
WEEK = Part(periods=((NOVEMBER, NOVEMBER + 6),))
YEARS = Part(periods=((date(2025, 12, 1).toordinal(), NOVEMBER),))
_PUBLIC: list[tuple[str, Part, Any]] = [
    ("HOUR(event_time)", EVERYTHING, tuple(range(24))),
    ("ISODOW(event_time)", EVERYTHING, tuple(range(1, 8))),
    ("MONTH(event_time)", EVERYTHING, tuple(range(1, 13))),
    ("MONTH(event_time)", WEEK, (11,)),
    ("DAY(event_time)", WEEK, tuple(range(1, 8))),
    ("YEAR(event_time)", EVERYTHING, None),
    ("LEFT(MONTHNAME(event_time), 1)", EVERYTHING, tuple("ADFJMNOS")),
    ("DAYNAME(event_time)", EVERYTHING, ("Friday", "Monday", "Saturday", "Sunday",
                                         "Thursday", "Tuesday", "Wednesday")),
    ("STRFTIME(event_time, '%Y-%m')", EVERYTHING, None),
    ("STRFTIME(event_time, '%Y-%m')", WEEK, ("2026-11",)),
    ("STRFTIME(event_time, '%d.')", WEEK, tuple(f"0{n}." for n in range(1, 8))),
    ("STRFTIME(event_time, '%d %H')", WEEK, None),
    ("event_date + 1 > '2026-11-03'", WEEK, (False, True)),
    ("MONTH(event_date + INTERVAL 1 MONTH)", WEEK, (12,)),
    ("event_time + INTERVAL 1 DAY > event_date", WEEK, (False, True)),
    ("DATE_DIFF('month', DATE '2026-09-30', event_time)", WEEK, (2,)),
    ("SPLIT_PART(page, 'a', 1)", EVERYTHING, ("help", "m")),
    ("REGEXP_MATCHES(page, 'a')", EVERYTHING, (False, True)),
    ("YEAR(event_time)", YEARS, (2025, 2026)),
    ("YEAR(event_date) - 2000", YEARS, (25, 26)),
    ("FLOOR(age / 10) * 10", EVERYTHING, tuple(range(0, 130, 10))),
    ("FLOOR(amount / 100)", EVERYTHING, tuple(range(6))),
    ("WIDTH_BUCKET(age, 20, 80, 3)", EVERYTHING, (0, 1, 2, 3, 4)),
    ("age % 3", EVERYTHING, (0, 1, 2)),
    ("clicks % 3", EVERYTHING, (-2, -1, 0, 1, 2)),
    ("LEAST(GREATEST(clicks, 0), 2)", EVERYTHING, (0, 1, 2)),
    ("clicks + 1", EVERYTHING, None),
    ("CASE WHEN age < 18 THEN 'young' ELSE 'old' END", EVERYTHING, ("old", "young")),
    ("CASE WHEN mobile THEN page ELSE 'no' END", EVERYTHING, ("help", "main", "no")),
    ("CASE WHEN mobile THEN \"select\" ELSE '' END", EVERYTHING, None),
    ("age >= 18", EVERYTHING, (False, True)),
    ("mobile IS TRUE", EVERYTHING, (False, True)),
    ("UPPER(page)", EVERYTHING, ("HELP", "MAIN")),
    ("LEFT(page, 1) || country", EVERYTHING, ("hCH", "hDE", "mCH", "mDE")),
    ("UPPER(\"select\")", EVERYTHING, None),
    ("COALESCE(page, 'none')", EVERYTHING, ("help", "main", "none")),
    ("SIGN(clicks)", EVERYTHING, (-1, 0, 1)),
    ("age // 50", EVERYTHING, (0, 1, 2)),
]  # fmt: skip


@pytest.mark.spec("QRY-19")
@pytest.mark.parametrize(("sql", "part", "expected"), _PUBLIC)
def test_public_values_follow_from_what_is_declared(
    sql: str, part: Part, expected: Any
) -> None:
    text = f"SELECT {sql} AS k, COUNT(*) FROM views GROUP BY k"
    (key,) = parse_query(text, TABLES).keys
    assert values_of(key, TABLES, part) == expected


def test_a_column_is_no_more_public_than_before() -> None:
    """Bounds alone do not make every value of a column a group."""
    assert values_of(Key("age", AGE), TABLES, EVERYTHING) is None
    assert values_of(Key("mobile", MOBILE), TABLES, EVERYTHING) is None


# --- what is declared decides ---------------------------------------------------------


def refusal(sql: str, **more: Any) -> tuple[Code, str, str]:
    with pytest.raises(InputError) as caught:
        asked.query(sql, **more)
    problem = caught.value.problems[0]
    return problem.code, problem.message, problem.help


def test_an_expression_reads_the_attributes_of_all_its_columns() -> None:
    policy = asked.compiled()
    query = asked.query(
        "SELECT CASE WHEN topic = 'x' THEN page ELSE 'y' END AS k,"
        " SUM(CASE WHEN page = 'help' THEN amount * 2 ELSE 0 END) AS s"
        " FROM views GROUP BY k",
        policy=policy,
    )
    vocabulary = policy.policy.vocabulary
    assert attributes_read(query.request, vocabulary) == ("amount", "page", "topic")


UNBOUNDED = asked.TABLES + "      clicks: {type: integer, attribute: amount}\n"


@pytest.mark.spec("QRY-18")
@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SUM(clicks + 1)", "`clicks` of `views` has no bounds"),
        ("AVG(CASE WHEN page = 'x' THEN clicks END)", "`clicks` of `views` has no bou"),
        ("SUM(amount * amount * amount / 1e9)", ""),
        ("SUM(LENGTH(topic))", "more than 2^31 steps of 1"),
        (
            "SUM(amount / NULLIF(ROUND(amount), 0) * amount * amount * amount)",
            "more than 2^31 steps of 0.000000125",
        ),
    ],
)
def test_a_sum_of_numbers_without_limits_is_refused(sql: str, words: str) -> None:
    text = f"SELECT {sql} AS s FROM views"
    if not words:
        asked.query(text, declared=UNBOUNDED)
        return
    code, message, remedy = refusal(text, declared=UNBOUNDED)
    assert code is Code.DOES_NOT_FIT
    assert words in message
    assert "bounds" in remedy or "LEAST" in remedy


def test_limits_in_the_query_do_for_bounds() -> None:
    limited = "SELECT SUM(LEAST(GREATEST(clicks, 0), 20)) AS s FROM views"
    query = asked.query(limited, declared=UNBOUNDED)
    (line,) = query.compiled.lines
    assert (line.statistic.low, line.statistic.high) == (0, 20)


def test_a_key_that_is_always_null_is_refused() -> None:
    sql = "SELECT NULLIF(page, page) AS k, COUNT(*) AS n FROM views GROUP BY k"
    query = asked.query(sql)
    assert query.compiled.groups == 2
    sql = "SELECT NULLIF('x', CONCAT(LEFT(page, 0), 'x')) AS k, COUNT(*) AS n"
    _, message, _ = refusal(sql + " FROM views GROUP BY k")
    assert message == "key `k` is NULL in every row"


# --- limits ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "age" + " + 1" * 70,
        "age" + " + 1" * 20_000,
        "NULLIF(" * 13 + "age" + ", 1)" * 13,
        "age" + "::BIGINT + 1" * 2000,
        "page LIKE '%a%b%c%d%'",
        "CASE age + 1" + " WHEN 1 THEN 2" * 600 + " END",
        "ABS(" * 17 + "age" + ")" * 17,
        "CASE WHEN mobile THEN " * 17 + "1" + " END" * 17,
        "age" + " IS NULL" * 5000,
    ],
    ids=range(9),
)
def test_an_expression_is_no_deeper_and_larger_than_engines_take(sql: str) -> None:
    with pytest.raises(InputError) as caught:
        counted(sql)
    assert caught.value.code in (Code.NOT_IN_SUBSET, Code.DOES_NOT_FIT)


def test_deep_and_large_expressions_are_read() -> None:
    assert counted("age" + " + 1" * 50) is not None
    assert counted("ABS(" * 15 + "age" + ")" * 15) is not None
    assert counted("CASE age" + " WHEN 1 THEN 2" * 1000 + " END") is not None


# --- rows that no other test can make -------------------------------------------------

FAR = """SELECT * FROM (VALUES
    (1, TIMESTAMP '290000-01-01', DATE '12000-01-01'), (2, 'infinity', '-infinity'),
    (3, TIMESTAMP '0044-03-15 (BC)', NULL),
    (4, TIMESTAMP '2026-11-05 10:00:00', DATE '2026-11-05')) AS t(id, "at", day)"""
_OF_TIMES = [name for name in FUNCTIONS if name.startswith("first_of")] + [
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "dayofyear",
    "dayofweek",
    "isodow",
    "hour",
    "minute",
    "second",
    "timestamp",
]
_LATER = ["days_later", "months_later", "seconds_later"]  # fmt: skip


@pytest.mark.spec("QRY-17")
def test_a_time_outside_of_our_years_is_null() -> None:
    import duckdb

    connection = duckdb.connect()
    far: pa.Table = connection.sql(FAR).to_arrow_table()
    connection.close()
    kinds = {"id": "integer", "at": "timestamp", "day": "date"}
    columns = {name: Column(name, kind) for name, kind in kinds.items()}  # type: ignore[arg-type]
    tables = Tables({"t": Table("t", columns, ("id",))})
    at, day = ColumnRef("t", "at"), ColumnRef("t", "day")
    calls = [
        *(Call(name, (at,)) for name in _OF_TIMES),
        Call("days_between", (day, at)),
        *(Call(name, (at, whole(n))) for name in _LATER for n in (-1, 1)),
        Call("strftime", (at, Literal("%Y", "text"))),
        Call("coalesce", (Call("timestamp", (day,)), at)),
        Call("<", (at, Call("timestamp", (day,)))),
    ]
    query = Query(("t",), None, None, (Key("id", ColumnRef("t", "id")),), ())
    statistics = tuple(
        Statistic(f"s{number}", "rows", call) for number, call in enumerate(calls)
    )
    plan = ExactPlan(query, tables, EVERYTHING, None, (), statistics, {})
    with DuckdbEngine({"t": far}) as engine:
        found = engine.run(plan, Secrets("00", "00"))
    for number, call in enumerate(calls):
        assert found[f"s{number}"] == {(1,): 0, (2,): 0, (3,): 0, (4,): 1}, call


def test_a_step_of_a_product_is_the_product_of_steps() -> None:
    query = asked.query("SELECT SUM(amount * amount) AS s FROM views")
    (line,) = query.compiled.lines
    assert (line.statistic.low, line.statistic.high) == (0, 256)
    assert Fraction(1, 4) * line.statistic.high == 64


# --- lengths of texts: no row may exhaust the memory ----------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "REPLACE(page, 'a', 'aaaaaaaaaaaaaaaaa')",
        "REPLACE(REPLACE(page, 'a', 'aaaaa'), 'a', 'aaaaa')",
        "CONCAT(" + ", ".join(["page"] * 17) + ")",
        "CONCAT(page, " + ", ".join(["''"] * 100) + ")",
        "UPPER(" + " || ".join(["page"] * 17) + ")",
        "CASE WHEN mobile THEN '" + "a" * 1001 + "' ELSE page END",
        "COALESCE(page || '" + "a" * 1001 + "', page)",
    ],
)
def test_no_text_may_grow_without_limit(text: str) -> None:
    with pytest.raises(InputError) as caught:
        counted(f"CASE WHEN LENGTH({text}) > 1 THEN 1 END")
    assert "would be longer than 16 times a column" in caught.value.render()


@pytest.mark.parametrize(
    "text",
    [
        "REPLACE(page, 'ab', 'aaaaaaaaaaaaaaaa')",
        "CONCAT(" + ", ".join(["page"] * 16) + ")",
        "CASE WHEN mobile THEN '" + "a" * 1000 + "' ELSE page END",
        "LEFT(CONCAT(page, '-', page), 3)",
    ],
)
def test_texts_of_a_limited_length_are_read(text: str) -> None:
    assert counted(f"CASE WHEN LENGTH({text}) > 1 THEN 1 END") is not None
