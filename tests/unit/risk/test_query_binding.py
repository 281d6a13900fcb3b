"""What an engine would not understand is said before a row is read, with a code."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from modicum.core.errors import Code, InputError
from modicum.engines.duckdb_engine import DuckdbEngine
from modicum.risk.measurement import rdr, unseen_risk

#: A value that no message may quote.
CANARY = "canary-7"
ROWS = pa.table(
    {
        "user": [1, 2],
        "town": pa.array([CANARY, "b"]).dictionary_encode(),
        "cost": [1.5, 2.5],
        "day": pa.array([0, 1], pa.date32()),
    }
)
INNER = "SELECT COUNT(*) FROM (SELECT {} FROM t) AS s"
MISTAKES = [
    (INNER.format("coast"), Code.UNKNOWN_NAME, ("`coast`", 'mean "cost"')),
    ("SELECT COUNT(*) FROM t AS v WHERE w.cost > 1", Code.UNKNOWN_NAME, ("`w`", "v")),
    (
        "SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM t AS u WHERE coast > 1)",
        Code.UNKNOWN_NAME,
        ("`coast`", 'mean "cost"'),
    ),
    (
        "SELECT COUNT(*) FROM t AS a JOIN t AS b USING (user) WHERE cost > 1",
        Code.UNKNOWN_NAME,
        ("`cost`", "several columns"),
    ),
    ("SELECT COUNT(*) FROM t WHERE costly(cost)", Code.NOT_IN_SUBSET, ("`costly`",)),
    ("SELECT SUM(town) FROM t", Code.DOES_NOT_FIT, ("sum(VARCHAR)",)),
    ("SELECT COUNT(*) FROM t WHERE cost > day", Code.DOES_NOT_FIT, ("DATE", "DOUBLE")),
    ("SELECT user, COUNT(*) FROM t", Code.DOES_NOT_FIT, ("GROUP BY",)),
]


@pytest.mark.parametrize(("sql", "code", "words"), MISTAKES)
def test_mistakes_have_the_codes_that_private_queries_give(
    sql: str, code: Code, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        pytest.fail("a row was read")

    monkeypatch.setattr(DuckdbEngine, "_fetch", failing)
    for analysis in (rdr, unseen_risk):
        with pytest.raises(InputError) as caught:
            analysis(ROWS, sql, unit="user", sensitivity=1, dimensions=1)
        assert caught.value.code is code
        result = caught.value.render()
        for word in words:
            assert word in result
        assert CANARY not in result


def test_values_of_an_enumeration_are_not_told(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(tmp_path / "t.duckdb") as connection:
        connection.execute(f"CREATE TYPE place AS ENUM ('it''s', '{CANARY}, b')")
        connection.execute("CREATE TABLE t (a INTEGER, town place, more place[])")
    for sql in ("SUM(town)", "SUM(more)", "COUNT(a + town)"):
        with pytest.raises(InputError) as caught:
            rdr(tmp_path / "t.duckdb::t", f"SELECT {sql} FROM t")
        assert caught.value.code is Code.DOES_NOT_FIT
        assert CANARY not in caught.value.render()


def test_conditions_of_groups_are_looked_at() -> None:
    count = "SELECT COUNT(*) FROM t"
    with pytest.raises(InputError, match="`coast` of the group") as caught:
        rdr(ROWS, count, groups=["coast > 1", "cost > 1"])
    assert caught.value.code is Code.UNKNOWN_NAME
    assert caught.value.problems[0].label == 'did you mean "cost"?'
    with pytest.raises(InputError) as caught:
        rdr(ROWS, count, groups=["cost > day", "cost > 1"])
    assert caught.value.code is Code.DOES_NOT_FIT


@pytest.mark.parametrize(
    "sql",
    [
        "WITH c AS (SELECT cost AS x FROM t) SELECT COUNT(*) FROM c WHERE c.x > 1",
        "SELECT COUNT(*) FROM (SELECT cost * 2 AS x FROM t) AS s WHERE x > 1",
        "SELECT SUM(\"COST\") FROM T AS v WHERE V.Town = 'b' AND cost > 0",
        "SELECT COUNT(*) FROM t WHERE cost > (SELECT AVG(u.cost) FROM t AS u)",
        "SELECT town, QUANTILE_CONT(cost, 0.9) FROM t GROUP BY ALL",
    ],
)
def test_what_is_understood_is_measured(sql: str) -> None:
    found = rdr(ROWS, sql, unit="user", sensitivity=9, dimensions=1)
    assert found.people == 2


def test_types_that_rows_have_decided_refuse_no_public_choice(tmp_path: Path) -> None:
    place = tmp_path / "t.csv"
    sql = "SELECT COUNT(*) FROM t WHERE town > 3"
    for values in ("4", "x"):
        place.write_text(f"town\n{values}\n")
        assert unseen_risk(place, sql).choose(0.5).epsilon == 1


def test_data_without_a_name_is_told_of_without_one(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(tmp_path / "t.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    pq.write_table(ROWS, tmp_path / "t.parquet")
    (tmp_path / "u.parquet").write_text("no Parquet")
    for name in ("s.parquet", "s.csv", "t.duckdb", "t.duckdb::u", "u.parquet"):
        with pytest.raises(InputError) as caught:
            rdr(tmp_path / name, "SELECT COUNT(*) FROM t")
        assert "``" not in caught.value.render()
