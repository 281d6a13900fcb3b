"""What people are told to write instead: it is read, and says what they meant.

Each case is SQL that is refused, the words of its help that are to be written, with
`column` for a name, and the SQL in which they stand.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from samples import asked
from samples.declared import TABLES, with_table

from modicum.core.errors import Code, InputError, Problem
from modicum.ops.files.queries import load_query
from modicum.query import refusals
from modicum.query.parser import answers, arguments, parse_query, unions, windows

ALL = "SELECT COUNT(*) FROM views WHERE "
#: What is refused, the remedy, its `column`, what is written.
WRITTEN = [
    (
        "SELECT YEARWEEK(event_time) AS m, COUNT(*) FROM views GROUP BY m",
        "EXTRACT(MONTH FROM column)",
        "event_time",
        "SELECT EXTRACT(MONTH FROM event_time) AS m, COUNT(*) FROM views GROUP BY m",
    ),
    (
        "SELECT LAST_DAY(event_time) AS m, COUNT(*) FROM views GROUP BY m",
        "DATE_TRUNC('month', column)",
        "event_time",
        "SELECT DATE_TRUNC('month', event_time) AS m, COUNT(*) FROM views GROUP BY m",
    ),
    (
        ALL + "page SIMILAR TO 'a.*'",
        "column LIKE 'a%'",
        "page",
        ALL + "page LIKE 'a%'",
    ),
    (
        ALL + "amount / age > 3",
        "x / NULLIF(y, 0)",
        "",
        ALL + "amount / NULLIF(age, 0) > 3",
    ),
    (
        "SELECT SUM(age > 17) AS n FROM views",
        "COUNT(CASE WHEN … THEN 1 END)",
        "",
        "SELECT COUNT(CASE WHEN age > 17 THEN 1 END) AS n FROM views",
    ),
    (
        "SELECT CAST(event_time AS TEXT) AS m, COUNT(*) FROM views GROUP BY m",
        "STRFTIME(column, '%Y-%m')",
        "event_time",
        "SELECT STRFTIME(event_time, '%Y-%m') AS m, COUNT(*) FROM views GROUP BY m",
    ),
    (
        "SELECT amount * 2 AS a, COUNT(*) FROM views GROUP BY a",
        "FLOOR(…)",
        "",
        "SELECT FLOOR(amount * 2) AS a, COUNT(*) FROM views GROUP BY a",
    ),
    (
        ALL + "DATE_DIFF('hour', event_date, event_time) > 3",
        "DATE_DIFF('day', begin, end)",
        "",
        ALL + "DATE_DIFF('day', event_date, event_time) > 3",
    ),
    (
        ALL + "event_date > event_date + INTERVAL (age) DAY",
        "column + INTERVAL 7 DAY",
        "event_date",
        ALL + "event_date > event_date + INTERVAL 7 DAY",
    ),
    (
        ALL + "event_time - event_date > 7",
        "DATE_DIFF('day', begin, end)",
        "",
        ALL + "DATE_DIFF('day', event_date, event_time) > 7",
    ),
    (
        ALL + "DATE_DIFF('week', event_date, event_time) > 7",
        "DATE_DIFF('day', begin, end), and // 7 behind it",
        "",
        ALL + "DATE_DIFF('day', event_date, event_time) // 7 > 7",
    ),
    (
        "SELECT COUNT() FROM views",
        "COUNT(*)",
        "",
        "SELECT COUNT(*) FROM views",
    ),
    (
        ALL + "ROUND(amount, 99) > 1",
        "ROUND(column, 2)",
        "amount",
        ALL + "ROUND(amount, 2) > 1",
    ),
    (
        "SELECT WIDTH_BUCKET(age, 0, 100, 100001) AS b, COUNT(*) FROM views GROUP BY b",
        "WIDTH_BUCKET(column, 0, 100, 10)",
        "age",
        "SELECT WIDTH_BUCKET(age, 0, 100, 10) AS b, COUNT(*) FROM views GROUP BY b",
    ),
    (
        "SELECT MEAN(amount) AS mean FROM views",
        "AVG(column)",
        "amount",
        "SELECT AVG(amount) AS mean FROM views",
    ),
    (
        "SELECT STD(amount) AS s FROM views",
        "STDDEV(column)",
        "amount",
        "SELECT STDDEV(amount) AS s FROM views",
    ),
    (
        "SELECT PERCENTILE(age, 0.5) AS half FROM views",
        "QUANTILE(column, 0.5)",
        "age",
        "SELECT QUANTILE(age, 0.5) AS half FROM views",
    ),
    (
        "SELECT COUNT_DISTINCT(page) AS n FROM views",
        "COUNT(DISTINCT column)",
        "page",
        "SELECT COUNT(DISTINCT page) AS n FROM views",
    ),
    (
        ALL + "event_date = DATE('2026-11-30')",
        "DATE '2026-11-30'",
        "",
        ALL + "event_date = DATE '2026-11-30'",
    ),
    (
        "SELECT COUNT(*) FROM views, users",
        "JOIN users USING (user_id)",
        "",
        "SELECT COUNT(*) FROM views JOIN users USING (user_id)",
    ),
    (
        "SELECT COUNT(*) FROM views v, users u WHERE u.age > 3",
        "JOIN users u USING (user_id)",
        "",
        "SELECT COUNT(*) FROM views v JOIN users u USING (user_id) WHERE u.age > 3",
    ),
    (
        "SELECT select, COUNT(*) FROM views GROUP BY 1",
        '"select"',
        "",
        'SELECT "select", COUNT(*) FROM views GROUP BY 1',
    ),
    (
        "SELECT page, COUNT(*) FROM views WHERE COUNT(*) > 3 GROUP BY page",
        "GROUP BY key HAVING COUNT(*) > 10",
        "",
        "SELECT page, COUNT(*) FROM views GROUP BY page HAVING COUNT(*) > 10",
    ),
    (
        "SELECT TOP 10 page, COUNT(*) FROM views GROUP BY page",
        "GROUP BY key ORDER BY COUNT(*) DESC LIMIT 10",
        "",
        "SELECT page, COUNT(*) FROM views GROUP BY page"
        " ORDER BY COUNT(*) DESC LIMIT 10",
    ),
    (
        "SELECT SUM(amount) OVER () FROM views",
        "SUM(COUNT(*)) OVER ()",
        "",
        "SELECT page, SUM(COUNT(*)) OVER () AS n FROM views GROUP BY page",
    ),
    (
        "SELECT page FILTER (WHERE mobile), COUNT(*) FROM views GROUP BY page",
        "COUNT(*) FILTER (WHERE condition)",
        "",
        "SELECT page, COUNT(*) FILTER (WHERE mobile) FROM views GROUP BY page",
    ),
    (
        "SELECT COUNT(DISTINCT page, age) AS n FROM views",
        "COUNT(DISTINCT (x, y))",
        "",
        "SELECT COUNT(DISTINCT (page, age)) AS n FROM views",
    ),
    (
        "SELECT MODE(page) FROM views",
        "SELECT column, COUNT(*) … GROUP BY column ORDER BY COUNT(*) DESC LIMIT 1",
        "page",
        "SELECT page, COUNT(*) FROM views GROUP BY page ORDER BY COUNT(*) DESC LIMIT 1",
    ),
    (
        "SELECT COUNT(*) > 10 AS many FROM views",
        "CASE WHEN … THEN 1 ELSE 0 END",
        "",
        "SELECT CASE WHEN COUNT(*) > 10 THEN 1 ELSE 0 END AS many FROM views",
    ),
    ("SELECT COUNT(*) FROM order", '"order"', "", 'SELECT COUNT(*) FROM "order"'),
    ("SELECT COUNT(*) FROM Group", '"group"', "", 'SELECT COUNT(*) FROM "group"'),
    ("SELECT COUNT(*) FROM left", '"left"', "", 'SELECT COUNT(*) FROM "left"'),
]
#: What is refused, what its caret is under, and what is left if that is left out.
LEFT_OUT = [
    (ALL + "1 = 1", "=", "SELECT COUNT(*) FROM views"),
    ("SELECT COUNT(*) FROM views v JOIN users u USING (user_id)"
     " WHERE v.user_id = u.user_id", "=",
     "SELECT COUNT(*) FROM views v JOIN users u USING (user_id)"),
    ("SELECT COUNT(*) FROM main.views", "main", "SELECT COUNT(*) FROM views"),
]  # fmt: skip
#: Quotes, each read as the same query once they are changed as the help says.
QUOTED = ['"main"', "‘main’", "“main”", "`main`", "main", "«main»"]  # noqa: RUF001
RESERVED = with_table(TABLES, "order", "group", "left")


def problem_of(sql: str) -> Problem:
    with pytest.raises(InputError) as caught:
        parse_query(sql, RESERVED, "query.sql")
    (problem,) = caught.value.problems
    return problem


def marked(problem: Problem) -> str:
    mark = problem.mark
    assert mark is not None
    return mark.source[mark.column - 1 :][: mark.length]


@pytest.mark.spec("QRY-1")
@pytest.mark.parametrize(
    ("sql", "words", "column", "remedied"), WRITTEN, ids=[one[0] for one in WRITTEN]
)
def test_what_is_to_be_written_is_read(
    sql: str, words: str, column: str, remedied: str
) -> None:
    assert words in problem_of(sql).help
    if column and "…" not in words:
        assert words.replace("column", column) in remedied
    parse_query(remedied, RESERVED)


@pytest.mark.parametrize(
    ("sql", "caret", "remedied"), LEFT_OUT, ids=[one[0] for one in LEFT_OUT]
)
def test_what_is_to_be_left_out_is_marked_and_the_rest_is_read(
    sql: str, caret: str, remedied: str
) -> None:
    problem = problem_of(sql)
    assert marked(problem) == caret
    assert any(one in problem.help for one in ("leave", "alone"))
    parse_query(remedied, RESERVED)


@pytest.mark.parametrize("quoted", QUOTED)
def test_a_text_in_other_quotes_is_sent_to_single_ones(quoted: str) -> None:
    problem = problem_of(ALL + f"page = {quoted}")
    assert "'" in problem.help
    is_odd = not quoted.isascii() or "`" in quoted
    assert problem.code is (Code.NOT_SQL if is_odd else Code.NOT_IN_SUBSET)
    assert "main" not in problem.message + problem.help + problem.label
    assert marked(problem) in (quoted, "`")


@pytest.mark.parametrize("text", ["‘", "“x”", "`", '"', "--", "/*"])  # noqa: RUF001
def test_in_a_text_every_quote_may_stand(text: str) -> None:
    query = parse_query(ALL + f"page = '{text}'", TABLES)
    assert query == parse_query(ALL + f"page = '{text}' ", TABLES)


def test_a_name_that_is_no_word_of_sql_is_not_sent_to_quotes() -> None:
    assert "quotes" not in problem_of("SELECT COUNT(*) AS a page FROM views").help
    limited = problem_of("SELECT page, COUNT(*) FROM views GROUP BY page LIMIT ALL")
    assert "LIMIT 10" in limited.help


@pytest.mark.parametrize(
    ("sql", "meant"),
    [("COUNTT(*)", "COUNT"), ("SUMM(age)", "SUM"), ("QUANTIL(age, 0.5)", "QUANTILE"),
     ("DATE_TRNC('day', event_time)", "DATE_TRUNC")],
)  # fmt: skip
def test_a_misspelt_function_is_met_with_the_one_that_is_meant(
    sql: str, meant: str
) -> None:
    problem = problem_of(f"SELECT {sql} AS n FROM views")
    assert problem.label == f'did you mean "{meant}"?'


@pytest.mark.parametrize(
    "sql",
    [ALL + "age > (SELECT AVG(age) FROM views)",
     "SELECT COUNT(*), (SELECT COUNT(*) FROM users) AS n FROM views"],
)  # fmt: skip
def test_a_query_in_a_query_is_sent_to_where_it_may_stand(sql: str) -> None:
    problem = problem_of(sql)
    assert marked(problem) == "SELECT"
    for remedy in (
        "FROM (SELECT user_id, COUNT(*) AS n FROM views GROUP BY user_id) AS t",
        "FROM views WHERE user_id IN (SELECT user_id FROM users)",
    ):
        parse_query(f"SELECT COUNT(*) AS c {remedy}", TABLES)
    assert "FROM (SELECT id, COUNT(*) AS n FROM table GROUP BY id) AS t" in problem.help


# --- comments in YAML -----------------------------------------------------------------

FILE = """\
release: views
periods: 2026-10
query:
  tables: tables.yaml
  sql: {sign}
    SELECT page, COUNT(*) AS n  {comment}
    FROM views{blank}
    GROUP BY page
  bounds: {{user-day: 10}}
  noise: gaussian
  loss: {{user-day: {{rho: 0.015}}}}
"""


def read(folder: Path, sign: str, comment: str, blank: str = "") -> Problem | None:
    (folder / "tables.yaml").write_text(asked.TABLES)
    text = FILE.format(sign=sign, comment=comment, blank=blank)
    (folder / "q.yaml").write_text(text)
    try:
        load_query(folder / "q.yaml", asked.compiled())
    except InputError as error:
        return error.problems[0]
    return None


@pytest.mark.spec("QRY-1")
@pytest.mark.parametrize("sign", [">", ">-", ">+", ""])
def test_a_comment_that_takes_in_lines_below_it_is_refused(
    tmp_path: Path, sign: str
) -> None:
    problem = read(tmp_path, sign, "-- by page")
    assert problem is not None
    assert problem.code is Code.NOT_SQL
    assert "includes the lines below" in problem.message
    assert problem.mark is not None
    assert (problem.mark.line, problem.mark.column) == (6, 33)
    for better in ("|", "|-"):
        assert "sql: |" in problem.help
        assert read(tmp_path, better, "-- by page") is None
    assert "/* … */" in problem.help
    assert read(tmp_path, sign, "/* by -- page */") is None


def test_a_comment_that_would_leave_a_query_takes_in_nothing_silently(
    tmp_path: Path,
) -> None:
    """Without its GROUP BY, this is another query, and no less one."""
    (tmp_path / "tables.yaml").write_text(asked.TABLES)
    text = FILE.format(sign=">-", comment="", blank="  -- all of them")
    (tmp_path / "q.yaml").write_text(text.replace("SELECT page, ", "SELECT "))
    with pytest.raises(InputError, match="includes the lines below"):
        load_query(tmp_path / "q.yaml", asked.compiled())


def test_a_comment_to_the_end_of_its_own_line_is_none_of_these(tmp_path: Path) -> None:
    assert read(tmp_path, ">-", "") is None
    last = FILE.replace("GROUP BY page\n", "GROUP BY page  -- each\n")
    text = last.format(sign=">-", comment="", blank="")
    (tmp_path / "q.yaml").write_text(text)
    load_query(tmp_path / "q.yaml", asked.compiled())
    (tmp_path / "q.yaml").write_text(
        text.replace("FROM views", "FROM views WHERE page = '--'").replace(
            "-- each", ""
        )
    )
    load_query(tmp_path / "q.yaml", asked.compiled())


def test_a_blank_line_keeps_lines_apart(tmp_path: Path) -> None:
    text = FILE.format(sign=">-", comment="", blank="  -- all\n")
    (tmp_path / "tables.yaml").write_text(asked.TABLES)
    (tmp_path / "q.yaml").write_text(text)
    load_query(tmp_path / "q.yaml", asked.compiled())


#: SQL that remedies quote, by what is quoted: with names, it is read.
QUOTED_SQL = {
    "GROUP BY CUBE (a, b)":
        "SELECT page, age, COUNT(*) FROM views GROUP BY CUBE (page, age)",
    "GROUP BY ROLLUP (a, b)":
        "SELECT page, age, COUNT(*) FROM views GROUP BY ROLLUP (page, age)",
    "GROUP BY GROUPING SETS ((a), (b))":
        "SELECT page, age, COUNT(*) FROM views GROUP BY GROUPING SETS ((page), (age))",
    "GROUP BY key ORDER BY COUNT(*) DESC LIMIT 10":
        "SELECT age, COUNT(*) FROM views GROUP BY age ORDER BY COUNT(*) DESC LIMIT 10",
    "GROUP BY key HAVING COUNT(*) > 10":
        "SELECT page, COUNT(*) FROM views GROUP BY page HAVING COUNT(*) > 10",
    "LEFT JOIN": "SELECT COUNT(*) FROM views LEFT JOIN users USING (user_id)",
    "FROM (SELECT id, COUNT(*) AS n FROM table GROUP BY id) AS t":
        "SELECT COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM views"
        " GROUP BY user_id) AS t",
    "FROM (SELECT id FROM a UNION ALL SELECT id FROM b) AS t":
        "SELECT COUNT(*) FROM (SELECT user_id FROM views UNION ALL SELECT user_id"
        " FROM users) AS t",
    "SELECT DISTINCT id, …":
        "SELECT COUNT(*) FROM (SELECT DISTINCT user_id, page FROM views) AS t",
    "COUNT(DISTINCT id)": "SELECT COUNT(DISTINCT user_id) FROM views",
    "UNION ALL":
        "SELECT COUNT(*) FROM (SELECT user_id FROM views UNION ALL SELECT user_id"
        " FROM users) AS t",
    "WHERE id IN (SELECT id FROM table)":
        "SELECT COUNT(*) FROM views WHERE user_id IN (SELECT user_id FROM users)",
    "JOIN … USING (id)": "SELECT COUNT(*) FROM views JOIN users USING (user_id)",
    "SUM(COUNT(*)) OVER ()":
        "SELECT page, SUM(COUNT(*)) OVER () AS n FROM views GROUP BY page",
    "SUM(COUNT(*)) OVER (ORDER BY key)":
        "SELECT age, SUM(COUNT(*)) OVER (ORDER BY age) AS n FROM views GROUP BY age",
    "COUNT(*) FILTER (WHERE condition)":
        "SELECT COUNT(*) FILTER (WHERE mobile) FROM views",
    "column LIKE 'a%'": ALL + "page LIKE 'a%'",
    "REGEXP_MATCHES(column, '^a')": ALL + "REGEXP_MATCHES(page, '^a')",
    "column IN (1, 2)": ALL + "age IN (1, 2)",
    "QUANTILE(column, 0.05)": "SELECT QUANTILE(age, 0.05) FROM views",
    "QUANTILE(column, 0.95)": "SELECT QUANTILE(age, 0.95) FROM views",
    "QUANTILE(column, 0.5)": "SELECT QUANTILE(age, 0.5) FROM views",
    "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY column)":
        "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) FROM views",
    "SELECT column, COUNT(*) … GROUP BY column":
        "SELECT page, COUNT(*) FROM views GROUP BY page",
    "SELECT column, COUNT(*) … GROUP BY column ORDER BY COUNT(*) DESC LIMIT 1":
        "SELECT page, COUNT(*) FROM views GROUP BY page ORDER BY COUNT(*) DESC LIMIT 1",
    "DATE_TRUNC('day', column)":
        "SELECT DATE_TRUNC('day', event_time), COUNT(*) FROM views GROUP BY 1",
    "DATE_TRUNC('month', column)":
        "SELECT DATE_TRUNC('month', event_time), COUNT(*) FROM views GROUP BY 1",
    "EXTRACT(MONTH FROM column)":
        "SELECT EXTRACT(MONTH FROM event_time), COUNT(*) FROM views GROUP BY 1",
    "COUNT(DISTINCT column)": "SELECT COUNT(DISTINCT page) FROM views",
    "COUNT(DISTINCT (x, y))": "SELECT COUNT(DISTINCT (page, age)) FROM views",
    "column + INTERVAL 7 DAY": ALL + "event_time > event_date + INTERVAL 7 DAY",
    "STRFTIME(column, '%Y-%m')":
        "SELECT STRFTIME(event_time, '%Y-%m'), COUNT(*) FROM views GROUP BY 1",
    "CAST(column AS DATE)":
        "SELECT CAST(event_time AS DATE), COUNT(*) FROM views GROUP BY 1",
    "COUNT(*)": "SELECT COUNT(*) FROM views",
    "AVG(column)": "SELECT AVG(age) FROM views",
    "STDDEV(column)": "SELECT STDDEV(age) FROM views",
    "VARIANCE(column)": "SELECT VARIANCE(age) FROM views",
    "SUM(column)": "SELECT SUM(age) FROM views",
    "SUM(CASE WHEN condition THEN column ELSE 0 END)":
        "SELECT SUM(CASE WHEN mobile THEN age ELSE 0 END) FROM views",
    "COALESCE(column, 0), or IF(condition, 1, 0)":
        "SELECT SUM(COALESCE(age, 0)), SUM(IF(mobile, 1, 0)) AS n FROM views",
    "DATE '2026-11-30'": ALL + "event_date = DATE '2026-11-30'",
    "IS NULL": ALL + "page IS NULL",
    "IS NOT NULL": ALL + "page IS NOT NULL",
    "IS NOT DISTINCT FROM": ALL + "page IS NOT DISTINCT FROM country",
    "AND, OR and NOT": ALL + "mobile AND NOT (age > 3 OR page = 'main')",
}  # fmt: skip


def remedies() -> set[str]:
    """Return all remedies that are known by word."""
    known = (*refusals.WORDS.values(), *refusals._FUNCTIONS.values(), *REASONS)
    return {one.remedy for one in known if one.remedy}


REASONS = [
    one
    for module in (refusals, answers, arguments, unions, windows)
    for one in vars(module).values()
    if isinstance(one, refusals.Reason)
]
_SQL_WORD = re.compile(r"\b[A-Z_]{2,}\b")


@pytest.mark.spec("QRY-1")
def test_all_sql_that_a_remedy_quotes_is_known_here() -> None:
    for remedy in remedies():
        left = remedy
        for quoted in sorted(QUOTED_SQL, key=len, reverse=True):
            left = left.replace(quoted, "")
        assert not set(_SQL_WORD.findall(left)) - _NAMES, remedy


#: Words in capitals that are no quoted SQL: those of the message itself.
_NAMES = {
    "HAVING", "SELECT", "WHERE", "AND", "OR", "NOT", "ORDER", "BY", "LIMIT", "GROUP",
    "TRUE", "FALSE", "ROUND", "FLOOR", "CEIL", "CAST",
}  # fmt: skip


@pytest.mark.spec("QRY-1")
@pytest.mark.parametrize(("quoted", "sql"), QUOTED_SQL.items(), ids=[*QUOTED_SQL])
def test_sql_that_a_remedy_quotes_is_read(quoted: str, sql: str) -> None:
    assert any(quoted in remedy for remedy in remedies())
    assert set(_SQL_WORD.findall(quoted)) <= set(_SQL_WORD.findall(sql))
    parse_query(sql, TABLES)
