"""What the commands about policies tell of user groups that take turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from samples.small import POLICY, counts
from typer.testing import CliRunner

from modicum.cli.main import app

GROUPED = POLICY + "population: {groups: {immutable: [user]}}\n"
TURNS = GROUPED + "rotation: {active: 12, slack: 0.4}\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("grouped.yaml").write_text(GROUPED)
    Path("turns.yaml").write_text(TURNS)
    Path("release.json").write_text(json.dumps(counts("r", rho="0.001")))


def modicum(*arguments: str, code: int = 0) -> str:
    found = CliRunner().invoke(app, list(arguments))
    assert found.exit_code == code, found.output
    return found.output


def told(*arguments: str, code: int = 0) -> Any:
    return json.loads(modicum(*arguments, "--json", code=code))


def test_a_history_without_rounds_is_remarked() -> None:
    modicum("init", "--policy", "grouped.yaml")
    modicum("release", "submit", "release.json", "--publish")
    remark = (
        "`rotation` unlocks nothing, because no round was opened: whatever matches a"
        " rule of `user` is denied"
    )
    found = modicum("policy", "simulate", "turns.yaml")
    assert f"note: {remark}" in found
    assert "1 denied now" in found
    assert told("policy", "simulate", "turns.yaml")["remarks"] == [remark]
    assert told("policy", "simulate", "grouped.yaml")["remarks"] == []
    diff = ("policy", "diff", "active", "turns.yaml", "--ledger", "ledger.db")
    assert remark in modicum(*diff)
    found = told(*diff)
    assert found["history"]["remarks"] == [remark]
    assert not found["loosens"]


def test_an_explained_rule_says_how_it_is_unlocked() -> None:
    message = "in 12 rounds for which a user group is active, slack 0.4;"
    explain = ("policy", "explain", "turns.yaml", "global @standard")
    assert f"unlocks {message}" in modicum(*explain)
    (rule,) = told(*explain)["rules"]
    assert rule["unlocking"].startswith(message)
    (rule,) = told("policy", "explain", "grouped.yaml", "global @standard")["rules"]
    assert rule["unlocking"] is None


def test_a_difference_is_shown_beside_the_rules() -> None:
    found = modicum("policy", "diff", "grouped.yaml", "turns.yaml")
    assert "rotation is new: active 12, slack 0.4, retired closed (tighter)" in found
    assert "nothing is loosened" in found
    found = modicum("policy", "diff", "turns.yaml", "grouped.yaml")
    assert "(looser)" in found
    assert "nothing is loosened" not in found
