"""`modicum escrow risk`: what everybody may see, and what owners alone see."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from samples.escrows import OWNED, POLICY, TABLES
from typer.testing import CliRunner

import modicum as mo
from modicum.cli.exit_codes import Exit
from modicum.cli.main import app

ROWS = b"person,town,income\n" + b"".join(b"%d,north,low\n" % n for n in range(25))
QUERY = """\
release: r-1
query:
  sql: "SELECT town, COUNT(*) AS people FROM people GROUP BY town"
  noise: laplace
  loss: {user: {eps: 0.5}}
"""
VAULT = ("--vault", "vault", "--vault-keys", "keys")
OWN = ("--own-rows", *VAULT)
TAU = ("--tau", "0.75")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("LEDGER", "POLICY", "DEBUG", "VAULT", "VAULT_KEYS"):
        monkeypatch.delenv(f"MODICUM_{name}", raising=False)
    Path("policy.yaml").write_text(POLICY)
    Path("query.yaml").write_text(QUERY)
    mo.create_vault(Path("vault"), Path("keys"))
    place = mo.EscrowPlace(Path("vault"), Path("keys"))
    mo.open_escrow("ledger.db", place, policy="policy.yaml").init()
    olga = mo.open_escrow("ledger.db", place, actor="olga").escrow
    olga.register("people", ROWS, mo.Declared(TABLES), OWNED)
    amir = mo.open_escrow("ledger.db", place, actor="amir").escrow
    amir.submit_query(mo.Purpose("q", "to know"), [QUERY])
    return tmp_path


def run(*command: str, who: str = "olga", code: int = Exit.OK) -> str:
    found = CliRunner().invoke(app, ["escrow", "risk", *command, "--actor", who])
    assert found.exit_code == code, (command, found.output, found.exception)
    return found.output


def test_everybody_sees_the_same_public_choice() -> None:
    output = {run("q", *TAU, who=who) for who in ("olga", "amir", "zoe")}
    assert len(output) == 1
    (text,) = output
    assert "epsilon    0.6\n" in text
    assert "claim      dp: no row was read" in text
    assert "it meets the target: its loss is at most  loss: {user: {eps: 0.6}}" in text
    assert "EYES" not in text
    assert "25" not in text


def test_what_does_not_fit_is_told_with_what_would() -> None:
    text = run("q", "--tau", "0.9", "--epsilons", "0.1,0.2,0.4,2")
    assert "it does not meet the target: reject it" in text
    assert text.endswith("  loss: {user: {eps: 0.2}}\n")
    text = run("q", "--tau", "1")
    assert "epsilon    none" in text
    assert "no loss meets the target" in text


def test_a_query_file_is_looked_at_before_it_is_submitted() -> None:
    text = run("--file", "query.yaml", *TAU, who="amir")
    assert text == run("q", *TAU).replace(" of the contract `q`", "")
    output = json.loads(run("--file", "query.yaml", *TAU, "--json", who="amir"))
    assert output["contract"] is None
    assert output["loss"] == "0.6"
    assert output["requested"] == "0.5"
    assert output["fits"] is True
    assert output["claim"] == "dp"
    assert "owners_only" not in output


def test_an_owner_sees_rows_under_a_warning_and_writes_nothing() -> None:
    before = Path("ledger.db").read_bytes()
    public, text = run("q", *TAU), run("q", *TAU, *OWN)
    assert text.startswith(public)
    own = text.removeprefix(public)
    assert own.startswith("\nFOR YOUR EYES ONLY. For the owners of the data only")
    assert "25 people" in own
    assert "claim: controller-only advice" in own
    assert "A release file" not in own
    output = json.loads(run("q", *TAU, *OWN, "--json"))
    assert output["owners_only"]["people"] == 25
    assert output["owners_only"]["claim"] == "controller-only advice"
    assert output["owners_only"]["warning"].startswith("For the owners")
    assert output["claim"] == "dp"
    assert Path("ledger.db").read_bytes() == before


def test_nobody_else_sees_rows() -> None:
    text = run("q", *TAU, *OWN, who="amir", code=Exit.INVALID)
    assert "`amir` does not own the data set `people`" in text
    assert "epsilon    " not in text
    text = run("q", *TAU, "--own-rows", code=Exit.USAGE)
    assert "no vault" in text


def test_options_that_say_too_much_or_too_little() -> None:
    assert "give a contract" in run(*TAU, code=Exit.USAGE)
    both = ("q", "--file", "query.yaml", *TAU)
    assert "give a contract" in run(*both, code=Exit.USAGE)
    text = run("--file", "query.yaml", "--query", "r-1", *TAU, code=Exit.USAGE)
    assert "a query file has one query" in text
    assert "Laplace" in run("q", *TAU, "--delta", "1e-6", code=Exit.USAGE)
    Path("query.yaml").write_text(
        QUERY.replace("laplace", "gaussian").replace("eps: 0.5", "rho: 0.5")
    )
    text = run("--file", "query.yaml", *TAU, code=Exit.USAGE)
    assert "give `--delta`" in text
    text = run("--file", "query.yaml", *TAU, "--delta", "1e-6")
    assert "loss: {user: {rho: " in text
