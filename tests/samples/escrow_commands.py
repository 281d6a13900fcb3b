"""`modicum escrow` as people type it, in a folder of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from modicum.cli.exit_codes import Exit
from modicum.cli.main import app
from modicum.ops.escrow import equipment
from samples.escrows import POLICY, ROWS, TABLES, OpenSandbox, query

RUNNER = CliRunner()
WHY = ("--reason", "so it is")
PLACE = ("--vault", "vault", "--vault-keys", "keys.json")
TASK = """\
task: answers
evaluate: {rank_correlation: {left: people, keys: [town], reference: {
  columns: [town, people], rows: [[north, 1], [south, 2]]}}}
"""
OWN = """\
def score(tables, arguments, reference):
    (table,) = tables.values()
    return table["rows"][0][-1] / 300
"""


class Desk:
    """A folder with a ledger, a vault and files, and whoever types there."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        patch.chdir(folder)
        for name in ("LEDGER", "POLICY", "VAULT", "VAULT_KEYS", "SANDBOX_UID"):
            patch.delenv(f"MODICUM_{name}", raising=False)
        patch.setenv("MODICUM_ACTOR", "olga")
        self._patch = patch
        Path("policy.yaml").write_text(POLICY)
        Path("tables.yaml").write_text(TABLES)
        Path("people.csv").write_bytes(ROWS)
        Path("q.yaml").write_text(query("r-1"))
        Path("task.yaml").write_text(TASK)
        Path("own.py").write_text(OWN)
        Path("own.wasm").write_text(OWN)  # What holds it loosely takes it for Python.
        self.run("olga", "init", "--policy", "policy.yaml")
        self.escrow("olga", "init", *PLACE)
        patch.setenv("MODICUM_VAULT", str(folder / "vault"))
        patch.setenv("MODICUM_VAULT_KEYS", str(folder / "keys.json"))

    def held_loosely(self) -> OpenSandbox:
        """Let programs run in this process from now on, and return where."""
        box = OpenSandbox()
        for tier in ("bubblewrap", "wasm"):
            self._patch.setitem(equipment._TIERS, tier, lambda uid: box)
        return box

    def run(self, who: str, *command: str, code: int = Exit.OK) -> str:
        """Return all that a command prints; it must leave with a code."""
        found = RUNNER.invoke(app, command, env={"MODICUM_ACTOR": who})
        assert found.exit_code == code, (command, found.output, found.exception)
        return found.output

    def escrow(self, who: str, *command: str, code: int = Exit.OK) -> str:
        """Return all that a command of the escrow prints."""
        return self.run(who, "escrow", *command, code=code)

    def told(self, who: str, *command: str, code: int = Exit.OK) -> Any:
        """Return the JSON document that a command of the escrow prints."""
        env = {"MODICUM_ACTOR": who}
        found = RUNNER.invoke(app, ["escrow", *command, "--json"], env=env)
        assert found.exit_code == code, (command, found.output, found.exception)
        return json.loads(found.stdout)

    def error(self, who: str, *command: str, code: int = Exit.INVALID) -> str:
        """Return the code of the mistake that a command of the escrow tells."""
        return str(self.told(who, *command, code=code)["error"]["code"])

    def register(self, *more: str) -> None:
        """Register the people, whom olga and pavel own together."""
        given = ("people", "people.csv", "--table", "tables.yaml")
        owners = ("--owner", "olga", "--owner", "pavel", "--bits", "100")
        self.escrow("olga", "register", *given, *owners, *more)

    def agree(self, name: str) -> None:
        """Let both owners agree to a contract."""
        for who in ("olga", "pavel"):
            self.escrow(who, "approve", name, *WHY)

    def queried(self) -> None:
        """Let a query of amir run, whose exact answers are kept as well."""
        self.register()
        self.escrow("amir", "submit", "query", "q", "q.yaml", "--exact", *WHY)
        self.agree("q")
        self.escrow("amir", "run", "q")

    def scored(self, *program: str) -> None:
        """Let a task of amir run on that, loosely held; by default `own.wasm`."""
        self.held_loosely()
        given = program or ("--code", "own.wasm")
        self.escrow("amir", "submit", "task", "t", "q", *given, *WHY)
        self.agree("t")
        self.escrow("amir", "run", "t")
