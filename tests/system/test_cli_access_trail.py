"""`modicum audit trail`, and the trail in a bundle that the command line writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from samples.small import NOON, compiled
from samples.stores import Place, postgres_place, sqlite_place
from typer.testing import CliRunner, Result

from modicum.api.local import Workspace
from modicum.cli.main import app
from modicum.storage.proofs.bundles import open_bundle
from modicum.system.clock import FixedClock


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    found = (
        postgres_place(request.getfixturevalue("postgres"))
        if request.param == "postgres"
        else sqlite_place(tmp_path / "a.db", keep_open=False)
    )
    store = found.open()
    Workspace(store, FixedClock(NOON), policy=compiled(), actor="tester").init()
    store.close()
    return found


@pytest.mark.spec("REG-10")
def test_the_command_line_verifies_and_prints_the_trail(
    place: Place, tmp_path: Path
) -> None:
    def run(*arguments: str, code: int = 0) -> Result:
        found = CliRunner().invoke(app, [*arguments, "--ledger", place.url])
        assert found.exit_code == code, found.output
        return found

    assert "0 events" in run("audit", "trail").output
    create = ("token", "create", "--actor", "olga", "--role", "analyst", "--json")
    issued = json.loads(run(*create).stdout)
    run("token", "revoke", issued["id"])
    found = run("audit", "trail")
    assert [line.split()[2] for line in found.stdout.splitlines()] == [
        "token-created",
        "token-revoked",
    ]
    assert issued["token"] not in found.output
    lines = [json.loads(x) for x in run("audit", "trail", "--json").stdout.splitlines()]
    assert [one["event"]["owner"] for one in lines] == ["olga", "olga"]
    head = f"2:{lines[1]['hash'][:12]}"
    assert len(run("audit", "trail", "--after", "1").stdout.splitlines()) == 1
    run("audit", "trail", "--known-head", head)
    assert (
        "MOD713"
        in run("audit", "trail", "--known-head", "3:" + "0" * 12, code=6).output
    )
    bundle = tmp_path / "bundle"
    assert (
        "access trail of 2 events" in run("audit", "export", "-o", str(bundle)).stdout
    )
    verify = CliRunner().invoke(app, ["audit", "verify", str(bundle)])
    assert f"access trail: 2 events, head {lines[1]['hash']}" in verify.stdout
    run("audit", "export", "-o", str(tmp_path / "other"), "--without-trail")
    with open_bundle(tmp_path / "other") as without:
        assert without.manifest.trail is None
    if place.url.startswith("postgresql"):
        return
    # Cut at its end: only a known head shows it.
    place.damage("DELETE FROM trail WHERE seq = 2")
    run("audit", "trail")
    assert "MOD713" in run("audit", "trail", "--known-head", head, code=6).output
    place.damage("UPDATE trail SET hash = 'x'")
    assert "MOD713" in run("audit", "trail", code=6).output
    assert "MOD713" in run("audit", "export", "-o", str(bundle), code=6).output
