"""Rows of one person do not decide what those of others count as, or end a run."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from samples import asked
from samples.spark import spark_or_skip

from modicum.core.errors import Code, InputError, UnavailableError
from modicum.engines import duckdb_engine
from modicum.engines.duckdb_engine import DuckdbEngine
from modicum.engines.spark_engine import SparkEngine
from modicum.engines.sql_engine import SqlEngine
from modicum.query.query_file import QueryFile
from modicum.query.statistics import Exact, Secrets

Opened = Callable[[dict[str, object]], SqlEngine]
SECRETS = Secrets("ab" * 16, "cd" * 32)
DECLARED = """\
modicum: tables/v1
tables:
  views:
    row_id: view_id
    columns:
      view_id: {type: integer}
      user_id: {type: text}
      read_at: {type: timestamp}
      born: {type: date, attribute: topic}
      page: {type: text, attribute: page}
      amount: {type: number, attribute: amount, step: 0.5, bounds: [0, 8]}
"""


@pytest.fixture(params=["duckdb", "spark"])
def opened(request: pytest.FixtureRequest) -> Opened:
    if request.param == "duckdb":
        return DuckdbEngine
    options = spark_or_skip()
    return lambda sources: SparkEngine(sources, options)


def query(sql: str, **more: Any) -> QueryFile:
    """Return a query of all days, of which each user moves one row."""
    delta = asked.compiled(asked.WITH_DELTA)
    plain = asked.document(sql, bounds={"user": 1}, loss={"user": {"rho": 1}}, **more)
    del plain["periods"]
    return asked.read(plain, policy=delta, declared=DECLARED)


def rows(number: int, **columns: Any) -> pa.Table:
    """Return so many rows, each of another user."""
    seconds = pa.array([1_793_000_000_000_000] * number, pa.timestamp("us"))
    return pa.table(
        {
            "view_id": list(range(number)),
            "user_id": [f"u{one}" for one in range(number)],
            "read_at": seconds,
            "born": pa.array([20_000] * number, pa.date32()),
            "page": ["main"] * number,
            "amount": [1.0] * number,
            **columns,
        }
    )


def exact(opened: Opened, found: QueryFile, source: object) -> dict[str, Exact]:
    """Return the exact answer of a query."""
    with opened({"views": source}) as engine:
        return engine.run(found.compiled.plan, SECRETS)


# --- NaN ------------------------------------------------------------------------------

NAN = "SELECT COUNT(amount) AS n, SUM(amount) AS s, VAR_POP(amount) AS v FROM views"
ABOVE = "SELECT COUNT(*) AS n FROM views WHERE amount > 3"
KEYS = [
    "born",
    *(f"DATE_TRUNC('{one}', born)" for one in ("week", "month", "quarter", "year")),
]
#: The first and the last day of a column, and the days beside the years 1 and 9999.
FAR = [2**31 - 1, 2**31 - 2, -(2**31) + 1, -719_163, 2_932_897]


@pytest.mark.spec("QRY-8")
@pytest.mark.parametrize(
    "sql", [NAN, "SELECT COUNT(*) AS n FROM views WHERE amount > 3"]
)
@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0], [2.0, 5.0], [-math.inf, 0.0]])
def test_what_nan_counts_as_does_not_depend_on_other_rows(
    opened: Opened, sql: str, values: list[float], tmp_path: Path
) -> None:
    # Parquet tells the least and the greatest value of a column, and leaves NaN out.
    found = query(sql)
    result = []
    for nans in (0, 200):
        amounts = [math.nan] * nans + values
        path = tmp_path / f"{nans}.parquet"
        pq.write_table(rows(len(amounts), amount=amounts), path)
        result.append(exact(opened, found, str(path)))
    assert result[0] == result[1]


# --- dates and times ------------------------------------------------------------------


@pytest.mark.spec("QRY-13")
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("day", FAR)
def test_days_of_no_common_year_are_not_read_as_keys(
    opened: Opened, key: str, day: int
) -> None:
    found = query(
        f"SELECT {key} AS k, COUNT(*) AS n FROM views GROUP BY 1",
        discover={"delta": Fraction("1e-6")},
    )
    days = pa.array([day, 20_000, None, -719_162, 2_932_896], pa.date32())
    result = exact(opened, found, rows(5, born=days))["n"]
    assert len(result) == 4
    assert sum(result.values()) == 4


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_times_that_no_timestamp_can_be_are_not_read(unit: str) -> None:
    times = pa.array([0, 2**62], pa.timestamp(unit))
    result = exact(
        DuckdbEngine, query("SELECT COUNT(*) AS n FROM views"), rows(2, read_at=times)
    )
    assert result == {"n": {(): 1}}


# --- files ----------------------------------------------------------------------------


@pytest.mark.parametrize("schema", ["a", "zz"])
def test_a_view_beside_a_table_of_its_name_is_refused(
    schema: str, tmp_path: Path
) -> None:
    file = tmp_path / "views.duckdb"
    with duckdb.connect(file) as connection:
        connection.execute("CREATE VIEW views AS SELECT 1 AS view_id")
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"CREATE TABLE {schema}.views (view_id INTEGER)")
    with pytest.raises(InputError, match="a view") as caught:
        DuckdbEngine({"views": f"{file}::views"})
    assert caught.value.problems[0].code is Code.DATA_NOT_AS_DECLARED


def test_a_table_of_another_schema_is_not_the_table(tmp_path: Path) -> None:
    file = tmp_path / "views.duckdb"
    with duckdb.connect(file) as connection:
        connection.execute("CREATE SCHEMA a")
        connection.execute("CREATE TABLE a.views (view_id INTEGER)")
    with pytest.raises(InputError):
        DuckdbEngine({"views": f"{file}::views"})


def test_generated_columns_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "views.duckdb"
    with duckdb.connect(file) as connection:
        connection.execute(
            "CREATE TABLE views (view_id INTEGER,"
            " user_id VARCHAR AS (view_id::VARCHAR || random()::VARCHAR))"
        )
    with pytest.raises(InputError, match="generated"):
        DuckdbEngine({"views": f"{file}::views"})


@pytest.mark.parametrize(
    ("text", "number"),
    [
        # DuckDB would cut a file in pieces, also within such a text.
        ("\n".join(f"{one},fake,2026-01-01T00:00,,,y" for one in range(8)), 150_000),
        ("x" * 10_000_000, 3),
    ],
)
def test_any_text_of_a_csv_file_is_read(text: str, number: int, tmp_path: Path) -> None:
    path = tmp_path / "views.csv"
    with path.open("w", newline="") as file:
        file.write("view_id,user_id,read_at,born,amount,page\n")
        for one in range(number):
            file.write(f'{one},u{one},2026-01-01T00:00,,,"{text}"\n')
    found = query("SELECT COUNT(*) AS n FROM views WHERE page <> 'no'")
    assert exact(DuckdbEngine, found, str(path)) == {"n": {(): number}}


# --- files that change ----------------------------------------------------------------


def _written(path: Path) -> None:
    path.write_bytes(path.read_bytes())


def _replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.replace(path)


def _removed(path: Path) -> None:
    path.unlink()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "views.parquet"
    pq.write_table(rows(3), path)
    return path


@pytest.mark.parametrize("change", [_written, _replaced, _removed])
def test_a_file_that_changed_since_it_was_opened_is_not_read(
    change: Callable[[Path], None], file: Path
) -> None:
    found = query("SELECT COUNT(*) AS n FROM views")
    with DuckdbEngine({"views": str(file)}) as engine:
        engine.check(found.compiled.plan)
        change(file)
        with pytest.raises(UnavailableError, match="changed"):
            engine.check(found.compiled.plan)


@pytest.mark.parametrize("change", [_written, _replaced, _removed])
def test_nothing_is_answered_of_a_file_that_changed_meanwhile(
    change: Callable[[Path], None], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = query("SELECT COUNT(*) AS n FROM views")
    select = duckdb_engine.DuckdbEngine._select

    def changing(engine: DuckdbEngine, statement: str) -> Any:
        result = select(engine, statement)
        change(file)
        return result

    monkeypatch.setattr(duckdb_engine.DuckdbEngine, "_select", changing)
    with pytest.raises(UnavailableError, match="changed"):
        exact(DuckdbEngine, found, str(file))
