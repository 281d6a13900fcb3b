"""Which queries are read, which have closed forms, and which are refused."""

from __future__ import annotations

import pytest

from modicum.core.errors import Code, InputError
from modicum.risk.question import Question, read_condition, read_question

COLUMNS = {
    "visits": ("user_id", "day", "clinic", "cost"),
    "people": ("user_id", "age"),
    "clinics": ("clinic", "town"),
}


def read(sql: str, unit: str | None = "user_id") -> Question:
    return read_question(sql, COLUMNS, unit)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM visits",
        "select clinic, avg(cost) c from visits where cost > 3 group by 1 order by 2",
        "SELECT clinic AS c, SUM(cost), MEDIAN(cost) FROM visits v GROUP BY c",
        "SELECT COUNT(DISTINCT clinic) FROM visits WHERE clinic LIKE 'a%'",
        "SELECT SUM(cost) FILTER (WHERE day > DATE '2026-01-01') FROM visits",
        "SELECT AVG(age) FROM visits v JOIN people p ON v.user_id = p.user_id",
        "SELECT AVG(age) FROM visits LEFT JOIN people USING (user_id)",
        "SELECT town, COUNT(*) FROM visits JOIN clinics USING (clinic) GROUP BY town",
        "SELECT AVG(age) FROM visits v JOIN people p"
        " ON v.user_id = p.user_id AND p.age > 3 JOIN clinics c ON c.clinic = v.clinic",
    ],
)
def test_queries_with_closed_forms(sql: str) -> None:
    found = read(sql)
    assert found.obstacle == ""
    assert found.measures


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT SUM(cost) / COUNT(*) FROM visits", "more than one aggregate"),
        ("SELECT clinic, COUNT(*) FROM visits GROUP BY 1 HAVING COUNT(*) > 3", "HAV"),
        ("SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 3) t", "contains"),
        ("WITH v AS (SELECT * FROM visits) SELECT COUNT(*) FROM v", "WITH"),
        ("SELECT QUANTILE_CONT(cost, 0.9) FROM visits", "one row only"),
        ("SELECT COUNT(*) FROM visits v JOIN people p ON v.day = p.age", "different"),
        ("SELECT COUNT(*) FROM visits v JOIN people p ON v.user_id > p.user_id", "dif"),
        ("SELECT COUNT(*) FROM visits, people", "different"),
        ("SELECT COUNT(*) FROM visits v JOIN visits w ON v.user_id = v.user_id", "dif"),
        ("SELECT COUNT(*) FROM visits RIGHT JOIN people USING (user_id)", "other than"),
        ("SELECT COUNT(*) FROM clinics LEFT JOIN visits USING (clinic)", "no id col"),
        (
            "SELECT clinic, COUNT(*) FROM visits GROUP BY GROUPING SETS ((clinic), ())",
            "",
        ),
        ("SELECT DISTINCT COUNT(*) FROM visits", "DISTINCT"),
        ("SELECT COUNT(*) FROM visits LIMIT 1", "LIMIT"),
        ("SELECT AVG(DISTINCT cost) FROM visits", "more than one aggregate"),
        ("SELECT COUNT(DISTINCT (clinic, day)) FROM visits", ""),
    ],
)
def test_queries_that_are_asked_again(sql: str, why: str) -> None:
    found = read(sql)
    assert why.lower() in found.obstacle.lower()
    if why:
        assert found.obstacle
        assert found.measures == ()
        assert not found.own_rows_only


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("DELETE FROM visits", Code.NOT_SQL),
        ("SELECT COUNT(*) FROM visits; SELECT 1", Code.NOT_SQL),
        ("SELECT COUNT(* FROM visits", Code.NOT_SQL),
        ("", Code.NOT_SQL),
        ("SELECT COUNT(*) FROM visit", Code.UNKNOWN_NAME),
        ("SELECT SUM(coast) FROM visits", Code.UNKNOWN_NAME),
        ("SELECT cost FROM visits", Code.NOT_IN_SUBSET),
        ("SELECT COUNT(*)", Code.NOT_IN_SUBSET),
        ("SELECT COUNT(*) FROM read_csv('/etc/passwd')", Code.NOT_IN_SUBSET),
        ("SELECT COUNT(*) FROM main.visits", Code.NOT_IN_SUBSET),
        ("SELECT COUNT(*) FROM visits WHERE random() < 0.5", Code.NOT_IN_SUBSET),
        ("SELECT COUNT(*) FROM visits WHERE day < current_date", Code.NOT_IN_SUBSET),
        (
            "SELECT COUNT(*) FROM visits WHERE cost > " + "1" * 70_000,
            Code.NOT_IN_SUBSET,
        ),
        ("SELECT COUNT(*) FROM visits WHERE " + "(" * 5000 + "1", Code.NOT_SQL),
    ],
)
def test_what_is_no_query_is_refused(sql: str, code: Code) -> None:
    with pytest.raises(InputError) as caught:
        read(sql)
    assert caught.value.problems[0].code is code
    assert caught.value.problems[0].help


#: What looks at other rows, makes several of one, or changes from run to run.
STRANGE = [
    "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM people WHERE age > 3)",
    "SELECT COUNT(*) FROM visits WHERE NOT EXISTS (SELECT 1 FROM people)",
    "SELECT COUNT(*) FROM visits WHERE cost >= ALL (SELECT cost FROM visits)",
    "SELECT COUNT(*) FROM visits WHERE cost IN (SELECT cost FROM visits)",
    "SELECT COUNT(ARRAY(SELECT cost FROM visits)) FROM visits",
    "SELECT unnest(range(100)) AS k, COUNT(*) FROM visits GROUP BY k",
    "SELECT COUNT(COLUMNS(*)) FROM visits",
    "SELECT SUM(clinic) FROM visits AS v(user_id, clinic, day, cost)",
    "SELECT COUNT(*) FROM visits WHERE my_function(cost) > 3",
]


@pytest.mark.parametrize("sql", STRANGE)
def test_what_is_not_of_one_row_has_no_closed_form_and_no_sensitivity(sql: str) -> None:
    found = read(sql)
    assert found.obstacle
    assert not found.own_rows_only


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM visits TABLESAMPLE 50%",
        "SELECT COUNT(*) FROM visits UNPIVOT (k FOR c IN (clinic, day))",
        "SELECT COUNT(*) FROM visits WHERE day < now()",
        "SELECT COUNT(*) FROM visits WHERE vector_type(cost) = 'FLAT_VECTOR'",
        "SELECT COUNT(uuidv7()) FROM visits",
        "SELECT COUNT(*) FROM visits GROUP BY 99",
        "SELECT COUNT(*) AS n FROM visits GROUP BY n",
    ],
)
def test_what_no_engine_may_be_asked_is_refused(sql: str) -> None:
    with pytest.raises(InputError):
        read(sql)


@pytest.mark.parametrize(
    ("condition", "total"),
    [
        ("cost > 3 AND clinic LIKE 'a%' OR day IS NULL", True),
        ("CASE WHEN cost IN (1, 2) THEN TRUE ELSE FALSE END", True),
        ("CAST(clinic AS INT) > 3", False),
        ("cost * cost > 3", False),
    ],
)
def test_what_may_fail_for_some_rows_is_not_chosen_privately(
    condition: str, total: bool
) -> None:
    found = read(f"SELECT COUNT(*) FROM visits WHERE {condition}")
    assert found.obstacle == ""
    assert found.own_rows_only is total


def test_a_column_comes_before_an_alias_of_its_name() -> None:
    found = read("SELECT day AS clinic, COUNT(*) FROM visits GROUP BY clinic")
    assert found.obstacle  # It groups by the column, and selects another.
    found = read("SELECT day AS d, COUNT(*) FROM visits GROUP BY d")
    assert [one.name for one in found.keys] == ["day"]


def test_joined_tables_need_a_unit() -> None:
    with pytest.raises(InputError, match="the owners of their rows"):
        read("SELECT COUNT(*) FROM visits JOIN people USING (user_id)", unit=None)


def test_a_unit_that_no_table_has_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        read("SELECT COUNT(*) FROM visits", unit="userid")
    assert "user_id" in caught.value.problems[0].label


@pytest.mark.parametrize("name", ["visits", "adult", "Data"])
def test_an_only_table_may_be_called_anything(name: str) -> None:
    found = read_question(f"SELECT COUNT(*) FROM {name}", {"": ("a",)})
    assert found.tables == ("",)


def test_but_not_two_things() -> None:
    with pytest.raises(InputError, match="no data"):
        read_question("SELECT COUNT(*) FROM a JOIN b USING (x)", {"": ("x", "y")}, "x")


@pytest.mark.parametrize(
    ("sql", "of_units", "of_rows"),
    [
        ("SELECT COUNT(*) FROM visits", True, True),
        ("SELECT clinic, COUNT(day) FROM visits GROUP BY clinic", True, True),
        # Of several floats, the order in which they are added shows in the last digit.
        ("SELECT clinic, SUM(cost), COUNT(*) FROM visits GROUP BY 1", False, True),
        ("SELECT AVG(cost) FROM visits", False, False),
        ("SELECT COUNT(*), MAX(cost) FROM visits", False, False),
        ("SELECT COUNT(DISTINCT clinic) FROM visits", False, False),
        ("SELECT COUNT(*) + 1 FROM visits", False, False),
    ],
)
def test_whose_moves_depend_on_own_rows_only(
    sql: str, of_units: bool, of_rows: bool
) -> None:
    assert read(sql).own_rows_only is of_units
    assert read(sql, unit=None).own_rows_only is of_rows


def test_a_condition_finds_the_table_that_has_its_columns() -> None:
    assert read_condition("age > 60", COLUMNS)[1] == "people"
    assert read_condition("cost IS NULL OR clinic = 'x'", COLUMNS)[1] == "visits"


@pytest.mark.parametrize(
    "text",
    [
        "age > 60 AND clinic = 'x'",
        "nothing > 3",
        "COUNT(*) > 3",
        "age > 1) OR (age < 9",
        "age > 3; DROP TABLE people",
        "age IN (SELECT age FROM people)",
        "age >",
        "true) GROUP BY (age",
        "random() < 0.5",
    ],
)
def test_what_is_no_condition_on_rows_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read_condition(text, COLUMNS)
