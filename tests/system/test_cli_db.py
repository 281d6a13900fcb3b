"""`modicum db`: what its commands print, leave behind and leave with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from samples.audited import log
from samples.kept import kept_ledger, rows_of
from samples.postgres import Cluster
from samples.stores import postgres_place
from typer.testing import CliRunner, Result

from modicum.cli.exit_codes import Exit
from modicum.cli.main import app
from modicum.storage.factory import open_store

GOLDEN = Path(__file__).parents[1] / "golden" / "ledgers" / "v1.db"
LAST = len(list(log()))


@pytest.fixture
def head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a ledger in the current folder; its head."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MODICUM_LEDGER", raising=False)
    return kept_ledger("ledger.db", tmp_path)


def run(*args: str) -> Result:
    return CliRunner().invoke(app, ["db", *args])


def told(*args: str) -> dict[str, Any]:
    result = run(*args, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_backup_and_what_was_restored_from_it_are_told(head: str) -> None:
    assert run("backup", "b.db").output == (
        f"b.db: chain ok, {LAST} entries, 2 checkpoints\n  head {head}\n"
    )
    result = run("restore", "b.db", "--ledger", "r.db", "--head", head[:12])
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert result.stdout.startswith(f"r.db: restored, {LAST} entries, ")
    for text in (f"head {head}", f"that of entry {LAST}", "backfill"):
        assert text in result.stdout
    assert rows_of(Path("r.db")) == rows_of(Path("b.db")) == rows_of(Path("ledger.db"))


@pytest.mark.spec("OPS-4")
def test_a_restore_without_a_head_is_explicit(head: str) -> None:
    run("backup", "b.db")
    refused = run("restore", "b.db", "--ledger", "r.db")
    assert refused.exit_code == Exit.USAGE
    for option in ("--head", "--known-head", "--no-head"):
        assert option in refused.stderr
    assert not Path("r.db").exists()
    for json_too, name in (((), "1.db"), (("--json",), "2.db")):
        done = run("restore", "b.db", "--ledger", name, "--no-head", *json_too)
        assert done.exit_code == Exit.OK
        assert "no head was compared: nothing shows" in done.stderr
        assert rows_of(Path(name)) == rows_of(Path("b.db"))


@pytest.mark.spec("OPS-4")
def test_one_of_several_known_heads_is_enough(head: str) -> None:
    run("backup", "b.db")
    known = ("--known-head", "0" * 12, "--known-head", head)
    done = run("restore", "b.db", "--ledger", "r.db", *known)
    assert (done.exit_code, done.stderr) == (Exit.OK, "")


@pytest.mark.parametrize("option", ["--head", "--known-head"])
def test_a_head_is_not_combined_with_no_head(head: str, option: str) -> None:
    run("backup", "b.db")
    result = run("restore", "b.db", "--ledger", "r.db", option, head, "--no-head")
    assert result.exit_code == Exit.USAGE
    assert not Path("r.db").exists()


def test_programs_are_told_the_same(head: str) -> None:
    made = told("backup", "b.db")
    at = made.pop("at")
    assert made == {"file": "b.db", "entries": LAST, "head": head, "checkpoints": 2}
    restored = told("restore", "b.db", "--ledger", "r.db", "--head", head)
    assert restored.pop("decisions") > 0
    assert restored == {
        "ledger": "r.db",
        "entries": LAST,
        "head": head,
        "at": at,
        "noted": LAST,
        "left_out": 0,
    }


@pytest.mark.parametrize("option", ["--head", "--known-head"])
def test_a_head_that_is_not_there_leaves_with_6(head: str, option: str) -> None:
    run("backup", "b.db")
    result = run("restore", "b.db", "--ledger", "r.db", option, "0123456789ab")
    assert result.exit_code == Exit.BROKEN
    assert "error[MOD702]" in result.stderr
    assert not Path("r.db").exists()
    result = run("restore", "b.db", "--ledger", "r.db", option, "0123")
    assert result.exit_code == Exit.USAGE
    assert not Path("r.db").exists()


def test_nothing_is_restored_over_the_ledger_in_use(head: str) -> None:
    run("backup", "b.db")
    result = run("restore", "b.db", "--head", head)
    assert result.exit_code == Exit.USAGE
    assert "error[MOD708]" in result.stderr
    assert rows_of(Path("ledger.db"))[-1][2] == head


@pytest.mark.spec("OPS-5")
def test_tables_of_an_older_version_are_found_and_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(GOLDEN, "old.db")
    before, rows = Path("old.db").read_bytes(), rows_of(Path("old.db"))
    result = run("upgrade", "--check", "--ledger", "old.db")
    assert result.exit_code == Exit.STALE
    assert "version 1" in result.stdout
    assert Path("old.db").read_bytes() == before
    first = told("upgrade", "--ledger", "old.db")
    assert first == {
        "ledger": "old.db",
        "before": 1,
        "tables": first["current"],
        "current": first["current"],
        "changed": True,
    }
    assert first["current"] > 1
    assert rows_of(Path("old.db")) == rows  # Not an entry more.
    second = told("upgrade", "--ledger", "old.db")
    assert second == {**first, "before": first["current"], "changed": False}
    assert told("upgrade", "--check", "--ledger", "old.db") == second


@pytest.mark.spec("OPS-5")
def test_tables_on_a_server_are_brought_up_to_date(
    head: str, tmp_path: Path, postgres: Cluster
) -> None:
    place = postgres_place(postgres)
    (tmp_path / "other").mkdir()
    kept_ledger(place.url, tmp_path / "other")
    for table in ("answers", "tokens", "sessions", "trail", "trail_marks"):
        place.damage(f"DROP TABLE {{s}}{table}")
    place.damage("DELETE FROM {s}migrations WHERE version > 1")
    before = list(place.open().read(0))
    result = run("upgrade", "--check", "--ledger", place.url)
    assert result.exit_code == Exit.STALE, result.output
    assert told("upgrade", "--ledger", place.url)["changed"] is True
    assert told("upgrade", "--check", "--ledger", place.url)["before"] > 1
    assert list(place.open().read(0)) == before


def test_a_ledger_moves_to_a_server_and_no_password_is_shown(
    head: str, postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.new_ledger().replace("postgres@", "postgres:s3cret@")
    run("backup", "b.db")
    output = run("restore", "b.db", "--ledger", url, "--head", head)
    assert output.exit_code == 0, output.output
    again = run("restore", "b.db", "--ledger", url, "--head", head)
    assert "error[MOD708]" in again.stderr
    assert again.exit_code == Exit.USAGE
    up = run("upgrade", "--ledger", url, "--check")
    assert up.exit_code == 0
    back = run("backup", "b2.db", "--ledger", url)
    assert back.exit_code == 0
    assert rows_of(Path("b2.db")) == rows_of(Path("ledger.db"))
    first = next(iter(open_store("ledger.db").read(0))).hash
    monkeypatch.setenv("MODICUM_WITNESS", "head")
    part = run("restore", url, "--ledger", "part.db", "--until", first)
    assert (part.exit_code, "bring-back" in part.output) == (0, True)
    every = (output, again, up, back, part)
    assert "s3cret" not in "".join(one.output for one in every)
