"""The commands that hand a ledger to an auditor, and those of the auditor."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from samples.audited import (
    activated,
    at,
    bundle,
    described_anew,
    key,
    log,
    priced,
    sealed,
)
from samples.small import POLICY, compiled
from typer.testing import CliRunner

from modicum.api.local import Workspace
from modicum.cli.main import app
from modicum.ledger.log.events import PastRecorded
from modicum.ledger.proof.checkpoints import receipt_of
from modicum.ledger.proof.claims import signed_bytes
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import SystemClock

RUNNER = CliRunner()
GOLDEN = Path(__file__).parents[1] / "golden" / "ledgers" / "v1.db"
HEAD = "41bef02409f803abbef8b96f4faff7fbcfa4b8de1d37f05dad548bb805dc7b11"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a ledger and a key, as working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MODICUM_LEDGER", raising=False)
    shutil.copy(GOLDEN, tmp_path / "ledger.db")
    run("ledger", "key", "new", "key.pem")
    return tmp_path


def run(*args: str, exit_code: int = 0, typed: str | None = None) -> str:
    result = RUNNER.invoke(app, args, input=typed)
    assert result.exit_code == exit_code, (result.output, result.exception)
    return result.output


def document(*args: str, exit_code: int = 0) -> Any:
    return json.loads(run(*args, "--json", exit_code=exit_code))


@pytest.mark.spec("AUD-5")
def test_an_auditor_needs_a_bundle_and_a_public_key(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No ledger, no network: the bundle says it all."""
    run("ledger", "checkpoint", "--key", "key.pem", "-o", "kept.json")
    run("audit", "export", "-o", "acme.modicum-audit")
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    for name in ("acme.modicum-audit", "key.pem.pub", "kept.json"):
        shutil.move(folder / name, elsewhere / name)
    (folder / "ledger.db").unlink()
    monkeypatch.chdir(elsewhere)

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(socket, "socket", refuse)
    args = ("audit", "verify", "acme.modicum-audit", "--public-key", "key.pem.pub")
    output = run(*args, "--checkpoint", "kept.json", "--require-checkpoint")
    assert "chain ok, 13 entries, 6 decisions replayed, all match" in output
    assert "all 13 entries are signed by trusted keys" in output
    found = document(*args)
    assert found["head"] == HEAD
    assert found["pinned"] == 13
    assert found["signed"][0]["trusted"]
    assert sorted(os.listdir(elsewhere)) == [
        "acme.modicum-audit",
        "kept.json",
        "key.pem.pub",
    ]


def test_what_a_key_that_nobody_named_signed_is_not_relied_on(folder: Path) -> None:
    run("audit", "export", "-o", "bundle", "--key", "key.pem")
    output = run("audit", "verify", "bundle")
    assert "an untrusted key" in output
    assert "no entry is signed by a trusted key" in output
    error = document("audit", "verify", "bundle", "--require-checkpoint", exit_code=6)
    assert error["error"]["code"] == "MOD702"
    run("ledger", "key", "new", "other.pem")
    named = ("--public-key", "other.pem.pub", "--require-checkpoint")
    run("audit", "verify", "bundle", *named, exit_code=6)
    run("audit", "verify", "bundle", "--public-key", "key.pem.pub", *named)


def test_the_checkpoint_that_was_kept_finds_a_ledger_that_was_cut(
    folder: Path,
) -> None:
    run("ledger", "checkpoint", "--key", "key.pem", "-o", "kept.json")
    run("ledger", "verify", "--checkpoint", "kept.json")
    (folder / "short").write_bytes(bundle(log()[:3]))
    run("audit", "verify", "short")
    output = run("audit", "verify", "short", "--checkpoint", "kept.json", exit_code=6)
    assert "another ledger" in output
    (folder / "ledger.db").unlink()
    run("ledger", "verify", "--checkpoint", "kept.json", exit_code=2)


def test_the_ledger_checks_what_was_signed_about_it(folder: Path) -> None:
    run("ledger", "verify")
    run("ledger", "verify", "--require-checkpoint", exit_code=6)
    line = run("ledger", "checkpoint", "--key", "key.pem")
    assert json.loads(line)["claim"]["head"] == HEAD
    (folder / "kept.json").write_text(line)
    named = ("--public-key", "key.pem.pub")
    output = run("ledger", "verify", *named, "--require-checkpoint")
    assert "all 13 entries" in output
    found = document("ledger", "verify", *named, "--checkpoint", "kept.json")
    assert [one["source"] for one in found["signed"]] == ["kept.json", "the ledger"]
    receipt = run("ledger", "receipt", "denied", "--key", "key.pem")
    (folder / "receipt.json").write_text(receipt)
    output = run("ledger", "verify", "--checkpoint", "receipt.json")
    assert "receipt for denied (deny)" in output
    done = document(
        "ledger", "receipt", "posted", "--key", "key.pem", "-o", "second.json"
    )
    assert done["seq"] == 2
    run("ledger", "receipt", "nobody", "--key", "key.pem", exit_code=4)


def test_what_a_receipt_says_is_not_obeyed_by_a_terminal(folder: Path) -> None:
    digest = compiled().policy.digest
    hostile = described_anew(replace(priced("r-1", POLICY), id="r\x1b[2J"))
    rows = sealed([activated(POLICY), PastRecorded(hostile, digest)])
    receipt = receipt_of(rows[1], ledger=rows[0].hash, at=at(0), key=key().id)
    assert receipt is not None
    (folder / "receipt.json").write_bytes(signed_bytes(key().sign(receipt)))
    (folder / "hostile").write_bytes(bundle(rows))
    shown = run("audit", "verify", "hostile", "--checkpoint", "receipt.json")
    assert "receipt for r\\x1b[2J (recorded)" in shown
    assert "\x1b" not in shown


@pytest.mark.spec("AUD-4")
def test_a_named_key_that_signed_nothing_is_told(folder: Path) -> None:
    run("audit", "export", "-o", "bundle")
    assert "vouched" not in run("audit", "verify", "bundle")
    output = run("audit", "verify", "bundle", "--public-key", "key.pem.pub")
    assert "no entry is signed by a trusted key" in output


def tampered(folder: Path) -> None:
    """Make a snapshot, then change an entry where a start from it does not look."""
    ledger = folder / "ledger.db"
    store = SqliteStore(ledger)
    Workspace(store, SystemClock(), actor="t", snapshots=store).save_snapshot()
    with closing(sqlite3.connect(ledger)) as connection, connection:
        connection.execute(
            "UPDATE events SET payload = CAST(replace(CAST(payload AS TEXT),"
            " 'actor', 'actoR') AS BLOB) WHERE seq = 4"
        )


def test_nothing_is_signed_about_a_ledger_that_does_not_hold(folder: Path) -> None:
    tampered(folder)
    run("ledger", "verify", exit_code=6)
    for command in (
        ("ledger", "checkpoint"),
        ("ledger", "receipt", "posted"),
        ("audit", "export", "-o", "bundle"),
    ):
        output = run(*command, "--key", "key.pem", exit_code=6)
        assert "entry 4" in output
    assert not (folder / "bundle").exists()
    assert SqliteStore(folder / "ledger.db").checkpoints() == []


def test_what_a_forged_release_says_is_not_obeyed_by_a_terminal(folder: Path) -> None:
    hostile = priced("r-1", POLICY)
    hostile = replace(hostile, metadata={"purpose": "\x1b[2J\x07\x9b\u202e ü"})
    rows = sealed(
        [
            activated(POLICY),
            PastRecorded(described_anew(hostile), compiled().policy.digest),
        ]
    )
    (folder / "forged").mkdir()
    ledger = str(folder / "forged" / "ledger.db")
    with SqliteStore(ledger).turn() as turn:
        turn.append(rows)
    shown = run("release", "show", "r-1", "--ledger", ledger)
    assert "purpose: \\x1b[2J\\x07\\x9b\\u202e ü" in shown
    printed = run("release", "show", "r-1", "--ledger", ledger, "--json")
    assert "\\u001b[2J\\u0007\\u009b\\u202e ü" in printed
    for text in (shown, printed):
        assert all(character.isprintable() or character == "\n" for character in text)
    assert json.loads(printed)["metadata"] == dict(hostile.metadata)


def test_a_broken_bundle_leaves_with_6_and_another_file_with_4(folder: Path) -> None:
    run("audit", "export", "-o", "bundle")
    data = bytearray((folder / "bundle").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "bent").write_bytes(bytes(data))
    assert document("audit", "verify", "bent", exit_code=6)["error"]["code"] == "MOD702"
    other = document("audit", "verify", "ledger.db", exit_code=4)
    assert other["error"]["code"] == "MOD001"
    run("audit", "verify", "missing", exit_code=4)
    run("audit", "verify", "bundle", "--public-key", "key.pem", exit_code=4)
    run("audit", "verify", "bundle", "--checkpoint", "key.pem.pub", exit_code=4)
    run("audit", "export", "--ledger", "none.db", "-o", "bundle", exit_code=2)
    run("audit", "export", "-o", "no/such/folder", exit_code=2)
    run("audit", "report", "bundle", exit_code=2)  # Neither a file nor JSON.


@pytest.mark.parametrize(
    "command",
    [
        ("audit", "export"),
        ("audit", "report"),
        ("audit", "registry"),
        ("ledger", "checkpoint", "--key", "key.pem"),
    ],
)
@pytest.mark.parametrize("name", ["ledger.db", "link", "other.db"])
def test_nothing_is_written_over_a_ledger(
    command: tuple[str, ...], name: str, folder: Path
) -> None:
    (folder / "link").symlink_to(folder / "ledger.db")
    with closing(sqlite3.connect(folder / "other.db")) as connection, connection:
        connection.execute("CREATE TABLE notes (note TEXT)")
    before = (folder / "other.db").read_bytes()
    error = document(*command, "-o", name, exit_code=2)["error"]
    assert error["code"] == "MOD708"
    assert error["help"] == "choose another name"
    assert (folder / "other.db").read_bytes() == before
    assert (folder / "link").is_symlink()
    run("ledger", "verify")


def test_what_is_no_database_is_written_over(folder: Path) -> None:
    for content in (b"", b"SQLite format 3", b"an older bundle"):
        (folder / "bundle").write_bytes(content)
        run("audit", "export", "-o", "bundle")
        run("audit", "verify", "bundle")


def test_a_statement_is_written_about_a_ledger_or_a_bundle(folder: Path) -> None:
    run("audit", "export", "-o", "bundle")
    output = run("audit", "report", "bundle", "-o", "statement.html")
    assert "13 entries verified, 6 releases" in output
    run("audit", "report", "--ledger", "ledger.db", "-o", "other.html")
    page = (folder / "statement.html").read_text()
    assert page.replace("bundle,", "ledger.db,") == (folder / "other.html").read_text()
    found = document("audit", "report", "bundle")
    assert found["verified"]["entries"] == 13
    assert found["as_of"]["seq"] == 13
    assert len(found["rules"]) == 42


def test_the_registry_gets_what_is_out(folder: Path) -> None:
    output = run("audit", "registry", "-o", "releases.yaml")
    assert "2 records" in output
    assert "url_slug: posted" in (folder / "releases.yaml").read_text()
    found = document("audit", "registry")
    assert [one["url_slug"] for one in found["records"]] == ["posted", "past"]


def test_keys_with_a_passphrase(folder: Path) -> None:
    (folder / "phrase").write_text("correct horse\n")
    run("ledger", "key", "new", "safe.pem", "--passphrase-file", "phrase")
    sign = ("ledger", "checkpoint", "--key", "safe.pem")
    run(*sign, "--passphrase-file", "phrase")
    run(*sign, typed="correct horse\n")
    run(*sign, exit_code=4, typed="wrong\n")
    (folder / "empty").write_text("")
    run(*sign, "--passphrase-file", "empty", exit_code=4)
    run("ledger", "key", "new", "asked.pem", "--encrypt", typed="a b c\na b c\n")
    run("ledger", "checkpoint", "--key", "asked.pem", typed="a b c\n")
    run("ledger", "key", "new", "key.pem", exit_code=2)
    (folder / "key.pem").chmod(0o644)
    run("ledger", "checkpoint", "--key", "key.pem", exit_code=2)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "command",
    [
        ("ledger", "checkpoint", "--key", "safe.pem"),
        ("ledger", "key", "new", "--encrypt", "another.pem"),
    ],
)
def test_without_a_terminal_nobody_is_asked(command: tuple[str, ...]) -> None:
    Path("phrase").write_text("correct horse\n")
    run("ledger", "key", "new", "safe.pem", "--passphrase-file", "phrase")
    script = "from modicum.cli.main import app; app()"
    found = subprocess.run(
        [sys.executable, "-c", script, *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,  # So there is no terminal to open either.
    )
    assert found.returncode == 2
    assert "--passphrase-file" in found.stderr
    for word in ("GetPassWarning", "Aborted", "getpass.py"):
        assert word not in found.stderr
    assert not Path("another.pem").exists()


def test_another_key_than_the_one_that_signed_is_named(folder: Path) -> None:
    run("ledger", "checkpoint", "--key", "key.pem", "-o", "kept.json")
    run("ledger", "key", "new", "other.pem")
    named = ("ledger", "verify", "--public-key", "other.pem.pub")
    signed_by = json.loads((folder / "kept.json").read_text())["claim"]["key"][:12]
    output = run(*named, "--checkpoint", "kept.json", exit_code=6)
    assert "perhaps you gave another key" in output
    assert "keep both" not in output
    output = run(*named, "--require-checkpoint", exit_code=6)
    assert f"were signed by {signed_by}…" in output
    assert "name the key with" not in output
    output = run("ledger", "verify", "--require-checkpoint", exit_code=6)
    assert "give the key with  --public-key" in output


def test_a_bundle_is_not_a_ledger_and_not_read_beside_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("audit", "export", "-o", "bundle")
    output = run("ledger", "verify", "--ledger", "bundle", exit_code=2)
    assert "modicum audit verify bundle" in output
    for command in ("report", "registry"):
        args = ("audit", command, "bundle", "-o", "out")
        run(*args, "--ledger", "ledger.db", exit_code=2)
        assert not (folder / "out").exists()
        monkeypatch.setenv("MODICUM_LEDGER", "elsewhere.db")
        run(*args)
        monkeypatch.delenv("MODICUM_LEDGER")
        (folder / "out").unlink()


def test_no_file_is_named_like_a_pipe(folder: Path) -> None:
    for command in (
        ("audit", "export"),
        ("audit", "report"),
        ("audit", "registry"),
        ("ledger", "checkpoint", "--key", "key.pem"),
        ("ledger", "receipt", "r-1", "--key", "key.pem"),
    ):
        run(*command, "-o", "-", exit_code=2)
    assert not (folder / "-").exists()


JSON_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "json.md"


def described(section: str) -> set[str]:
    """Return the keys that the manual describes in a section."""
    text = JSON_PAGE.read_text(encoding="utf-8")
    part = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert part is not None, section
    return set(re.findall(r"^\| `([^`]+)` \|", part[1], re.MULTILINE))


def keys(value: object, known: set[str], path: str = "") -> Iterator[str]:
    """Yield the paths of a document; a described `x.*` stands for any key."""
    if isinstance(value, dict):
        for key, inner in value.items():
            one = f"{path}.*" if f"{path}.*" in known else f"{path}.{key}"
            yield one.removeprefix(".")
            yield from keys(inner, known, one.removeprefix("."))
    elif isinstance(value, list):
        for item in value:
            yield from keys(item, known, f"{path}[]")


def test_every_key_that_is_printed_is_described(folder: Path) -> None:
    (folder / "rich").write_bytes(bundle(log()))
    run("ledger", "checkpoint", "--key", "key.pem")
    verified = document("ledger", "verify")
    statement = document("audit", "report", "rich")
    del statement["verified"]["signed"]
    statement["verified"] = {}  # Described in a section of its own.
    documents = {
        "A signed claim": verified["signed"][0],
        "A new key": document("ledger", "key", "new", "second.pem"),
        "A file that was signed": document(
            "ledger", "checkpoint", "--key", "key.pem", "-o", "line.json"
        ),
        "A bundle that was written": document("audit", "export", "-o", "bundle"),
        "A statement": statement,
    }
    for section, found in documents.items():
        # These have tests of their own: test_escrow_timeline.py, test_corrections.py.
        own = ("escrow.", "corrections[]")
        known = {one for one in described(section) if not one.startswith(own)}
        printed = {one for one in keys(found, known) if not one.startswith(own)}
        assert printed == known, section
    assert described("A verification") == set(verified)
    assert set(document("audit", "registry")) == described("Records for a registry") - {
        "records[]"
    }


def test_nothing_but_signatures_needs_the_library_for_them(folder: Path) -> None:
    run("audit", "export", "-o", "bundle")
    for args in (["audit", "verify", "bundle"], ["ledger", "verify"]):
        script = (
            f"import sys; sys.argv = {['modicum', *args]!r}\n"
            "from modicum.cli.main import app\n"
            "app(standalone_mode=False)\n"
            "assert 'cryptography' not in sys.modules\n"
        )
        subprocess.run([sys.executable, "-c", script], check=True, cwd=folder)


def test_asking_writes_nothing(folder: Path) -> None:
    before = (folder / "ledger.db").read_bytes()
    run("audit", "export", "-o", "bundle", "--key", "key.pem")
    run("audit", "report", "-o", "statement.html")
    run("audit", "registry", "-o", "releases.yaml")
    run("ledger", "verify", "--public-key", "key.pem.pub")
    assert (folder / "ledger.db").read_bytes() == before
