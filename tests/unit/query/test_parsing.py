"""SQL that is read, and the exact query that it is."""

from __future__ import annotations

import logging
from fractions import Fraction

import pytest
from samples.declared import TABLES

from modicum.core.errors import Code, InputError, Mark
from modicum.query.model import (
    Aggregate,
    AllOf,
    AnyOf,
    ColumnRef,
    Compare,
    Condition,
    IsIn,
    IsNull,
    Key,
    Not,
    Query,
)
from modicum.query.parser import parse_query
from modicum.query.tables import Column, Table, Tables

COUNT = Aggregate("count", "count")


def of_views(column: str) -> ColumnRef:
    return ColumnRef("views", column)


def where(condition: str) -> Condition | None:
    return parse_query(f"SELECT COUNT(*) FROM views WHERE {condition}", TABLES).where


def told(selected: str, group: str = "") -> Query:
    return parse_query(f"SELECT {selected} FROM views {group}", TABLES)


def code_of(sql: str, tables: Tables = TABLES) -> Code:
    with pytest.raises(InputError) as caught:
        parse_query(sql, tables)
    return caught.value.code


@pytest.mark.spec("QRY-1")
def test_a_query_is_read_as_a_whole() -> None:
    query = parse_query(
        """
        -- a comment, which says nothing
        select DATE_TRUNC('day', v.Event_Time) AS day, "page",
               count(*) as n, SUM(amount) /* in francs */ total
        from Views AS v join users AS u using (USER_ID)
        where v.age >= 18 AND region = 'CH' AND NOT mobile
        group by 1, page;
        """,
        TABLES,
    )
    assert query == Query(
        tables=("views", "users"),
        joined_on="user_id",
        where=AllOf(
            (
                Compare(of_views("age"), ">=", 18),
                Compare(ColumnRef("users", "region"), "=", "CH"),
                Not(Compare(of_views("mobile"), "=", True)),
            )
        ),
        keys=(
            Key("day", of_views("event_time"), "day"),
            Key("page", of_views("page")),
        ),
        aggregates=(
            Aggregate("n", "count"),
            Aggregate("total", "sum", of_views("amount")),
        ),
    )


AMOUNT, AGE = of_views("amount"), of_views("age")
_AGGREGATES = [
    ("COUNT(*)", COUNT),
    ("count(page)", Aggregate("count_page", "count", of_views("page"))),
    (
        "COUNT(DISTINCT user_id)",
        Aggregate("count_distinct_user_id", "count-distinct", of_views("user_id")),
    ),
    ("SUM(age)", Aggregate("sum_age", "sum", AGE)),
    ("AVG(views.amount)", Aggregate("avg_amount", "avg", AMOUNT)),
    ("VARIANCE(age)", Aggregate("variance_age", "variance", AGE)),
    ("VAR_SAMP(age)", Aggregate("variance_age", "variance", AGE)),
    ("VAR_POP(age)", Aggregate("variance_age", "variance", AGE, population=True)),
    ("STDDEV(age)", Aggregate("stddev_age", "stddev", AGE)),
    ("STDDEV_SAMP(age)", Aggregate("stddev_age", "stddev", AGE)),
    ("STDDEV_POP(age)", Aggregate("stddev_age", "stddev", AGE, population=True)),
    ("MEDIAN(age)", Aggregate("median_age", "quantile", AGE, Fraction(1, 2))),
    ("QUANTILE(age, 0.1)", Aggregate("quantile_age", "quantile", AGE, Fraction(1, 10))),
    (
        "APPROX_QUANTILE(age, 0.99)",
        Aggregate("quantile_age", "quantile", AGE, Fraction(99, 100)),
    ),
    (
        "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY amount)",
        Aggregate("quantile_amount", "quantile", AMOUNT, Fraction(1, 4)),
    ),
]


@pytest.mark.parametrize(("sql", "expected"), _AGGREGATES)
def test_aggregates(sql: str, expected: Aggregate) -> None:
    assert told(sql) == Query(("views",), None, None, (), (expected,))
    named = told(f"{sql} AS it").aggregates[0]
    assert named.name == "it"
    assert named.function == expected.function


_KEYS = [
    ("page", Key("page", of_views("page"))),
    ("age", Key("age", AGE)),
    ("mobile", Key("mobile", of_views("mobile"))),
    ("event_date", Key("event_date", of_views("event_date"))),
    *(
        (
            f"DATE_TRUNC('{grain}', event_time)",
            Key(f"event_time_{grain}", of_views("event_time"), grain),
        )
        for grain in ("day", "week", "month", "quarter", "year")
    ),
    (
        "DATE_TRUNC('Month', event_date)",
        Key("event_date_month", of_views("event_date"), "month"),
    ),
    ("CAST(event_time AS DATE)", Key("event_time_day", of_views("event_time"), "day")),
    ("event_time::date", Key("event_time_day", of_views("event_time"), "day")),
    ("views.event_time::DATE", Key("event_time_day", of_views("event_time"), "day")),
    ("DATE(event_time)", Key("event_time_day", of_views("event_time"), "day")),
]


@pytest.mark.parametrize(("sql", "expected"), _KEYS)
def test_keys(sql: str, expected: Key) -> None:
    """A key is repeated in GROUP BY, or named by its position or its name."""
    query = Query(("views",), None, None, (expected,), (COUNT,))
    assert told(f"{sql}, COUNT(*)", f"GROUP BY {sql}") == query
    assert told(f"{sql}, COUNT(*)", "GROUP BY 1") == query
    named = told(f"{sql} AS k, COUNT(*)", "GROUP BY K")
    assert named.keys == (Key("k", expected.value, expected.grain),)


_CONDITIONS: list[tuple[str, Condition]] = [
    ("age = 3", Compare(AGE, "=", 3)),
    ("age == 3", Compare(AGE, "=", 3)),
    ("age <> 3", Compare(AGE, "<>", 3)),
    ("age != 3", Compare(AGE, "<>", 3)),
    ("age < 3.0", Compare(AGE, "<", 3)),
    ("age <= 3e1", Compare(AGE, "<=", 30)),
    ("age > -3", Compare(AGE, ">", -3)),
    ("age >= - -3", Compare(AGE, ">=", 3)),
    ("age = 1_000", Compare(AGE, "=", 1000)),
    ("age = -9223372036854775807", Compare(AGE, "=", -(2**63 - 1))),
    ("3 < age", Compare(AGE, ">", 3)),
    ("3 <= age", Compare(AGE, ">=", 3)),
    ("3 > age", Compare(AGE, "<", 3)),
    ("3 >= age", Compare(AGE, "<=", 3)),
    ("3 <> age", Compare(AGE, "<>", 3)),
    ("-3 = age", Compare(AGE, "=", -3)),
    ("amount = 0.1", Compare(AMOUNT, "=", Fraction(1, 10))),
    ("amount = 1.", Compare(AMOUNT, "=", Fraction(1))),
    (
        "amount BETWEEN -1.5 AND 7",
        AllOf(
            (Compare(AMOUNT, ">=", Fraction(-3, 2)), Compare(AMOUNT, "<=", Fraction(7)))
        ),
    ),
    (
        "age NOT BETWEEN 1 AND 2",
        Not(AllOf((Compare(AGE, ">=", 1), Compare(AGE, "<=", 2)))),
    ),
    ("age IN (1, -2, 3.0)", IsIn(AGE, (1, -2, 3))),
    ("age NOT IN (1)", Not(IsIn(AGE, (1,)))),
    ("NOT age IN (1)", Not(IsIn(AGE, (1,)))),
    ("age IS NULL", IsNull(AGE)),
    ("age IS NOT NULL", Not(IsNull(AGE))),
    ("NOT age IS NULL", Not(IsNull(AGE))),
    ("page = 'it''s'", Compare(of_views("page"), "=", "it's")),
    ("page = ''", Compare(of_views("page"), "=", "")),
    ("'a' < page", Compare(of_views("page"), ">", "a")),
    ("\"select\" = 'x'", Compare(of_views("select"), "=", "x")),
    ("mobile", Compare(of_views("mobile"), "=", True)),
    ("mobile = FALSE", Compare(of_views("mobile"), "=", False)),
    ("TRUE <> mobile", Compare(of_views("mobile"), "<>", True)),
    ("mobile IN (TRUE)", IsIn(of_views("mobile"), (True,))),
    ("event_date = '2026-11-01'", Compare(of_views("event_date"), "=", "2026-11-01")),
    (
        "event_date > DATE '2026-11-01'",
        Compare(of_views("event_date"), ">", "2026-11-01"),
    ),
    (
        "event_date > CAST('2026-11-01' AS DATE)",
        Compare(of_views("event_date"), ">", "2026-11-01"),
    ),
    (
        "event_date > '2026-11-01'::DATE",
        Compare(of_views("event_date"), ">", "2026-11-01"),
    ),
    (
        "event_time < TIMESTAMP '2026-11-01 10:00:00'",
        Compare(of_views("event_time"), "<", "2026-11-01T10:00:00"),
    ),
    (
        "event_time < '2026-11-01T10:00'",
        Compare(of_views("event_time"), "<", "2026-11-01T10:00:00"),
    ),
    (
        "event_time < '2026-11-01 10:00:00.5'",
        Compare(of_views("event_time"), "<", "2026-11-01T10:00:00.500000"),
    ),
    (
        "DATE '2026-11-01' <= event_time",
        Compare(of_views("event_time"), ">=", "2026-11-01T00:00:00"),
    ),
    (
        "age = 1 OR age = 2 AND mobile OR page = 'x'",
        AnyOf(
            (
                Compare(AGE, "=", 1),
                AllOf((Compare(AGE, "=", 2), Compare(of_views("mobile"), "=", True))),
                Compare(of_views("page"), "=", "x"),
            )
        ),
    ),
    (
        "NOT age = 1 AND (age = 2 AND (age = 3))",
        AllOf(
            (
                Not(Compare(AGE, "=", 1)),
                AllOf((Compare(AGE, "=", 2), Compare(AGE, "=", 3))),
            )
        ),
    ),
    ("NOT NOT mobile", Not(Not(Compare(of_views("mobile"), "=", True)))),
]


@pytest.mark.parametrize(("sql", "expected"), _CONDITIONS)
def test_conditions(sql: str, expected: Condition) -> None:
    assert where(sql) == expected
    assert where(f"( {sql} )") == expected
    assert where(f"NOT ({sql})") == Not(expected)


def test_values_keep_their_type() -> None:
    """True is no number, although Python takes it for 1."""
    number, truth = where("age = 1"), where("mobile = TRUE")
    assert isinstance(number, Compare)
    assert isinstance(truth, Compare)
    assert type(number.value) is int
    assert truth.value is True


@pytest.mark.parametrize(
    "join",
    [
        "views JOIN users USING (user_id)",
        "views INNER JOIN users ON views.user_id = users.user_id",
        "views v JOIN users u ON (u.user_id = v.user_id)",
    ],
)
def test_joins(join: str) -> None:
    query = parse_query(f"SELECT COUNT(user_id) FROM {join}", TABLES)
    assert query.tables == ("views", "users")
    assert query.joined_on == "user_id"
    assert query.aggregates[0].value == of_views("user_id")


def test_three_tables_are_joined_on_one_id() -> None:
    query = parse_query(
        "SELECT COUNT(*) FROM users JOIN views USING (user_id)"
        " JOIN people p ON p.user_id = users.user_id",
        TABLES,
    )
    assert query.tables == ("users", "views", "people")
    assert query.joined_on == "user_id"


def test_marks_say_where_things_stand() -> None:
    text = "SELECT page,\r\n  COUNT(*) AS n\r\nFROM views GROUP BY page"
    query = parse_query(text, TABLES, "file.sql")
    assert query.keys[0].mark == Mark("file.sql", 1, 8, 4, "SELECT page,")
    assert query.aggregates[0].mark == Mark("file.sql", 2, 3, 5, "  COUNT(*) AS n")


def test_a_mark_counts_characters() -> None:
    with pytest.raises(InputError) as caught:
        parse_query(
            "SELECT COUNT(*) FROM views WHERE page = '🦋é' OR nobody = 3", TABLES
        )
    mark = caught.value.problems[0].mark
    assert mark is not None
    assert mark.source[mark.column - 1 :][: mark.length] == "nobody"


# --- names ----------------------------------------------------------------------------


def _two_alike() -> Tables:
    columns = {one: Column(one, "integer", one) for one in ("Age", "AGE", "id")}
    return Tables({"t": Table("t", columns, ("id",))})


def test_a_name_without_quotes_means_its_only_reading() -> None:
    tables = _two_alike()
    for sql, column in (("Age", "Age"), ("AGE", "AGE"), ('"AGE"', "AGE")):
        query = parse_query(f"SELECT COUNT({sql}) FROM t", tables)
        assert query.aggregates[0].value == ColumnRef("t", column)
    assert code_of("SELECT COUNT(age) FROM t", tables) is Code.UNKNOWN_NAME
    assert code_of('SELECT COUNT("age") FROM t', tables) is Code.UNKNOWN_NAME


def test_words_of_sql_may_be_names_in_quotes() -> None:
    query = told('"select" AS "from", COUNT(*) AS "order"', 'GROUP BY "from"')
    assert query.keys == (Key("from", of_views("select")),)
    assert query.aggregates[0].name == "order"


def test_no_id_is_known_where_no_policy_was_read() -> None:
    """Without the units of a policy nothing may be joined."""
    tables = Tables(TABLES.by_name)
    sql = "SELECT COUNT(*) FROM views JOIN users USING (user_id)"
    assert code_of(sql, tables) is Code.NOT_BOUNDED


# --- limits ---------------------------------------------------------------------------


def test_a_long_chain_is_read_without_a_call_for_each_link() -> None:
    condition = where(" OR ".join(f"age={one}" for one in range(5000)))
    assert isinstance(condition, AnyOf)
    assert condition.parts == tuple(Compare(AGE, "=", one) for one in range(5000))


def test_many_values_are_read_and_more_are_refused() -> None:
    values = ",".join(["1"] * 10_000)
    condition = where(f"age IN ({values})")
    assert condition == IsIn(AGE, (1,) * 10_000)
    assert where("mobile IN (" + ",".join(["TRUE"] * 10_000) + ")") is not None
    sql = f"SELECT COUNT(*) FROM views WHERE age IN ({values},1)"
    assert code_of(sql) is Code.NOT_IN_SUBSET


def test_a_long_text_is_refused() -> None:
    short = "SELECT COUNT(*) FROM views"
    exact = short + " " * (64 * 1024 - len(short))
    assert parse_query(exact, TABLES).tables == ("views",)
    assert code_of(exact + " ") is Code.NOT_IN_SUBSET


@pytest.mark.parametrize(
    ("before", "after"), [("(", ")"), ("NOT ", ""), ("NOT (", ")")]
)
def test_nesting_is_read_to_a_depth_and_refused_beyond(before: str, after: str) -> None:
    levels = 8 if before == "NOT (" else 16
    assert where(before * levels + "mobile" + after * levels) is not None
    for deep in (levels + 1, 50, 1000, 5000):
        sql = before * deep + "mobile" + after * deep
        assert code_of(f"SELECT COUNT(*) FROM views WHERE {sql}") is Code.NOT_IN_SUBSET


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "CASE " * 9000,
        "SELECT " + "- " * 9000 + "1 FROM views",
        "SELECT " + "a " * 9000,
        "SELECT " + "a." * 9000 + "a FROM views",
        "SELECT COUNT(*) FROM views WHERE age" + "::DATE" * 9000,
        "SELECT COUNT(*) FROM views WHERE age" + " = 1" * 9000,
        "SELECT COUNT(*) FROM views WHERE age" + " IS NULL" * 7000,
        "SELECT COUNT(*) FROM views WHERE age" + " BETWEEN 1" * 6000,
        "SELECT COUNT(*) FROM views" + " JOIN views" * 5000,
        "SELECT COUNT(*) FROM views" + " JOIN users USING (user_id)" * 2000,
        "SELECT " + "COUNT(*)," * 7000 + "COUNT(*) FROM views",
        "(" * 60_000,
        "'" * 60_000,
        "SELECT " + "DATE " * 9000 + "'x'",
        "SELECT " + "INTERVAL " * 7000 + "1",
        "SELECT DATE_TRUNC('day'" + ", event_time" * 5000 + ") FROM views",
        "/*" * 30_000,
    ],
)
def test_long_texts_are_refused_and_break_nothing(text: str) -> None:
    with pytest.raises(InputError):
        parse_query(text, TABLES)


@pytest.mark.parametrize(
    "hidden", ["\x00", "\x1b", "\u200b", "\u202e", "\ud800", "\u2028", "\ufeff"]
)
def test_characters_that_nobody_sees_are_refused(hidden: str) -> None:
    sql = f"SELECT COUNT(*) FROM views WHERE page = 'ma{hidden}in'"
    assert code_of(sql) is Code.NOT_SQL


# --- logs -----------------------------------------------------------------------------


@pytest.mark.spec("QRY-14")
def test_sqlglot_says_nothing_of_our_text_and_keeps_its_voice(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sqlglot.parser import Parser, logger

    whole = Parser.parse

    def talkative(*arguments: object, **named: object) -> object:
        logger.warning("reads %s", arguments[-1])
        return whole(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Parser, "parse", talkative)
    with caplog.at_level(logging.DEBUG):
        parse_query("SELECT COUNT(*) FROM views WHERE page = 'Zanzibar'", TABLES)
        assert not caplog.records
        logger.warning("of somebody else")
    assert [record.getMessage() for record in caplog.records] == ["of somebody else"]
