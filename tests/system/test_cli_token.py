"""`modicum token`: made once, shown once, and listed for good."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from samples.small import POLICY
from typer.testing import CliRunner, Result

from modicum.api.permissions.tokens import Token, token_digest
from modicum.cli.exit_codes import Exit
from modicum.cli.main import app
from modicum.server.auth.registry import open_registry
from modicum.storage.factory import open_store

BOT = ("--actor", "bot", "--service")
NAMELESS = ("--actor", "service:", "--service")
OLGA = ("--actor", "olga", "--role", "analyst=hr,bank")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MODICUM_ACTOR", "ada")
    monkeypatch.delenv("MODICUM_LEDGER", raising=False)
    (tmp_path / "policy.yaml").write_text(POLICY)
    assert run("init").exit_code == 0
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def create(*arguments: str) -> str:
    """Return the token that a command prints."""
    result = run("token", "create", *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


def listed() -> list[dict[str, Any]]:
    tokens: list[dict[str, Any]] = json.loads(run("token", "list", "--json").stdout)[
        "tokens"
    ]
    return tokens


def recognized(text: str) -> Token | None:
    """Return what a server finds."""
    digest = token_digest(text)
    assert digest is not None
    return open_registry(open_store("ledger.db")).token_by_digest(digest)


def test_a_token_goes_through_its_life() -> None:
    text = create(*OLGA, "--name", "a notebook")
    token = recognized(text)
    assert token is not None
    assert token.identity().name == "olga"
    (shown,) = listed()
    assert shown == {
        "id": token.id,
        "status": "active",
        "name": "a notebook",
        "actor": "olga",
        "kind": "person",
        "grants": {"analyst": ["bank", "hr"]},
        "created_by": "ada",
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "revoked_at": None,
    }
    table = run("token", "list").stdout
    for name in (token.id, "active", "olga", "analyst=bank,hr", "ada", "a notebook"):
        assert name in table
    assert run("token", "revoke", token.id).exit_code == 0
    assert recognized(text) is None
    (shown,) = listed()
    assert shown["status"] == "revoked"
    assert shown["revoked_at"]
    again = run("token", "revoke", token.id, "--json")
    assert json.loads(again.stdout) == shown
    secret = text.removeprefix(f"mdc_{token.id}_")
    for output in (table, again.output, run("token", "list", "--json").output):
        assert secret not in output


def test_the_token_alone_goes_to_standard_output() -> None:
    result = run("token", "create", *OLGA)
    assert token_digest(result.stdout.removesuffix("\n")) is not None
    assert result.stdout.strip() not in result.stderr
    assert "olga" in result.stderr
    made = json.loads(run("token", "create", *OLGA, "--json").stdout)
    assert recognized(made.pop("token")) is not None
    assert made in listed()


def test_roles_add_up_and_are_for_all_data_sets_unless_they_are_named() -> None:
    roles = ("--role", "analyst=hr", "--role", "analyst= bank", "--role")
    create(*BOT, *roles, "platform-engineer", "--expires-in", "12h")
    (shown,) = listed()
    assert shown["grants"] == {"analyst": ["bank", "hr"], "platform-engineer": ["*"]}
    assert shown["kind"] == "service"
    assert "service:bot" in run("token", "list").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--actor", "x", "--role", "king"), Exit.USAGE, "`king` is not a role"),
        (("--actor", "x", "--role", "analyst="), Exit.USAGE, "has no data set"),
        (("--actor", "x", "--role", "analyst=a,,b"), Exit.USAGE, "has no data set"),
        (("--actor", "x"), Exit.USAGE, "--role"),
        (("--role", "analyst"), Exit.USAGE, "--actor"),
        (("--actor", " x", "--role", "analyst"), Exit.INVALID, "MOD107"),
        (("--actor", " x", "--service", "--role", "analyst"), Exit.INVALID, "MOD107"),
        ((*NAMELESS, "--role", "analyst"), Exit.INVALID, "MOD107"),
        (("--actor", "a b", "--role", "analyst"), Exit.INVALID, "MOD107"),
        (("--actor", "service:etl", "--role", "analyst"), Exit.INVALID, "MOD107"),
        (("--actor", "Service:etl", "--role", "analyst"), Exit.INVALID, "MOD107"),
        (("--actor", "\uff44ana", "--role", "analyst"), Exit.INVALID, "MOD107"),
        ((*OLGA, "--expires-in", "367d"), Exit.INVALID, "MOD106"),
        ((*OLGA, "--expires-in", "0d"), Exit.INVALID, "MOD106"),
        ((*OLGA, "--expires-in", "never"), Exit.USAGE, "--expires-in"),
        ((*OLGA, "--role", "auditor"), Exit.USAGE, "MOD833"),
    ],
)
def test_what_is_no_token_is_refused(
    arguments: tuple[str, ...], code: Exit, words: str
) -> None:
    result = run("token", "create", *arguments)
    assert result.exit_code == code
    assert words in result.output
    assert listed() == []


def test_a_person_is_named_as_at_sign_in() -> None:
    create("--actor", "Olga@Example.org", "--role", "analyst")
    assert [one["actor"] for one in listed()] == ["olga@example.org"]


def test_a_program_is_named_by_its_name_with_or_without_its_prefix() -> None:
    for actor in ("service:etl", "etl"):
        create("--actor", actor, "--service", "--role", "analyst")
    assert [one["actor"] for one in listed()] == ["service:etl", "service:etl"]


def test_a_whole_token_is_revoked_by_its_id() -> None:
    text, other = create(*OLGA), create(*OLGA)
    result = run("token", "revoke", text + "\n")
    assert result.exit_code == 0
    assert text.split("_", 2)[2] not in result.output
    assert recognized(text) is None
    assert recognized(other) is not None


@pytest.mark.parametrize(
    "given",
    [
        "nothing",
        "aaaaaaaaaa",
        "mdc_aaaaaaaaaa_canary_s3cret",
        "mdc_aaaa_canary_s3cret",
        "eyJ.canary.s3cret",
        "aaaaaaaaaa_canary_s3cret",
    ],
)
def test_an_unknown_token_cannot_be_revoked(given: str) -> None:
    result = run("token", "revoke", given)
    assert result.exit_code == Exit.INVALID
    assert "MOD838" in result.output
    assert "s3cret" not in result.output
    assert "canary" not in result.output


def test_an_empty_list_says_so() -> None:
    result = run("token", "list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no tokens" in result.stderr
