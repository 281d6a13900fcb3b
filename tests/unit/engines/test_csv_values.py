"""Values as they are written in CSV files, which have no types; on both engines."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import duckdb
import pytest
from samples.spark import spark_or_skip

from modicum.query.sql.columns import as_declared
from modicum.query.tables import Column, ColumnType, Table

Read = Callable[[ColumnType, list[str]], list[Any]]

#: What a text is read as, by declared type; None for what is not written as it says.
VALUES: dict[ColumnType, dict[str, object]] = {
    "timestamp": {
        "2026-11-01T06:39:00Z": datetime.fromisoformat("2026-11-01T06:39:00"),
        "2026-11-02T06:39": datetime.fromisoformat("2026-11-02T06:39:00"),
        "2026-11-03 23:59:59.999999Z": datetime.fromisoformat(
            "2026-11-03T23:59:59.999999"
        ),
        "2026-11-04 00:00Z": datetime.fromisoformat("2026-11-04T00:00:00"),
        "2026-11-05T00:00:00.5": datetime.fromisoformat("2026-11-05T00:00:00.500000"),
        "2026-11-06T24:00": None,
        "2026-11-31T00:00Z": None,
        "2026-02-29T00:00": None,
        "2026-11-07T01:02:03+02:00": None,
        "2026-11-08": None,
        "30.11.2026": None,
        "2026-11-09T00:00ZZ": None,
        "2026-11-10T00:00 ": None,
        "Z": None,
    },
    "date": {
        "2026-11-30": date(2026, 11, 30),
        "2024-02-29": date(2024, 2, 29),
        "2026-02-29": None,
        "2026-11-30T00:00": None,
        "11/30/2026": None,
        " 2026-11-30": None,
    },
    "integer": {
        "-12": -12,
        "+5": 5,
        "007": 7,
        "9223372036854775807": 2**63 - 1,
        "9223372036854775808": None,
        "12.0": None,
        "1e3": None,
        "0x10": None,
        "1_000": None,
        "": None,
    },
    "number": {
        "12": 12.0,
        "-0.5": -0.5,
        "1e3": 1000.0,
        "1E-3": 0.001,
        "0.1": 0.1,
        "nan": None,
        "inf": None,
        "1,5": None,
        ".5": None,
    },
    "boolean": {"true": True, "False": False, "TRUE": True, "1": None, "yes": None},
    "text": {"as it stands ": "as it stands ", "Ä": "Ä"},
}


def _in_duckdb(declared: ColumnType, written: list[str]) -> list[Any]:
    with duckdb.connect() as connection:
        connection.execute('CREATE TABLE rows (n INTEGER, "it" VARCHAR)')
        connection.executemany("INSERT INTO rows VALUES (?, ?)", _numbered(written))
        read = _read(declared).sql(dialect="duckdb")
        return [row[0] for row in connection.execute(read).fetchall()]


def _in_spark(declared: ColumnType, written: list[str]) -> list[Any]:
    session = spark_or_skip().session
    assert session is not None
    frame = session.createDataFrame(_numbered(written), "n INT, it STRING")
    frame.coalesce(1).createOrReplaceTempView("rows")
    return [row[0] for row in session.sql(_read(declared).sql("spark")).collect()]


def _numbered(written: list[str]) -> list[tuple[int, str]]:
    return list(enumerate(written))


def _read(declared: ColumnType) -> Any:
    table = Table("rows", {"it": Column("it", declared)}, ("it",))
    return as_declared(table, ["it"], {"it": "written"}, "rows")


@pytest.mark.parametrize("read", [_in_duckdb, _in_spark])
@pytest.mark.parametrize("declared", list(VALUES))
def test_a_value_is_what_is_written_or_nothing(
    declared: ColumnType, read: Read
) -> None:
    values = VALUES[declared]
    found = read(declared, list(values))
    assert dict(zip(values, found, strict=True)) == values
