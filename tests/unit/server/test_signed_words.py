"""What a server signs: the files that the commands write, and that they verify."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from samples.served import Served, served
from samples.shapes import exactly
from samples.small import POLICY
from typer.testing import CliRunner

from modicum.api.schema.signature import SignedCheckpoint, SignedReceipt
from modicum.cli.main import app
from modicum.core.errors import InputError, ModicumError, UsageError
from modicum.ledger.proof.claims import read_signed, signed_bytes
from modicum.server.factory import open_server
from modicum.server.resources import Equipment, equipment
from modicum.server.settings.model import Settings
from modicum.storage.factory import open_store
from modicum.storage.proofs.ledger_log import sign_checkpoint
from modicum.storage.proofs.receipts import sign_receipt
from modicum.storage.proofs.signing_keys import Signing, SigningKey, make_key


def release(name: str, sigma: float = 500) -> dict[str, Any]:
    return {
        "release": name,
        "dataset": "visits",
        "mechanisms": [
            {
                "name": "counts",
                "mechanism": "gaussian",
                "attributes": ["diagnosis"],
                "sensitivity": {"user": {"l2": 1}},
                "sigma": sigma,
            }
        ],
    }


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return make_key(tmp_path / "key")


@pytest.fixture
def server(tmp_path: Path, key: SigningKey) -> Iterator[Served]:
    (tmp_path / "policy.yaml").write_text(POLICY)
    own = Equipment(signing_key=key)
    ledger = tmp_path / "ledger.db"
    with served(ledger, policy=tmp_path / "policy.yaml", own=own) as found:
        found.post("ann", "/releases", release("allowed"))
        found.post("ann", "/releases", release("denied", 0.01))
        found.post("dara", "/releases:record-past", release("past"))
        yield found


def verified(tmp_path: Path, content: bytes, **more: Any) -> Any:
    """Return what the command says of a claim, by the public key alone."""
    claim = tmp_path / "claim.json"
    claim.write_bytes(content)
    args = ["ledger", "verify", "--ledger", tmp_path / "ledger.db"]
    args += ["--checkpoint", claim, "--public-key", tmp_path / "key.pub", "--json"]
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    return done.exit_code, json.loads(done.stdout) if not done.exit_code else None


def test_a_checkpoint_is_the_commands_and_verifies(
    server: Served, tmp_path: Path, key: SigningKey
) -> None:
    answered = server.get("audra", "/ledger/checkpoint")
    assert answered.status_code == 200
    exactly(SignedCheckpoint, answered.json())
    found = read_signed(answered.content)
    own = sign_checkpoint(
        open_store(tmp_path / "ledger.db"), Signing(key, found.claim.at)
    )
    assert answered.content == signed_bytes(own)
    code, report = verified(tmp_path, answered.content)
    assert (code, report["pinned"], report["signed"][0]["trusted"]) == (0, 4, True)


def test_a_checkpoint_is_of_the_head_as_it_is(server: Served) -> None:
    first = server.get("audra", "/ledger/checkpoint").content
    assert server.get("audra", "/ledger/checkpoint").content == first
    server.post("ann", "/releases", release("more"))
    head = server.get("audra", "/ledger/head").json()
    claim = server.get("audra", "/ledger/checkpoint").json()["claim"]
    assert (claim["seq"], claim["head"]) == (5, head["head"])


def test_receipts_are_the_commands_as_the_log_grows(
    server: Served, tmp_path: Path, key: SigningKey
) -> None:
    def agree(name: str, decision: str) -> None:
        answered = server.get("ann", f"/releases/{name}/receipt")
        assert answered.status_code == 200, answered.text
        exactly(SignedReceipt, answered.json())
        at = read_signed(answered.content).claim.at
        store = open_store(tmp_path / "ledger.db")
        assert answered.content == signed_bytes(
            sign_receipt(store, name, Signing(key, at))
        )
        assert answered.json()["claim"]["decision"] == decision
        assert verified(tmp_path, answered.content)[0] == 0

    agree("allowed", "allow")
    agree("denied", "deny")
    agree("past", "recorded")
    server.post("ann", "/releases", release("team/more"))
    agree("team/more", "allow")
    server.post("ann", "/releases", release("denied"))  # A smaller one: it fits.
    agree("denied", "allow")
    server.post("ann", "/releases/allowed:void", {"reason": "x"})
    agree("allowed", "allow")


def test_a_receipt_is_for_those_who_see_the_release(server: Served) -> None:
    hidden = (("lee", "allowed"), ("lee", "denied"), ("root", "past"))
    for who, name in (*hidden, ("ann", "unknown")):
        answered = server.get(who, f"/releases/{name}/receipt")
        assert (answered.status_code, answered.json()["code"]) == (404, "MOD704")


def test_nothing_is_signed_about_a_log_that_does_not_hold(
    server: Served, tmp_path: Path
) -> None:
    with sqlite3.connect(tmp_path / "ledger.db") as database:
        table, column = "events", "payload"
        (payload,) = database.execute(
            f"SELECT {column} FROM {table} WHERE seq = 2"
        ).fetchone()
        changed = payload.replace(b"500", b"501")
        assert changed != payload
        database.execute(f"UPDATE {table} SET {column} = ? WHERE seq = 2", (changed,))
    for path in ("/ledger/checkpoint", "/releases/past/receipt"):
        for _ in range(2):
            answered = server.get("olga", path)
            assert (answered.status_code, answered.json()["code"]) == (503, "MOD702")


def test_an_entry_that_changes_later_is_not_signed(
    server: Served, tmp_path: Path
) -> None:
    """Not even if it was given the hash of its new content."""
    assert server.get("ann", "/releases/past/receipt").status_code == 200
    with sqlite3.connect(tmp_path / "ledger.db") as database:
        select = "SELECT payload FROM events WHERE seq = 2"
        (payload,) = database.execute(select).fetchone()
        changed = payload.replace(b"500", b"501")
        forged = hashlib.sha256(changed).hexdigest()
        update = "UPDATE events SET payload = ?, hash = ? WHERE seq = 2"
        database.execute(update, (changed, forged))
    answered = server.get("ann", "/releases/allowed/receipt")
    assert (answered.status_code, answered.json()["code"]) == (503, "MOD702")


def test_a_bundle_carries_a_checkpoint_of_its_head(
    server: Served, tmp_path: Path
) -> None:
    bundle = tmp_path / "audit.zip"
    bundle.write_bytes(server.get("audra", "/audit/bundles").content)
    args = ["audit", "verify", bundle, "--public-key", tmp_path / "key.pub", "--json"]
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["pinned"], report["entries"]) == (4, 4)
    # It lies in the bundle alone: who reads changes nothing.
    assert open_store(tmp_path / "ledger.db").checkpoints() == []


def test_without_a_key_it_says_which_setting_is_missing(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    with served(tmp_path / "ledger.db", policy=tmp_path / "policy.yaml") as bare:
        bare.post("ann", "/releases", release("allowed"))
        for path in ("/ledger/checkpoint", "/releases/allowed/receipt"):
            answered = bare.get("olga", path)
            assert (answered.status_code, answered.json()["code"]) == (409, "MOD846")
            assert "`signing_key_file`" in answered.json()["help"]


# --- the key --------------------------------------------------------------------------


def test_the_key_is_read_once_and_shown_nowhere(
    tmp_path: Path, key: SigningKey
) -> None:
    settings = Settings(signing_key_file=tmp_path / "key")
    own = equipment(settings)
    assert own.signing_key is not None
    assert own.signing_key.id == key.id
    secret = (tmp_path / "key").read_text()
    body = secret.splitlines()[1]
    (tmp_path / "key").unlink()
    assert body not in repr(own) + repr(own.signing_key) + repr(settings)
    assert "signing_key" not in repr(own)


@pytest.mark.parametrize("what", ["missing", "open", "encrypted", "public", "text"])
def test_a_key_that_cannot_be_used_ends_the_start(what: str, tmp_path: Path) -> None:
    path = tmp_path / "key"
    if what == "encrypted":
        make_key(path, b"phrase")
    elif what != "missing":
        make_key(path)
    if what == "open":
        path.chmod(0o640)
    if what == "public":
        path = tmp_path / "key.pub"
    if what == "text":
        path.write_text("no key")
    before = path.read_text() if path.exists() else "-----"
    (tmp_path / "policy.yaml").write_text(POLICY)
    settings = Settings(ledger=str(tmp_path / "none.db"), signing_key_file=path)
    with pytest.raises(ModicumError) as error:
        open_server(settings, "me")
    assert isinstance(error.value, UsageError if what == "open" else InputError)
    assert str(path) in error.value.render()
    assert before.splitlines()[-1] not in error.value.render()
    if what == "encrypted":
        assert "--passphrase-file" not in error.value.render()


def test_a_slash_that_is_encoded_belongs_to_the_id(server: Served) -> None:
    ids = ["study", "study/receipt", "study/receipt/receipt", "receipt"]
    for name in ids:
        sent = server.post("ann", "/releases", release(name))
        assert (sent.status_code, sent.json()["decision"]) == (200, "allow"), name
    for name in ids:
        found = server.get("ann", f"/releases/{quote(name, safe='')}")
        assert (found.status_code, found.json()["release"]) == (200, name)
        signed = server.get("ann", f"/releases/{quote(name, safe='')}/receipt")
        assert signed.json()["claim"]["release"] == name
    # Slashes as they are, and other escapes, mean what they did.
    plain = server.get("ann", "/releases/study/receipt")
    assert plain.json()["claim"]["release"] == "study"
    escaped = server.get("ann", "/releases/study%2Freceipt/%72eceipt")
    assert escaped.json()["claim"]["release"] == "study/receipt"
    assert server.get("audra", "/ledger%2Fcheckpoint").status_code == 200
