"""What is no ledger and cannot become one is refused alike by every command."""

from __future__ import annotations

import inspect
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from samples import parted
from typer.testing import CliRunner

from modicum.api.local.plans.plan import Plan
from modicum.cli.exit_codes import Exit
from modicum.cli.main import app
from modicum.ops.escrow.factory import create_vault

ASKED = """
release: asked
mechanisms:
  - mechanism: gaussian
    attributes: [pay]
    cost: {user: {rho: 0.1}, user-month: {rho: 0.1}}
"""
DISCLOSED = """
disclosure: told
what: a number
to: everybody
"""
WHY = ("--reason", "so")
TABLES = ("--table", "tables.yaml")
VAULT = ("--vault", "vault", "--vault-keys", "keys.json")
RISK = (
    *(
        "risk",
        "choose",
        "asked.parquet",
        "-q",
        "SELECT COUNT(*) FROM t",
        "--tau",
        "0.5",
    ),
    *("--choice", "private-selection", "--allowance", "3", "--eps-select", "0.1"),
    *("--release", "chosen", "--charge", "user", "--attributes", "pay"),
)
#: Every command that takes a ledger.
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("init", "--policy", "policy.yaml"),
    ("status",),
    ("status", "--policy", "policy.yaml"),
    ("ledger", "list"),
    ("ledger", "show", "1"),
    ("ledger", "verify"),
    ("ledger", "balance", "all"),
    ("ledger", "annotate", "a remark"),
    ("ledger", "disclose", "told.yaml"),
    ("ledger", "checkpoint", "--key", "key"),
    ("ledger", "receipt", "asked", "--key", "key"),
    ("ledger", "resume", "--after-loss", *WHY),
    ("ledger", "bring-back", "other.db"),
    ("ledger", "accept-loss", *WHY),
    ("release", "check", "asked.yaml", "--policy", "policy.yaml"),
    ("release", "submit", "asked.yaml", "--policy", "policy.yaml"),
    ("release", "start", "asked"),
    ("release", "publish", "asked"),
    ("release", "cancel", "asked", *WHY),
    ("release", "show", "asked"),
    ("release", "list"),
    ("release", "fit", "asked.yaml", "--policy", "policy.yaml"),
    ("release", "options", "asked.yaml", "--policy", "policy.yaml"),
    ("release", "backfill", "asked.yaml", "--policy", "policy.yaml"),
    ("release", "redescribe", "asked.yaml", *WHY),
    ("release", "approve", "asked.yaml", *WHY),
    ("release", "reject", "asked.yaml", *WHY),
    ("release", "approvals", "asked.yaml"),
    ("token", "create", "--actor", "olga", "--role", "analyst"),
    ("token", "list"),
    ("token", "revoke", "an-id"),
    ("request", "list"),
    ("request", "show", "asked"),
    ("request", "withdraw", "asked", *WHY),
    ("release", "submit", "asked.yaml", "--policy", "policy.yaml", "--request", "so"),
    ("audit", "trail"),
    ("audit", "export", "-o", "bundle"),
    ("audit", "report", "-o", "page.html"),
    ("audit", "registry", "-o", "records.yaml"),
    ("doctor",),
    ("db", "backup", "copy.db"),
    ("db", "restore", "copy.db", "--no-head"),
    ("db", "upgrade"),
    ("policy", "activate", "policy.yaml", *WHY),
    ("policy", "approve", "policy.yaml", *WHY),
    ("policy", "reject", "policy.yaml", *WHY),
    ("policy", "approvals", "policy.yaml"),
    ("policy", "propose", "policy.yaml", *WHY),
    ("policy", "proposals"),
    ("policy", "show"),
    ("policy", "simulate", "policy.yaml"),
    ("policy", "diff", "active", "policy.yaml"),
    ("policy", "explain", "policy.yaml", "all"),
    ("plan", "open"),
    ("plan", "run", "asked.yaml"),
    ("plan", "show"),
    ("plan", "commit", "plan.json"),
    ("plan", "remainder"),
    ("plan", "export-access", "--release", "asked"),
    ("query", "plan", "asked.yaml", "--policy", "policy.yaml"),
    ("query", "run", "asked.yaml"),
    ("query", "lint", "asked.yaml"),
    ("query", "init", "p.csv"),
    ("escrow", "list"),
    ("escrow", "list", "--data"),
    ("escrow", "show", "q"),
    ("escrow", "risk", "q", "--tau", "0.9"),
    ("escrow", "register", "people", "p.csv", *TABLES, "--owner", "o", *VAULT),
    ("escrow", "shred", "people", "1", "--yes", *WHY, *VAULT),
    ("escrow", "try", "asked.yaml", "--code", "asked.yaml", "--no-sandbox"),
    ("escrow", "submit", "query", "q", "asked.yaml", *WHY),
    ("escrow", "submit", "task", "t", "q", "--code", "asked.yaml", *WHY, *VAULT),
    ("escrow", "submit", "output", "o", "q", *WHY),
    ("escrow", "submit", "signal", "s", "t", *WHY),
    ("escrow", "submit", "raw-signal", "r", "t", "--exact", *WHY),
    ("escrow", "approve", "q", *WHY),
    ("escrow", "reject", "q", *WHY),
    ("escrow", "withdraw", "q", *WHY),
    ("escrow", "run", "q", *VAULT),
    ("escrow", "receive", "q", *VAULT),
    RISK,
)
#: What prints something else than JSON for programs, with what stands after options.
IN_WORDS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("query", "compile", "asked.yaml", "--policy", "policy.yaml"): (),
    ("release", "run", "asked"): ("--", "true"),
    ("serve",): (),
    ("serve", "--check"): (),
}
MISSING, OTHER = ("MOD701", Exit.USAGE), ("MOD707", Exit.BROKEN)
#: What is given as the ledger, what is said, and with which code.
GIVEN = {
    "folder": ("is a folder, not a ledger", *MISSING),
    ".": ("is a folder, not a ledger", *MISSING),
    "/dev/null": ("is not a file", *MISSING),
    "pipe": ("is not a file", *MISSING),
    "nowhere/ledger.db": ("there is no folder", *MISSING),
    "text.txt/ledger.db": ("not a directory", *MISSING),
    "n" * 300: ("name is too long", *MISSING),
    "": ("name is empty", *MISSING),
    "a\0b": ("NUL character", *MISSING),
    "ftp://host/ledger": ("neither a path nor a URL", *MISSING),
    "text.txt": ("is not a modicum ledger", *OTHER),
    "other.db": ("is not a modicum ledger", *OTHER),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("MODICUM_LEDGER", "MODICUM_POLICY", "MODICUM_ACTOR"):
        monkeypatch.delenv(name, raising=False)
    text = parted.POLICY.replace("NEIGHBORS", "add-remove")
    (tmp_path / "policy.yaml").write_text(text)
    (tmp_path / "asked.yaml").write_text(ASKED)
    (tmp_path / "told.yaml").write_text(DISCLOSED)
    pq.write_table(pa.table({"pay": [1]}), tmp_path / "asked.parquet")
    plan = Plan("one", "0" * 64, 1, "0" * 64, "dpk", "", (), ())
    (tmp_path / "plan.json").write_text(json.dumps(plan.to_dict()))
    (tmp_path / "text.txt").write_text("These are words.\n" * 20)
    (tmp_path / "p.csv").write_text("pay\n1\n")
    (tmp_path / "tables.yaml").write_text("modicum: tables/v1\n")
    create_vault(tmp_path / "vault", tmp_path / "keys.json")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with sqlite3.connect("other.db") as connection:
        connection.execute("CREATE TABLE orders (number)")
    connection.close()
    made = CliRunner().invoke(app, ["ledger", "key", "new", "key"])
    assert made.exit_code == 0
    return tmp_path


@pytest.mark.parametrize("ledger", GIVEN, ids=lambda name: repr(name[:20]))
def test_every_command_says_what_is_wrong(ledger: str, folder: Path) -> None:
    text, code, exit_code = GIVEN[ledger]
    before = files(folder)
    for command in COMMANDS if ledger in ("folder", "text.txt") else COMMANDS[::6]:
        # What is exported as JSON anyway tells mistakes so only if asked for it.
        as_json = ("--format=json",) if "export-access" in command else ("--json",)
        result = CliRunner().invoke(app, [*command, "--ledger", ledger, *as_json])
        assert result.exit_code == exit_code, (command, result.output)
        error = json.loads(result.stdout)["error"]
        assert (error["code"], text in error["message"]) == (code, True), command
        assert len(error["message"]) < 250
    for command, rest in IN_WORDS.items():
        result = CliRunner().invoke(app, [*command, "--ledger", ledger, *rest])
        assert result.exit_code == exit_code, (command, result.output)
        assert f"error[{code}]" in result.output, command
        assert text in result.output, command
    if code == "MOD701":
        assert files(folder) == before


def files(folder: Path) -> dict[str, int]:
    return {str(one): one.lstat().st_size for one in sorted(folder.rglob("*"))}


def test_no_command_with_a_ledger_is_forgotten() -> None:
    from typer.main import get_command

    def taking(command: Any, name: tuple[str, ...]) -> Iterator[tuple[Any, Any]]:
        """Yield the commands that take a ledger, and their names."""
        if any("--ledger" in one.opts for one in command.params):
            yield name, command
        for key, one in getattr(command, "commands", {}).items():
            yield from taking(one, (*name, key))

    found = dict(taking(get_command(app), ()))
    shown = [one for one in found if not found[one].hidden]
    known = (*COMMANDS, *IN_WORDS)
    for name in shown:
        assert any(command[: len(name)] == name for command in known), name
    # Old names run what is known under a new one.
    functions = [inspect.unwrap(found[name].callback) for name in shown]
    hidden = found.keys() - set(shown)
    assert ("release", "void") in hidden
    for name in hidden:
        assert inspect.unwrap(found[name].callback) in functions, name
