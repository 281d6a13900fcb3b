"""What privacy costs a query: DuckDB and Spark, with bounds and noise, and plain.

Run it with `python bench/query.py`, or with `--quick`. A table of page views is made
once for each size, as Parquet. Then each side, in a process of its own, starts its
engine, answers one query once to warm up, and again so many times; the best counts. The
query counts views by day and page. The private one keeps at most 10 rows of each
user-day and 70 of each user-month, adds noise, and makes intervals; the plain one is
`SELECT … COUNT(*) … GROUP BY` in the same engine over the same file.

Peak memory is that of the process and all that it started, after the warm-up and the
runs, as the system counts it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

SEED = 20261121
PAGES = 100
SIDES = (
    ("duckdb", "plain"),
    ("duckdb", "bounded"),
    ("duckdb", "private"),
    ("spark", "plain"),
    ("spark", "bounded"),
    ("spark", "private"),
)
PLAIN = (
    "SELECT DATE_TRUNC('day', event_time) AS day, page, COUNT(*) AS views"
    " FROM {views} GROUP BY 1, 2"
)
POLICY = """
modicum: policy/v1
name: bench
dp: {filter: zcdp-v1}
units:
  user-month: {id: user_id, time: {column: event_time, period: month}}
  user-day: {id: user_id, time: {column: event_time, period: day}, within: user-month}
schema: {categories: {}, attributes: {page: [low, {}]}}
policies: [{name: all, when: "true", unit: user-month, budget: {rho: 1000}}]
"""
TABLES = """
modicum: tables/v1
tables:
  views:
    row_id: view_id
    columns:
      view_id: {type: integer}
      user_id: {type: integer}
      event_time: {type: timestamp}
      page: {type: integer, values: [PAGES]}
"""
QUERY = """
release: bench
periods: 2026-10
query:
  tables: tables.yaml
  sql: >-
    SELECT DATE_TRUNC('day', event_time) AS day, page, COUNT(*) AS views
    FROM views GROUP BY day, page
  bounds: {user-day: 10, user-month: 70}
  noise: gaussian
  loss: {user-day: {rho: 0.03}}
"""


# --- the table ------------------------------------------------------------------------


def make(folder: Path, rows: int) -> Path:
    """Write a table of page views; few people see many pages, as it is in life."""
    import duckdb

    path = folder / f"views-{rows}.parquet"
    users = max(10, rows // 20)
    drawn = [f"(hash(i, {SEED + part}) % 1000003) / 1000003" for part in range(3)]
    statement = f"""
        COPY (
          SELECT i AS view_id,
            CAST(floor({users} * pow({drawn[0]}, 2)) AS BIGINT) AS user_id,
            TIMESTAMP '2026-10-01'
              + to_seconds(CAST(floor(2678400 * {drawn[1]}) AS BIGINT)) AS event_time,
            CAST(floor({PAGES} * pow({drawn[2]}, 3)) AS BIGINT) AS page
          FROM range({rows}) AS made(i)
        ) TO '{path}' (FORMAT parquet)
    """  # noqa: S608 - nothing in it is anybody's
    with duckdb.connect() as connection:
        connection.execute(statement)
    return path


def write_files(folder: Path) -> None:
    """Write the policy, what the table is, and the query."""
    (folder / "policy.yaml").write_text(POLICY)
    pages = ", ".join(map(str, range(PAGES)))
    (folder / "tables.yaml").write_text(TABLES.replace("PAGES", pages))
    (folder / "query.yaml").write_text(QUERY)


# --- one side, in a process of its own ------------------------------------------------


def measure(folder: Path, rows: int, engine: str, kind: str, times: int) -> Any:
    """Return how long one side takes, and what memory it needs."""
    path = folder / f"views-{rows}.parquet"
    run = (
        plain(engine, path) if kind == "plain" else private(folder, engine, path, kind)
    )
    run()
    walls, cpus = [], []
    for _ in range(times):
        wall, cpu = time.perf_counter(), os.times()
        run()
        now = os.times()
        walls.append(time.perf_counter() - wall)
        cpus.append(now.user + now.system - cpu.user - cpu.system)
    return {"wall": min(walls), "cpu": min(cpus), "peak_mb": peak_mb()}


def plain(engine: str, path: Path) -> Callable[[], object]:
    """Return what asks the plain query."""
    if engine == "duckdb":
        import duckdb

        connection = duckdb.connect()
        statement = PLAIN.format(views=f"read_parquet('{path}')")
        return lambda: connection.execute(statement).fetchall()
    from modicum.shell.engines.spark_session import SparkOptions, started

    session = started(SparkOptions(), path.parent)
    session.read.parquet(str(path)).createOrReplaceTempView("views")
    statement = PLAIN.format(views="views")
    return lambda: session.sql(statement).collect()


def private(folder: Path, engine: str, path: Path, kind: str) -> Callable[[], object]:
    """Return what asks the query with its bounds, and maybe with noise."""
    from modicum.query.answers import answers_of
    from modicum.shell.engines.noise import OpenDpSampler
    from modicum.shell.engines.opening import SystemLots, open_engine
    from modicum.shell.query_files import load_query
    from modicum.workspace.querying.running import noisy_of

    query = load_query(folder / "query.yaml", folder / "policy.yaml")
    opened = open_engine(engine, {"views": str(path)})
    lots, sampler = SystemLots(), OpenDpSampler()
    if kind == "bounded":
        return lambda: opened.run(query.lowered.plan, lots.draw())
    return lambda: answers_of(
        query.lowered,
        noisy_of(query.lowered, opened, sampler, lots),
        Fraction(19, 20),
    )


def peak_mb() -> int:
    """Return the peak memory of this process and of those that it started, in MB."""
    pids, found = [os.getpid()], 0
    while pids:
        pid = pids.pop()
        try:
            status = Path(f"/proc/{pid}/status").read_text()
            tasks = Path(f"/proc/{pid}/task").iterdir()
            for task in tasks:
                pids += map(int, (task / "children").read_text().split())
        except OSError:
            continue  # It has ended.
        peak = next(
            (line for line in status.splitlines() if line.startswith("VmHWM")), ""
        )
        found += int(peak.split()[1]) // 1024 if peak else 0
    return found


def measure_elsewhere(
    folder: Path, rows: int, side: tuple[str, str], times: int
) -> Any:
    """Return what `measure` says in a process of its own."""
    command = [sys.executable, __file__, "--side", *side, "--folder", str(folder)]
    command += ["--rows", str(rows), "--times", str(times)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return json.loads(done.stdout.splitlines()[-1])


# --- tables ---------------------------------------------------------------------------


def report(folder: Path, rows: int, times: int) -> None:
    """Print a table for one size."""
    began = time.perf_counter()
    size = make(folder, rows).stat().st_size / 1e6
    lasted = time.perf_counter() - began
    print(f"\n## {rows:,} rows ({size:,.0f} MB of Parquet, made in {lasted:.0f} s)\n")
    print("| engine | query | seconds | beside plain | peak MB |")
    print("| --- | --- | --: | --: | --: |", flush=True)
    plains: dict[str, float] = {}
    for engine, kind in SIDES:
        found = measure_elsewhere(folder, rows, (engine, kind), times)
        plains.setdefault(engine, found["wall"])
        ratio = found["wall"] / plains[engine]
        print(
            f"| {engine} | {kind} | {found['wall']:.3f} | {ratio:.1f} x"
            f" | {found['peak_mb']:,} |",
            flush=True,
        )
    (folder / f"views-{rows}.parquet").unlink()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="100,000 rows, once")
    parser.add_argument(
        "--rows",
        type=lambda text: [int(float(one)) for one in text.split(",")],
        default=[10**6, 10**7, 10**8],
        help="sizes of the table",
    )
    parser.add_argument("--times", type=int, default=3, help="how often each side runs")
    parser.add_argument("--folder", type=Path, help="where the table is made")
    parser.add_argument("--side", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        engine, kind = given.side
        found = measure(given.folder, given.rows[0], engine, kind, given.times)
        print(json.dumps(found))
        return
    rows, times = ([10**5], 1) if given.quick else (given.rows, given.times)
    with tempfile.TemporaryDirectory(dir=given.folder) as made:
        folder = Path(made)
        write_files(folder)
        print(f"Python {sys.version.split()[0]}, {os.cpu_count()} CPUs, seed {SEED}")
        for number in rows:
            report(folder, number, times)


if __name__ == "__main__":
    main()
