"""`ledger resume`, `bring-back` and `accept-loss`, as people type them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from samples.lost import RULES
from samples.small import counts
from typer.testing import CliRunner, Result

import modicum as mo
from modicum.cli.main import app
from modicum.ledger import Event, event_of, seal
from modicum.ledger.log.events import ReleaseStarted
from modicum.storage.factory import open_store
from modicum.system.clock import FixedClock, SystemClock, add_seconds


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a ledger that was restored, and the lost one."""
    monkeypatch.chdir(tmp_path)
    Path("disk").mkdir()
    monkeypatch.setenv("MODICUM_WITNESS", "disk/head")
    Path("policy.yaml").write_text(RULES)
    for name in ("first", "second"):
        Path(f"{name}.json").write_text(json.dumps(counts(name)))
    assert run("init").exit_code == 0
    assert run("release", "submit", "first.json").exit_code == 0
    shutil.copy("ledger.db", "older.db")
    assert run("release", "submit", "second.json").exit_code == 0
    shutil.copy("ledger.db", "full.db")
    for one in tmp_path.glob("ledger.db*"):
        one.unlink()
    shutil.copy("older.db", "ledger.db")
    return tmp_path


def run(*words: str, actor: str = "ann") -> Result:
    return CliRunner().invoke(app, list(words), env={"MODICUM_ACTOR": actor})


def printed(*words: str, actor: str = "ann") -> dict[str, Any]:
    done = run(*words, "--json", actor=actor)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def restored(*heads: str) -> Result:
    return run("db", "restore", "jumped.db", *heads)


@pytest.mark.spec("LED-34", "OPS-4")
def test_a_clock_that_jumped_is_repaired_by_two_people(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy("full.db", "ledger.db")
    last = printed("ledger", "verify")["head"]
    ahead = FixedClock(add_seconds(SystemClock().now(), 9 * 365 * 86_400))
    jumped = mo.open("ledger.db", actor="ann", clock=ahead)
    assert jumped.submit(counts("third")).allowed
    Path("ledger.db").rename("jumped.db")
    with monkeypatch.context() as patch:
        patch.delenv("MODICUM_WITNESS")
        refused = restored("--until", last[:12])
    assert refused.exit_code == 2
    assert "no witness is named" in refused.stderr
    assert restored("--until", last, "--no-head").exit_code == 2
    assert restored("--until", "0" * 64).exit_code == 6
    assert "--until" in restored("--until", "xyz").stderr
    assert not Path("ledger.db").exists()
    done = restored("--until", last[:12])
    assert done.exit_code == 0, done.output
    assert "restored, 3 entries" in done.stdout
    assert "later ones left out: 3" in done.stdout
    assert "bring-back 'jumped.db'" in done.stdout
    assert run("release", "submit", "second.json").exit_code == 6
    assert run(*RESUME).exit_code == 0
    assert run(*RESUME, "--agree", actor="bob").exit_code == 0
    assert "the gap is closed" in run("ledger", "bring-back", "jumped.db").stdout
    assert mo.open("ledger.db").state().at <= SystemClock().now()
    assert printed("release", "show", "third")["status"] == "recorded"


@pytest.mark.spec("OPS-4")
def test_a_backup_that_is_broken_after_the_cut_changes_nothing(folder: Path) -> None:
    store = open_store("full.db")
    records = list(store.read(0))
    at = event_of(records[-1], len(records)).at
    bad = Event(at, "ann", ReleaseStarted("nobody"))
    with store.turn() as turn:
        turn.append([seal(bad, len(records) + 1, records[-1].hash)])
    store.close()
    (folder / "full.db").rename("jumped.db")
    (folder / "ledger.db").unlink()
    witness = (folder / "disk" / "head").read_bytes()
    refused = restored("--until", records[-1].hash)
    assert (refused.exit_code, "nobody" in refused.stderr) == (6, True)
    assert (folder / "disk" / "head").read_bytes() == witness
    assert not (folder / "ledger.db").exists()


RESUME = ("ledger", "resume", "--after-loss", "--reason", "the disk failed")
ACCEPT = ("ledger", "accept-loss", "--reason", "it was a test")


@pytest.mark.spec("LED-32", "LED-34")
@pytest.mark.usefixtures("folder")
def test_a_ledger_goes_on_and_has_everything_again() -> None:
    refused = run("status")
    assert refused.exit_code == 6
    assert "ledger resume --after-loss" in refused.stderr
    asked = run(*RESUME)
    assert asked.exit_code == 0
    assert "are lost; you asked to go on (entry 3)" in asked.stdout
    alone = run(*RESUME, "--agree")
    assert alone.exit_code == 5
    assert "another person must agree" in alone.stderr
    done = printed(*RESUME, "--agree", actor="bob")
    assert (done["outcome"], done["entry"], done["lost"]["seq"]) == ("resumed", 4, 3)
    denied = run("release", "check", "second.json")
    assert denied.exit_code == 3
    assert "are lost" in denied.stdout
    started = run("release", "start", "first")
    assert (started.exit_code, "MOD715" in started.stderr) == (4, True)
    status = run("status")
    assert status.exit_code == 0
    assert "warning[MOD715]: nothing may be spent" in status.stderr
    assert "are lost" in run("ledger", "verify").stdout
    found = run("ledger", "bring-back", "full.db")
    assert found.exit_code == 0
    assert "entries 3 to 3 were found; releases recorded: 1" in found.stdout
    assert "the gap is closed" in found.stdout
    assert printed("ledger", "verify")["gaps"] == []
    assert run("release", "start", "first").exit_code == 0


@pytest.mark.spec("LED-35")
@pytest.mark.usefixtures("folder")
def test_two_people_accept_a_loss() -> None:
    assert printed(*RESUME)["outcome"] == "asked"
    assert run(*RESUME, "--agree", actor="bob").exit_code == 0
    assert "you asked to accept that (entry 5)" in run(*ACCEPT).stdout
    assert run(*ACCEPT, "--agree").exit_code == 5
    assert printed(*ACCEPT, "--agree", actor="bob")["outcome"] == "accepted"
    assert printed("ledger", "verify")["losses_accepted"] == [7]
    text = run("ledger", "verify").stdout
    assert "entries were lost; two people accepted that, with entry 7" in text
    assert run("release", "check", "second.json").exit_code == 0


@pytest.mark.spec("LED-32")
@pytest.mark.usefixtures("folder")
def test_without_a_witness_nothing_is_known_to_be_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MODICUM_WITNESS")
    done = run(*RESUME)
    assert done.exit_code == 2
    assert "no witness is named" in done.stderr
    assert run("ledger", "resume", "--reason", "x").exit_code == 2
