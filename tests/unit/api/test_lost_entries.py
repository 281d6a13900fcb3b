"""A log that lost entries which were read before: nothing is decided on it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from samples.small import NOON, compiled, counts
from samples.stores import Place, postgres_place, sqlite_place

from modicum.api.local import Workspace
from modicum.api.ports.storage import Store
from modicum.core.errors import Code, UnavailableError, VerificationError
from modicum.ledger import Record
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock, add_seconds

CUT = "DELETE FROM {s}events WHERE seq > 2"


@dataclass
class Live:
    """A ledger that is in use, and where it is."""

    place: Place
    store: Store
    given: bool

    def __post_init__(self) -> None:
        self.ws = workspace_on(self.store, given=self.given)

    def refused(self) -> None:
        """Expect that whatever is asked, now and again, is refused."""
        for name in ("x-1", "x-2"):
            for attempt in (self.ws.check, self.ws.submit):
                with pytest.raises(VerificationError) as caught:
                    attempt(counts(name, rho="0.001"))
                assert caught.value.code is Code.LEDGER_BROKEN


def workspace_on(store: Store, *, given: bool = True, **more: Any) -> Workspace:
    policy = compiled() if given else None
    return Workspace(store, FixedClock(NOON), policy=policy, actor="t", **more)


@pytest.fixture(params=["sqlite", "sqlite-kept-open", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "postgres":
        return postgres_place(request.getfixturevalue("postgres"))
    return sqlite_place(
        tmp_path / "ledger.db", keep_open=request.param == "sqlite-kept-open"
    )


@pytest.fixture(params=["policy given", "active policy"])
def live(request: pytest.FixtureRequest, place: Place) -> Iterator[Live]:
    first = place.open()
    workspace_on(first).init()
    first.close()
    store = place.open()
    live = Live(place, store, request.param == "policy given")
    for number in range(4):
        assert live.ws.submit(counts(f"r-{number}", rho="0.001")).allowed
    yield live
    store.close()


def entries(place: Place) -> list[Record]:
    store = place.open()
    found = list(store.read(0)) if store.exists() else []
    store.close()
    return found


@pytest.mark.spec("LED-18")
def test_a_log_that_was_cut_is_refused_also_after_it_grew_again(live: Live) -> None:
    live.place.damage(CUT)
    if "postgresql" in live.place.url:
        head = entries(live.place)[-1]
        live.place.damage(f"UPDATE {{s}}head SET seq = 2, hash = '{head.hash}'")
    live.refused()
    assert [record.seq for record in entries(live.place)] == [1, 2]
    store = live.place.open()
    other = workspace_on(store)  # A new process knows no better.
    for number in range(4):
        other.submit(counts(f"again-{number}", rho="0.001"))
    store.close()
    live.refused()


@pytest.mark.spec("LED-18")
def test_a_ledger_that_is_gone_is_not_begun_anew(live: Live) -> None:
    if "postgresql" in live.place.url:
        schema = live.place.url.rpartition("=")[2]
        live.place.damage(f"DROP SCHEMA modicum_{schema} CASCADE")
        live.refused()
        assert entries(live.place) == []
        return
    Path(live.place.url).unlink()
    live.refused()
    assert not Path(live.place.url).exists()


@pytest.mark.spec("LED-18")
def test_an_older_copy_that_was_put_back_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ws = workspace_on(SqliteStore(path))
    ws.submit(counts("r-1", rho="0.001"))
    backup = path.read_bytes()
    ws.submit(counts("r-2", rho="0.015"))
    assert not ws.check(counts("r-3", rho="0.015")).allowed
    path.write_bytes(backup)
    for attempt in (ws.check, ws.submit):
        with pytest.raises(VerificationError):
            attempt(counts("r-3", rho="0.015"))
    # Another history of the same length is another history, too.
    workspace_on(SqliteStore(path)).submit(counts("r-5", rho="0.002"))
    with pytest.raises(VerificationError):
        ws.check(counts("r-3", rho="0.015"))
    # Whoever begins now goes by what is there.
    assert workspace_on(SqliteStore(path)).verify().entries == 3


@pytest.mark.spec("LED-18")
def test_after_a_failure_the_log_must_still_go_on_from_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.db"
    store = SqliteStore(path)
    ws = workspace_on(store)
    for number in range(3):
        ws.submit(counts(f"r-{number}", rho="0.001"))
    with monkeypatch.context() as patched:
        patched.setattr("modicum.api.local.balances.Entry.commit", _fail)
        with pytest.raises(RuntimeError):
            ws.submit(counts("r-4", rho="0.001"))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(CUT.format(s=""))
        connection.commit()
    with pytest.raises(VerificationError, match="read before"):
        ws.submit(counts("r-4", rho="0.001"))


def _fail(_: object) -> None:
    raise RuntimeError


@pytest.mark.spec("LED-18")
def test_a_snapshot_without_its_ledger_begins_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    store = SqliteStore(path)
    ws = workspace_on(store, snapshots=store)
    ws.submit(counts("r-1", rho="0.001"))
    ws.save_snapshot()
    path.unlink()
    for given in (True, False):
        new = workspace_on(store, given=given, snapshots=store)
        for attempt in (new.check, new.submit):
            with pytest.raises(VerificationError):
                attempt(counts("r-2", rho="0.001"))
    assert not path.exists()
    Path(f"{path}.snapshot").unlink()
    assert workspace_on(store, snapshots=store).submit(counts("r-2")).allowed


@pytest.mark.spec("LED-2")
@pytest.mark.parametrize("snapshot", [False, True])
def test_the_last_entry_is_known_by_its_contents(
    tmp_path: Path, snapshot: bool
) -> None:
    path = tmp_path / "ledger.db"
    store = SqliteStore(path)
    ws = workspace_on(store, snapshots=store)
    for number in range(3):
        ws.submit(counts(f"r-{number}", rho="0.001"))
    ws.save_snapshot()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE events SET payload = x'7b7d' WHERE seq = 4")
        connection.commit()
    used = workspace_on(store, snapshots=store) if snapshot else ws
    for attempt in (used.check, used.submit):
        with pytest.raises(VerificationError):
            attempt(counts("r-9", rho="0.001"))
    assert len(list(store.read(0))) == 4


# --- clocks ---


def at(path: Path, now: str) -> Workspace:
    return Workspace(SqliteStore(path), FixedClock(now), policy=compiled(), actor="t")


@pytest.mark.spec("LED-15")
@pytest.mark.parametrize("now", ["2099-01-01T00:00:00.000000Z", "9999-12-31T23:00:00Z"])
def test_a_clock_that_is_years_ahead_writes_nothing(tmp_path: Path, now: str) -> None:
    path = tmp_path / "ledger.db"
    at(path, NOON).submit(counts("r-1", rho="0.001"), reserve_seconds=3600)
    before = path.read_bytes()
    with pytest.raises(UnavailableError, match="the clock shows") as caught:
        at(path, now).submit(counts("r-2", rho="0.001"))
    assert caught.value.code is Code.LEDGER_UNWRITABLE
    assert path.read_bytes() == before
    assert at(path, NOON).submit(counts("r-2", rho="0.001")).allowed
    later = f"{int(NOON[:4]) + 9}{NOON[4:]}"
    assert at(path, later).submit(counts("r-3", rho="0.001")).allowed


def test_no_time_is_later_than_the_last() -> None:
    last = "9999-12-31T23:59:59.999999Z"
    assert add_seconds("9999-12-31T23:00:00.000000Z", 3600) == last
    assert add_seconds("9999-12-31T23:00:00.000000Z", 3599) < last
    assert add_seconds(last, 10**9) == last
