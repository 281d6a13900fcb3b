"""Who may open rounds, as commands: exit codes, messages, and what lint says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from samples.small import POLICY
from typer.testing import CliRunner

from modicum.cli.main import app

HEAD = POLICY + (
    "population: {groups: {immutable: [user]}}\n"
    "roles: {planner: [ben], officer: [olga]}\n"
)
ONLY = HEAD + "rotation: {active: 3, opened_by: [planner]}\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MODICUM_ACTOR", "you")
    for name in ("MODICUM_LEDGER", "MODICUM_POLICY"):
        monkeypatch.delenv(name, raising=False)
    Path("only.yaml").write_text(ONLY)
    Path("anybody.yaml").write_text(HEAD + "rotation: {active: 3}\n")


def modicum(*arguments: str, code: int = 0) -> str:
    found = CliRunner().invoke(app, list(arguments))
    assert found.exit_code == code, found.output
    return found.output


def test_who_may_not_open_a_round_leaves_with_five() -> None:
    modicum("init", "--policy", "only.yaml")
    refused = modicum("plan", "open", code=5)
    assert "error[MOD604]: `you` cannot open a round: that needs planner" in refused
    document: Any = json.loads(modicum("plan", "open", "--json", code=5))
    assert document["error"]["code"] == "MOD604"
    modicum("plan", "open", "--actor", "olga", code=5)
    assert modicum("plan", "show") == "no round is open\n"
    assert "`round-1` is open" in modicum("plan", "open", "--actor", "ben")
    modicum("plan", "open", "round-1", code=5)
    assert "chain ok, 3 entries" in modicum("ledger", "verify")


def test_lint_warns_if_anybody_may_open_rounds() -> None:
    assert "warning[MOD604]: anybody who can write to the ledger" in modicum(
        "policy", "lint", "anybody.yaml"
    )
    modicum("policy", "lint", "--strict", "anybody.yaml", code=4)
    assert "MOD604" not in modicum("policy", "lint", "only.yaml")


def test_diff_and_explain_say_who_may() -> None:
    looser = modicum("policy", "diff", "only.yaml", "anybody.yaml")
    assert "rounds are opened by anybody, before by planner only (looser)" in looser
    tighter = modicum("policy", "diff", "anybody.yaml", "only.yaml")
    assert "nothing is loosened" in tighter
    explained = modicum("policy", "explain", "only.yaml", "global @standard")
    assert "planner may open rounds" in " ".join(explained.split())
