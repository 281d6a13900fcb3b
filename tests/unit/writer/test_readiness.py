"""A server is ready if it can decide: else it says so, and recovers by itself."""

from __future__ import annotations

import errno
import itertools
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import errors
from samples.postgres import Cluster
from samples.small import POLICY, counts

import modicum as mo
from modicum.api.local.balances import Entry
from modicum.core.errors import (
    Code,
    ModicumError,
    Problem,
    UnavailableError,
    VerificationError,
)
from modicum.ledger import Record, event_of, seal
from modicum.ledger.log.events import Event, ReleasePosted
from modicum.storage.postgres_errors import error_of
from modicum.storage.postgres_store import PostgresStore
from modicum.storage.postgres_url import parse_address
from modicum.storage.service_tables import Statement
from modicum.storage.sqlite_store import SqliteStore, SqliteTurn
from modicum.system.clock import SystemClock
from modicum.writer import readiness
from modicum.writer.group_commit import GroupCommit
from modicum.writer.readiness import UNKNOWN, Outcome, Readiness, probe
from modicum.writer.service import Decider
from modicum.writer.turn_outcomes import TurnOutcomes

FULL = OSError(errno.ENOSPC, "No space left on device")
STANDBY = errors.ReadOnlySqlTransaction("cannot set read-write mode during recovery")
#: A server that only repeats what another one writes.
READ_ONLY = error_of(parse_address("postgresql://standby.example/p"), STANDBY)
BEHIND = VerificationError(Problem(Code.LEDGER_BEHIND, "it is behind its witness"))


class Ailing(SqliteStore):
    """A store that fails as a test wishes.

    Attributes:
        begins: What the beginning of a turn raises.
        ends: What storing a turn raises.
        reads: What reading raises.
    """

    begins: Exception | None = None
    ends: Exception | None = None
    reads: Exception | None = None

    @contextmanager
    def turn(self) -> Iterator[SqliteTurn]:
        with self._troubles.translated(writing=True):
            if self.begins is not None:
                raise self.begins
            with super().turn() as turn:
                yield turn
                if self.ends is not None:
                    raise self.ends

    def read(self, after: int, limit: int | None = None) -> Iterator[Record]:
        with self._troubles.translated(writing=False):
            if self.reads is not None:
                raise self.reads
        return super().read(after, limit)


class Seconds:
    """Time that goes by as a test wishes."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(POLICY)
    path = tmp_path / "ledger.db"
    mo.open(path, policy=tmp_path / "policy.yaml", actor="olga").init()
    return path


@pytest.fixture
def store(ledger: Path) -> Ailing:
    return Ailing(ledger, keep_open=True)


@pytest.fixture
def decider(store: Ailing) -> Iterator[Decider]:
    with Decider(store, SystemClock()) as found:
        yield found


def checked(decider: Decider, times: int = 2) -> Outcome:
    """Check as often as a failure outside needs to count."""
    found = UNKNOWN
    for _ in range(times):
        found = decider.readiness.check()
    assert decider.readiness.outcome() == found
    return found


def is_ready(found: Outcome) -> bool:
    return not found.codes and found.is_writable and not found.is_behind


def failed(decider: Decider, name: str) -> Code:
    with pytest.raises(ModicumError) as caught:
        decider.submit(counts(name))
    return caught.value.code


def test_a_ledger_that_decides_is_ready_and_checks_write_nothing(
    decider: Decider, ledger: Path
) -> None:
    before = ledger.read_bytes(), Path(f"{ledger}-wal").read_bytes()
    found = checked(decider)
    assert is_ready(found)
    assert not found.failed_at
    assert (ledger.read_bytes(), Path(f"{ledger}-wal").read_bytes()) == before
    assert decider.submit(counts("one")).allowed


def test_a_probe_upgrades_no_table(ledger: Path) -> None:
    with closing(sqlite3.connect(ledger)) as connection:
        for table in ("answers", "tokens", "sessions", "trail", "trail_marks"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("PRAGMA user_version = 2")
    with mo.open_decider(ledger) as decider:
        assert is_ready(checked(decider))
        assert decider._store.table_versions().stored == 2  # type: ignore[attr-defined]
        assert decider.submit(counts("one")).allowed
        assert is_ready(checked(decider))


def test_nothing_is_known_before_the_first_check(decider: Decider) -> None:
    assert decider.readiness.outcome() is UNKNOWN
    assert UNKNOWN.codes
    assert not UNKNOWN.is_writable


def test_an_idle_store_that_cannot_be_written_is_found(
    decider: Decider, store: Ailing
) -> None:
    decider.readiness._clock = Seconds()  # No check takes a second.
    for error in (FULL, READ_ONLY):
        store.begins = error
        decider.readiness._probed = float("-inf")
        short = checked(decider, 1)
        assert not short.codes  # It may be over in a second.
        assert not short.is_writable
        found = checked(decider, 1)
        assert found.codes == (Code.LEDGER_UNWRITABLE,)
        assert found.failed_at
        store.begins = None
        assert is_ready(checked(decider, 1))


def test_a_full_disk_is_found_before_a_turn_fails(
    decider: Decider, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Room:
        f_bavail, f_frsize = 255, 4096

    assert is_ready(checked(decider))
    decider.readiness._probed = float("-inf")
    monkeypatch.setattr(os, "statvfs", lambda _: Room)
    assert checked(decider).codes == (Code.LEDGER_UNWRITABLE,)
    Room.f_bavail = 256
    assert is_ready(checked(decider, 1))


def test_only_a_stored_turn_ends_the_failure_of_one(
    decider: Decider, store: Ailing, ledger: Path
) -> None:
    """What is rolled back shows nothing of a disk that fails as a turn is stored."""
    store.ends = FULL
    assert failed(decider, "one") is Code.LEDGER_UNWRITABLE
    probe(store)
    for _ in range(3):
        assert checked(decider).codes == (Code.LEDGER_UNWRITABLE,)
    store.ends = None
    assert is_ready(checked(decider, 1))
    assert decider.submit(counts("one")).allowed
    entries = [event_of(one, one.seq).body.kind for one in store.read(0)]
    assert entries == ["policy-activated", "release-reserved"]


def test_the_next_decision_ends_a_failure_too(decider: Decider, store: Ailing) -> None:
    store.begins = FULL
    failed(decider, "one")
    assert not checked(decider, 1).is_writable
    store.begins = None
    assert decider.submit(counts("one")).allowed
    found = checked(decider, 1)
    assert is_ready(found)
    assert found.failed_at


def test_a_turn_that_others_have_is_no_failure(ledger: Path) -> None:
    other = SqliteStore(ledger)
    with Decider(
        SqliteStore(ledger, keep_open=True, wait_seconds=0), SystemClock()
    ) as (decider):
        with other.turn():
            assert is_ready(checked(decider))
            assert failed(decider, "one") is Code.LEDGER_BUSY
            assert checked(decider).codes == (Code.LEDGER_BUSY,)
        assert is_ready(checked(decider, 1))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_dead_writer_is_found(decider: Decider) -> None:
    class Death(BaseException):
        pass

    def work(_: Entry) -> None:
        raise Death

    with pytest.raises(UnavailableError):
        decider.turn(work)
    decider._desk._thread.join()
    found = checked(decider)
    assert found.codes == (Code.LEDGER_BUSY,)
    assert not found.is_writable


def test_a_ledger_that_cannot_be_read_is_found(decider: Decider, store: Ailing) -> None:
    decider.readiness._clock = Seconds()
    store.reads = FULL
    assert not checked(decider, 1).codes
    assert checked(decider, 1).codes == (Code.LEDGER_MISSING,)
    store.reads = None
    assert is_ready(checked(decider, 1))


def test_a_ledger_behind_its_witness_is_found_at_once(
    decider: Decider, store: Ailing
) -> None:
    store.reads = BEHIND
    found = checked(decider, 1)
    assert found.codes == (Code.LEDGER_BEHIND,)
    assert found.is_behind
    store.reads = None
    assert is_ready(checked(decider, 1))
    store.begins = BEHIND
    assert failed(decider, "one") is Code.LEDGER_BEHIND
    found = checked(decider, 1)
    assert (found.codes, found.is_behind) == ((Code.LEDGER_BEHIND,), True)
    assert not found.is_writable
    store.begins = None
    assert is_ready(checked(decider, 1))


def append(ledger: Path, previous: Callable[[Record], str]) -> None:
    """Append an entry that publishes nothing that there is."""
    other = SqliteStore(ledger)
    (*_, last) = other.read(0)
    event = Event(SystemClock().now(), "eve", ReleasePosted("nowhere"))
    with other.turn() as turn:
        turn.append([seal(event, last.seq + 1, previous(last))])


def test_an_entry_that_does_not_follow_is_found(decider: Decider, ledger: Path) -> None:
    append(ledger, lambda _: "0" * 64)
    found = checked(decider, 1)
    assert found.codes == (Code.LEDGER_BROKEN,)
    assert found.is_behind


def test_what_a_reader_finds_stays_known(decider: Decider, ledger: Path) -> None:
    """An entry of the chain that means nothing is found by whoever reads it."""
    append(ledger, lambda last: last.hash)
    with pytest.raises(VerificationError):
        decider.read_view(lambda view: view.state())
    for _ in range(2):
        assert checked(decider, 1).codes == (Code.LEDGER_BROKEN,)


def test_an_old_outcome_counts_no_more(ledger: Path) -> None:
    with mo.open_decider(ledger) as decider:
        seconds = Seconds()
        found = Readiness(decider._store, decider._desk, lambda: None, seconds)
        found.check()
        seconds.now = readiness.STALE_SECONDS
        assert is_ready(found.outcome())
        seconds.now += 0.001
        assert found.outcome() is UNKNOWN


@pytest.mark.spec("OPS-8")
@pytest.mark.parametrize(("took", "counts"), [(0.99, False), (1.0, True), (9.0, True)])
def test_a_failure_that_is_long_in_coming_counts_at_once(
    ledger: Path, took: float, counts: bool
) -> None:
    """Else a server would be ready again after each check that hangs for seconds."""
    seconds = Seconds()

    def check() -> None:
        seconds.now += took
        raise PASSING

    with mo.open_decider(ledger) as decider:
        found = Readiness(decider._store, decider._desk, check, seconds)
        assert found.check().codes == ((Code.LEDGER_BUSY,) if counts else ())


def test_the_thread_goes_on_whatever_happens(ledger: Path) -> None:
    heard: list[tuple[Code, ...]] = []
    with mo.open_decider(ledger) as decider:

        def check() -> None:
            raise ZeroDivisionError

        told = decider.readiness
        told.start(check, changed=lambda one: heard.append(one.codes), seconds=0)
        while not heard:
            told._over.wait(0.001)
        assert told.outcome().codes == (Code.INTERNAL,)
        thread = told._thread
    assert thread is not None
    assert not thread.is_alive()
    assert heard == [(Code.INTERNAL,)]


# --- what counts, by an oracle ---


class Desk:
    """A queue whose writer has nothing to do."""

    is_serving = True

    def __init__(self) -> None:
        self.turns = TurnOutcomes()


class Nothing:
    """A store without a ledger."""

    def exists(self) -> bool:
        return False


PASSING = UnavailableError(Problem(Code.LEDGER_BUSY, "it is busy"))
KINDS: list[ModicumError | None] = [None, None, PASSING, READ_ONLY, BEHIND]


@given(st.lists(st.tuples(*[st.sampled_from(KINDS)] * 2), max_size=12))
def test_a_failure_counts_if_it_lasts(checks: list[tuple[Any, Any]]) -> None:
    now: list[ModicumError | None] = [None, None]

    def check(place: int) -> None:
        if (error := now[place]) is not None:
            raise error

    changes: list[tuple[Code, ...]] = []
    desk, store = cast(GroupCommit, Desk()), cast(Any, Nothing())
    found = Readiness(store, desk, lambda: check(0), Seconds())
    found._checks.append(lambda: check(1))
    found._changed = lambda one: changes.append(one.codes)
    expected: list[tuple[Code, ...]] = [()]
    before = False
    for one in checks:
        now[:] = one
        failures = [error for error in one if error is not None]
        counts = failures and (before or BEHIND in failures)
        codes = [error.code for error in failures] if counts else []
        assert set(found.check().codes) == set(codes)
        assert len(found.outcome().codes) == len(set(codes))
        expected.append(found.outcome().codes)
        before = bool(failures)
    assert changes == [new for old, new in itertools.pairwise(expected) if old != new]


# --- PostgreSQL ---


def test_a_role_that_only_reads_cannot_decide(
    postgres: Cluster, tmp_path: Path
) -> None:
    url = postgres.new_ledger()
    (tmp_path / "policy.yaml").write_text(POLICY)
    mo.open(url, policy=tmp_path / "policy.yaml", actor="olga").init()
    schema = f"modicum_{url.rpartition('=')[2]}"
    role = f"reads_{schema}"
    for statement in (
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE ON SCHEMA {schema} TO {role}",
        f"GRANT SELECT, UPDATE ON ALL TABLES IN SCHEMA {schema} TO {role}",
    ):
        postgres.execute(statement)
    own = PostgresStore(url.replace("postgres@", f"{role}@"))
    with Decider(own, SystemClock()) as decider:
        found = checked(decider)
        assert found.codes == (Code.LEDGER_MISSING,)
        assert not found.is_writable
        postgres.execute(
            f"GRANT INSERT, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}"
        )
        assert is_ready(checked(decider, 1))
        rows = own.rows_beside(Statement("SELECT count(*) FROM {s}.answers"))
    assert rows == [(0,)]  # A probe leaves nothing.
