"""Lookups, subqueries and members: what is read, what it counts as, what is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from samples import asked

from modicum.core.errors import Code, InputError
from modicum.engines.duckdb_engine import DuckdbEngine, DuckdbOptions
from modicum.query.attributes import attributes_read
from modicum.query.digest import identity_of
from modicum.query.model import ColumnRef
from modicum.query.query_file import QueryFile
from modicum.query.sql.statements import statements
from modicum.query.statistics import Secrets

POLICY = asked.POLICY.replace(
    "schema:", "  device: {id: device_id, within: user}\nschema:"
).replace("amount: high}", "amount: high, plan: low, other: low}")
TABLES = """\
modicum: tables/v1
tables:
  views:
    row_id: view_id
    columns:
      view_id: {type: integer}
      user_id: {type: text}
      read_at: {type: timestamp}
      page: {type: text, values: [help, main]}
      topic: {type: text}
      amount: {type: number, step: 0.5, bounds: [0, 8]}
  clicks:
    columns:
      user_id: {type: text}
      device_id: {type: text, attribute: other}
      read_at: {type: timestamp}
  orders:
    row_id: order_id
    columns:
      order_id: {type: integer}
      user_id: {type: text}
      page: {type: text, attribute: other, values: [help, main]}
  people:
    row_id: user_id
    one_per: user_id
    columns:
      user_id: {type: text}
      plan: {type: text, values: [free, plus]}
  pages:
    public: true
    key: page
    columns:
      page: {type: text}
      section: {type: text, values: [a, b]}
      weight: {type: integer, bounds: [0, 9]}
  sections:
    public: true
    key: name
    columns:
      name: {type: text}
      rank: {type: integer, values: [1, 2]}
  numbers:
    public: true
    key: number
    columns:
      number: {type: integer}
"""
USER: dict[str, Any] = {
    "bounds": {"user": 5},
    "noise": "laplace",
    "loss": {"user": {"eps": Fraction(1)}},
    "periods": None,
}
PER_USER = "SELECT user_id, COUNT(*) AS n FROM views GROUP BY user_id"


def query(sql: str, **more: Any) -> QueryFile:
    given = {**USER, **more}
    periods, declared = given.pop("periods"), given.pop("declared", TABLES)
    policy = asked.compiled(POLICY)
    plain = asked.document(sql, periods=periods, **given)
    if periods is None:
        del plain["periods"]
    return asked.read(plain, policy=policy, declared=declared)


def derived(sql: str, **more: Any) -> QueryFile:
    return query(sql, **{"bounds": {}, **more})


def norms(found: QueryFile) -> dict[str, tuple[int, int]]:
    (line,) = found.compiled.lines
    return {unit: (one.l1, one.l2_squared) for unit, one in line.norms.items()}


# --- what is read ---------------------------------------------------------------------


@pytest.mark.spec("QRY-20")
def test_a_lookup_reads_the_attribute_of_what_is_looked_up() -> None:
    for sql, read in [
        ("SELECT COUNT(*) AS n FROM views JOIN pages USING (page)", ("page",)),
        ("SELECT COUNT(*) AS n FROM views v LEFT JOIN pages ON topic = pages.page",
         ("topic",)),
        ("SELECT SUM(weight) AS n FROM pages JOIN views USING (page)", ("page",)),
        ("SELECT rank, COUNT(*) AS n FROM orders o JOIN pages p ON o.page = p.page"
         " JOIN sections s ON s.name = p.section GROUP BY rank", ("other",)),
        ("SELECT COUNT(*) AS n FROM views WHERE page IN (SELECT page FROM pages"
         " WHERE weight > 3)", ("page",)),
    ]:  # fmt: skip
        found = query(sql)
        vocabulary = asked.compiled(POLICY).policy.vocabulary
        assert attributes_read(found.request, vocabulary) == read, sql
        assert found.compiled.moves["user"].coming == 5
        assert found.compiled.moves["user"].going == 0


@pytest.mark.spec("QRY-21")
def test_all_that_a_subquery_reads_is_read() -> None:
    sql = (
        "SELECT COUNT(*) AS n FROM (SELECT user_id, SUM(amount) AS unused FROM views"
        " WHERE topic = 'x' GROUP BY user_id HAVING MAX(CASE WHEN page = 'main' THEN 1"
        " END) = 1) AS t WHERE user_id IN (SELECT user_id FROM orders"
        " WHERE page = 'help')"
    )
    assert derived(sql).compiled.attributes == ("amount", "other", "page", "topic")


@pytest.mark.spec("QRY-28")
def test_what_is_called_the_time_of_a_row_is_not_its_time() -> None:
    sql = (
        "SELECT {} AS k, COUNT(*) AS n FROM (SELECT user_id, MIN(read_at) AS read_at"
        " FROM views GROUP BY user_id) AS t GROUP BY k"
    )
    for key in ("DATE_TRUNC('day', read_at)", "CAST(read_at AS DATE)"):
        with pytest.raises(InputError) as caught:
            derived(sql.format(key))
        assert "not all values of the keys are public" in str(caught.value)
        found = derived(sql.format(key), periods="2026-10")
        assert found.compiled.groups == 31  # It lies on the days of its rows,
        assert norms(found)["user-day"] == (2, 2)  # and may move from one to another.
    (table,) = query(
        "SELECT COUNT(*) AS n FROM (SELECT user_id, MIN(read_at) AS read_at, COUNT(*)"
        " AS device_id FROM views GROUP BY user_id) AS t"
    ).request.query.derived
    assert [*table.table.columns] == ["user_id", "read_at_2", "device_id_2"]


_LEFT = "SELECT COUNT(*) AS n FROM people AS p LEFT JOIN views AS v USING (user_id)"


@pytest.mark.spec("QRY-21")
def test_rows_without_a_match_are_those_that_do_not_exist() -> None:
    without = (
        "SELECT COUNT(*) AS n FROM people AS p WHERE NOT EXISTS"
        " (SELECT 1 FROM views AS v WHERE v.user_id = p.user_id)"
    )
    want = derived(without).request.query
    for column in ("user_id", "view_id"):
        found = derived(f"{_LEFT} WHERE v.{column} IS NULL").request.query
        assert found == want, column
        both = (
            f"{_LEFT} WHERE p.plan = 'free' AND (v.{column} IS NULL AND p.plan > 'a')"
        )
        assert derived(both).request.query.lookups == want.lookups


@pytest.mark.parametrize(
    "condition",
    ["v.amount IS NULL", "v.user_id IS NULL OR p.plan > 'a'", "NOT v.user_id IS NULL",
     "v.user_id IS NOT NULL", "p.user_id IS NULL", "p.plan = 'a'",
     "v.user_id IS NULL AND v.amount IS NULL"],
)  # fmt: skip
def test_other_rows_of_a_left_join_stay_refused(condition: str) -> None:
    with pytest.raises(InputError) as caught:
        derived(f"{_LEFT} WHERE {condition}")
    assert caught.value.code in (Code.NOT_BOUNDED, Code.UNKNOWN_NAME)


def test_another_id_may_be_null_in_a_row_that_matches() -> None:
    text = _LEFT.replace("views", "clicks") + " WHERE v.{} IS NULL"
    with pytest.raises(InputError, match="id `device_id` is in `clicks`"):
        derived(text.format("user_id"))  # It is read, and cannot be priced.
    with pytest.raises(InputError, match="many rows for one `user_id`"):
        derived(text.format("device_id"))


@pytest.mark.parametrize(
    "key",
    ["SPLIT_PART(page, '/', 2)", "CAST(amount AS INTEGER)", "read_at::DATE",
     "STRFTIME(read_at, '%Y')", "DATE_DIFF('day', read_at, '2026-10-01')",
     "TRIM(page)", "CAST(read_at + INTERVAL 1 DAY AS DATE)"],
)  # fmt: skip
def test_a_key_of_rows_is_selected_written_out_or_by_name(key: str) -> None:
    named = f"SELECT user_id, {key} AS k FROM views GROUP BY user_id, k"
    text = f"SELECT user_id, {key} AS k FROM views GROUP BY user_id, {key}"
    of = "SELECT COUNT(*) AS c FROM ({}) AS t"
    found = [
        derived(of.format(one), bounds={"user": 9}).request.query
        for one in (named, text)
    ]
    assert found[0].derived == found[1].derived
    assert len(found[0].derived[0].keys) == 2


@pytest.mark.spec("QRY-21")
def test_a_day_of_a_person_exchanges_the_row_of_the_person() -> None:
    sql = f"SELECT LEAST(n, 3) AS k, COUNT(*) AS c FROM ({PER_USER}) AS t GROUP BY k"
    found = derived(sql)
    assert norms(found)["user"] == (1, 1)
    assert norms(found)["user-day"] == norms(found)["user-month"] == (2, 2)
    assert found.compiled.groups == 3
    total = derived(f"SELECT SUM(LEAST(n, 50)) AS c FROM ({PER_USER}) AS t")
    assert norms(total)["user"] == norms(total)["user-day"] == (50, 2500)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT COUNT(*) AS c FROM ({PER_USER}) AS t WHERE n > 1",
        f"SELECT COUNT(*) AS c FROM ({PER_USER} HAVING COUNT(*) > 1) AS t",
        f"WITH t AS ({PER_USER}) SELECT COUNT(*) AS c FROM t WHERE n > 1",
        f"WITH v AS (SELECT * FROM views), t AS ({PER_USER.replace('views', 'v')})"
        " SELECT COUNT(*) AS c FROM t WHERE n > 1",
        f"SELECT COUNT(*) AS c FROM (SELECT n AS m FROM ({PER_USER}) AS t) AS s"
        " WHERE m > 1",
        "SELECT COUNT(*) AS c FROM (SELECT user_id, COUNT(*) > 1 AS often FROM views"
        " GROUP BY 1) AS t WHERE often",
    ],
)
def test_the_same_question_costs_the_same(sql: str) -> None:
    found = norms(derived(sql))
    assert set(found) == {"user", "user-month", "user-day", "device"}
    assert set(found.values()) == {(1, 1)}  # One comes, one goes, or both.


@pytest.mark.parametrize("inner", ["views", "(SELECT * FROM views)", "v"])
def test_a_subquery_without_groups_costs_nothing(inner: str) -> None:
    tail = "" if inner != "v" else "WITH v AS (SELECT page, amount FROM views) "
    found = query(f"{tail}SELECT page, SUM(amount) AS s FROM {inner} GROUP BY page")
    assert norms(found)["user"] == (80, 6400)
    assert found.request.query.tables == ("views",)


def test_a_subquery_may_have_the_name_of_one_within_it() -> None:
    within = "SELECT user_id, page, COUNT(*) AS n FROM views GROUP BY user_id, page"
    sql = (
        "SELECT LEAST(m, 3) AS k, COUNT(*) AS c FROM (SELECT user_id, MAX(n) AS m FROM"
        f" ({within}) AS {{}} GROUP BY user_id) AS t GROUP BY k"
    )
    assert norms(derived(sql.format("t"))) == norms(derived(sql.format("other")))


# --- rows of several tables -----------------------------------------------------------

UNION = (
    "(SELECT user_id, page, amount AS a, 'view' AS kind FROM views UNION ALL"
    " SELECT user_id, page, NULL, 'order' FROM orders) AS u"
)


@pytest.mark.spec("QRY-35")
def test_a_union_counts_as_the_rows_of_its_parts() -> None:
    found = query(f"SELECT kind, COUNT(*) AS n FROM {UNION} GROUP BY kind")
    assert found.request.query.sources == ("views", "orders")
    assert norms(found)["user"] == (5, 25)
    assert found.compiled.groups == 2  # Constants are public values.
    total = query(f"SELECT SUM(a) AS n FROM {UNION}")
    assert norms(total)["user"] == (80, 6400)  # 5 rows of at most 16 steps.


@pytest.mark.spec("QRY-35")
@pytest.mark.parametrize(
    ("column", "read"),
    [("user_id", ()), ("page", ("other", "page")), ("a", ("amount",)), ("kind", ())],
)
def test_a_union_reads_the_columns_that_are_named(
    column: str, read: tuple[str, ...]
) -> None:
    found = query(f"SELECT COUNT({column}) AS n FROM {UNION}")
    assert found.compiled.attributes == read


@pytest.mark.spec("QRY-21")
@pytest.mark.spec("QRY-35")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(LEAST(s, 40)) AS n FROM (SELECT user_id, SUM(a) AS s FROM {} GROUP"
        " BY user_id) AS t",
        "SELECT COUNT(*) AS n FROM (SELECT user_id FROM {} GROUP BY user_id HAVING"
        " SUM(a) > 3) AS t",
        "SELECT COUNT(*) AS n FROM people WHERE user_id IN (SELECT user_id FROM {}"
        " GROUP BY user_id HAVING SUM(a) > 3)",
        "SELECT COUNT(*) AS n FROM people LEFT JOIN (SELECT user_id, SUM(a) AS s FROM"
        " {} GROUP BY user_id) AS t USING (user_id) WHERE s > 3",
        "SELECT COUNT(*) AS n FROM people WHERE user_id IN (SELECT user_id FROM {}"
        " WHERE a > 3)",
    ],
)
def test_what_is_computed_of_a_union_reads_its_columns(sql: str) -> None:
    assert derived(sql.format(UNION)).compiled.attributes == ("amount",)


@pytest.mark.spec("QRY-35")
def test_an_id_and_a_time_have_other_names_in_a_union() -> None:
    both = (
        "(SELECT user_id AS who, CAST(read_at AS DATE) AS day FROM views UNION ALL"
        " SELECT user_id, CAST(read_at AS DATE) FROM clicks) AS u"
    )
    more: dict[str, Any] = {"periods": "2026-10"}
    found = query(f"SELECT day, COUNT(*) AS n FROM {both} GROUP BY day", **more)
    assert found.compiled.groups == 31
    assert norms(query(f"SELECT COUNT(DISTINCT who) AS n FROM {both}"))["user"] == (
        1,
        1,
    )
    with pytest.raises(InputError, match="identifies a"):
        query(f"SELECT who, COUNT(*) AS n FROM {both} GROUP BY who")
    other = both.replace(
        "CAST(read_at AS DATE) FROM clicks", "'2026-12-24' FROM clicks"
    )
    with pytest.raises(InputError, match="not all values of the keys are public"):
        query(f"SELECT day, COUNT(*) AS n FROM {other} GROUP BY day", **more)
    both = both.replace("clicks", "views")
    among = (
        f"SELECT COUNT(*) AS n FROM people WHERE user_id IN (SELECT who FROM {both})"
    )
    assert norms(derived(among))["user"] == (1, 1)


@pytest.mark.spec("QRY-35")
def test_times_of_different_types_are_no_time_of_a_union() -> None:
    tables = TABLES.replace("read_at: {type: timestamp}", "read_at: {type: date}", 1)
    both = "(SELECT user_id{0} FROM views UNION ALL SELECT user_id{0} FROM clicks) AS u"
    sql = f"SELECT COUNT(*) AS n FROM {both}"
    found = query(sql.format(""), declared=tables)
    assert [*found.request.query.unions[0].table.columns] == ["user_id", "device_id"][
        :1
    ]
    # Each part is read on the days, though the union has no time.
    check(query(sql.format(""), declared=tables, periods="2026-10"))
    with pytest.raises(InputError, match="`read_at` is declared with another type"):
        query(sql.format(", read_at"), declared=tables)


@pytest.mark.spec("QRY-35")
def test_numbers_beyond_those_that_are_computed_are_no_mistake() -> None:
    large = (
        "(SELECT user_id, {} AS x FROM views UNION ALL SELECT user_id, {} FROM orders)"
    )
    numbers = large.format(9_000_000_000_000_000_000, 9_000_000_000_000_000_001)
    found = query(f"SELECT SUM(x // 9000000000000000) AS n FROM {numbers} AS u")
    assert norms(found)["user"][0] > 0


@pytest.mark.spec("QRY-35")
def test_a_union_has_the_time_and_ids_that_all_tables_have() -> None:
    both = "(SELECT user_id FROM views UNION ALL SELECT user_id FROM clicks) AS u"
    daily: dict[str, Any] = {
        "bounds": {"user-day": 2},
        "loss": {"user-day": {"eps": 1}},
    }
    found = query(f"SELECT COUNT(*) AS n FROM {both}", **daily)
    assert norms(found)["user-day"] == (2, 4)
    days = "CAST(read_at AS DATE) AS day"
    with pytest.raises(InputError, match="unknown column `read_at`"):
        query(f"SELECT {days}, COUNT(*) AS n FROM {both} GROUP BY 1")
    with pytest.raises(InputError, match="no table of the query has the column"):
        check(query(f"SELECT COUNT(*) AS n FROM {UNION}", **daily))
    with pytest.raises(InputError, match="time of its rows"):
        check(query(f"SELECT COUNT(*) AS n FROM {UNION}", periods="2026-10"))


@pytest.mark.spec("QRY-35")
@pytest.mark.parametrize(
    ("parts", "code", "said"),
    [
        ("SELECT user_id FROM views UNION SELECT user_id FROM orders",
         Code.NOT_IN_SUBSET, "write UNION ALL"),
        ("SELECT user_id FROM views UNION DISTINCT SELECT user_id FROM orders",
         Code.NOT_IN_SUBSET, "write UNION ALL"),
        ("SELECT user_id FROM views EXCEPT SELECT user_id FROM orders",
         Code.NOT_IN_SUBSET, "EXCEPT"),
        ("SELECT user_id FROM views UNION ALL BY NAME SELECT user_id FROM orders",
         Code.NOT_IN_SUBSET, "BY"),
        ("SELECT user_id FROM views UNION ALL SELECT user_id FROM orders LIMIT 3",
         Code.NOT_IN_SUBSET, "LIMIT"),
        ("SELECT user_id, page FROM views UNION ALL SELECT user_id FROM orders",
         Code.NOT_IN_SUBSET, "have 2 and 1 columns"),
        ("SELECT * FROM views UNION ALL SELECT user_id, view_id, read_at, page, topic,"
         " amount FROM views", Code.NOT_IN_SUBSET, "name the columns in each part"),
        ("SELECT page FROM views UNION ALL SELECT order_id FROM orders",
         Code.DOES_NOT_FIT, "text"),
        ("SELECT user_id FROM views UNION ALL SELECT page FROM orders",
         Code.NOT_BOUNDED, "`user_id` is the id or time of rows"),
        ("SELECT page AS user_id FROM views UNION ALL SELECT page FROM orders",
         Code.NOT_BOUNDED, "`user_id` is the id or time of rows"),
        ("SELECT user_id AS USER_ID FROM views UNION ALL SELECT page FROM orders",
         Code.NOT_BOUNDED, "`user_id` is the id or time of rows"),
        ("SELECT user_id, COALESCE(read_at, '2026-10-01') AS read_at FROM views UNION"
         " ALL SELECT user_id, read_at FROM clicks", Code.NOT_BOUNDED, "`read_at`"),
        ("SELECT user_id FROM views UNION ALL SELECT page FROM pages",
         Code.NOT_IN_SUBSET, "`pages` is public"),
        ("SELECT user_id FROM orders JOIN people USING (user_id) UNION ALL SELECT"
         " user_id FROM views", Code.NOT_IN_SUBSET, "one declared table in each part"),
        ("SELECT user_id FROM orders WHERE user_id IN (SELECT user_id FROM people)"
         " UNION ALL SELECT user_id FROM views", Code.NOT_IN_SUBSET,
         "one declared table in each part"),
        ("SELECT user_id FROM (SELECT user_id FROM views UNION ALL SELECT user_id FROM"
         " orders) AS a UNION ALL SELECT user_id FROM orders", Code.NOT_IN_SUBSET,
         "one declared table in each part"),
        (f"{PER_USER} UNION ALL SELECT user_id, 1 FROM orders", Code.NOT_IN_SUBSET,
         "one declared table in each part"),
        (" UNION ALL ".join(["SELECT user_id FROM views"] * 17), Code.NOT_IN_SUBSET,
         "at most 16 parts"),
    ],
)  # fmt: skip
def test_a_union_of_anything_else_is_refused(parts: str, code: Code, said: str) -> None:
    with pytest.raises(InputError) as caught:
        query(f"SELECT COUNT(*) AS n FROM ({parts}) AS u")
    rendered = "\n".join(one.render() for one in caught.value.problems)
    assert caught.value.problems[0].code is code, rendered
    assert said in rendered, rendered


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM views UNION ALL SELECT COUNT(*) FROM orders",
        "SELECT COUNT(*) AS n FROM (SELECT user_id FROM views) UNION ALL SELECT 1",
        "WITH v AS (SELECT * FROM views) SELECT COUNT(*) AS n FROM v UNION ALL"
        " SELECT COUNT(*) FROM orders",
    ],
)
def test_a_union_of_answers_is_several_queries(sql: str) -> None:
    with pytest.raises(InputError) as caught:
        query(sql)
    rendered = "\n".join(one.render() for one in caught.value.problems)
    assert "write one query for each SELECT" in rendered


# --- what is refused ------------------------------------------------------------------


@pytest.mark.spec("QRY-20")
@pytest.mark.spec("QRY-21")
@pytest.mark.parametrize(
    ("sql", "code", "said"),
    [
        ("SELECT COUNT(*) AS c FROM pages", Code.NOT_IN_SUBSET, "`pages` is public"),
        ("SELECT COUNT(*) AS c FROM pages JOIN sections ON section = name JOIN views"
         " USING (page)", Code.NOT_IN_SUBSET, "begin with a table of people"),
        ("SELECT COUNT(*) AS c FROM views JOIN pages ON views.page = pages.section",
         Code.NOT_BOUNDED, "is not the key of the public table"),
        ("SELECT COUNT(*) AS c FROM views JOIN pages ON user_id = pages.page",
         Code.NOT_BOUNDED, "identifies a person or a row"),
        ("SELECT COUNT(*) AS c FROM views JOIN numbers ON view_id = number",
         Code.NOT_BOUNDED, "identifies a person or a row"),
        ("SELECT COUNT(*) AS c FROM views JOIN numbers ON topic = number",
         Code.DOES_NOT_FIT, "text and integer"),
        ("SELECT COUNT(*) AS c FROM views RIGHT JOIN pages USING (page)",
         Code.NOT_IN_SUBSET, "RIGHT"),
        ("SELECT COUNT(*) AS c FROM views FULL JOIN pages USING (page)",
         Code.NOT_IN_SUBSET, "FULL"),
        ("SELECT COUNT(*) AS c FROM views CROSS JOIN pages", Code.NOT_IN_SUBSET,
         "CROSS"),
        ("SELECT COUNT(*) AS c FROM views JOIN people USING (user_id) JOIN orders"
         " USING (user_id)", Code.NOT_BOUNDED, "GROUP BY user_id"),
        ("SELECT COUNT(*) AS c FROM people LEFT JOIN views USING (user_id)",
         Code.NOT_BOUNDED, "many rows for one `user_id`"),
        ("SELECT COUNT(*) AS c FROM views LEFT JOIN (SELECT user_id FROM people WHERE"
         " plan = 'free') AS t USING (user_id)", Code.NOT_IN_SUBSET, "free"),
        ("SELECT COUNT(*) AS c FROM (SELECT page, COUNT(*) AS n FROM views GROUP BY"
         " page) AS t", Code.NOT_BOUNDED, "group by the id of a unit"),
        ("SELECT COUNT(*) AS c FROM (SELECT COUNT(*) AS n FROM views) AS t",
         Code.NOT_IN_SUBSET, "rows of one id"),
        ("SELECT COUNT(*) AS c FROM (SELECT user_id, topic FROM views GROUP BY user_id)"
         " AS t", Code.NOT_IN_SUBSET, "neither in an aggregate nor in GROUP BY"),
        ("SELECT COUNT(*) AS c FROM (SELECT user_id, AVG(amount) AS a FROM views GROUP"
         " BY user_id) AS t", Code.NOT_IN_SUBSET, "SUM(…) and COUNT(…)"),
        ("SELECT COUNT(*) AS c FROM (SELECT user_id, MAX(topic = 'x') AS a FROM views"
         " GROUP BY user_id) AS t", Code.DOES_NOT_FIT, "numbers, times and texts"),
        (f"SELECT SUM(n) AS c FROM ({PER_USER}) AS t", Code.DOES_NOT_FIT,
         "LEAST(GREATEST(n, 0), 1000)"),
        (f"SELECT COUNT(*) AS c FROM ({PER_USER} ORDER BY n) AS t",
         Code.NOT_IN_SUBSET, "ORDER BY"),
        (f"SELECT COUNT(*) AS c FROM ({PER_USER}) AS t JOIN pages ON t.n = page",
         Code.DOES_NOT_FIT, "integer and text"),
        (f"SELECT user_id, COUNT(*) AS c FROM ({PER_USER}) AS t GROUP BY user_id",
         Code.NOT_BOUNDED, "identifies a"),
        ("SELECT COUNT(*) AS c FROM views WHERE page IN (SELECT page FROM orders)",
         Code.NOT_BOUNDED, "rows of the same id"),
        ("SELECT COUNT(*) AS c FROM views WHERE user_id IN (SELECT plan FROM people)",
         Code.NOT_BOUNDED, "rows of the same id"),
        ("SELECT COUNT(*) AS c FROM views WHERE amount > (SELECT AVG(amount) FROM"
         " views)", Code.NOT_IN_SUBSET, "SELECT"),
        ("SELECT COUNT(*) AS c FROM views v WHERE EXISTS (SELECT 1 FROM orders o WHERE"
         " o.page = v.page)", Code.NOT_BOUNDED, "same id"),
        ("WITH RECURSIVE t AS (SELECT user_id FROM views) SELECT COUNT(*) AS c FROM t",
         Code.NOT_IN_SUBSET, "RECURSIVE"),
        ("WITH t(a) AS (SELECT user_id FROM views) SELECT COUNT(*) AS c FROM t",
         Code.NOT_IN_SUBSET, "a"),
        ("SELECT COUNT(*) AS c FROM views WHERE user_id IN (SELECT user_id FROM"
         " clicks)", Code.NOT_BOUNDED, "its id `device_id`"),
    ],
)  # fmt: skip
def test_what_has_no_bound_or_no_meaning_is_refused(
    sql: str, code: Code, said: str
) -> None:
    with pytest.raises(InputError) as caught:
        query(sql, bounds={"user": 5})
    rendered = "\n".join(one.render() for one in caught.value.problems)
    assert caught.value.problems[0].code is code, rendered
    assert said in rendered, rendered


@pytest.mark.spec("QRY-21")
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"bounds": {"user-day": 3}}, "leave `user-day` out of `bounds`"),
        ({"bounds": {"device": 3}}, "leave `device` out of `bounds`"),
        ({"heading": {"sampling": {"unit": "user-day", "rate": Fraction(1, 2)}}},
         "without a time"),
    ],
)  # fmt: skip
def test_rows_of_an_id_belong_to_nothing_smaller(
    more: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError) as caught:
        derived(f"SELECT COUNT(*) AS c FROM ({PER_USER}) AS t", **more)
    assert said in "\n".join(one.render() for one in caught.value.problems)


# --- rows -----------------------------------------------------------------------------


def check(found: QueryFile) -> None:
    """Check a query as it is before anything is spent."""
    statements(found.compiled.plan, Secrets("00", "00"))


def counted(sql: str, rows: dict[str, Any], **more: Any) -> dict[tuple[Any, ...], int]:
    plan = query(sql, **more).compiled.plan
    with DuckdbEngine(rows, DuckdbOptions(threads=1)) as engine:
        (found,) = engine.run(plan, Secrets("00", "00")).values()
    return dict(found)


def views(*rows: tuple[str, str, str | None]) -> pa.Table:
    return pa.table(
        {
            "view_id": range(len(rows)),
            "user_id": [user for user, _, _ in rows],
            "read_at": [datetime.fromisoformat(day) for _, day, _ in rows],
            "page": pa.array([page for _, _, page in rows], pa.string()),
            "topic": pa.nulls(len(rows), pa.string()),
            "amount": pa.nulls(len(rows), pa.float64()),
        }
    )


@pytest.mark.spec("QRY-35")
def test_rows_of_a_union_are_capped_together_and_none_is_dropped() -> None:
    rows = views(*[("ann", "2026-10-05", "main")] * 3, ("bob", "2026-10-05", None))
    orders = pa.table(
        {
            "order_id": [1, 1, 2, 3],
            "user_id": ["ann", "ann", "bob", None],
            "page": ["main", "main", None, "help"],
        }
    )
    data = {"views": rows, "orders": orders}
    count = f"SELECT COUNT(*) AS n FROM {UNION}"
    for form in ("(SELECT {0} views) UNION ALL (SELECT {0} orders)",
                 "SELECT {0} views UNION ALL SELECT {0} orders"):  # fmt: skip
        plain = f"SELECT COUNT(*) AS n FROM ({form.format('user_id FROM')}) AS u"
        assert counted(plain, data, bounds={"user": 9}) == {(): 7}
    assert counted(count, data, bounds={"user": 9}) == {(): 7}  # All but one without id
    assert counted(count, data, bounds={"user": 4}) == {(): 6}
    assert counted(count, data, bounds={"user": 1}) == {(): 2}
    kinds = f"SELECT kind, COUNT(*) AS n FROM {UNION} GROUP BY kind"
    found = counted(kinds, data, bounds={"user": 9})
    assert found == {("view",): 4, ("order",): 3}
    among = (
        "SELECT COUNT(*) AS n FROM views WHERE user_id IN (SELECT user_id FROM orders"
    )
    both = f"{among} UNION ALL SELECT user_id FROM people WHERE plan = 'free')"
    people = pa.table({"user_id": ["eve"], "plan": ["free"]})
    assert counted(both, {**data, "people": people}) == {(): 4}


def test_a_subquery_reads_no_days_but_those_that_are_named() -> None:
    rows = views(
        ("ann", "2026-10-05", None), ("ann", "2026-10-06", None),
        ("ann", "2026-11-01", None), ("bob", "2026-11-01", None),
    )  # fmt: skip
    sql = f"SELECT LEAST(n, 5) AS k, COUNT(*) AS c FROM ({PER_USER}) AS t GROUP BY k"
    found = counted(sql, {"views": rows}, bounds={}, periods="2026-10")
    assert found == {(2,): 1}


@pytest.mark.spec("QRY-20")
def test_no_key_of_a_public_table_doubles_a_row() -> None:
    rows = views(("ann", "2026-10-05", "main"), ("ann", "2026-10-05", None),
                 ("bob", "2026-10-05", "help"))  # fmt: skip
    pages = pa.table(
        {
            "page": ["main", "main", None, "main"],
            "section": ["b", "b", "a", None],
            "weight": [4, 2, 9, 1],
        }
    )
    data = {"views": rows, "pages": pages}
    sql = "SELECT {} AS c FROM views {} JOIN pages USING (page)"
    assert counted(sql.format("SUM(weight)", ""), data) == {(): 2}
    assert counted(sql.format("COUNT(*)", ""), data) == {(): 1}
    assert counted(sql.format("COUNT(*)", "LEFT"), data) == {(): 3}
    assert counted(sql.format("COUNT(pages.page)", "LEFT"), data) == {(): 1}


def test_not_in_counts_those_without_rows() -> None:
    people = pa.table({"user_id": ["ann", "bob", "eve"], "plan": ["free"] * 3})
    orders = pa.table(
        {"order_id": [1, 2], "user_id": ["ann", None], "page": ["main", "help"]}
    )
    data = {"people": people, "orders": orders}
    sql = (
        "SELECT COUNT(*) AS c FROM people WHERE user_id {} (SELECT user_id FROM orders)"
    )
    assert counted(sql.format("IN"), data) == {(): 1}
    assert counted(sql.format("NOT IN"), data) == {(): 2}


def test_a_value_that_is_missing_is_neither_in_a_public_table_nor_not_in_it() -> None:
    rows = views(("ann", "2026-10-05", "main"), ("ann", "2026-10-05", None),
                 ("bob", "2026-10-05", "help"))  # fmt: skip
    pages = pa.table({"page": ["main"], "section": ["b"], "weight": [4]})
    data = {"views": rows, "pages": pages}
    sql = "SELECT COUNT(*) AS c FROM views WHERE page {} (SELECT page FROM pages)"
    assert counted(sql.format("IN"), data) == {(): 1}
    assert counted(sql.format("NOT IN"), data) == {(): 1}


def test_a_column_that_is_computed_is_no_column_as_it_is_stored() -> None:
    found = derived(
        "SELECT COUNT(*) AS c FROM (SELECT user_id, SUM(amount) AS s, MIN(read_at) AS"
        " first FROM views GROUP BY user_id) AS t WHERE s > 2.5 AND s IN (3, 4.5) AND"
        " first >= '2026-10-05'"
    )
    where = str(found.request.query.where)
    assert "Compare" in where
    assert str(ColumnRef("t", "s")) in where
    assert "Compare(column=ColumnRef(table='t', column='s')" not in where


# --- declarations ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("key: name\n", "\n", "needs the key `key`"),
        ("key: name\n", "key: rang\n", "has no column `rang`"),
        ("key: name\n", "key: name\n    row_id: name\n", "row_id"),
        ("key: name\n", "key: name\n    one_per: name\n", "one_per"),
        ("rank: {type: integer,", "rank: {type: integer, attribute: page,",
         "of a public table has no `attribute`"),
        ("rank: {type: integer,", "user_id: {type: integer,", "a unit's id or time"),
        ("rank: {type: integer,", "read_at: {type: integer,", "a unit's id or time"),
        ("name: {type: text}", "name: {type: boolean}", "cannot be the key"),
        ("key: number\n", "public: maybe\n", "twice"),
        ("public: true\n    key: number", "public: 1\n    key: number", "`public`"),
        ("public: true\n    key: number", "public: false\n    key: number", "key"),
    ],
)  # fmt: skip
def test_a_public_table_that_is_none_is_refused(old: str, new: str, said: str) -> None:
    assert old in TABLES
    with pytest.raises(InputError) as caught:
        asked.tables(asked.compiled(POLICY), TABLES.replace(old, new))
    assert said in "\n".join(one.render() for one in caught.value.problems)


def test_what_is_declared_of_a_public_table_is_in_the_digest() -> None:
    request = query("SELECT COUNT(*) AS n FROM views JOIN pages USING (page)").request
    found = set()
    for old, new in [
        ("", ""),
        ("    key: page\n", "    key: section\n"),
        ("bounds: [0, 9]", "bounds: [0, 8]"),
    ]:
        tables = asked.tables(asked.compiled(POLICY), TABLES.replace(old, new))
        found.add(identity_of(replace(request, tables=tables), "", Fraction(1), ""))
    assert len(found) == 3
