"""What analysts ask: how much of it is read, and that it is answered as SQL means it.

Each query of `samples/analyst_queries` runs without noise, with caps that cut nothing,
and must give what DuckDB answers to the same text. To add one, add an entry, and run
this file: a failure prints what the entry must say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from samples import asked
from samples.analysts import (
    POLICY,
    TABLES,
    AnalystQuery,
    analyst_queries,
    write_rows,
)

from modicum.api.local.queries.execution import noisy_of
from modicum.core.document import from_python
from modicum.core.errors import InputError
from modicum.engines.duckdb_engine import DuckdbEngine, DuckdbOptions
from modicum.engines.factory import SystemSecrets
from modicum.policy import CompiledPolicy
from modicum.query.query_file import QueryFile, read_query_file
from modicum.query.results import answers_of
from modicum.query.tables import Tables

QUERIES = analyst_queries()
#: How many of them are read. Raise it with the reach of the SQL; never lower it.
LOADING = 188
_CLOSE = 1e-6

Group = tuple[object, ...]
#: By group, the numbers of its answers by name.
Answer = dict[Group, dict[str, float | None]]


@dataclass(frozen=True)
class Shop:
    policy: CompiledPolicy
    tables: Tables
    engine: DuckdbEngine
    plain: duckdb.DuckDBPyConnection


class NoNoise:
    """Adds none."""

    def check(self, noise: str, scale: Fraction, sensitivity: Fraction) -> None:
        """Take any."""

    def add(self, noise: str, scale: Fraction, values: Sequence[int]) -> list[int]:
        return list(values)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    paths = write_rows(tmp_path_factory.mktemp("shop"))
    plain = duckdb.connect(":memory:", config={"threads": 1})
    for table, path in paths.items():
        plain.execute(f"CREATE TABLE {table} AS SELECT * FROM '{path}'")
    policy = asked.compiled(POLICY)
    with DuckdbEngine(paths, DuckdbOptions(threads=1)) as engine:
        yield Shop(policy, asked.tables(policy, TABLES), engine, plain)
    plain.close()


def loaded(query: AnalystQuery, shop: Shop) -> QueryFile:
    node, vocabulary = from_python(query.document()), shop.policy.policy.vocabulary
    return read_query_file(node, shop.tables, vocabulary, shop.policy.policy.digest)


# --- two answers to one text ----------------------------------------------------------


def answered(query: QueryFile, shop: Shop) -> Answer:
    """Return the answers of modicum, by group, without noise."""
    noisy = noisy_of(query.compiled, shop.engine, NoNoise(), SystemSecrets())
    found = answers_of(query.compiled, noisy, query.confidence)
    return {
        tuple(map(_key, row.keys)): {
            name: None if one.value is None else float(one.value)
            for name, one in zip(found.aggregates, row.estimates, strict=True)
        }
        for row in found.rows
    }


def plainly(text: str, keys: Sequence[str], shop: Shop) -> Answer:
    """Return the answers of DuckDB, by group."""
    result = shop.plain.execute(text)
    names = [column[0] for column in result.description]
    found: Answer = {}
    for cells in result.fetchall():
        row = dict(zip(names, cells, strict=True))
        group = tuple(_key(row.pop(name)) for name in keys)
        assert group not in found, "groups of an answer differ"
        found[group] = {
            name: None if cell is None else float(cell) for name, cell in row.items()
        }
    return found


def _key(value: object) -> object:
    if isinstance(value, datetime):
        assert value == datetime.combine(value.date(), datetime.min.time())
        return value.date().isoformat()
    return value.isoformat() if isinstance(value, date) else value


def must_agree(query: AnalystQuery, ours: Answer, plain: Answer) -> None:
    """Compare two answers.

    Groups without a row are told as well, with 0 or nothing, and the sum of no value is
    0; a NULL need not be a key; and of keys that are discovered, those of few people
    stay untold. Where the text orders the groups, they are in this order.
    """
    if query.ordered:
        assert [one for one in ours if one in plain] == [*plain]
    for group, numbers in ours.items():
        expected = plain.get(group)
        if expected is None:
            assert not any(numbers.values()), f"{group} has no row"
            continue
        assert numbers.keys() == expected.keys()
        for name, number in numbers.items():
            other = expected[name]
            if number is None or other is None:
                assert not number, f"{name} of {group} is NULL"
                assert other is None, f"{name} of {group} is {other}"
                continue
            allowed = max(query.within, _CLOSE * max(1, abs(other)))
            assert abs(number - other) <= allowed, f"{name} of {group}: {other}"
    missing = [one for one in plain if one not in ours and None not in one]
    if "discover" in query.settings:
        assert len(missing) < len(plain) / 2
    else:
        assert not missing


# --- the battery ----------------------------------------------------------------------


@pytest.mark.parametrize("query", QUERIES, ids=lambda one: one.id)
def test_a_query_is_refused_with_advice_or_means_what_sql_means(
    query: AnalystQuery, shop: Shop
) -> None:
    if query.plain:
        shop.plain.execute(query.sql)  # It is SQL.
    expected = query.never or query.refused
    try:
        ours = loaded(query, shop)
    except InputError as error:
        said = [f"{one.code.value} {one.message} {one.help}" for one in error.problems]
        assert expected, f"it is refused: {said}"
        code, _, fragment = expected.partition(" ")
        assert any(one.startswith(code) and fragment in one for one in said), said
        return
    assert query.never is None, "it is read, and no private SQL should answer it"
    assert query.refused is None, "it is read: mark it as loading, without `refused`"
    keys = [key.name for key in ours.compiled.request.query.keys]
    must_agree(query, answered(ours, shop), plainly(query.sql, keys, shop))


#: Other forms of what the queries above ask; True where the release names periods.
FORMS = [
    ("SELECT COVAR_SAMP(unit_price, discount) AS a, REGR_R2(paid_price, discount) AS b,"
     " REGR_INTERCEPT(paid_price, discount) AS c, REGR_COUNT(quantity, discount) AS d"
     " FROM orders", False),
    ("SELECT status, CORR(paid_price, unit_price) AS r, COUNT(1) AS n,"
     " REGR_SLOPE(quantity, 2 * unit_price + 1) AS s FROM orders GROUP BY status"
     " HAVING COVAR_POP(paid_price, unit_price) > 0", False),
    ("SELECT COUNT(DISTINCT (country, coupon)) AS a, COUNT(DISTINCT (user_id, quantity,"
     " status = 'paid')) AS b, COUNT(DISTINCT (unit_price, order_date)) AS c"
     " FROM orders", False),
    ("SELECT plan, COUNT(*) AS n FROM users LEFT OUTER JOIN orders o USING (user_id)"
     " WHERE plan <> 'free' AND (o.user_id IS NULL AND newsletter) GROUP BY plan",
     False),
    ("SELECT COUNT(*) AS n FROM (SELECT u.country FROM users u LEFT JOIN subscriptions"
     " AS s ON s.user_id = u.user_id WHERE s.subscription_id IS NULL) AS t", False),
    ("SELECT first, COUNT(*) AS n, COUNT_IF(last > 'p') AS p FROM (SELECT user_id,"
     " MIN(device) AS first, MAX(event_type) AS last FROM events GROUP BY user_id) AS t"
     " WHERE first IS NOT NULL GROUP BY first", False),
    ("SELECT DATE_DIFF('month', DATE '2025-12-31', event_time) AS m, COUNT(*) AS n"
     " FROM events GROUP BY m", True),
    ("SELECT STRFTIME(event_time, '%d.%m.%Y') AS day, COUNT(*) AS n FROM events"
     " GROUP BY day", True),
    ("SELECT DAYNAME(event_time) AS day, MONTHNAME(event_time) AS month, COUNT(*) AS n"
     " FROM events GROUP BY day, month", False),
    ("SELECT COUNT(*) AS n FROM events WHERE STRFTIME(event_time, '%H:%M') < '07:30'",
     False),
    ("SELECT COUNT(*) AS n FROM events"
     " WHERE event_time >= TIMESTAMP '2026-11-01 12:00:00' - INTERVAL 36 HOUR"
     " AND event_time + INTERVAL '90 minutes' < DATE '2026-11-30'", False),
    ("SELECT COUNT(*) AS n FROM orders WHERE shipped_on BETWEEN"
     " order_date + INTERVAL 1 DAY AND 5 + order_date", False),
    ("SELECT plan, AVG(ended_on - started_on) AS days FROM subscriptions"
     " WHERE ended_on >= started_on + INTERVAL 1 MONTH GROUP BY plan", False),
    ("SELECT DATE_TRUNC('week', first) AS week, COUNT(*) AS n FROM (SELECT user_id,"
     " MIN(event_time) AS first FROM events GROUP BY user_id) AS t GROUP BY 1", True),
    ("SELECT day, COUNT(*) AS n FROM (SELECT user_id, CAST(event_time AS DATE) AS day"
     " FROM events GROUP BY user_id, day) AS t GROUP BY day", True),
    ("SELECT DATE_DIFF('month', first, event_time) AS month, COUNT(DISTINCT user_id) AS"
     " n FROM events JOIN (SELECT user_id, MIN(event_time) AS first FROM events"
     " GROUP BY user_id) AS t USING (user_id) GROUP BY month", True),
    ("SELECT CAST(unit_price / 10 AS INTEGER) AS tens, COUNT(*) AS n FROM orders"
     " WHERE unit_price % 10 <> 5 GROUP BY tens", False),
    ("SELECT SUM(CASE WHEN quantity > 0 THEN revenue / quantity END) AS a,"
     " AVG(revenue / quantity) FILTER (WHERE quantity >= 1) AS b FROM events", False),
    ("SELECT QUANTILE_DISC(age, 0.25) AS q, APPROX_COUNT_DISTINCT(plan) AS p"
     " FROM users", False),
    ("SELECT DISTINCT plan, RTRIM(LTRIM(' ' || plan)) = plan AS same, COUNT(*) AS n"
     " FROM users GROUP BY plan, same", False),
    ("SELECT CASE WHEN REGEXP_MATCHES(page, '^/(shop|help)/') THEN SPLIT_PART(page,"
     " '/', 3) ELSE page END AS part, COUNT(*) AS n FROM events WHERE page IS NOT NULL"
     " GROUP BY part", False),
]  # fmt: skip


@pytest.mark.spec("QRY-27")
@pytest.mark.spec("QRY-29")
@pytest.mark.parametrize(("sql", "dated"), FORMS, ids=[sql for sql, _ in FORMS])
def test_other_forms_mean_what_sql_means(sql: str, dated: bool, shop: Shop) -> None:
    query = AnalystQuery("form", sql, dated=dated, within=2 * ("QUANTILE" in sql))
    ours = loaded(query, shop)
    keys = [key.name for key in ours.compiled.request.query.keys]
    must_agree(query, answered(ours, shop), plainly(sql, keys, shop))


@pytest.mark.spec("QRY-28")
def test_the_first_time_of_a_person_is_that_of_the_rows_that_are_read(
    shop: Shop,
) -> None:
    first = "(SELECT user_id, MIN(event_time) AS first FROM events {} GROUP BY user_id)"
    sql = f"SELECT DATE_TRUNC('week', first) AS week, COUNT(*) AS n FROM {first} AS t"
    within = "WHERE event_time >= '2026-10-07' AND event_time < '2026-10-31'"
    days = {"from": "2026-10-07", "to": "2026-10-30"}
    query = AnalystQuery("first", f"{sql.format('')} GROUP BY week", dated=True)
    node = from_python({**query.document(), "periods": days})
    policy = shop.policy.policy
    ours = read_query_file(node, shop.tables, policy.vocabulary, policy.digest)
    found = answered(ours, shop)
    mondays = ["2026-10-05", "2026-10-12", "2026-10-19", "2026-10-26"]
    assert [*found] == [(one,) for one in mondays]
    plain = plainly(f"{sql.format(within)} GROUP BY week", ["week"], shop)
    must_agree(query, found, plain)


def test_the_battery_tells_how_many_queries_are_read() -> None:
    ids = [one.id for one in QUERIES]
    never = [one for one in QUERIES if one.never]
    loading = [one for one in QUERIES if not (one.never or one.refused)]
    print(f"{len(loading)} of {len(ids)} queries are read", end=": ")
    print(f"{len(loading) / len(ids):.0%}; {len(never)} are out of reach")
    assert len(set(ids)) == len(ids) >= 130
    assert not [one.id for one in never if one.refused]
    assert 0.15 <= len(never) / len(ids) <= 0.25
    assert len(loading) == LOADING, "write the new number into LOADING"


def test_a_wrong_answer_is_noticed() -> None:
    query = AnalystQuery("drawn", "")
    plain: Answer = {("CH",): {"n": 3.0}, (None,): {"n": 1.0}}
    must_agree(query, {("CH",): {"n": 3.0}, ("DE",): {"n": 0.0}}, plain)
    for wrong in (
        {("CH",): {"n": 4.0}},
        {("CH",): {"n": None}},
        {("CH",): {"m": 3.0}},
        {("CH",): {"n": 3.0}, ("DE",): {"n": 1.0}},
        {},
    ):
        with pytest.raises(AssertionError):
            must_agree(query, dict[Any, Any](wrong), plain)
