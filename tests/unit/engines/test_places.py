"""Where rows lie, as it is written: storage, databases, and names of catalogs."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from samples import asked, watched

from modicum.core.errors import Code, InputError, Problem
from modicum.engines.duckdb_engine import DuckdbEngine
from modicum.engines.places import is_url, parts_of
from modicum.engines.sources import (
    CatalogTable,
    DuckdbTable,
    ParquetFiles,
    source_of,
)
from modicum.ops.files.columns import drafted_from
from modicum.query.statistics import Secrets

PASSWORD = "hunter2-5309"
SECRETS = Secrets("ab" * 32, "cd" * 32)


def problem_of(source: object) -> Problem:
    with pytest.raises(InputError) as caught:
        source_of(source, "orders")
    (problem,) = caught.value.problems
    assert problem.code is Code.DATA_NOT_AS_DECLARED
    assert problem.help
    assert PASSWORD not in caught.value.render()
    return problem


# --- URLs -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/orders",
        "s3a://bucket/orders/day=1/",
        "S3A://bucket/*.parquet",
        "gs://bucket/orders.parquet",
        "abfss://box@account.dfs.core.windows.net/orders",
        "wasbs://box@account.blob.core.windows.net/orders",
        "hdfs://name:8020/data/orders.v2",
        "file:///data/orders.parquet",
        "dbfs:///data/orders",
    ],
)
def test_a_url_of_storage_is_of_parquet_files(url: str) -> None:
    assert source_of(url, "orders") == ParquetFiles((url,))
    assert source_of([url, url], "orders") == ParquetFiles((url, url))
    with pytest.raises(InputError, match="not on this machine"):
        DuckdbEngine({"orders": url})


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{PASSWORD}@host/db",
        f"postgresql://ann:{PASSWORD}@[::1]:5432/db",
        f"postgresql+psycopg://ann:{PASSWORD}@host/db?sslmode=require",
        f"mysql://ann:{PASSWORD}@host/orders.parquet",
        f"jdbc:postgresql://host/db?user=ann&password={PASSWORD}",
        f"JDBC:oracle:thin:ann/{PASSWORD}@host:1521/db",
        f"snowflake://ann:{PASSWORD}@account/db::orders",
        f"https://ann:{PASSWORD}@host/orders",
        f"sc://host:15002/;token={PASSWORD}",
    ],
)
def test_a_url_of_a_database_is_refused_without_its_password(url: str) -> None:
    assert is_url(url)
    for source in (url, [url], ["s3://bucket/orders", url]):
        problem = problem_of(source)
        assert "is no storage of Parquet files" in problem.message
        assert "write the table to Parquet" in problem.help


@pytest.mark.parametrize(
    "ending", [".csv", ".json", ".csv.gz", ".orc", ".duckdb", ".xlsx", ".CSV"]
)
def test_a_url_of_another_kind_of_file_is_refused(ending: str) -> None:
    problem = problem_of(f"s3://ann:{PASSWORD}@bucket/orders{ending}")
    assert "is no Parquet file" in problem.message


@pytest.mark.parametrize(
    "path",
    [
        f"host=db user=ann password={PASSWORD}",
        f"host=db PWD={PASSWORD}.csv",
        f"ann:{PASSWORD}@host/db",
        f"ann:{PASSWORD}/x@host.duckdb::orders",
        Path(f"postgresql://ann:{PASSWORD}@host/db"),
    ],
)
def test_a_login_that_is_no_url_is_not_shown(path: object) -> None:
    assert "no such" in problem_of(path).message


def test_a_path_that_is_not_there_is_shown() -> None:
    for path in ("orders.parquet", "keys/monkey.parquet", "tokens.csv", "a:b.parquet"):
        assert f"`{path}`" in problem_of(path).message


# --- dotted names ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("orders", ("orders",)),
        ("main.sales.orders", ("main", "sales", "orders")),
        ('main."odd.name".orders', ("main", "odd.name", "orders")),
        ('"a ""b"" c".d', ('a "b" c', "d")),
        ("`a.b`.`c``d`", ("a.b", "c`d")),
        ('o\'dd "one".x', ('o\'dd "one"', "x")),
        ("Grüße.t", ("Grüße", "t")),
    ],
)
def test_a_dotted_name_has_parts(name: str, parts: tuple[str, ...]) -> None:
    assert parts_of(name, "orders") == parts


@pytest.mark.parametrize(
    "name", ["", ".", "a.", ".a", "a..b", '"a', '"a"b', '""', "`a", '"a".', '"']
)
def test_what_is_no_name_is_refused(name: str) -> None:
    assert "is not a name" in problem_of(f"table:{name}").message


def test_a_table_of_a_catalog_is_named_with_its_schema() -> None:
    found = source_of("table:main.sales.orders", "orders")
    assert found == CatalogTable(("main", "sales", "orders"))
    assert source_of("table:sales.orders", "") == CatalogTable(("sales", "orders"))
    problem = problem_of("table:orders")
    assert problem.help == "write table:CATALOG.SCHEMA.TABLE"
    with pytest.raises(InputError, match="DuckDB has none of Spark's catalogs"):
        DuckdbEngine({"orders": "table:main.sales.orders"})


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("main.sales.orders", "table:main.sales.orders"),
        ("iceberg:db.t", "table:iceberg.db.t"),
        ("orders.2026.parquet", ""),
        ("orders.2026.csv", ""),
    ],
)
def test_a_name_that_is_no_path_is_told_how_it_is_written(
    written: str, meant: str
) -> None:
    problem = problem_of(written)
    assert "no such" in problem.message
    assert problem.help.endswith(f"write {meant}") is bool(meant)


# --- schemas of a DuckDB file ---------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rows = watched.rows()
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE SCHEMA sales")
        connection.execute('CREATE SCHEMA "odd.one"')
        connection.execute("CREATE TABLE sales.views AS SELECT * FROM rows")
        connection.execute('CREATE TABLE "odd.one"."vi.ews" AS SELECT * FROM rows')
        connection.execute('CREATE TABLE "sales.views" AS SELECT 1 AS other')
        connection.execute("CREATE TABLE views AS SELECT 2 AS other")
        connection.execute("CREATE VIEW sales.drawn AS SELECT * FROM sales.views")
        connection.execute("CREATE TABLE sales.made (a INT, b INT AS (a + 1))")
    assert len(rows) == watched.NUMBER
    return path


@pytest.mark.parametrize(
    "name", ["sales.views", "SALES.Views", '"sales"."views"', '"odd.one"."vi.ews"']
)
def test_a_table_of_any_schema_is_read(file: Path, name: str) -> None:
    with DuckdbEngine({"views": f"{file}::{name}"}) as engine:
        found = engine.run(watched.plan(), SECRETS)
    assert found["n"] == {(watched.ROW,): watched.NUMBER}


def test_a_name_without_a_schema_is_one_of_main(file: Path) -> None:
    assert source_of(f"{file}::views", "") == DuckdbTable(str(file), "views", "main")
    for name in ("views", '"sales.views"', "main.views"):
        with DuckdbEngine({"views": f"{file}::{name}"}) as engine:
            assert engine.columns() == {"views": ("other",)}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("sales.drawn", "is a view"),
        ("sales.made", "generated columns"),
        ("sales.gone", "does not exist"),
        ("gone.views", "does not exist"),
        ("information_schema.tables", "is a view"),
    ],
)
def test_what_is_no_table_of_a_schema_is_refused(
    file: Path, name: str, told: str
) -> None:
    with pytest.raises(InputError) as caught:
        DuckdbEngine({"views": f"{file}::{name}"})
    schema = name.partition(".")[0]
    assert f"in the schema `{schema}`" in caught.value.problems[0].message
    assert told in caught.value.problems[0].message


def test_a_duckdb_file_has_no_catalogs(file: Path) -> None:
    problem = problem_of(f"{file}::shop.sales.views")
    assert problem.help == "write FILE.duckdb::SCHEMA.TABLE"


def test_a_draft_of_a_table_has_its_name_without_the_schema(file: Path) -> None:
    vocabulary = asked.compiled(
        asked.POLICY.replace("user_id", "user")
    ).policy.vocabulary
    place = f"{file}::sales.views"
    draft = drafted_from(place, None, vocabulary)
    assert draft.table == "views"
    assert drafted_from(place, "mine", vocabulary).table == "mine"
