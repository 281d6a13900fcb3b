"""Engines answer what a row-by-row computation does: identical whole numbers.

The tables hold what is easily read in two ways: floats between steps, NaN, infinities,
zeros with a sign, texts with quotes and backslashes, the turns of weeks and years,
ties, duplicates, NULLs in every column, and no rows at all.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from budget import examples, seed
from samples.exact_oracle import exact_answers
from samples.exact_plans import Case, case_of
from samples.spark import COMPILED, spark_or_skip

from modicum.engines import duckdb_engine
from modicum.engines.duckdb_engine import DuckdbEngine, DuckdbOptions
from modicum.engines.spark_engine import SparkEngine
from modicum.query.statistics import Secrets

ONE_THREAD = DuckdbOptions(threads=1)


def first_seed() -> int:
    """Return where seeds begin: elsewhere in every soak."""
    return int(seed()) * 100_000


def wanted(case: Case) -> dict[str, dict[tuple[object, ...], int]]:
    return exact_answers(case.plan, case.data, case.order_key, case.sample_seed)


def secrets(case: Case) -> Secrets:
    return Secrets(case.order_key, case.sample_seed)


@pytest.mark.spec("QRY-13")
def test_duckdb_over_parquet_agrees(tmp_path: Path) -> None:
    result = Counter[str]()
    for number in range(examples(50)):
        case = case_of(first_seed() + number)
        want = wanted(case)
        with DuckdbEngine(case.parquet(tmp_path), ONE_THREAD) as engine:
            assert engine.run(case.plan, secrets(case)) == want, case.seed
        result["some"] += any(want.values())
        result["capped"] += bool(case.plan.caps) and any(want.values())
        result["joined"] += len(case.plan.query.tables) > 1 and any(want.values())
    assert min(result["some"], result["capped"]) > examples(50) // 4, result
    assert result["joined"] > 0


@pytest.mark.parametrize("form", ["csv", "arrow"])
def test_duckdb_over_other_sources_agrees(form: str, tmp_path: Path) -> None:
    for number in range(examples(15)):
        case = case_of(first_seed() + 50_000 + number, written=form == "csv")
        sources = case.csv(tmp_path) if form == "csv" else case.in_memory()
        with DuckdbEngine(sources, ONE_THREAD) as engine:
            assert engine.run(case.plan, secrets(case)) == wanted(case), case.seed


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_duckdb_agrees_about_tables_that_are_not_held(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large tables are read again, and crowded rows in parts."""
    monkeypatch.setattr(duckdb_engine, "_PART_BYTES", 200)
    capped = 0
    for number in range(examples(25)):
        # There are too many rows, or too many bytes.
        monkeypatch.setattr(duckdb_engine, "_HELD", -1 if number % 3 else 1000)
        monkeypatch.setattr(duckdb_engine, "_HELD_BYTES", 300 if number % 2 else 9999)
        case = case_of(first_seed() + 25_000 + number)
        sources = case.in_memory() if form == "arrow" else case.parquet(tmp_path)
        options = DuckdbOptions(threads=1 + number % 2)
        with DuckdbEngine(sources, options) as engine:
            assert engine.run(case.plan, secrets(case)) == wanted(case), case.seed
        capped += bool(case.plan.caps) and any(wanted(case).values())
    assert capped > 0


@pytest.mark.spec("QRY-13")
def test_spark_in_memory_agrees() -> None:
    options = spark_or_skip()
    for number in range(examples(50, plain=15)):
        case = case_of(first_seed() + number)
        with SparkEngine(case.in_memory(), options) as engine:
            assert engine.run(case.plan, secrets(case)) == wanted(case), case.seed


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_spark_over_files_agrees(form: str, tmp_path: Path) -> None:
    options = spark_or_skip(COMPILED)
    for number in range(examples(4)):
        case = case_of(first_seed() + 50_000 + number, written=form == "csv")
        sources = case.csv(tmp_path) if form == "csv" else case.parquet(tmp_path)
        with SparkEngine(sources, options) as engine:
            ansi = "true" if number % 3 else "false"
            engine._session.conf.set("spark.sql.ansi.enabled", ansi)
            assert engine.run(case.plan, secrets(case)) == wanted(case), case.seed
