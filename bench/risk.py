"""What it takes to see whom an epsilon exposes: closed forms beside asking again.

Run it with `python bench/risk.py`, or with `--quick`; it exits with 1 after a FAIL.
Every side runs in a process of its own. It starts, and does its work several times,
unless that takes too long; the best time counts. Peak memory is
that of the process and all that it started, as the system counts it.

(a) Made-up people, one to a row. *Closed form* reads the query, makes its statement,
lets DuckDB run it over a Parquet file, and says how far everybody moves the answer.
*Each row* asks DuckDB the query over all rows but one, for every single row, from a
table in memory, by a prepared statement. Both must find the same distances.

(b) For 37 candidates: the least, greatest and four quantiles of all RDRs, their
variance, and the ratio. *One profile* measures influence from a Parquet file and
carries the distances along. *NumPy matrix* has its columns in memory, texts as small
numbers; it computes distances by a formula for each query, then the RDR of everyone
for every candidate, and all of these of that matrix. *NumPy profile* counts people by
distance first, as a patient author would. All must find the same numbers.

(c) Visits, by rows and by persons of 20 rows on average, in DuckDB and Spark, beside
the plain query in the same engine. Engines must agree on how many people are how far.

`--write-docs` puts the tables into docs/explanation/risk-speed.md.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import risk_adult
import risk_scale
from query import cpu_seconds, peak_mb

from modicum.workloads.adult.people import SEED, adult_people

PAGE = Path(__file__).parents[1] / "docs/explanation/risk-speed.md"
#: What stands around the tables on the page.
BEGIN = "*Made by `bench/risk.py --write-docs`.* <!-- tables -->"
END = "*End of what the program made.* <!-- end of tables -->"
#: How many times as fast as asking again for each row, and as the matrix.
WANTED_EACH, WANTED_MATRIX = 1000, 8
#: Spark takes part up to so many rows.
SPARK_ROWS = 10**7
#: An engine warms up with so many.
WARM = 10**4

Found = dict[str, Any]


# --- one side, in a process of its own ------------------------------------------------


def measured(path: Path, side: list[str], given: argparse.Namespace) -> Found:
    """Return how long a side takes, and what memory; leave its numbers in a file."""
    if side[0] in risk_adult.SIDES:
        run = risk_adult.SIDES[side[0]](path, *side[1:])
    else:
        risk_scale.side(warming(path), *side, given.memory)()
        run = risk_scale.side(path, *side, given.memory)
    cpu = cpu_seconds()
    wall, runs, found = risk_adult.best(run, given.times, given.seconds)
    np.save(path.with_name("found.npy"), found)
    return {
        "wall": wall,
        "cpu": (cpu_seconds() - cpu) / runs,
        "peak_mb": peak_mb(),
    }


def warming(path: Path) -> Path:
    """Return a small table beside a large one."""
    return path.with_name(f"visits-{WARM}.parquet")


def elsewhere(
    path: Path, side: list[str], given: argparse.Namespace
) -> tuple[Found, np.ndarray[Any, Any]] | None:
    """Return what `measured` says in a process of its own; None if that fails."""
    command = [sys.executable, __file__, "--side", *side, "--path", str(path)]
    command += ["--times", str(given.times), "--seconds", str(given.seconds)]
    command += ["--memory", given.memory]
    started = subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        result, _ = started.communicate(timeout=given.limit)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()
        return None
    if started.returncode:
        return None
    return json.loads(result.splitlines()[-1]), np.load(path.with_name("found.npy"))


# --- (a) and (b): made-up people ------------------------------------------------------


def people(folder: Path, rows: int) -> Path:
    """Write made-up people."""
    path = folder / f"people-{rows}.parquet"
    pyarrow.parquet.write_table(pa.table(adult_people(rows)), path)
    return path


class Verdicts:
    """What must hold, and whether it did."""

    def __init__(self) -> None:
        self.failed = False

    def line(self, text: str, *, holds: bool) -> str:
        """Return a line that says whether something holds."""
        self.failed |= not holds
        return f"- {'PASS' if holds else 'FAIL'} {text}"


def again(folder: Path, given: argparse.Namespace, verdicts: Verdicts) -> Iterator[str]:
    """Yield the table of (a)."""
    path = people(folder, given.people)
    yield f"\n**(a) {given.people:,} made-up people: everybody's distance**\n"
    yield "| query | each row, seconds | closed form, seconds | ratio |"
    yield "| --- | --: | --: | --: |"
    checks = []
    for query in given.queries:
        once = argparse.Namespace(**{**vars(given), "times": 0, "seconds": 0})
        slow = elsewhere(path, ["each row", query], once)
        fast = elsewhere(path, ["closed form", query], given)
        if slow is None or fast is None:
            checks.append(
                verdicts.line(f"{query}: both sides end in time", holds=False)
            )
            continue
        same = np.allclose(slow[1], fast[1], rtol=0, atol=1e-9)
        checks.append(verdicts.line(f"{query}: the same distances", holds=bool(same)))
        ratio = slow[0]["wall"] / fast[0]["wall"]
        yield (
            f"| {query} | {slow[0]['wall']:.1f} | {fast[0]['wall']:.4f}"
            f" | {ratio:,.0f} x |"
        )
        text = f"{query}: at least {WANTED_EACH:,} x each row: {ratio:,.0f} x"
        checks.append(verdicts.line(text, holds=ratio >= WANTED_EACH))
    yield ""
    yield from checks


def candidates(
    folder: Path, given: argparse.Namespace, verdicts: Verdicts
) -> Iterator[str]:
    """Yield the table of (b)."""
    path = people(folder, given.many)
    sides = ("one profile", "NumPy matrix", "NumPy profile")
    yield f"\n**(b) {given.many:,} made-up people: 37 candidates**\n"
    yield (
        "| query, noise | one profile, s (MB) | NumPy matrix, s (MB) | ratio"
        " | NumPy profile, s |"
    )
    yield "| --- | --: | --: | --: | --: |"
    checks, ratios = [], []
    for query in risk_adult.QUERIES:
        for noise in ("laplace", "gaussian"):
            found = [elsewhere(path, [side, query, noise], given) for side in sides]
            if found[0] is None or found[1] is None or found[2] is None:
                checks.append(
                    verdicts.line(f"{query}: all sides end in time", holds=False)
                )
                continue
            (ours, one), (matrix, two), (profile, three) = found[0], found[1], found[2]
            same = all(risk_adult.same(one, other) for other in (two, three))
            if not same:
                checks.append(
                    verdicts.line(f"{query} {noise}: same numbers", holds=False)
                )
            ratios.append(matrix["wall"] / ours["wall"])
            yield (
                f"| {query} {noise} | {ours['wall']:.3f} ({ours['peak_mb']:,})"
                f" | {matrix['wall']:.3f} ({matrix['peak_mb']:,})"
                f" | {ratios[-1]:.1f} x | {profile['wall']:.3f} |"
            )
    yield ""
    yield from checks
    if not checks:
        yield verdicts.line("the same numbers from all sides", holds=True)
    least = min(ratios, default=0.0)
    text = f"at least {WANTED_MATRIX} x the matrix, for every query: {least:.1f} x"
    yield verdicts.line(text, holds=least >= WANTED_MATRIX)


# --- (c): large tables ----------------------------------------------------------------


def scale(
    folder: Path, rows: int, given: argparse.Namespace, verdicts: Verdicts
) -> Iterator[str]:
    """Yield the table of (c) for one size."""
    risk_scale.make(folder, WARM)
    path = risk_scale.make(folder, rows)
    size = path.stat().st_size / 1e6
    engines = [one for one in given.engines if one == "duckdb" or rows <= SPARK_ROWS]
    persons = rows // risk_scale.ROWS_EACH
    yield (
        f"\n**(c) {rows:,} visits of {persons:,} persons**"
        f" ({size:,.1f} MB of Parquet)\n"
    )
    yield "| query | left out | engine | seconds | over plain | CPU seconds | peak MB |"
    yield "| --- | --- | --- | --: | --: | --: | --: |"
    plain: dict[tuple[str, str], float] = {}
    checks = []
    for query in risk_scale.QUERIES:
        for unit in ("plain", *risk_scale.UNITS):
            numbers = []
            for engine in engines:
                found = elsewhere(path, [engine, query, unit], given)
                if found is None:
                    yield f"| {query} | {unit} | {engine} | failed | | | |"
                    checks.append(
                        verdicts.line(f"{query} {unit} {engine}", holds=False)
                    )
                    continue
                result, of = found
                numbers.append(of)
                wall = result["wall"]
                plain.setdefault((engine, query), wall)
                yield (
                    f"| {query} | {'nobody (plain)' if unit == 'plain' else unit}"
                    f" | {engine} | {wall:.2f} | {wall / plain[engine, query]:.1f} x"
                    f" | {result['cpu']:.2f} | {result['peak_mb']:,} |"
                )
            if len(numbers) == 2 and unit != "plain":
                checks += agreed(numbers, f"{query} {unit}", verdicts)
    yield ""
    yield from checks
    path.unlink(missing_ok=True)


def agreed(numbers: list[Any], what: str, verdicts: Verdicts) -> list[str]:
    """Return what is to be said if engines do not agree."""
    one, other = (np.repeat(of[0], of[1].astype(int)) for of in numbers)
    if one.shape == other.shape and np.allclose(one, other, rtol=1e-9, atol=1e-9):
        return []
    return [verdicts.line(f"{what}: engines agree", holds=False)]


# --- all of it ------------------------------------------------------------------------


def tables(
    folder: Path, given: argparse.Namespace, verdicts: Verdicts
) -> Iterator[str]:
    """Yield the lines of all tables."""
    yield (
        f"Python {sys.version.split()[0]}, DuckDB {duckdb.__version__}, NumPy"
        f" {np.__version__}, {os.cpu_count()} CPUs, at most {given.memory} of memory"
        f" for an engine, seeds {SEED} and {risk_scale.SEED}."
    )
    if "a" in given.parts:
        yield from again(folder, given, verdicts)
    if "b" in given.parts:
        yield from candidates(folder, given, verdicts)
    if "c" in given.parts:
        for rows in given.rows:
            yield from scale(folder, rows, given, verdicts)


def write_docs(text: str) -> None:
    """Put the tables into the page."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    page = f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"
    PAGE.write_text(page, encoding="utf-8")


def parsed() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small tables, once")
    parser.add_argument("--parts", default="abc", help="of a, b and c")
    parser.add_argument("--people", type=int, default=50_000, help="of (a)")
    parser.add_argument("--many", type=int, default=10**6, help="people of (b)")
    parser.add_argument(
        "--rows",
        type=lambda text: [int(float(one)) for one in text.split(",")],
        default=[10**6, 10**7, 10**8],
        help="sizes of the tables of (c)",
    )
    parser.add_argument("--queries", nargs="+", default=["Q1", "Q4"], help="of (a)")
    parser.add_argument("--engines", nargs="+", default=["duckdb", "spark"])
    parser.add_argument("--times", type=int, default=3, help="how often a side runs")
    parser.add_argument(
        "--seconds", type=float, default=60, help="no run begins after so long"
    )
    parser.add_argument(
        "--limit", type=float, default=1800, help="a side may take so many seconds"
    )
    parser.add_argument("--memory", default="8G", help="for an engine, such as 8G")
    parser.add_argument("--folder", type=Path, help="where tables are made")
    parser.add_argument("--write-docs", action="store_true")
    parser.add_argument("--side", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.quick:
        given.people, given.many, given.rows = 2000, 50_000, [50_000]
        given.engines = ["duckdb"]
    return given


def main() -> int:
    """Print the tables."""
    given = parsed()
    if given.side:
        print(json.dumps(measured(given.path, given.side, given)))
        return 0
    lines = []
    began = time.perf_counter()
    verdicts = Verdicts()
    with tempfile.TemporaryDirectory(dir=given.folder) as made:
        for line in tables(Path(made), given, verdicts):
            print(line, flush=True)
            lines.append(line)
    print(f"\nAll of it took {(time.perf_counter() - began) / 60:.0f} minutes.")
    if given.write_docs:
        write_docs("\n".join(lines))
    return int(verdicts.failed)


if __name__ == "__main__":
    sys.exit(main())
