"""`modicum escrow keys`, and files that name a service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from modicum.cli.main import app
from modicum.core.errors import ModicumError
from modicum.vault.key_files import new_key_file
from modicum.vault.named_keys import FORMAT, holds_keys, named_keys
from modicum.vault.transit import TransitKeys
from modicum.vault.vault import open_vault

TRANSIT = f"""\
modicum: {FORMAT}
transit:
  address: https://vault.example:8200
  key: modicum
  token_file: token
  namespace: teams/hr
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    output = run(tmp_path, "init")
    assert output["key"]
    return tmp_path


def run(place: Path, *args: str, code: int = 0) -> Any:
    where = ["--vault", str(place / "vault"), "--vault-keys", str(place / "keys.json")]
    done = CliRunner().invoke(app, ["escrow", *args, *where, "--json"])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout) if done.stdout else json.loads(done.stderr)


def sealed(place: Path, name: str) -> Any:
    return open_vault(place / "vault", named_keys(place / "keys.json")).seal(
        name, name.encode()
    )


def test_keys_are_rotated_and_retired(place: Path) -> None:
    one = sealed(place, "one")
    first = run(place, "keys", "show")
    assert first["wraps"] == {first["current"]: 1}
    done = run(place, "keys", "rotate")
    assert (done["moved"], done["kept"]) == (1, 0)
    assert done["current"] != first["current"]
    two = sealed(place, "two")
    second = run(place, "keys", "show")
    assert second["wraps"] == {done["current"]: 2}
    assert run(place, "keys", "retire", first["current"])["retired"]
    vault = open_vault(place / "vault", named_keys(place / "keys.json"))
    assert [vault.open(each) for each in (one, two)] == [b"one", b"two"]


def test_a_key_in_use_is_not_retired(place: Path) -> None:
    sealed(place, "one")
    current = run(place, "keys", "show")["current"]
    run(place, "keys", "retire", current, code=2)
    run(place, "keys", "rotate")
    other = place / "other"
    vault = open_vault(other, named_keys(place / "keys.json"))
    vault.seal("x", b"x")
    newest = run(place, "keys", "show")["current"]
    run(place, "keys", "rotate")
    args = ("keys", "retire", newest)
    run(place, *args, "--other-vault", str(other), code=2)
    assert vault.find("x") is not None


def test_what_is_said_for_people(place: Path) -> None:
    sealed(place, "one")
    where = ["--vault", str(place / "vault"), "--vault-keys", str(place / "keys.json")]
    for args, said in (
        (["show"], "wraps 1 data keys  (current)"),
        (["rotate"], "now wraps 1 more data keys"),
    ):
        done = CliRunner().invoke(app, ["escrow", "keys", *args, *where])
        assert (done.exit_code, said in done.stdout) == (0, True), done.output


def test_without_a_vault_there_are_none(tmp_path: Path) -> None:
    (tmp_path / "keys.json").touch(mode=0o600)
    output = run(tmp_path, "keys", "show", code=1)
    assert output["error"]["code"] == "MOD852"  # The file holds no keys.
    new_key_file(tmp_path / "others.json")
    (tmp_path / "others.json").replace(tmp_path / "keys.json")
    assert "no vault" in run(tmp_path, "keys", "show", code=2)["error"]["message"]


def test_a_file_may_name_a_service(tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text(TRANSIT)
    with pytest.raises(ModicumError, match="accessible to other users"):
        named_keys(file)
    file.chmod(0o600)
    keys = named_keys(file)
    assert isinstance(keys, TransitKeys)
    assert keys._transit.token_file == tmp_path / "token"
    assert (keys._transit.name, keys._transit.namespace) == (
        "transit/modicum",
        "teams/hr",
    )
    assert not holds_keys(file)
    (tmp_path / "vault").mkdir(mode=0o700)
    where = ["--vault", str(tmp_path / "vault"), "--vault-keys", str(file)]
    done = CliRunner().invoke(app, ["escrow", "keys", "retire", "x", *where])
    assert done.exit_code == 2
    assert "names a key service" in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"modicum: {FORMAT}\n", "needs the key `transit`"),
        (TRANSIT + "more: 1\n", "unknown key `more`"),
        (TRANSIT + "  more: 1\n", "unknown key `more`"),
        (TRANSIT.replace("  key: modicum\n", ""), "needs the key `key`"),
        (TRANSIT.replace("https://", "http://"), "http"),
        (TRANSIT.replace("teams/hr", "a//b"), "not a valid name of a key"),
        ("modicum: vault-keys/v2\ntransit: {}\n", "has no vault keys|form"),
        ("SECRET-THAT-NOBODY-QUOTES", "has no vault keys|form"),
    ],
)
def test_other_files_are_refused_and_secrets_not_quoted(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(ModicumError) as caught:
        named_keys(file)
    output = "".join(one.render() for one in caught.value.problems)
    assert any(one in output for one in said.split("|")), output
    assert "SECRET" not in output
