"""Sides of `bench/risk.py` over large tables: influence, and the plain query."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np
from numpy.typing import NDArray

from modicum.risk.measurement.influence import measure
from modicum.risk.question import read_question

if TYPE_CHECKING:
    from modicum.engines.sql_engine import SqlEngine

SEED = 20_261_122
TABLE = "visits"
#: A person has so many rows on average.
ROWS_EACH = 20
QUERIES = {
    "COUNT": "SELECT COUNT(*) FROM visits WHERE page < 3",
    "SUM": "SELECT SUM(amount) FROM visits WHERE page < 3",
    "AVG": "SELECT AVG(amount) FROM visits WHERE page < 3",
    "GROUP BY": "SELECT page, COUNT(*) FROM visits GROUP BY page",
}
#: Whose rows are left out: one at a time, or all of a person.
UNITS = {"rows": None, "persons": "user_id"}


def make(folder: Path, rows: int) -> Path:
    """Write a table of visits; few people make many, as it is in life."""
    path = folder / f"visits-{rows}.parquet"
    users = max(10, rows // ROWS_EACH)
    drawn = [f"((hash(i, {SEED + part}) >> 11) / {2**53})" for part in range(3)]
    statement = f"""
        COPY (
          SELECT CAST(floor({users} * pow({drawn[0]}, 2)) AS BIGINT) AS user_id,
            CAST(floor(1000 * pow({drawn[1]}, 3)) AS BIGINT) AS amount,
            CAST(floor(100 * pow({drawn[2]}, 3)) AS BIGINT) AS page
          FROM range({rows}) AS made(i)
        ) TO '{path}' (FORMAT parquet)
    """  # noqa: S608 - nothing in it is anybody's
    with duckdb.connect() as connection:
        connection.execute(statement)
    return path


def open_engine(path: Path, engine: str, memory: str) -> SqlEngine:
    """Return an engine that may use so much memory, over one file."""
    sources = {TABLE: str(path)}
    if engine == "duckdb":
        from modicum.engines.duckdb_engine import DuckdbEngine, DuckdbOptions

        return DuckdbEngine(sources, DuckdbOptions(f"{memory}B", folder=path.parent))
    from modicum.engines.spark_engine import SparkEngine, SparkOptions

    return SparkEngine(sources, SparkOptions(memory=memory))


def side(
    path: Path, engine: str, query: str, unit: str, memory: str
) -> Callable[[], NDArray[np.float64]]:
    """Return what measures one query; `plain` as the unit is the query itself."""
    opened = open_engine(path, engine, memory)
    sql = QUERIES[query]

    def plain() -> NDArray[np.float64]:
        relation = opened.relations()[TABLE]
        found = opened.fetch(sql.replace(f"FROM {TABLE}", f"FROM {relation}"))
        return np.array(found.column(found.num_columns - 1).to_pylist(), dtype=float)

    def influence() -> NDArray[np.float64]:
        question = read_question(sql, opened.columns(), UNITS[unit])
        profile = measure(opened, question).profile("l2")
        return np.stack([profile.values, profile.people.astype(np.float64)])

    return plain if unit == "plain" else influence
