"""No row, literal, secret or count is told by an engine, whether it fails or not."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from samples import watched
from samples.spark import spark_or_skip, spark_words

from modicum.core.errors import Code, ModicumError, UnavailableError
from modicum.engines.duckdb_engine import DuckdbEngine
from modicum.engines.spark_engine import SparkEngine
from modicum.engines.sql_engine import SqlEngine
from modicum.query.statistics import Secrets

Opened = Callable[[dict[str, object]], SqlEngine]
SECRETS = Secrets("ab" * 32, "cd" * 32)


@pytest.fixture(params=["duckdb", "spark"])
def opened(request: pytest.FixtureRequest) -> Opened:
    if request.param == "duckdb":
        return DuckdbEngine
    options = spark_or_skip()
    return lambda sources: SparkEngine(sources, options)


def no_canary(*texts: str) -> None:
    for word in watched.secret_words():
        for text in texts:
            assert word not in text


@pytest.mark.spec("QRY-14")
def test_nothing_is_told_of_a_query_that_runs(
    opened: Opened, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    before = len(spark_words())
    with opened({"views": watched.rows()}) as engine:
        found = engine.run(watched.plan(), SECRETS)
    assert found == {
        "n": {(watched.ROW,): watched.NUMBER},
        "sum": {(watched.ROW,): 7 * watched.NUMBER},
    }
    no_canary(caplog.text, *capfd.readouterr(), spark_words()[before:])


@pytest.mark.spec("QRY-14")
@pytest.mark.parametrize("broken", ["line", "file", "gone"])
def test_nothing_is_told_of_a_query_that_fails(
    opened: Opened,
    broken: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    before = len(spark_words())
    path = tmp_path / ("views.csv" if broken == "line" else "views.parquet")
    if broken == "line":
        line = f"1,u,2026-11-02,{watched.ROW},7"
        path.write_text(f"view,user,day,page,amount\n{line}\n{line},{watched.ROW}\n")
    else:
        pq.write_table(watched.rows(), path)
    with opened({"views": str(path)}) as engine:
        engine.check(watched.plan())
        if broken == "gone":
            path.unlink()
        elif broken == "file":
            found = bytearray(path.read_bytes())
            found[4 : len(found) // 2] = watched.ROW.encode() * 2000
            path.write_bytes(bytes(found))
        with pytest.raises(UnavailableError) as caught:
            engine.run(watched.plan(), SECRETS)
    error = caught.value
    assert error.code == Code.ENGINE_FAILED
    assert error.__context__ is None
    assert error.__cause__ is None
    text = "".join(traceback.format_exception(error))
    no_canary(error.render(), repr(error), text, caplog.text)
    no_canary(*capfd.readouterr(), spark_words()[before:])


def test_secrets_are_not_printed() -> None:
    no_canary(repr(SECRETS))


def test_mistakes_in_the_data_name_columns_only(opened: Opened) -> None:
    rows = watched.rows().drop_columns(["user"])
    rows = rows.set_column(1, "day", rows["page"].dictionary_encode())
    with opened({"views": rows}) as engine, pytest.raises(ModicumError) as caught:
        engine.check(watched.plan())
    assert [one.code for one in caught.value.problems] == [
        Code.DATA_NOT_AS_DECLARED,
        Code.DATA_NOT_AS_DECLARED,
    ]
    assert "has no column `user`" in caught.value.render()
    assert "`day` of `views` is declared `date`" in caught.value.render()
    no_canary(caught.value.render())
