"""`modicum query run` from beginning to end, on each engine and kind of data."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
from datetime import datetime, timedelta
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from samples import asked

import modicum as mo
from modicum.cli.query_text import release_text
from modicum.core.document import from_python

#: So many views of each page: far above the noise, below every cap.
EACH = 4000


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a ledger, a query, and its data in every form."""
    monkeypatch.chdir(tmp_path)
    for name in ("MODICUM_LEDGER", "MODICUM_POLICY", "MODICUM_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MODICUM_ACTOR", "ann")
    Path("policy.yaml").write_text(asked.POLICY)
    Path("tables.yaml").write_text(asked.TABLES)
    sql = "SELECT page, COUNT(*) AS views FROM views GROUP BY page"
    loss = {"user-day": {"rho": Fraction("0.05")}}
    plain = asked.document(sql, bounds={"user-day": 1, "user-month": 1}, loss=loss)
    Path("views.yaml").write_text(release_text(from_python(plain)))
    mo.open("ledger.db", policy="policy.yaml").init()
    rows = views()
    pq.write_table(rows, "views.parquet")
    Path("parts").mkdir()
    pq.write_table(rows.slice(0, EACH), "parts/a.parquet")
    pq.write_table(rows.slice(EACH), "parts/b.parquet")
    pa.csv.write_csv(rows, "views.csv")
    with duckdb.connect("views.duckdb") as database:
        database.register("rows", rows)
        database.execute("CREATE TABLE views AS SELECT * FROM rows")
        database.execute("CREATE TABLE other AS SELECT * FROM rows")
    return tmp_path


def views() -> pa.Table:
    """Return as many views of `main` as of `help`, each of another reader."""
    start = datetime(2026, 10, 1, 6)  # noqa: DTZ001 - a time without a zone
    numbers = range(2 * EACH)
    return pa.table(
        {
            "view_id": pa.array(numbers, pa.int64()),
            "user_id": [f"u{one}" for one in numbers],
            "read_at": pa.array(
                [start + timedelta(minutes=one) for one in numbers], pa.timestamp("us")
            ),
            "page": [("main", "help")[one % 2] for one in numbers],
            "topic": ["x"] * len(numbers),
            "amount": [1.0] * len(numbers),
        }
    )


def run(*more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "modicum", "query", "run", "views.yaml", *more],
        capture_output=True, text=True, check=False,
        env={**os.environ, "MODICUM_ACTOR": "ann"},
    )  # fmt: skip


def must_be_right(found: subprocess.CompletedProcess[str], out: str) -> None:
    """Check that the answer is there, about right, and published."""
    assert found.returncode == 0, found.stderr
    assert found.stdout == f"views: published; 2 rows in {out}\n"
    assert "views: started; its loss is spent\n" in found.stderr
    with Path(out).open(newline="") as file:
        rows = {one["page"]: one for one in csv.DictReader(file)}
    assert set(rows) == {"help", "main"}
    for one in rows.values():
        # σ is below 5: a hundred of these never lie between.
        assert abs(int(one["views"]) - EACH) < 640
        assert int(one["views.low"]) < int(one["views"]) < int(one["views.high"])
    ledger = mo.open("ledger.db")
    assert ledger.standing("views").status.value == "published"
    assert Path(out).stat().st_size < 200


@pytest.mark.parametrize(
    "place",
    ["views.parquet", "parts", "parts/*.parquet", "views.csv", "views.duckdb",
     "views.duckdb::other"],
)  # fmt: skip
def test_duckdb_answers_from_every_kind_of_data(place: str) -> None:
    must_be_right(run("--data", f"views={place}", "--out", "out.csv"), "out.csv")


def must_have_spark() -> None:
    """Skip without Spark and Java; fail where they must be."""
    if find_spec("pyspark") is not None and shutil.which("java") is not None:
        return
    reason = "there is no Spark on this machine: pyspark, and Java 17"
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}; .ci/run installs them")
    pytest.skip(reason)


def test_spark_answers_from_a_parquet_file() -> None:
    must_have_spark()
    engine = ["--engine", "spark", "--spark-master", "local[1]"]
    found = run("--data", "views=views.parquet", *engine, "--out", "out.csv")
    must_be_right(found, "out.csv")


@pytest.mark.parametrize("kind", ["path", "arrow", "batches", "table alone"])
def test_python_answers_from_files_and_from_memory(kind: str) -> None:
    rows = views()
    data: object = {
        "path": {"views": Path("views.parquet")},
        "arrow": {"views": rows},
        "batches": {"views": rows.combine_chunks().to_batches()[0]},
        "table alone": "views.csv",
    }[kind]
    ledger = mo.open("ledger.db")
    query = mo.load_query("views.yaml", ledger.policy())
    ran = ledger.queries.run(query, data)
    assert ran.answers is not None
    found = ran.answers.to_arrow()
    assert found.column("page").to_pylist() == ["help", "main"]
    assert all(abs(one - EACH) < 640 for one in found.column("views").to_pylist())
    assert ran.to_dict()["status"] == "published"
    assert "<table>" in ran._repr_html_()
    assert ledger.standing("views").status.value == "published"


def test_a_query_of_python_values_is_that_of_the_file() -> None:
    ledger = mo.open("ledger.db")
    of_file = mo.load_query("views.yaml", ledger.policy())
    query = mo.sql_query(
        "views",
        "SELECT page, COUNT(*) AS views FROM views GROUP BY page",
        tables="tables.yaml",
        policy=ledger.policy(),
        periods="2026-10",
        bounds={"user-day": 1, "user-month": 1},
        noise="gaussian",
        loss={"user-day": mo.zcdp(Fraction("0.05"))},
    )
    assert ledger.submit(of_file.described).allowed
    assert ledger.queries.plan(query).retry  # One release: the same contents.
    with pytest.raises(mo.InputError) as caught:
        mo.sql_query(
            "other", "SELECT COUNT(*) AS n FROM views HAVING 1",
            tables="tables.yaml", policy=ledger.policy(), bound={"user-day": 1},
        )  # fmt: skip
    rendered = caught.value.render()
    assert "`bound`" in rendered
