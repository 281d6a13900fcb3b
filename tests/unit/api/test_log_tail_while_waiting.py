"""While a turn is waited for, what others append is read; what is wrong waits, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from samples.small import NOON, compiled, counts

from modicum.api.local import Workspace
from modicum.api.local.live_ledger import FOLLOWED_AT_ONCE, LiveLedger
from modicum.api.ports.storage import Turn
from modicum.core.errors import Code, Problem, UnavailableError, VerificationError
from modicum.ledger import Record
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock

MANY = 3 * FOLLOWED_AT_ONCE


class Queue(SqliteStore):
    """A store at whose turn one has to wait for a while, until others did this."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, keep_open=True)
        self.others: Callable[[], object] = lambda: None
        self.is_shut = False
        self.longest = 0
        self._chore: Callable[[], bool] | None = None

    def while_waiting(self, chore: Callable[[], bool]) -> None:
        self._chore = chore

    def read(self, after: int, limit: int | None = None) -> Iterator[Record]:
        if self.is_shut:
            raise UnavailableError(Problem(Code.LEDGER_BUSY, "it is locked"))
        found = list(super().read(after, limit))
        self.longest = max(self.longest, len(found))
        return iter(found)

    @contextmanager
    def turn(self) -> Iterator[Turn]:  # type: ignore[override]
        self.others()
        assert self._chore is not None
        while self._chore():
            pass
        with super().turn() as turn:
            yield turn


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def store(path: Path) -> Iterator[Queue]:
    submit(path, "first")
    found = Queue(path)
    yield found
    found.close()


@pytest.fixture
def live(store: Queue) -> LiveLedger:
    found = LiveLedger(
        store,
        FixedClock(NOON),
        policy=compiled(),
        actor="t",
        snapshots=None,
        snapshot_every=1_000_000,
    )
    found.read(deciding=True)
    found.follow_in_idle_time()
    return found


def submit(path: Path, *names: str) -> None:
    """Submit releases as another process does."""
    store = SqliteStore(path, keep_open=True)
    ws = Workspace(store, FixedClock(NOON), policy=compiled(), actor="other")
    for name in names:
        assert ws.submit(counts(name, rho="0.0001")).allowed
    store.close()


def test_what_others_append_meanwhile_is_read_in_small_pieces(
    path: Path, store: Queue, live: LiveLedger
) -> None:
    names = [f"r-{number}" for number in range(MANY)]
    store.others = lambda: submit(path, *names)
    before, store.longest = live.book, 0
    held = live.turn(lambda entry: sorted(entry.book.state.releases))
    assert held == sorted(["first", *names])
    assert live.book is before
    assert 1 < store.longest <= 1 + FOLLOWED_AT_ONCE


def test_a_log_that_cannot_be_read_meanwhile_is_read_in_the_turn(
    path: Path, store: Queue, live: LiveLedger
) -> None:
    def others() -> None:
        submit(path, "second")
        store.is_shut = True

    store.others = others
    assert sorted(live.turn(lambda entry: sorted(entry.book.state.releases))) == [
        "first",
        "second",
    ]


@pytest.mark.spec("LED-18")
def test_a_log_that_lost_entries_meanwhile_is_refused_in_the_turn(
    path: Path, store: Queue, live: LiveLedger
) -> None:
    def others() -> None:
        path.unlink()
        submit(path, "another")

    store.others = others
    for _ in range(2):
        with pytest.raises(VerificationError):
            live.turn(lambda entry: None)
        store.others = lambda: None


def test_a_book_that_was_dropped_is_read_anew_in_the_turn(
    path: Path, store: Queue, live: LiveLedger
) -> None:
    with pytest.raises(RuntimeError):
        live.turn(_broken)
    assert live.book.state.seq == 0
    submit(path, "second")
    held = live.turn(lambda entry: sorted(entry.book.state.releases))
    assert held == ["first", "second"]


def _broken(_: object) -> None:
    raise RuntimeError("broken")
