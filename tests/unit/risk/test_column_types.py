"""What the types of columns rule out: ids of several types, answers in times."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from modicum.core.errors import Code, InputError
from modicum.risk.measurement import choose_publicly, rdr

JOINED = "SELECT COUNT(*) FROM t JOIN p USING (user)"
ON = "SELECT COUNT(*) FROM t JOIN p ON t.user = p.user"
AGAIN = "SELECT COUNT(*) / 2 FROM t JOIN p USING (user)"


def tables(left: pa.Array, right: pa.Array) -> dict[str, object]:
    return {"t": pa.table({"user": left}), "p": pa.table({"User": right})}


@pytest.mark.spec("RSK-13")
@pytest.mark.parametrize("sql", [JOINED, ON, AGAIN])
@pytest.mark.parametrize(
    ("right", "called"),
    [
        (pa.array([1, 2]), "BIGINT"),
        (pa.array([1.0, 2.0]), "DOUBLE"),
        (pa.array([True, False]), "BOOLEAN"),
        (pa.array([date(2020, 1, 1)] * 2), "DATE"),
    ],
)
def test_ids_of_different_types_are_refused(
    right: pa.Array, called: str, sql: str
) -> None:
    # '01' and '1' are two persons of `t`, and both are the person 1 of `p`.
    given = tables(pa.array(["01", "1"]), right)
    more: dict[str, Any] = {"unit": "user", "sensitivity": 1, "dimensions": 1}
    for ask in (
        lambda: rdr(given, sql, **more),
        lambda: choose_publicly(given, sql, 0.5, **more),
    ):
        with pytest.raises(InputError) as caught:
            ask()
        (problem,) = caught.value.problems
        assert problem.code is Code.DOES_NOT_FIT
        assert problem.notes == ("`t.user` is VARCHAR", f"`p.User` is {called}")
        assert problem.help


def test_a_large_whole_number_is_no_float() -> None:
    given = tables(pa.array([2**53, 2**53 + 1]), pa.array([2.0**53]))
    with pytest.raises(InputError, match="different types"):
        rdr(given, JOINED, unit="user", rows_max=1)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.array([1, 2], pa.int32()), pa.array([1, 2], pa.int64())),
        (pa.array([1, 2], pa.uint8()), pa.array([1, 2], pa.int8())),
        (pa.array(["1", "2"]), pa.array(["1", "2"], pa.large_string())),
        (pa.array(["1", "2"]), pa.array(["1", "2"]).dictionary_encode()),
        (pa.array([1.0, 2.0]), pa.array([1.0, 2.0])),
        (pa.array([1, 2], pa.uint64()), pa.array([1, 2], pa.uint64())),
    ],
)
def test_ids_that_compare_exactly_are_joined(left: pa.Array, right: pa.Array) -> None:
    risk = rdr(tables(left, right), JOINED, unit="user", rows_max=1)
    assert risk.people == 2
    assert risk.indicator.distances.greatest == 1


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.float32(), pa.float64()),
        (pa.decimal128(22, 2), pa.decimal128(22, 3)),
        (pa.uint64(), pa.duration("us")),
    ],
)
def test_types_that_are_of_one_kind_only_are_different(
    left: pa.DataType, right: pa.DataType
) -> None:
    ids = [pa.array([1, 2]).cast(kind) for kind in (left, right)]
    with pytest.raises(InputError, match="different types"):
        rdr(tables(*ids), JOINED, unit="user", rows_max=1)


def test_ids_of_tables_that_are_not_asked_may_be_of_any_type() -> None:
    given = tables(pa.array(["01", "1"]), pa.array([1, 2]))
    assert rdr(given, "SELECT COUNT(*) FROM t", unit="user", rows_max=1).people == 2


def test_what_a_csv_file_seems_to_hold_is_compared_too(tmp_path: Path) -> None:
    pa.csv.write_csv(pa.table({"user": [1, 2]}), tmp_path / "p.csv")
    given = {"t": pa.table({"user": ["01", "1"]}), "p": tmp_path / "p.csv"}
    with pytest.raises(InputError, match="different types"):
        rdr(given, JOINED, unit="user", rows_max=1)


TIMES = pa.table(
    {
        "day": [date(2020, 1, n) for n in (1, 2, 3)],
        "at": [datetime(2020, 1, n) for n in (1, 2, 3)],  # noqa: DTZ001
        "zoned": [datetime(2020, 1, n, tzinfo=UTC) for n in (1, 2, 3)],
        "clock": [time(n) for n in (1, 2, 3)],
        "lasted": [timedelta(n) for n in (1, 2, 3)],
    }
)


@pytest.mark.parametrize("column", TIMES.column_names)
@pytest.mark.parametrize("aggregate", ["MIN", "MAX", "MEDIAN"])
@pytest.mark.parametrize("form", ["{}", "COALESCE({}, {})"])
def test_times_are_no_answers(column: str, aggregate: str, form: str) -> None:
    sql = f"SELECT {form.format(*[f'{aggregate}({column})'] * 2)} AS told FROM t"
    with pytest.raises(InputError) as caught:
        rdr(TIMES, sql, sensitivity=1)
    (problem,) = caught.value.problems
    assert problem.code is Code.DOES_NOT_FIT
    assert "date or time" in problem.message
    assert "EXTRACT" in problem.help


def test_times_are_refused_before_a_private_choice_reads() -> None:
    with pytest.raises(InputError, match="date or time"):
        choose_publicly(TIMES, "SELECT SUM(lasted) FROM t", 0.5, sensitivity=1)


@pytest.mark.parametrize("part", ["epoch", "year", "day"])
def test_the_remedy_for_times_works(part: str) -> None:
    sql = f"SELECT MAX(EXTRACT({part} FROM day)) FROM t"
    moved = rdr(TIMES, sql, sensitivity=1).indicator.distances.greatest
    assert moved == {"epoch": 86400, "year": 0, "day": 1}[part]


@pytest.mark.parametrize("sql", ["COUNT(day)", "COUNT(DISTINCT day)"])
def test_times_can_be_counted(sql: str) -> None:
    assert rdr(TIMES, f"SELECT {sql} FROM t").indicator.distances.least == 1
