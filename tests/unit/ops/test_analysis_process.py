"""Analyses in processes of their own: what the command finds, within bounds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from modicum.api.schema.risk import AnalysisRequest
from modicum.cli.main import app
from modicum.core.errors import (
    Code,
    InputError,
    ModicumError,
    UnavailableError,
    UsageError,
)
from modicum.risk.worker import parent
from modicum.risk.worker.messages import (
    Analysis,
    AnalysisResult,
    Bounds,
    Failed,
    Line,
    read,
    written,
)
from modicum.risk.worker.parent import analyzed
from modicum.risk.worker.process import answer

MARK = "pEnGuIn"
#: Asks again for each person, which takes long.
SLOW = AnalysisRequest(
    query="SELECT COUNT(*) FROM v WHERE age > (SELECT AVG(age) FROM v)",
    sensitivity="3000",
)


@pytest.fixture
def table(tmp_path: Path) -> str:
    place = tmp_path / "visits.parquet"
    rows = {
        "patient": [1, 1, 2, 3, 4, 4, 4],
        "age": [30, 30, 41, 70, 55, 55, 55],
        "note": [f"{MARK}-{number}" for number in range(7)],
    }
    pq.write_table(pa.table(rows), place)
    return str(place)


@pytest.fixture
def many(tmp_path: Path) -> str:
    place = tmp_path / "many.parquet"
    pq.write_table(pa.table({"age": list(range(3000))}), place)
    return str(place)


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where folders of processes are made."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def told(
    tables: dict[str, str], asked: AnalysisRequest, rows: int = 10**7
) -> Line | None:
    """Return what the process tells, without the process."""
    line = msgspec.json.encode(Analysis(tables, asked, rows))
    return read(written(answer(line, lambda _: None)))


def found(tables: dict[str, str], asked: AnalysisRequest, rows: int = 10**7) -> Any:
    line = told(tables, asked, rows)
    assert isinstance(line, AnalysisResult), line
    return json.loads(bytes(line.document))


def refused(
    tables: dict[str, str], asked: AnalysisRequest, rows: int = 10**7
) -> ModicumError:
    line = told(tables, asked, rows)
    assert isinstance(line, Failed), line
    return line.error()


def by_command(*words: str) -> Any:
    done = CliRunner().invoke(app, ["risk", *words, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


TOTAL = "SELECT SUM(age) FROM visits"
CASES: tuple[tuple[str, dict[str, Any], tuple[str, ...]], ...] = (
    ("rdr", {}, ()),
    (
        "rdr",
        {
            "unit": "patient",
            "epsilons": ("0.1", "2"),
            "bounds": {"": ("0", "120")},
            "rows_max": 3,
        },
        (
            *("--unit", "patient", "--epsilons", "0.1,2"),
            *("--bounds", "0:120", "--rows-max", "3"),
        ),
    ),
    (
        "rdr",
        {"mechanism": "gaussian", "delta": "1e-6", "sensitivity": "100", "tau": "0.5"},
        (
            *("--mechanism", "gaussian", "--delta", "1e-6"),
            *("--sensitivity", "100", "--tau", "0.5"),
        ),
    ),
    (
        "rdr",
        {"tau": "0.9", "choice": "as-published", "indicator": "exact"},
        ("--tau", "0.9", "--choice", "as-published", "--indicator", "exact"),
    ),
    (
        "compare-groups",
        {
            "groups": ("age < 50", "age >= 50"),
            "statistic": "max",
            "tau": "0.5",
            "choice": "as-published",
        },
        (
            *("--groups", "age < 50", "--groups", "age >= 50"),
            *("--statistic", "max", "--tau", "0.5"),
        ),
    ),
)


@pytest.mark.parametrize(("command", "asked", "words"), CASES)
def test_it_finds_what_the_command_finds(
    command: str, asked: dict[str, Any], words: tuple[str, ...], table: str
) -> None:
    document = found({"": table}, AnalysisRequest(query=TOTAL, **asked))
    assert document == by_command(command, table, "--query", TOTAL, *words)
    assert document["people"] == (4 if "unit" in asked else 7)


def test_its_process_tells_the_same_and_leaves_nothing(
    table: str, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = AnalysisRequest(query=TOTAL, tau="0.9", choice="as-published")
    parts: list[float] = []
    monkeypatch.chdir(Path(table).parent)  # It works elsewhere, and finds the file.
    document = analyzed({"": Path(table).name}, asked, Bounds(), parts.append)
    assert json.loads(document) == found({"": table}, asked)
    assert parts
    assert list(scratch.iterdir()) == []


def test_what_it_refuses_is_the_same_mistake_outside(table: str, scratch: Path) -> None:
    asked = AnalysisRequest(query="SELEC")
    with pytest.raises(InputError) as error:
        analyzed({"": table}, asked, Bounds(), lambda _: None)
    assert error.value.problems == refused({"": table}, asked).problems
    assert list(scratch.iterdir()) == []


def test_tables_are_joined_by_their_names(table: str, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("patient,city\n1,x\n2,y\n3,x\n4,x\n")
    query = "SELECT COUNT(*) FROM visits JOIN people USING (patient) WHERE city = 'x'"
    tables = {"visits": table, "people": str(tmp_path / "people.csv")}
    document = found(tables, AnalysisRequest(query=query, unit="patient", rows_max=3))
    places = [f"{name}={place}" for name, place in tables.items()]
    words = ("--query", query, "--unit", "patient", "--rows-max", "3")
    assert document == by_command("rdr", *places, *words)


def test_nothing_is_read_but_the_tables(table: str, tmp_path: Path) -> None:
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"age": [1]}), other)
    for query in (
        f"SELECT COUNT(*) FROM read_parquet('{other}')",
        f"SELECT COUNT(*) FROM v WHERE age IN (FROM read_parquet('{other}'))",
        f"SELECT COUNT(*) FROM (FROM '{other}') AS o",
        f"SELECT COUNT(*) FROM '{other}'",
        "SELECT COUNT(*) FROM v WHERE length(getenv('PATH')) > 0",
        "SELECT COUNT(*) FROM duckdb_settings()",
    ):
        tables = {"visits": table}  # One that has a name is called by it.
        assert isinstance(refused(tables, AnalysisRequest(query=query)), InputError), (
            query
        )


@pytest.mark.parametrize(
    ("asked", "code", "named"),
    [
        ({"query": "SELEC"}, Code.NOT_SQL, ""),
        ({"query": TOTAL, "unit": "patien"}, Code.UNKNOWN_NAME, "`unit`"),
        ({"query": TOTAL, "epsilons": ("0",)}, Code.OUT_OF_RANGE, "`epsilons`"),
        ({"query": TOTAL, "groups": ("agee > 1",)}, Code.UNKNOWN_NAME, ""),
        (
            {"query": TOTAL, "max_variance": "1"},
            Code.MISSING_KEY,
            "`tau`",
        ),
    ],
)
def test_mistakes_are_told_in_the_keys_of_a_request(
    asked: dict[str, Any], code: Code, named: str, table: str
) -> None:
    error = refused({"": table}, AnalysisRequest(**asked))
    assert isinstance(error, InputError)
    assert error.code is code
    assert named in error.render()
    assert "=`" not in error.render()


def test_what_an_engine_says_of_rows_is_not_told(table: str) -> None:
    for query in (
        "SELECT SUM(CAST(note AS INTEGER)) FROM v",
        "SELECT MEDIAN(CAST(note AS INTEGER)) FROM v",
        f"SELECT SUM(error('{MARK}-x')) FROM v",
    ):
        error = refused({"": table}, AnalysisRequest(query=query))
        assert f"{MARK}-0" not in repr(error) + error.render()


def test_a_table_with_too_many_rows_is_not_analyzed(table: str) -> None:
    asked = AnalysisRequest(query=TOTAL)
    assert found({"": table}, asked, rows=7)["people"] == 7
    error = refused({"": table}, asked, rows=6)
    assert error.code is Code.TOO_LARGE
    assert "7" not in error.render()


def test_it_says_what_is_not_installed(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "modicum.risk.worker.result"
    monkeypatch.setitem(sys.modules, name, None)
    error = refused({"": table}, AnalysisRequest(query=TOTAL))
    assert isinstance(error, UsageError)
    assert name in error.render()
    assert "modicum[query]" in error.render()


def test_it_says_only_the_class_of_what_nobody_foresaw(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*_: object, **__: object) -> None:
        raise ValueError(MARK)

    monkeypatch.setattr("modicum.risk.worker.result.rdr", wrong)
    error = refused({"": table}, AnalysisRequest(query=TOTAL))
    assert error.code is Code.INTERNAL
    assert "ValueError" in error.render()
    assert MARK not in error.render()


class Enough(Exception):  # noqa: N818 - it is no mistake
    """Nobody waits any more."""


def test_it_is_given_up_when_nobody_waits(many: str, scratch: Path) -> None:
    parts: list[float] = []

    def report(part: float) -> None:
        parts.append(part)
        if part > 0:
            raise Enough

    with pytest.raises(Enough):
        analyzed({"": many}, SLOW, Bounds(), report)
    assert 0 < parts[-1] < 1
    assert list(scratch.iterdir()) == []


def test_it_takes_no_longer_than_it_may(many: str, scratch: Path) -> None:
    with pytest.raises(UnavailableError) as error:
        analyzed({"": many}, SLOW, Bounds(seconds=0), lambda _: None)
    assert "0 seconds" in error.value.render()
    assert list(scratch.iterdir()) == []


def test_a_process_that_is_killed_is_no_answer(
    many: str, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = watched_process(monkeypatch)

    def report(part: float) -> None:
        if part > 0 and started[0].poll() is None:
            os.kill(started[0].pid, signal.SIGKILL)

    with pytest.raises(UnavailableError) as error:
        analyzed({"": many}, SLOW, Bounds(), report)
    assert error.value.code is Code.ENGINE_FAILED
    assert list(scratch.iterdir()) == []


def watched_process(
    monkeypatch: pytest.MonkeyPatch,
) -> list[subprocess.Popen[bytes]]:
    """Return the list that processes are put into, as they begin."""
    started: list[subprocess.Popen[bytes]] = []
    begin: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen

    def watched(*words: Any, **named: Any) -> subprocess.Popen[bytes]:
        started.append(begin(*words, **named))
        return started[-1]

    monkeypatch.setattr(parent.subprocess, "Popen", watched)  # type: ignore[attr-defined]
    return started


def within(folder: Path) -> list[str]:
    """Return the processes that work in a folder, be it there or not."""
    found = []
    for one in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):  # It ended, or is somebody else's.
            if os.readlink(one).startswith(str(folder)):
                found.append(one.parent.name)
    return found


def test_it_ends_with_whoever_began_it(tmp_path: Path, scratch: Path) -> None:
    """A parent that is killed leaves neither a process nor a folder."""
    place = tmp_path / "more.parquet"  # It would take minutes.
    pq.write_table(pa.table({"age": list(range(200_000))}), place)
    program = (
        "import itertools, os, signal, sys, tempfile; sys.path[:] = sys.argv[3:];"
        " tempfile.tempdir = sys.argv[2];"
        " from modicum.risk.worker.parent import analyzed;"
        " from modicum.api.schema.risk import AnalysisRequest;"
        " from modicum.risk.worker.messages import Bounds;"
        " calls = itertools.count();"
        " end = lambda _: next(calls) > 39 and os.kill(os.getpid(), signal.SIGKILL);"
        f" analyzed({{'': sys.argv[1]}}, {SLOW!r}, Bounds(), end)"
    )
    words = [sys.executable, "-c", program, str(place), str(scratch)]
    done = subprocess.run([*words, *filter(None, sys.path)], check=False)
    assert done.returncode == -signal.SIGKILL
    until = time.monotonic() + 30
    while any(scratch.iterdir()) or within(scratch):
        assert time.monotonic() < until
        time.sleep(0.02)


def test_its_process_hears_no_secret(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", MARK)
    started = watched_process(monkeypatch)
    environments: list[bytes] = []

    def report(_: float) -> None:
        if not environments:
            place = Path(f"/proc/{started[0].pid}/environ")
            environments.append(place.read_bytes())

    analyzed({"": table}, AnalysisRequest(query=TOTAL), Bounds(), report)
    assert MARK.encode() not in environments[0]
