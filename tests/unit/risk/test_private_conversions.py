"""What a private choice must not leave to the engine, or read uncharged."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from modicum.core.errors import InputError
from modicum.risk.measurement import rdr, unseen_risk
from modicum.risk.question import read_question

#: Values of which a row of the named one ends, or could end, the query.
COLUMNS = {
    "who": pa.array(["a", "b"]),
    "s": pa.array(["1", "abc"]),
    "x": pa.array([3, -(2**31)], pa.int32()),
    "big": pa.array([3, 2**62], pa.int64()),
    "cost": pa.array([1.0, 2.0]),
    "flag": pa.array([True, False]),
    "day": pa.array([0, 1], pa.date32()),
}
NAMES = {"t": (*COLUMNS, "p", "hiv")}


class _NoNoise:
    def laplace(self, scale: Fraction) -> int:
        return 0


def _choose(query: str, made: Any = unseen_risk) -> Any:
    found = made(pa.table(COLUMNS), query, unit="who", rows_max=1)
    return found.choose(
        "0.8",
        choice="private-selection",
        allowance=5,
        eps_select=1,
        draws=_NoNoise(),
    )


@pytest.mark.spec("RSK-7")
@pytest.mark.parametrize(
    "condition",
    [
        *("s = 3", "s IN (1, 2)", "s", "NOT s", "NULLIF(s, 1) IS NULL", "s = x"),
        *("x = 'abc'", "x IN (1, 'a')", "flag = s", "s IS TRUE", "day = 'soon'"),
        *("s IS NOT DISTINCT FROM x", "CASE s WHEN 1 THEN flag END"),
    ],
)
def test_no_private_choice_where_a_row_may_not_convert(condition: str) -> None:
    with pytest.raises(InputError, match="could make the query fail"):
        _choose(f"SELECT COUNT(*) FROM t WHERE {condition}")


@pytest.mark.spec("RSK-7")
def test_no_private_choice_where_a_sign_may_not_turn() -> None:
    assert not read_question("SELECT COUNT(-x) FROM t", NAMES).own_rows_only
    assert read_question("SELECT COUNT(*) FROM t WHERE x > -3", NAMES).own_rows_only


@pytest.mark.parametrize(
    "condition",
    [
        *("s = '3'", "x = 3", "x > -3.5", "big = x", "cost = x", "flag", "NOT flag"),
        *(
            "s IN ('1', '2')",
            "day >= '2020-01-01'",
            "x BETWEEN 1 AND 2.5",
            "flag = TRUE",
        ),
        *("TRY_CAST(s AS INTEGER) = 3", "s LIKE 'a%' AND x <> 1", "s IS NULL"),
        "COALESCE(cost, 1) > CASE WHEN flag THEN x ELSE 2 END",
    ],
)
def test_a_private_choice_where_every_row_converts(condition: str) -> None:
    choice = _choose(f"SELECT COUNT(*) FROM t WHERE {condition}")
    assert choice.charge is not None
    assert _choose(f"SELECT COUNT(*) FROM t WHERE {condition}", rdr).charge is not None


@pytest.mark.spec("RSK-19")
@pytest.mark.parametrize(
    ("query", "read"),
    [
        ("SELECT COUNT(*) AS f FROM t WHERE p.f > 1", {"p"}),
        ("SELECT COUNT(*) FROM t WHERE p.hiv > 1", {"p"}),
        ("SELECT COUNT(*) FROM t AS y WHERE y.p.hiv > 1", {"p"}),
        ("SELECT COUNT(*) AS t FROM t WHERE t IS NOT NULL", set(NAMES["t"])),
    ],
)
def test_fields_and_whole_rows_are_read(query: str, read: set[str]) -> None:
    assert read <= set(read_question(query, NAMES).reads)


@pytest.mark.spec("RSK-19")
def test_no_more_is_read_than_is_named() -> None:
    query = "SELECT y.s, COUNT(*) AS n FROM t AS y WHERE y.x > 1 GROUP BY y.s"
    assert read_question(query, NAMES).reads == ("s", "x")


@pytest.mark.spec("RSK-15")
def test_bounds_hold_where_a_large_number_is_asked_again() -> None:
    rows = pa.table({"who": [1, 2], "big": [2**60, 1], "cost": [1000.0, 5.0]})
    query = "SELECT MAX(big), SUM(cost) FILTER (WHERE big > 1) FROM t"
    found = rdr(
        rows, query, unit="who", bounds={"cost": (0, 10)}, sensitivity=1, epsilons=[1]
    )
    assert sorted(found.influence.moves) == [10.0, float(2**60 - 1)]


@pytest.mark.spec("RSK-14")
def test_a_sample_is_refused() -> None:
    with pytest.raises(InputError, match="a different answer each time"):
        read_question("SELECT COUNT(*) FROM t USING SAMPLE 10%", NAMES)
