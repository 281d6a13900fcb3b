"""DuckDB reads what it is told to, and nothing else."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace
from samples import watched

from modicum.core.errors import Code, ModicumError
from modicum.engines import duckdb_engine
from modicum.engines.caps import rows as of_caps
from modicum.engines.caps.rows import Caps
from modicum.engines.duckdb_engine import DuckdbEngine, DuckdbOptions
from modicum.engines.sources import CsvFile, source_of
from modicum.query.statistics import Cap, Secrets

SECRETS = Secrets("ab" * 32, "cd" * 32)
COUNTED = {("canary-of-a-row",): watched.NUMBER}


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '{folder}/other.parquet'",
        "SELECT * FROM read_csv('{folder}/*.csv')",
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "ATTACH '{folder}/new.duckdb' AS other",
        "INSERT INTO file_1.views SELECT * FROM file_1.views",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT * FROM 'https://127.0.0.1:1/x.parquet'",
        "SET enable_external_access = true",
        "SET allowed_paths = ['/']",
        "SET threads = 1",
        "SELECT * FROM rows",
        "EXPORT DATABASE '{folder}/all'",
        "SELECT * FROM glob('{folder}/*')",
    ],
)
def test_nothing_else_can_be_read_or_written(statement: str, tmp_path: Path) -> None:
    rows = watched.rows()
    for name in ("views", "other"):
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    file = tmp_path / "views.duckdb"
    with duckdb.connect(file) as connection:
        connection.execute("CREATE TABLE views AS SELECT * FROM rows")
    sources = {"views": str(tmp_path / "views.parquet"), "more": f"{file}::views"}
    before = sorted(tmp_path.iterdir())
    with DuckdbEngine(sources) as engine:
        with pytest.raises(duckdb.Error):
            engine._connection.execute(statement.format(folder=tmp_path)).fetchall()
        assert engine.run(watched.plan(), SECRETS)["n"] == COUNTED
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["views", 'o\'dd "one"'])
def test_duckdb_files(name: str, tmp_path: Path) -> None:
    rows = watched.rows()
    file = tmp_path / "it's.duckdb"
    quoted = name.replace('"', '""')
    with duckdb.connect(file) as connection:
        connection.execute(f'CREATE TABLE "{quoted}" AS SELECT * FROM rows')
    assert len(rows) == watched.NUMBER
    with DuckdbEngine({"views": f"{file}::{name}"}) as engine:
        assert engine.run(watched.plan(), SECRETS)["n"] == COUNTED


def test_parquet_files_of_a_folder_and_of_a_pattern(tmp_path: Path) -> None:
    rows = watched.rows()
    (tmp_path / "day=1").mkdir()
    pq.write_table(rows.slice(0, 100), tmp_path / "day=1" / "a'b.parquet")
    pq.write_table(rows.slice(100), tmp_path / "c.parquet")
    listed = [tmp_path / "c.parquet", tmp_path / "day=1"]
    for source in (str(tmp_path), str(tmp_path / "**" / "*.parquet"), listed):
        with DuckdbEngine({"views": source}) as engine:
            assert engine.run(watched.plan(), SECRETS)["n"] == COUNTED


def test_what_has_yet_to_be_read_is_not_taken() -> None:
    # Reading it before a release is started would be for free, and may quote rows.
    rows = watched.rows()
    taken: list[str] = []

    def batches() -> Iterator[pa.RecordBatch]:
        taken.append("a batch")
        yield from rows.to_batches()

    reader = pa.RecordBatchReader.from_batches(rows.schema, batches())
    for source in (reader, duckdb.sql("SELECT 1 AS x"), iter([rows])):
        with pytest.raises(ModicumError, match="neither a path nor an Arrow table"):
            DuckdbEngine({"views": source})
    assert not taken


def test_tables_and_batches_of_arrow_are_read() -> None:
    rows = watched.rows()
    for source in (rows.to_batches()[0], rows):
        with DuckdbEngine({"views": source}) as engine:
            for _ in range(2):
                assert engine.run(watched.plan(), SECRETS)["n"] == COUNTED


@pytest.mark.parametrize(
    "source",
    [
        "no.parquet",
        "no.csv",
        "no.duckdb::views",
        "no/*.parquet",
        7,
        "{folder}",
        "{odd}",
    ],
)
def test_what_is_not_there(source: object, tmp_path: Path) -> None:
    odd = tmp_path / "odd[1].csv"
    odd.write_text("a\n1\n")
    if isinstance(source, str):
        source = source.format(folder=tmp_path, odd=odd)
    with pytest.raises(ModicumError) as caught:
        DuckdbEngine({"views": source})
    assert caught.value.code == Code.DATA_NOT_AS_DECLARED


def test_a_table_without_a_source() -> None:
    with DuckdbEngine({}) as engine, pytest.raises(ModicumError) as caught:
        engine.check(watched.plan())
    assert caught.value.code == Code.DATA_NOT_AS_DECLARED


@pytest.mark.parametrize("named", [False, True])
def test_what_is_put_aside_is_removed(named: bool, tmp_path: Path) -> None:
    options = DuckdbOptions(folder=tmp_path if named else None)
    engine = DuckdbEngine({"views": watched.rows()}, options)
    folder = engine._own
    assert (folder.parent == tmp_path) is named
    assert folder.stat().st_mode & 0o077 == 0
    engine.close()
    assert not folder.exists()
    assert tmp_path.exists()


def test_what_is_put_aside_is_removed_if_nobody_closes() -> None:
    engine = DuckdbEngine({"views": watched.rows()})
    folder = engine._own
    assert folder.exists()
    del engine
    gc.collect()
    assert not folder.exists()


def test_rows_that_do_not_fit_into_memory_are_put_aside(tmp_path: Path) -> None:
    rows = pa.concat_tables([watched.rows()] * 40)
    options = DuckdbOptions(memory="40MB", threads=1, folder=tmp_path)
    with DuckdbEngine({"views": rows}, options) as engine:
        assert engine.run(watched.plan(), SECRETS)["n"] == COUNTED
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    options = DuckdbOptions(folder=tmp_path / "no")
    with pytest.raises(ModicumError) as caught:
        DuckdbEngine({"views": watched.rows()}, options)
    assert caught.value.code == Code.ENGINE_FAILED


def test_nothing_is_drawn_while_it_works() -> None:
    with DuckdbEngine({"views": watched.rows()}) as engine:
        shown = engine._connection.execute(
            "SELECT current_setting('enable_progress_bar')"
        )
        assert shown.fetchone() == (False,)


def test_running_out_of_memory_is_a_failure() -> None:
    rows = pa.concat_tables([watched.rows()] * 100)
    options = DuckdbOptions(memory="1MB")
    with (
        pytest.raises(ModicumError) as caught,
        DuckdbEngine({"views": rows}, options) as e,
    ):
        e.run(watched.plan(), SECRETS)
    assert caught.value.code == Code.ENGINE_FAILED


@pytest.mark.parametrize("spills", [True, False])
def test_rows_are_written_to_a_disk_only_where_they_may_be(spills: bool) -> None:
    options = DuckdbOptions(memory="60MB", threads=1, spills=spills)
    many = (
        "SELECT count(*) FROM (SELECT range::VARCHAR || repeat('x', 40) AS k"
        " FROM range(900000) GROUP BY k)"
    )
    with DuckdbEngine({"views": watched.rows()}, options) as engine:
        if spills:
            assert engine._connection.execute(many).fetchone() == (900_000,)
        else:
            with pytest.raises(duckdb.OutOfMemoryException):
                engine._connection.execute(many)
            assert not [*Path(engine._own).rglob("duckdb_temp*")]


def test_interrupting() -> None:
    rows = pa.concat_tables([watched.rows()] * 400)
    failures: list[ModicumError] = []
    with DuckdbEngine({"views": rows}) as engine:

        def run() -> None:
            try:
                engine.run(watched.plan(), SECRETS)
            except ModicumError as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        while thread.is_alive():
            engine.interrupt()
            thread.join(0.01)
    assert [error.code for error in failures] == [Code.ENGINE_FAILED]


@pytest.mark.parametrize("held", [1000, 0])
def test_interrupting_between_shares(
    held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While rows are cut, DuckDB does not look; so what cuts them does, in between."""
    monkeypatch.setattr(of_caps, "_SHARE_BITS", (2, 3))
    monkeypatch.setattr(duckdb_engine, "_HELD", held)
    cut: list[int] = []
    kept = Caps.kept

    def interrupted(caps: Caps, rows: pa.Table, tools: ModuleType) -> Any:
        cut.append(rows.num_rows)
        engine.interrupt()
        return kept(caps, rows, tools)

    monkeypatch.setattr(Caps, "kept", interrupted)
    few = watched.rows().slice(0, 100)
    users = pa.array([f"user {n % 50}" for n in range(100)])
    rows = few.set_column(1, "user", users)
    plan = replace(watched.plan(), caps=(Cap("user-day", 1),))
    with DuckdbEngine({"views": rows}) as engine:
        with pytest.raises(ModicumError) as caught:
            engine.run(plan, SECRETS)
        assert caught.value.code is Code.ENGINE_FAILED
        assert len(cut) == 1
        monkeypatch.setattr(Caps, "kept", kept)
        assert engine.run(plan, SECRETS)["n"] == {("canary-of-a-row",): 50}


@pytest.mark.soak
@pytest.mark.skipif(not os.environ.get("MODICUM_SOAK"), reason="it needs 6 GB")
def test_more_than_two_gib_of_texts_are_cut(tmp_path: Path) -> None:
    path, length, number = tmp_path / "views.parquet", 1 << 15, 70_000
    assert length * number > 2**31
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT range AS view, repeat('u', {length}) AS user,"
            f" DATE '2026-11-02' AS day, '{watched.ROW}' AS page, 7.0::DOUBLE AS amount"
            f" FROM range({number})) TO '{path}' (FORMAT parquet)"
        )
    plan = replace(watched.plan(), sample=None)
    with DuckdbEngine({"views": str(path)}) as engine:
        assert engine.run(plan, SECRETS)["n"] == COUNTED


@pytest.mark.spec("QRY-4")
def test_texts_of_a_duckdb_file_are_compared_byte_by_byte(tmp_path: Path) -> None:
    file = tmp_path / "views.duckdb"
    with duckdb.connect(file) as connection:
        connection.execute(
            "CREATE TABLE names (name VARCHAR COLLATE NOCASE);"
            "INSERT INTO names VALUES ('a'), ('A'), ('\xe4')"
        )
    with DuckdbEngine({"names": f"{file}::names"}) as engine:
        relation = engine._relations["names"]
        for statement, wanted in (
            (f"SELECT count(*) FROM (SELECT name FROM {relation} GROUP BY name)", 3),
            (f"SELECT count(*) FROM {relation} WHERE name = 'a'", 1),
            (f"SELECT count(*) FROM {relation} a JOIN {relation} b USING (name)", 3),
            (
                "SELECT max(n) FROM (SELECT row_number() OVER (PARTITION BY"
                f" CAST(name AS VARCHAR)) AS n FROM {relation})",
                1,
            ),
        ):
            found = engine._connection.execute(statement).fetchall()
            assert found == [(wanted,)], statement


def test_a_view_of_a_duckdb_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "views.duckdb"
    with duckdb.connect(file) as connection:
        connection.execute("CREATE VIEW drawn AS SELECT random() AS x")
    with pytest.raises(ModicumError) as caught:
        DuckdbEngine({"drawn": f"{file}::drawn"})
    assert caught.value.problems[0].code is Code.DATA_NOT_AS_DECLARED


def test_rows_of_a_csv_file_are_not_looked_at_before_it_is_read(tmp_path: Path) -> None:
    for number, rest in enumerate((b"1,\xff\xfe\n", b'"', b"")):
        path = tmp_path / f"{number}.csv"
        path.write_bytes(b"view_id,page\n" + rest)
        source = source_of(str(path), "views")
        assert isinstance(source, CsvFile)
        assert source.columns == ("view_id", "page")


def test_more_than_two_gib_of_texts_fit_into_a_batch() -> None:
    """Else how many rows match would decide whether a run fails."""
    with DuckdbEngine({"t": pa.table({"name": ["a"]})}) as engine:
        rows = engine.fetch(f"SELECT name FROM {engine.relations()['t']}")
    assert rows.schema.field("name").type == pa.large_string()
