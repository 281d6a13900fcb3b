"""What privacy costs a query: DuckDB and Spark with bounds and noise, and plain.

Run it with `python bench/query.py`, or with `--quick`. Two tables of page views are
made for each size, as Parquet, in a folder that is removed. Users, times and pages are
drawn independently. In the *even* table a user has 20 rows on average, and hardly
anybody more than the caps keep; in the *crowded* one 400, and most have more.

The query counts views by day and page of a month. The plain one is `SELECT … COUNT(*)
… GROUP BY` in the same engine over the same file; the bounded one keeps at most 10 rows
of each user-day and 70 of each user-month, and is exact; the private one also adds
noise and makes intervals. Each has a process of its own, which starts its engine and
warms up with a small table; then all sides of an engine take turns, and the best of
each counts. OpenDP's Polars and Tumult Analytics do the same with a single cap, 70 rows
of each user, in environments of their own (`make environments`), beside the plain query
in Polars and in their Spark.

Each engine may use `--memory`. Peak memory is that of the process and all that it
started, after the warm-up and the runs, as the system counts it; CPU is what all of
these took together in the best run.

OpenDP and Tumult take no part above 10 million rows, where a run takes minutes, nor
with other `--pages`.

`--write-docs` puts the tables into docs/explanation/private-queries.md; those of other
sizes stay there.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sized
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modicum.engines.protocol import Engine

SEED = 20261130
INF = float("inf")
PAGES = 100
#: The table that engines warm up with has so many rows.
WARM = 10**5
ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/explanation/private-queries.md"
#: What stands around the tables on the page.
BEGIN = "*Made by `bench/query.py --write-docs`.* <!-- tables -->"
END = "*End of what the program made.* <!-- end of tables -->"
KINDS = ("plain", "bounded", "private")
#: Rows of a user, on average.
SHAPES = {"even": 20, "crowded": 400}
#: Other libraries take no part with more rows.
OTHERS_MAX = 10**7
#: Other libraries, by the Python that has them.
OTHERS = {
    "opendp": ROOT / "build/engines/polars/bin/python",
    "tumult": ROOT / "build/engines/tumult/bin/python",
}
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


def make(folder: Path, rows: int, shape: str, pages: int = PAGES) -> Path:
    """Write a table of page views; few pages are seen often."""
    import duckdb

    path = folder / f"{shape}-{rows}.parquet"
    users = max(10, rows // SHAPES[shape])
    # Numbers from 0 to below 1. The hash of one integer is as good as random; a hash of
    # several is made of their hashes, and those of the same row would be related.
    drawn = [f"((hash(4 * i + {part}) >> 11) / {2**53})" for part in range(3)]
    statement = f"""
        COPY (
          SELECT i AS view_id,
            CAST(floor({users} * {drawn[0]}) AS BIGINT) AS user_id,
            TIMESTAMP '2026-10-01'
              + to_seconds(CAST(floor(2678400 * {drawn[1]}) AS BIGINT)) AS event_time,
            CAST(floor({pages} * pow({drawn[2]}, 3)) AS BIGINT) AS page
          FROM range({SEED * 1000}, {SEED * 1000 + rows}) AS made(i)
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


def serve(folder: Path, engine: str, kind: str, memory: str) -> None:
    """Run the query over each file that a line names; print what it took as JSON."""
    open_side = plain if kind == "plain" else private
    runs: dict[str, Callable[[str], Sized]] = {}
    for line in sys.stdin:
        path = line.strip()
        if path not in runs:
            runs[path] = open_side(folder, engine, Path(path), memory)
        run = runs[path]
        wall, cpu = time.perf_counter(), cpu_seconds()
        groups = len(run(kind))
        wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
        found = {"wall": wall, "cpu": cpu, "peak_mb": peak_mb(), "groups": groups}
        print(json.dumps(found), flush=True)


def plain(folder: Path, engine: str, path: Path, memory: str) -> Callable[[str], Sized]:
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
) -> Callable[[str], Sized]:
    """Return what asks the query with its bounds, and maybe with noise."""
    from modicum.api.local.queries.execution import noisy_of
    from modicum.engines.factory import SystemSecrets
    from modicum.engines.noise import NoiseSampler
    from modicum.ops.files.queries import load_query
    from modicum.query.results import answers_of

    query = load_query(folder / "query.yaml", folder / "policy.yaml")
    opened = open_engine(folder, engine, path, memory)
    lots, sampler = SystemSecrets(), NoiseSampler()

    def run(kind: str) -> Sized:
        if kind == "bounded":
            (counts,) = opened.run(query.compiled.plan, lots.draw()).values()
            return counts
        noisy = noisy_of(query.compiled, opened, sampler, lots)
        return answers_of(query.compiled, noisy, Fraction(19, 20)).rows

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


class Side:
    """A query of an engine, in a process of its own."""

    def __init__(
        self, folder: Path, engine: str, kind: str, given: argparse.Namespace
    ) -> None:
        self.engine, self.kind = engine, kind
        self.best: dict[str, Any] = {}
        script = [sys.executable, __file__]
        if engine in OTHERS:
            script = [str(OTHERS[engine]), str(Path(__file__).parent / "beside.py")]
        # Spark's workers have the same Python.
        command = ["/usr/bin/env", f"PYSPARK_PYTHON={script[0]}", *script]
        command += ["--side", engine, kind, "--folder", str(folder)]
        self._process = subprocess.Popen(  # noqa: S603
            [*command, "--memory", given.memory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if engine == "duckdb" else subprocess.DEVNULL,
            text=True,
        )

    def run(self, path: Path) -> dict[str, Any] | None:
        """Return what the query over a file takes; None if it fails."""
        assert self._process.stdin
        assert self._process.stdout
        with suppress(OSError):
            self._process.stdin.write(f"{path}\n")
            self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        return None

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin
        with suppress(OSError):
            self._process.stdin.close()
        self._process.wait()


# --- tables ---------------------------------------------------------------------------


def measured(
    folder: Path, path: Path, engine: str, given: argparse.Namespace
) -> list[Side]:
    """Return the sides of an engine that have taken turns over a file."""
    sides = [Side(folder, engine, kind, given) for kind in KINDS]
    if engine in OTHERS:
        sides[1].close()
        del sides[1]  # They have no exact answers with bounds.
    for side in sides:
        side.run(folder / f"even-{WARM}.parquet")
    began = time.perf_counter()
    for turn in range(given.times):
        if turn and time.perf_counter() - began > given.seconds:
            break
        for side in sides:
            found = side.run(path) or {}
            for name in ("wall", "cpu"):
                side.best[name] = min(found.get(name, INF), side.best.get(name, INF))
            side.best["peak_mb"] = found.get("peak_mb", 0)
    for side in sides:
        side.close()
    return sides


def report(
    folder: Path, rows: int, shape: str, given: argparse.Namespace
) -> Iterator[str]:
    """Yield the lines of a table for one file."""
    path = make(folder, rows, shape, given.pages)
    size = path.stat().st_size / 1e6
    yield f"\n**{rows:,} rows, {shape}** ({size:,.0f} MB of Parquet)\n"
    yield "| engine | query | CPU s | over plain | seconds | over plain | peak MB |"
    yield "| --- | --- | --: | --: | --: | --: | --: |"
    for engine in given.engines:
        if engine in OTHERS and (rows > OTHERS_MAX or given.pages != PAGES):
            continue
        sides = measured(folder, path, engine, given)
        base = sides[0].best
        for side in sides:
            best = side.best
            if best["cpu"] == INF:
                yield f"| {engine} | {side.kind} | failed | | | | |"
                continue
            yield (
                f"| {engine} | {side.kind} | {best['cpu']:.2f}"
                f" | {best['cpu'] / base['cpu']:.1f} x | {best['wall']:.2f}"
                f" | {best['wall'] / base['wall']:.1f} x | {best['peak_mb']:,} |"
            )
    if rows != WARM:
        path.unlink()


def tables(folder: Path, given: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of all tables."""
    import duckdb
    import pyspark

    write_files(folder, given.pages)
    make(folder, WARM, "even")
    yield (
        f"Python {sys.version.split()[0]}, DuckDB {duckdb.__version__}, Spark"
        f" {pyspark.__version__}, {os.cpu_count()} CPUs, at most {given.memory} of"
        f" memory for an engine, seed {SEED}."
    )
    for rows in given.rows:
        for shape in SHAPES:
            yield from report(folder, rows, shape, given)


def write_docs(text: str) -> None:
    """Put the tables into the page."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    old, after = rest.split(END)
    found: dict[str, str] = {}
    for one in (old, text):
        sections = re.split(r"\n+(?=\*\*\d)", one.strip())
        found |= {section.partition("** (")[0]: section for section in sections[1:]}
        found[""] = sections[0]  # What the versions are.
    by_size = sorted(found, key=lambda name: int(re.sub(r"\D", "", name) or 0))
    made = "\n\n".join(found[name] for name in by_size)
    page = f"{before}{BEGIN}\n\n{made}\n\n{END}{after}"
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
    parser.add_argument(
        "--pages", type=int, default=PAGES, help="of the table: 3300 for 102,300 groups"
    )
    parser.add_argument("--times", type=int, default=3, help="how often each side runs")
    parser.add_argument(
        "--seconds", type=float, default=120, help="no turn begins after so long"
    )
    parser.add_argument("--memory", default="4G", help="for an engine, such as 4G")
    parser.add_argument(
        "--engines",
        type=lambda text: text.split(","),
        default=["duckdb", "spark", *(one for one in OTHERS if OTHERS[one].exists())],
        help="of duckdb,spark,opendp,tumult",
    )
    parser.add_argument("--folder", type=Path, help="where the tables are made")
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
        serve(given.folder, *given.side, given.memory)
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
