"""Who submits a release with a utility reserves the same as without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from samples.small import POLICY, counts, workspace
from typer.testing import CliRunner

from modicum.cli.main import app
from modicum.core.errors import InputError
from modicum.core.yaml_reader import read_document


def test_a_retry_may_be_worth_something_else(tmp_path: Path) -> None:
    ledger = workspace(tmp_path)
    first = ledger.submit(counts("r-1", utility=3))
    assert first.allowed
    again = [
        ledger.submit(counts("r-1")),
        ledger.submit(counts("r-1", utility=0.5)),
        ledger.submit(
            read_document(json.dumps(counts("r-1", utility=7)).encode(), "r")
        ),
    ]
    assert all(one.retry and one.allowed for one in again)
    assert all(b"utility" not in repr(one).encode() for one in ledger.records())


def test_with_and_without_a_utility_the_log_is_the_same(tmp_path: Path) -> None:
    logs = []
    worth: dict[str, dict[str, Any]] = {"with": {"utility": 12}, "without": {}}
    for name, more in worth.items():
        (tmp_path / name).mkdir()
        ledger = workspace(tmp_path / name)
        ledger.submit(counts("r-1", **more))
        ledger.submit(counts("r-2", rho="9", **more))
        ledger.backfill(counts("r-3", released_on="2026-01-01", **more))
        logs.append(list(ledger.records()))
    assert logs[0] == logs[1]
    assert len(logs[0]) >= 4


def test_what_would_fit_is_worth_as_much(tmp_path: Path) -> None:
    ledger = workspace(tmp_path)
    request = counts("r-1", utility=2.5)
    mechanism = request["mechanisms"][0]
    mechanism |= {"sigma": 1, "sensitivity": {"user": {"l2": 1}}}
    del mechanism["cost"]
    decision = ledger.check(request)
    assert not decision.allowed
    fit = decision.largest_fit()
    assert fit.found
    assert isinstance(fit.release, dict)
    assert float(fit.release["utility"]) == 2.5


def test_a_wrong_utility_writes_nothing(tmp_path: Path) -> None:
    ledger = workspace(tmp_path)
    ledger.submit(counts("r-1"))
    before = list(ledger.records())
    for release in (counts("r-2", utility=-1), counts("r-1", utility="high")):
        with pytest.raises(InputError, match="utility"):
            ledger.submit(release)
    assert list(ledger.records()) == before


def test_the_command_line_takes_it(tmp_path: Path) -> None:
    policy, release = tmp_path / "policy.yaml", tmp_path / "r.json"
    policy.write_text(POLICY)
    ledger = str(tmp_path / "ledger.db")

    def run(*args: str) -> str:
        done = CliRunner().invoke(app, [*args, "--ledger", ledger])
        assert done.exit_code == 0, done.output
        return done.output

    run("init", "--policy", str(policy))
    release.write_text(json.dumps(counts("r-1", utility=2.5)))
    for verb in ("check", "submit"):
        assert "ALLOW r-1" in run("release", verb, str(release))
    release.write_text(json.dumps(counts("r-1", utility=3)))
    for verb in ("check", "submit"):
        assert "r-1: already exists (reserved)" in run("release", verb, str(release))
