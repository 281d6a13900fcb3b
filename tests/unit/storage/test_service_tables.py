"""What is beside the log stays there: no look writes it, and no audit shows it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from samples.small import NOON, compiled, counts
from samples.stores import Place, postgres_place, sqlite_place
from typer.testing import CliRunner

from modicum.api.local import Workspace
from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import Identity
from modicum.api.permissions.tokens import TokenTerms
from modicum.api.ports.storage import Store
from modicum.cli.main import app
from modicum.server.auth.registry import Registry, open_registry
from modicum.storage.service_tables import Statement
from modicum.system.clock import FixedClock
from modicum.writer.idempotency import IdempotencyKey, Replayed
from modicum.writer.service import Decider

ANALYST = {Role.ANALYST: frozenset({"canary-data-set"})}
TABLES = ("answers", "tokens", "sessions")
#: What must be seen nowhere, besides what is drawn at random.
CANARIES = ["canary-answer", "canary-key", "canary-data-set", "canary-name"]


@pytest.fixture(params=["sqlite", "sqlite-kept-open", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "postgres":
        return postgres_place(request.getfixturevalue("postgres"))
    return sqlite_place(
        tmp_path / "a.db", keep_open=request.param == "sqlite-kept-open"
    )


@pytest.fixture
def store(place: Place) -> Iterator[Store]:
    opened = place.open()
    workspace(opened).init()
    yield opened
    opened.close()


def workspace(store: Store) -> Workspace:
    return Workspace(store, FixedClock(NOON), policy=compiled(), actor="tester")


def registry_of(store: Store) -> Registry:
    return open_registry(store, clock=FixedClock(NOON))


def fill(store: Store) -> list[str]:
    """Fill every table beside the log; return what must be seen nowhere else."""
    registry = registry_of(store)
    issued = registry.add_token(
        TokenTerms("olga", ANALYST, name="canary-name"), created_by="ada"
    )
    opened = registry.add_session(Identity("olga", ANALYST), seconds=60)
    once = IdempotencyKey("canary-key", "ca" * 32, lambda answer: b"canary-answer")
    with Decider(store, FixedClock(NOON), policy=compiled(), actor="tester") as decider:
        decider.submit(counts("r-1"), once=once)
        with pytest.raises(Replayed):
            decider.submit(counts("r-1"), once=once)
    session = opened.session
    # The id of a token is no secret: the access trail in a bundle has it.
    drawn = [issued.text, issued.token.digest, opened.secret]
    return [*CANARIES, *drawn, opened.csrf, session.digest, session.csrf, once.digest]


def rows(store: Any) -> dict[str, int]:
    """Return how many rows each table beside the log has."""
    counting = {
        "answers": Statement("SELECT count(*) FROM {s}.answers"),
        "tokens": Statement("SELECT count(*) FROM {s}.tokens"),
        "sessions": Statement("SELECT count(*) FROM {s}.sessions"),
    }
    found = {name: store.rows_beside(one) for name, one in counting.items()}
    return {name: one[0][0] for name, one in found.items() if one}


def make_older(place: Place, store: Store) -> None:
    """Make a ledger one of the version before there was anything beside the log."""
    store.close()
    for table in (*TABLES, "trail", "trail_marks"):
        place.damage(f"DROP TABLE {{s}}{table}")
    if place.url.startswith("postgresql"):
        place.damage("DELETE FROM {s}migrations WHERE version >= 2")
    else:
        place.damage("PRAGMA user_version = 2")


# --- older ledgers ---


@pytest.mark.spec("REG-6")
@pytest.mark.parametrize("turn", ["submit", "token", "checkpoint"])
def test_an_older_ledger_is_brought_up_to_date_by_its_next_turn(
    place: Place, store: Store, turn: str
) -> None:
    make_older(place, store)
    registry = registry_of(store)
    assert rows(store) == {}
    assert registry.tokens() == []
    assert registry.token_by_digest("0" * 64) is None
    assert registry.session_by_digest("0" * 64) is None
    assert workspace(store).check(counts("r-1")).allowed
    assert rows(store) == {}  # Looking made nothing.
    before = list(store.read(0))
    if turn == "submit":
        assert workspace(store).submit(counts("r-9")).allowed
    elif turn == "token":
        terms = TokenTerms("olga", ANALYST)
        assert registry.add_token(terms, created_by="ada").token in registry.tokens()
    else:
        store.add_checkpoint(b"c")
    assert rows(store) == {
        "answers": 0,
        "tokens": int(turn == "token"),
        "sessions": 0,
    }
    assert list(store.read(0))[: len(before)] == before
    fill(store)
    assert rows(store) == {"answers": 1, "tokens": 1 + (turn == "token"), "sessions": 1}


@pytest.mark.spec("REG-6")
@pytest.mark.parametrize("older", [False, True])
def test_looking_changes_no_byte(tmp_path: Path, older: bool) -> None:
    place = sqlite_place(tmp_path / "a.db", keep_open=False)
    store = place.open()
    workspace(store).init()
    fill(store)
    if older:
        make_older(place, store)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    registry = registry_of(place.open())
    assert len(registry.tokens()) == (not older)
    for token in registry.tokens():
        assert registry.token_by_digest(token.digest) == token
    registry.session_by_digest("0" * 64)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


# --- what gets out ---


@pytest.mark.spec("REG-6")
def test_no_audit_and_no_snapshot_shows_what_is_beside_the_log(
    place: Place, store: Store, tmp_path: Path
) -> None:
    hidden = fill(store)
    store.save_snapshot(b"")
    live = Workspace(
        store, FixedClock(NOON), policy=compiled(), actor="tester", snapshots=store
    )
    live._live.read(deciding=True)
    live._live.save_snapshot()
    snapshot = store.load_snapshot()
    assert snapshot
    store.close()
    out = tmp_path / "out"
    out.mkdir()
    at = ("--ledger", place.url)
    key = str(out / "key")
    output = run("ledger", "key", "new", key)
    output += run("ledger", "checkpoint", "--key", key, "-o", str(out / "signed"), *at)
    for command in (
        ("audit", "export", "-o", str(out / "bundle.zip")),
        ("audit", "report", "-o", str(out / "page.html")),
        ("audit", "registry", "-o", str(out / "records.yaml")),
        ("ledger", "verify", "--json"),
        ("ledger", "list", "--json"),
        ("release", "show", "r-1", "--json"),
        ("status", "--all", "--json"),
    ):
        output += run(*command, *at)
    output += run("audit", "verify", str(out / "bundle.zip"), "--json")
    result = [output.encode(), snapshot, *(path.read_bytes() for path in out.iterdir())]
    assert len(result) > 7
    assert any(b"r-1" in one for one in result)
    for one in result:
        for canary in hidden:
            assert canary.encode() not in one


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.spec("REG-6")
def test_the_log_is_the_same_with_and_without(place: Place, store: Store) -> None:
    head, before = workspace(store).verify().head, list(store.read(0))
    registry = registry_of(store)
    issued = registry.add_token(TokenTerms("olga", ANALYST), created_by="ada")
    registry.revoke_token(issued.token.id)
    opened = registry.add_session(Identity("olga", ANALYST), seconds=60)
    registry.end_session(opened.session.digest)
    assert list(store.read(0)) == before
    assert workspace(store).verify().head == head
    # What people do beside the log does not stand in the way of who decides.
    assert workspace(store).submit(counts("r-1")).allowed


def test_a_copy_verifies_and_lets_in_whom_the_ledger_let_in(tmp_path: Path) -> None:
    store = sqlite_place(tmp_path / "a.db", keep_open=False).open()
    workspace(store).init()
    fill(store)
    copy = sqlite_place(
        Path(shutil.copy(tmp_path / "a.db", tmp_path / "b.db")), keep_open=False
    )
    assert workspace(copy.open()).verify() == workspace(store).verify()
    assert registry_of(copy.open()).tokens() == registry_of(store).tokens()
    assert rows(copy.open()) == dict.fromkeys(TABLES, 1)
