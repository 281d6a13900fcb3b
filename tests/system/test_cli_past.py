"""Past releases at the command line: what is asked, and what is corrected."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from modicum.cli.exit_codes import Exit
from modicum.cli.main import app

RUNNER = CliRunner()
POLICY = """
modicum: policy/v1
name: reading
dp: {filter: zcdp-v1}
units: {user-day: {id: user_id, time: {column: read_at, period: day}}}
schema: {attributes: {page: low}}
policies:
  - {name: day, when: "true", unit: user-day, budget: {rho: 0.03}}
"""
RECORD = ("release", "backfill", "past.json")
ASK = ("release", "redescribe", "past.json", "--reason", "r", "--actor", "ann")
APPROVE = ("release", "approve", "past.json", "--reason", "r", "--actor", "bob")


def views(release: str, rho: float = 0.02, **more: Any) -> dict[str, Any]:
    """Return a release of one Gaussian mechanism."""
    mechanism = {
        "name": "views",
        "mechanism": "gaussian",
        "attributes": ["page"],
        "cost": {"user-day": {"rho": rho}},
    }
    return {"release": release, **more, "mechanisms": [mechanism]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a ledger and past releases, as working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MODICUM_LEDGER", raising=False)
    monkeypatch.delenv("MODICUM_POLICY", raising=False)
    Path("policy.yaml").write_text(POLICY)
    run("init")
    write([views("old-0"), views("old-1", periods="2026-04-01"), views("old-2")])
    return tmp_path


def write(releases: list[dict[str, Any]]) -> None:
    Path("past.json").write_text(json.dumps(releases if releases[1:] else releases[0]))


def run(*command: str, code: int = Exit.OK) -> str:
    """Return what a command prints; it must leave with a code."""
    found = RUNNER.invoke(app, command, terminal_width=200)
    assert found.exit_code == code, found.output
    return found.output


def document(*command: str, code: int = Exit.OK) -> Any:
    return json.loads(run(*command, "--json", code=code))


def entries() -> int:
    return len(document("ledger", "list")["entries"])


# --- `periods` are missing --------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_releases_without_periods_are_not_recorded_unasked() -> None:
    for more in ((), ("--json",)):
        output = run(*RECORD, *more, code=Exit.USAGE)
        assert "2 of 3 releases have no `periods`" in output
        assert "--yes" in output
    assert entries() == 1
    assert "3 releases recorded" in run(*RECORD, "--yes")
    assert entries() == 4
    run(*RECORD)  # They stand already: nothing is asked.


@pytest.mark.usefixtures("folder")
def test_releases_that_name_their_periods_are_recorded_unasked() -> None:
    write([views("old", periods="2026-04-01")])
    assert "1 release recorded" in run(*RECORD)


@pytest.mark.usefixtures("folder")
def test_a_dry_run_warns_of_missing_periods_and_asks_nothing() -> None:
    output = run(*RECORD, "--dry-run")
    assert "2 of 3 releases have no `periods`: each will be charged to every" in output
    assert "3 releases would be recorded" in output
    assert entries() == 1


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("answer", "recorded"), [("n", 0), ("y", 3)])
def test_a_person_is_asked_whether_to_record_without_periods(
    answer: str, recorded: int
) -> None:
    here, there = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "modicum", *RECORD],
        stdin=there,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        os.write(here, f"{answer}\n".encode())
        output, _ = process.communicate(timeout=60)
    os.close(here)
    os.close(there)
    assert "2 of 3 releases have no `periods`" in output
    assert "Record them anyway?" in output
    assert entries() == 1 + recorded


@pytest.mark.usefixtures("folder")
def test_a_check_says_that_missing_periods_are_charged_to_every_day() -> None:
    write([views("asked", rho=0.001)])
    notice = "it has no `periods`: it is charged to every day"
    assert notice in run("release", "check", "past.json")
    write([views("asked", rho=0.001, periods="2026-04-01")])
    assert "`periods`" not in run("release", "check", "past.json")


@pytest.mark.usefixtures("folder")
def test_what_is_over_in_every_period_is_named_with_its_cause() -> None:
    output = run(*RECORD, "--yes")
    assert "charged to every period, because `periods` is missing (views)" in output
    assert "day: over the limit in every period, including future ones" in run("status")
    balance = run("ledger", "balance", "day", "--period", "2026-05-01")
    assert "2 releases are charged to every period" in balance
    assert "modicum release redescribe" in balance
    data = document("ledger", "balance", "day")
    assert "2 releases are charged to every period" in data["cause"]


# --- corrections --------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_two_people_correct_past_releases() -> None:
    run(*RECORD, "--yes")
    write([views(f"old-{n}", periods=f"2026-04-0{n + 1}") for n in range(3)])
    ask = ("release", "redescribe", "past.json", "--reason", "each reads one day")
    output = run(*ask, "--actor", "ann")
    assert "old-0: a correction is requested (entry 5)" in output
    # Each of them is still over while the others are charged to every day.
    assert "with one alone, over their limit: day (old-0, old-1, old-2)" in output
    assert "another person approves it with  modicum release approve FILE" in output
    data = document(*ask, "--actor", "ann")["corrections"]
    assert [one["request"] and one["request"]["repeated"] for one in data] == [True] * 3
    assert "old-2" in run("request", "list")
    approve = ("release", "approve", "past.json", "--reason", "I read the job")
    run(*approve, "--actor", "ann", code=Exit.NEEDS_APPROVAL)
    assert "day: over the limit in every period" in run("status")
    agreed = run(*approve, "--actor", "bob")
    assert "correction of release `old-0` approved by bob" in agreed
    assert "`requester`" not in agreed
    assert "it is charged as now described (entry" in agreed
    assert "OVER" not in run("status")
    data = document(*ask, "--actor", "ann")["corrections"]
    assert [one["request"] for one in data] == [None] * 3
    assert "past-redescribed" in run("ledger", "list")
    run("ledger", "verify")
    story = document("release", "show", "old-0")["story"]
    assert [one["kind"] for one in story] == [
        "past-recorded",
        "release-requested",
        "past-redescribed",
    ]


@pytest.mark.usefixtures("folder")
def test_a_correction_that_was_made_does_not_stop_others() -> None:
    run(*RECORD, "--yes")
    dated = [views(f"old-{n}", periods=f"2026-04-0{n + 1}") for n in range(3)]
    write(dated[2:])
    output = run(*ASK)
    assert "with it, over their limit: day" in output
    assert "another person approves it with  modicum release approve old-2" in output
    run(*APPROVE)
    write([views("old-0"), dated[1], dated[2]])  # One needs no correction.
    run(*ASK)
    assert "`old-0`: already described so (entry 2)" in run(*APPROVE)
    write(dated)
    run(*ASK)
    for _ in range(2):  # Whether it is the first time or not.
        assert "correction of release `old-2`: already described so" in run(*APPROVE)
    assert "OVER" not in run("status")
    corrected = document(*APPROVE)["votes"]
    assert [one["repeated"] for one in corrected] == [True] * 3
    assert all(one["entry"] == one["corrected_in"] for one in corrected)
    reject = ("release", "reject", *APPROVE[2:])
    assert "MOD705" in run(*reject, code=Exit.INVALID)


@pytest.mark.usefixtures("folder")
def test_a_mistake_names_the_corrections_that_were_done_before_it() -> None:
    run(*RECORD, "--yes")
    dated = [views(f"old-{n}", periods=f"2026-04-0{n + 1}") for n in range(3)]
    write([*dated[:2], views("unknown", periods="2026-04-01")])
    assert "done before it: old-0, old-1" in run(*ASK, code=Exit.INVALID)
    write([dated[0], views("old-1")])
    assert "done before it: old-0" in run(*APPROVE, code=Exit.STALE)
    write(dated)
    problems = document(*APPROVE, code=Exit.INVALID)["problems"]
    assert problems[0]["notes"][-1] == "done before it: old-0, old-1"


@pytest.mark.usefixtures("folder")
def test_equal_remarks_about_past_releases_are_printed_once() -> None:
    write([views(f"old-{n}", rho=0.01) for n in range(12)])
    output = run(*RECORD, "--yes")
    assert output.count("12 of 12 releases have no `periods`") == 1
    assumed = "note: assumed: the mechanism: no `periods` stated: all of time"
    named = "old-0, old-1, old-2, old-3, old-4 and 7 more"
    (line,) = [one for one in output.splitlines() if assumed in one]
    assert line == f"  {assumed} ({named})"
    assert output.count("charged to every period, because") == 1


@pytest.mark.usefixtures("folder")
def test_recording_with_other_periods_names_the_correction() -> None:
    run(*RECORD, "--yes")
    write([views("old-0", periods="2026-04-01")])
    output = run(*RECORD, code=Exit.INVALID)
    assert "error[MOD703]" in output
    assert "if only its `periods` differ:  modicum release redescribe FILE" in output


@pytest.mark.usefixtures("folder")
def test_a_correction_of_anything_else_is_refused() -> None:
    write([views("new", periods="2026-03-31")])
    run("release", "submit", "past.json")
    write([views("old-0")])
    run(*RECORD, "--yes")
    ask = ("release", "redescribe", "past.json", "--reason", "less noise was added")
    write([views("old-0", rho=0.001, periods="2026-04-01")])
    assert "error[MOD611]: release `old-0` was recorded with a different `cost`" in run(
        *ask, code=Exit.INVALID
    )
    write([views("new", periods="2026-04-01")])
    assert "error[MOD610]" in run(*ask, code=Exit.INVALID)
    by_id = run("release", "redescribe", "old-0", *ask[3:], code=Exit.INVALID)
    assert "for a release in the ledger, give its file" in by_id
    assert "with the right `periods`" in by_id
    assert "modicum release show old-0" in by_id
