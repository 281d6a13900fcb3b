"""`modicum doctor`: its exit codes, and a bundle that tells nothing it should not."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from samples.audited import log, sealed
from samples.postgres import Cluster
from samples.small import POLICY, counts
from samples.stores import append
from typer.testing import CliRunner, Result

from modicum.cli.exit_codes import Exit
from modicum.cli.main import app
from modicum.ledger.log.events import Annotated
from modicum.storage.factory import open_store
from modicum.storage.proofs.signing_keys import make_key

#: What nobody outside may read; it stands wherever an organization writes a name.
CANARY = "canary-f00d"


def run(*args: str) -> Result:
    return CliRunner().invoke(app, args)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, whose name nobody should read."""
    made = tmp_path / CANARY
    made.mkdir()
    monkeypatch.chdir(made)
    for name in ("MODICUM_LEDGER", "MODICUM_POLICY", "MODICUM_ACTOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setenv("MODICUM_SECRET", CANARY)
    monkeypatch.setenv("USER", CANARY)
    return made


def harm(ledger: str) -> None:
    with closing(sqlite3.connect(ledger, isolation_level=None)) as connection:
        connection.execute("UPDATE events SET payload = x'00' WHERE seq = 2")


def test_the_exit_code_says_what_is_wrong(folder: Path) -> None:
    alone = run("doctor")
    assert (alone.exit_code, "no ledger.db here" in alone.stderr) == (Exit.OK, True)
    append(open_store("ledger.db"), list(log()))
    Path("ledger.db").chmod(0o644)
    warned = run("doctor", "--json")
    assert warned.exit_code == Exit.OK
    document = json.loads(warned.stdout)
    assert document["ok"] is True
    assert (document["failed"], document["warned"] > 0) == (0, True)
    Path("ledger.db").chmod(0o602)
    assert run("doctor").exit_code == Exit.INTERNAL
    Path("ledger.db").chmod(0o600)
    harm("ledger.db")
    broken = run("doctor", "--json")
    assert broken.exit_code == Exit.BROKEN
    assert json.loads(broken.stdout)["ok"] is False
    assert run("doctor", "--ledger", "nowhere.db").exit_code == Exit.USAGE


def test_people_read_each_check_and_its_remedy(folder: Path) -> None:
    append(open_store("ledger.db"), list(log()))
    Path("ledger.db").chmod(0o644)
    lines = run("doctor").stdout.splitlines()
    (at,) = [n for n, line in enumerate(lines) if line.startswith("warn  permissions")]
    assert lines[at + 1].strip() == "help: chmod o-rw ledger.db*"
    counts = [sum(one[:5] == f"{how:<5}" for one in lines) for how in ("ok", "warn")]
    noun = "warning" if counts[1] == 1 else "warnings"
    assert lines[-1] == f"{counts[0]} ok, {counts[1]} {noun}, 0 failures"


def organization(ledger: str) -> None:
    """Make a ledger in which each name that people choose is one not to be told."""
    policy = Path("policy.yaml")
    policy.write_text(
        POLICY.replace("name: small", f"name: {CANARY}").replace(
            "units:", f"# {CANARY}\nunits:", 1
        )
    )
    Path("r.json").write_text(json.dumps(counts(CANARY, purpose=CANARY)))
    who = ("--ledger", ledger, "--actor", CANARY)
    for args in (
        ("init", "--policy", "policy.yaml"),
        ("release", "submit", "r.json"),
        ("ledger", "annotate", CANARY),
    ):
        result = run(*args, *who)
        assert result.exit_code == 0, result.output


def bundle_of(*args: str) -> tuple[str, str]:
    """Return what a bundle says, and what people read at the same time."""
    path = Path("bundle.json")
    path.unlink(missing_ok=True)
    result = run("doctor", "--bundle", str(path), *args)
    assert result.exit_code in (Exit.OK, Exit.INTERNAL, Exit.BROKEN), result.output
    return path.read_text(), result.output


def assert_silent(bundle: str) -> None:
    document = json.loads(bundle)
    assert len(document["checks"]) > 3
    for one in document["checks"]:
        assert set(one) == {"check", "status", "facts"}
    for secret in (CANARY, "canary", "f00d", "s3cret", "/tmp", "postgresql://"):
        assert secret not in bundle, secret


@pytest.mark.spec("OPS-6")
def test_a_bundle_tells_no_name_of_a_ledger_in_a_file(folder: Path) -> None:
    ledger = f"{CANARY}.db"
    organization(ledger)
    key = make_key(f"{CANARY}.pem")
    assert key.id
    Path(f"{CANARY}.pem").chmod(0o644)
    Path(ledger).chmod(0o606)
    for args in ((), ("--deep",)):
        bundle, read = bundle_of("--ledger", ledger, *args)
        assert_silent(bundle)
        assert CANARY in read  # There was something to keep.
        assert '"releases": 1' in bundle
    harm(ledger)
    bundle, read = bundle_of("--ledger", str(folder / ledger))
    assert_silent(bundle)
    assert '"MOD702"' in bundle


@pytest.mark.spec("OPS-6")
def test_a_bundle_tells_no_name_of_a_ledger_on_a_server(
    postgres: Cluster, folder: Path
) -> None:
    url = postgres.new_ledger().replace("postgres@", "postgres:s3cret@")
    organization(url)
    bundle, read = bundle_of("--ledger", url)
    assert_silent(bundle)
    assert "s3cret" not in read
    assert CANARY in read
    nobody = f"postgresql://{CANARY}:s3cret@127.0.0.1:1/{CANARY}"
    bundle, read = bundle_of("--ledger", nobody)  # Nobody listens there.
    assert_silent(bundle)
    assert '"MOD709"' in bundle
    assert "s3cret" not in read


def test_a_bundle_tells_nothing_of_a_policy_that_cannot_be_compiled(
    folder: Path,
) -> None:
    """An old policy may be one that this version refuses, with its own words."""
    from samples.audited import activated

    from modicum.ledger.log.events import PolicyActivated

    good = activated(POLICY)
    bad = PolicyActivated(good.digest, CANARY, f"modicum: policy/v1\nname: {CANARY}\n")
    append(open_store("ledger.db"), sealed([bad, Annotated("", CANARY)]))
    Path("ledger.db").chmod(0o600)
    bundle, _ = bundle_of()
    assert_silent(bundle)
    assert '"fail"' in bundle
