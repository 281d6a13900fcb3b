"""What privacy costs a query: DuckDB and Spark, with bounds and noise, and plain.

Run it with `python bench/query.py`, or with `--quick`. A table of page views is made
once for each size, as Parquet: at most 1.8 GB at a time, in a folder that is removed.
Then each side, in a process of its own, starts its engine, warms up with the query over
a small table, and runs it several times, unless that takes too long; the best counts.
The query counts views by day and page. The private one keeps at most 10 rows of each
user-day and 70 of each user-month, adds noise, and makes intervals; the bounded one
keeps as many and is exact; the plain one is `SELECT … COUNT(*) … GROUP BY` in the same
engine over the same file.

Each engine may use `--memory`; what does not fit is put aside on disk. Peak memory is
that of the process and all that it started, after the warm-up and the runs, as the
system counts it; CPU is what all of these took together in the best run.

`--write-docs` puts the tables into docs/explanation/private-queries.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modicum.engines.protocol import Engine

SEED = 20261121
PAGES = 100
#: The table that engines warm up with has so many rows.
WARM = 10**5
PAGE = Path(__file__).parents[1] / "docs/explanation/private-queries.md"
#: What stands around the tables on the page.
BEGIN = "*Made by `bench/query.py --write-docs`.* <!-- tables -->"
END = "*End of what the program made.* <!-- end of tables -->"
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
    # Numbers from 0 to below 1, with all the digits of a float: there are many users.
    drawn = [f"((hash(i, {SEED + part}) >> 11) / {2**53})" for part in range(3)]
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


def write_files(folder: Path, pages: int = PAGES) -> None:
    """Write the policy, what the table is, and the query."""
    (folder / "policy.yaml").write_text(POLICY)
    values = ", ".join(map(str, range(pages)))
    (folder / "tables.yaml").write_text(TABLES.replace("PAGES", values))
    (folder / "query.yaml").write_text(QUERY)


# --- one side, in a process of its own ------------------------------------------------


def measure(
    folder: Path, rows: int, side: tuple[str, str], given: argparse.Namespace
) -> Any:
    """Return how long one side takes, and what memory it needs."""
    engine, kind = side
    make_run = plain if kind == "plain" else private
    make_run(folder, engine, folder / f"views-{WARM}.parquet", given.memory)(kind)
    run = make_run(folder, engine, folder / f"views-{rows}.parquet", given.memory)
    walls: list[float] = []
    cpus: list[float] = []
    began = time.perf_counter()
    while len(walls) < given.times and (
        not walls or time.perf_counter() - began < given.seconds
    ):
        wall, cpu = time.perf_counter(), cpu_seconds()
        run(kind)
        walls.append(time.perf_counter() - wall)
        cpus.append(cpu_seconds() - cpu)
    return {"wall": min(walls), "cpu": min(cpus), "peak_mb": peak_mb()}


def plain(
    folder: Path, engine: str, path: Path, memory: str
) -> Callable[[str], object]:
    """Return what asks the plain query."""
    if engine == "duckdb":
        import duckdb

        connection = duckdb.connect(config={"memory_limit": f"{memory}B"})
        statement = PLAIN.format(views=f"read_parquet('{path}')")
        return lambda _: connection.execute(statement).fetchall()
    from modicum.engines.spark_session import SparkOptions, running, started

    session = running() or started(SparkOptions(memory=memory), folder)
    session.read.parquet(str(path)).createOrReplaceTempView("views")
    statement = PLAIN.format(views="views")
    return lambda _: session.sql(statement).collect()


def private(
    folder: Path, engine: str, path: Path, memory: str
) -> Callable[[str], object]:
    """Return what asks the query with its bounds, and maybe with noise."""
    from modicum.api.local.queries.execution import noisy_of
    from modicum.engines.factory import SystemSecrets
    from modicum.engines.noise import NoiseSampler
    from modicum.ops.files.queries import load_query
    from modicum.query.results import answers_of

    query = load_query(folder / "query.yaml", folder / "policy.yaml")
    opened = open_engine(folder, engine, path, memory)
    lots, sampler = SystemSecrets(), NoiseSampler()

    def run(kind: str) -> object:
        if kind == "bounded":
            return opened.run(query.compiled.plan, lots.draw())
        noisy = noisy_of(query.compiled, opened, sampler, lots)
        return answers_of(query.compiled, noisy, Fraction(19, 20))

    return run


def open_engine(folder: Path, engine: str, path: Path, memory: str) -> Engine:
    """Return an engine that may use so much memory, over one file."""
    sources = {"views": str(path)}
    if engine == "duckdb":
        from modicum.engines.duckdb_engine import DuckdbEngine, DuckdbOptions

        return DuckdbEngine(sources, DuckdbOptions(f"{memory}B", folder=folder))
    from modicum.engines.spark_engine import SparkEngine, SparkOptions

    return SparkEngine(sources, SparkOptions(memory=memory))


# --- what a side takes ----------------------------------------------------------------


def processes() -> Iterator[Path]:
    """Yield this process and those that it started, as folders of /proc."""
    pids = [os.getpid()]
    while pids:
        folder = Path(f"/proc/{pids.pop()}")
        for task in folder.glob("task/*"):
            with suppress(OSError):  # A thread has ended meanwhile.
                pids += map(int, (task / "children").read_text().split())
        yield folder


def lines_of(file: Path) -> list[str]:
    """Return what the system tells of a process; nothing, if it has ended."""
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


def peak_mb() -> int:
    """Return the peak memory of this process and of those that it started, in MB."""
    found = 0
    for folder in processes():
        for line in lines_of(folder / "status"):
            if line.startswith("VmHWM"):
                found += int(line.split()[1]) // 1024
    return found


def cpu_seconds() -> float:
    """Return the CPU time of this process and of all that it started.

    Those that have ended are in the numbers of those that waited for them.
    """
    ticks = 0
    for folder in processes():
        for line in lines_of(folder / "stat"):
            ticks += sum(map(int, line.rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def measure_elsewhere(
    folder: Path, rows: int, side: tuple[str, str], given: argparse.Namespace
) -> Any:
    """Return what `measure` says in a process of its own; None if that fails."""
    command = [sys.executable, __file__, "--side", *side, "--folder", str(folder)]
    command += ["--rows", str(rows), "--times", str(given.times)]
    command += ["--seconds", str(given.seconds), "--memory", given.memory]
    done = subprocess.run(  # noqa: S603
        command, check=False, capture_output=True, text=True
    )
    if done.returncode:
        sys.stderr.write(done.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


# --- tables ---------------------------------------------------------------------------


def report(folder: Path, rows: int, given: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of a table for one size."""
    path = make(folder, rows)
    yield f"\n**{rows:,} rows** ({path.stat().st_size / 1e6:,.0f} MB of Parquet)\n"
    yield "| engine | query | seconds | over plain | CPU seconds | peak MB |"
    yield "| --- | --- | --: | --: | --: | --: |"
    plains: dict[str, float] = {}
    for engine, kind in SIDES:
        if engine not in given.engines:
            continue
        found = measure_elsewhere(folder, rows, (engine, kind), given)
        if found is None:
            yield f"| {engine} | {kind} | failed | | | |"
            continue
        if kind == "plain":
            plains[engine] = found["wall"]
        ratio = found["wall"] / plains[engine] if engine in plains else float("nan")
        yield (
            f"| {engine} | {kind} | {found['wall']:.3f} | {ratio:.1f} x"
            f" | {found['cpu']:.2f} | {found['peak_mb']:,} |"
        )
    if rows != WARM:
        path.unlink()


def tables(folder: Path, given: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of all tables."""
    import duckdb
    import pyspark

    write_files(folder)
    make(folder, WARM)
    yield (
        f"Python {sys.version.split()[0]}, DuckDB {duckdb.__version__}, Spark"
        f" {pyspark.__version__}, {os.cpu_count()} CPUs, at most {given.memory} of"
        f" memory for an engine, seed {SEED}."
    )
    for rows in given.rows:
        yield from report(folder, rows, given)


def write_docs(text: str) -> None:
    """Put the tables into the page."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    page = f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"
    PAGE.write_text(page, encoding="utf-8")


def parsed() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="100,000 rows, once")
    parser.add_argument(
        "--rows",
        type=lambda text: [int(float(one)) for one in text.split(",")],
        default=[10**6, 10**7, 10**8],
        help="sizes of the table",
    )
    parser.add_argument("--times", type=int, default=3, help="how often each side runs")
    parser.add_argument(
        "--seconds", type=float, default=60, help="no run begins after so long"
    )
    parser.add_argument("--memory", default="8G", help="for an engine, such as 8G")
    parser.add_argument(
        "--engines",
        type=lambda text: text.split(","),
        default=["duckdb", "spark"],
        help="of duckdb,spark",
    )
    parser.add_argument("--folder", type=Path, help="where the table is made")
    parser.add_argument("--write-docs", action="store_true")
    parser.add_argument("--side", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.quick:
        given.rows, given.times = [WARM], 1
    return given


def main() -> None:
    """Print the tables."""
    given = parsed()
    if given.side:
        engine, kind = given.side
        print(json.dumps(measure(given.folder, given.rows[0], (engine, kind), given)))
        return
    lines = []
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=given.folder) as made:
        for line in tables(Path(made), given):
            print(line, flush=True)
            lines.append(line)
    print(f"\nAll of it took {(time.perf_counter() - began) / 60:.0f} minutes.")
    if given.write_docs:
        write_docs("\n".join(lines))


if __name__ == "__main__":
    main()
