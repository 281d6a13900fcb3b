"""Files that are not what they were taken for: told what they are, and what helps."""

from __future__ import annotations

import bz2
import gzip
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from modicum.core.errors import Code, InputError, Problem
from modicum.engines.duckdb_engine import DuckdbEngine
from modicum.engines.sources import CsvFile, DuckdbTable, ParquetFiles, source_of
from modicum.query.sql.columns import misfits
from modicum.query.tables import Column, Table

CANARY = "canary-5309"
TEXT = f"order_id,product\n1,{CANARY}\n2,{CANARY}\n"
ROWS = pa.table({"order_id": [1, 2], "product": [CANARY, CANARY]})


def packed(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("orders.csv", TEXT)


def in_sqlite(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE orders (order_id INTEGER)")
    connection.commit()
    connection.close()


def in_duckdb(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE orders (order_id INTEGER)")


#: What is written, and what it is told to be.
KINDS: list[tuple[Callable[[Path], object], str]] = [
    (packed, "a spreadsheet or a ZIP archive"),
    (lambda path: path.write_bytes(gzip.compress(TEXT.encode())), "gzip"),
    (lambda path: path.write_bytes(bz2.compress(TEXT.encode())), "bzip2"),
    (in_sqlite, "a SQLite file"),
    (lambda path: pyarrow.feather.write_feather(ROWS, str(path)), "Feather"),
    (lambda path: path.write_text(TEXT, encoding="utf-16"), "text in UTF-16"),
    (lambda path: path.write_bytes(b""), "it is empty"),
]
#: What is read as one kind of file, and not as another one.
PARQUET = (lambda path: pq.write_table(ROWS, path), "a Parquet file")
DUCKDB = (in_duckdb, "a DuckDB file")
CSV = (lambda path: path.write_text(TEXT), "not a Parquet file")


def problem_of(path: Path) -> Problem:
    with pytest.raises(InputError) as caught:
        source_of(path, "orders")
    (problem,) = caught.value.problems
    assert problem.code is Code.DATA_NOT_AS_DECLARED
    assert problem.help
    assert CANARY not in caught.value.render()
    return problem


def as_text(one: object) -> str:
    """Return what a case is called: what is told; functions have no lasting name."""
    return one if isinstance(one, str) else "written"


@pytest.mark.parametrize(("write", "told"), [*KINDS, DUCKDB, CSV], ids=as_text)
@pytest.mark.parametrize("ending", [".parquet", ".xlsx", ".txt", ""])
def test_what_is_no_parquet_file_is_told_what_it_is(
    tmp_path: Path, write: Callable[[Path], object], told: str, ending: str
) -> None:
    write(tmp_path / f"orders{ending}")
    assert told in problem_of(tmp_path / f"orders{ending}").message


@pytest.mark.parametrize(("write", "told"), [*KINDS, DUCKDB, PARQUET], ids=as_text)
def test_what_is_no_csv_file_is_told_what_it_is(
    tmp_path: Path, write: Callable[[Path], object], told: str
) -> None:
    write(tmp_path / "orders.csv")
    assert told in problem_of(tmp_path / "orders.csv").message


@pytest.mark.parametrize(("write", "told"), [*KINDS, PARQUET], ids=as_text)
def test_what_is_no_duckdb_file_is_told_what_it_is(
    tmp_path: Path, write: Callable[[Path], object], told: str
) -> None:
    write(tmp_path / "orders.duckdb")
    assert told in problem_of(tmp_path / "orders.duckdb").message


def test_each_kind_is_read_as_what_it_is(tmp_path: Path) -> None:
    PARQUET[0](tmp_path / "orders.data")
    assert isinstance(source_of(tmp_path / "orders.data", "orders"), ParquetFiles)
    DUCKDB[0](tmp_path / "orders.duckdb")
    assert isinstance(source_of(tmp_path / "orders.duckdb", "orders"), DuckdbTable)
    CSV[0](tmp_path / "orders.csv")
    assert source_of(tmp_path / "orders.csv", "orders") == CsvFile(
        str(tmp_path / "orders.csv"), ("order_id", "product")
    )


def test_every_file_of_a_folder_is_looked_at(tmp_path: Path) -> None:
    for name in ("a", "b"):
        pq.write_table(ROWS, tmp_path / f"{name}.parquet")
    assert isinstance(source_of(tmp_path, "orders"), ParquetFiles)
    (tmp_path / "c.parquet").write_text(TEXT)
    assert "not a Parquet file" in problem_of(tmp_path).message


@pytest.mark.parametrize(
    "names",
    ["PAR1,b", "PARE", "ARROW1,x", "BZh91AY&SY,x", "PK,x", "ORC", "12345678DUCK"],
)
def test_names_of_columns_may_look_like_another_kind(
    tmp_path: Path, names: str
) -> None:
    (tmp_path / "orders.csv").write_text(f"{names}\n1,2\n")
    found = source_of(tmp_path / "orders.csv", "orders")
    assert isinstance(found, CsvFile)
    assert found.columns == tuple(names.split(","))


# --- CSV ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sign", "called"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")]
)
def test_columns_that_no_comma_parts_are_told_so(
    tmp_path: Path, sign: str, called: str
) -> None:
    (tmp_path / "orders.csv").write_text(TEXT.replace(",", sign))
    problem = problem_of(tmp_path / "orders.csv")
    assert f"its first line has {called} and no commas" in problem.message
    (tmp_path / "orders.csv").write_text(TEXT)  # As the help says.
    source_of(tmp_path / "orders.csv", "orders")


def test_a_first_line_in_another_encoding_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("größe,b\n1,2\n", encoding="latin-1")
    problem = problem_of(tmp_path / "orders.csv")
    assert problem.message.endswith("its first line is not UTF-8")


def test_a_mark_of_the_encoding_is_no_part_of_a_name(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text(TEXT, encoding="utf-8-sig")
    found = source_of(tmp_path / "orders.csv", "orders")
    assert isinstance(found, CsvFile)
    assert found.columns == ("order_id", "product")
    with DuckdbEngine({"orders": tmp_path / "orders.csv"}) as engine:
        read = "SELECT order_id, product FROM data_0"
        assert list(engine._select(read)) == [("1", CANARY), ("2", CANARY)]


def test_a_folder_of_csv_files_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TEXT)
    assert "give one `.csv` file" in problem_of(tmp_path).help
    (tmp_path / "a.csv").unlink()
    assert "`.csv` file" in problem_of(tmp_path).help
    assert "several" not in problem_of(tmp_path).help


ORDERS = Table(
    "orders",
    {
        "order_id": Column("order_id", "integer"),
        "product": Column("product", "text", "product"),
    },
    ("order_id",),
)


def test_a_csv_file_without_names_is_told_once_and_none_of_its_row() -> None:
    error = misfits(ORDERS, {"17": "written", CANARY: "written"})
    assert error is not None
    (problem,) = error.problems
    assert "none of its column names" in problem.message
    assert problem.help.endswith("order_id, product")
    assert CANARY not in error.render()


def test_a_file_with_types_has_names_and_is_told_of_each() -> None:
    error = misfits(ORDERS, {"a": "integer"})
    assert error is not None
    assert len(error.problems) == 2


@pytest.mark.parametrize("name", ["Product", " product", "PRODUCT "])
def test_a_name_that_is_nearly_there_is_hinted_at_and_not_told(name: str) -> None:
    error = misfits(ORDERS, {"order_id": "written", name: "written"})
    assert error is not None
    (problem,) = error.problems
    assert problem.label == "it has one that differs in case or spaces"
    other = misfits(ORDERS, {"order_id": "written", "produkt": "written"})
    assert other is not None
    assert other.problems[0].label == ""
    assert misfits(ORDERS, {"order_id": "written", "product": "written"}) is None


# --- places ---------------------------------------------------------------------------


def test_duckdb_reads_no_other_machine_and_says_so() -> None:
    with pytest.raises(InputError, match="not on this machine"):
        DuckdbEngine({"orders": "s3://somewhere/orders.parquet"})


def test_a_path_with_a_tilde_is_not_found_and_told_why() -> None:
    problem = problem_of(Path("~/orders.csv"))
    assert problem.help == "write the path without ~"
