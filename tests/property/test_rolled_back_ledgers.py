"""Random histories, rolled back to each of their entries: the witness refuses all.

The stores, the witnesses and the ways to put an older copy back are real ones. What a
process remembers is a help of its own, so that each copy meets a new process, too.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import psycopg
import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.sql import SQL, Identifier
from samples.postgres import Cluster
from samples.small import NOON, POLICY, compiled, counts
from samples.witnesses import KINDS, buckets, new_name, opened, register

from modicum.api.local.ledger_view import LedgerView
from modicum.api.ports.storage import Store
from modicum.core.errors import (
    Code,
    ConflictError,
    InputError,
    ModicumError,
    UnavailableError,
    VerificationError,
)
from modicum.storage.factory import open_store
from modicum.storage.witness.store import WitnessedStore
from modicum.system.clock import FixedClock
from modicum.writer.service import Decider

#: What is done with a release, by its number.
Step: TypeAlias = tuple[str, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["submit", "publish", "start", "cancel", "large"]),
        st.integers(0, 3),
    ),
    min_size=2,
    max_size=7,
)


@dataclass(frozen=True)
class Stored:
    """A ledger whose copies can be put back.

    Attributes:
        name: Its path or URL.
        copy: Returns how to put back what is there now.
    """

    name: str
    copy: Callable[[], Callable[[], None]]


def pages(folder: Path) -> Stored:
    """Return a ledger in a file; its pages are copied, the write-ahead log's too."""
    path = folder / "ledger.db"
    copies = iter(range(10**6))

    def write(source: Path, target: Path) -> None:
        with (
            closing(sqlite3.connect(source)) as one,
            closing(sqlite3.connect(target)) as other,
        ):
            one.backup(other)

    def copy() -> Callable[[], None]:
        kept = folder / f"copy-{next(copies)}.db"
        write(path, kept)
        return partial(write, kept, path)

    return Stored(str(path), copy)


def files(folder: Path) -> Stored:
    """Return a ledger in a file, which is copied with its write-ahead log as it is."""
    path = folder / "ledger.db"
    copies = iter(range(10**6))
    beside = [Path(f"{path}{end}") for end in ("", "-wal", "-shm", ".snapshot")]

    def copy() -> Callable[[], None]:
        kept = folder / f"copy-{next(copies)}"
        kept.mkdir()
        for one in beside:
            if one.exists():
                shutil.copy(one, kept)

        def put_back() -> None:
            for one in beside:
                one.unlink(missing_ok=True)
            for one in kept.iterdir():
                shutil.copy(one, folder)

        return put_back

    return Stored(str(path), copy)


def tables(cluster: Cluster) -> Stored:
    """Return a ledger in PostgreSQL; the rows of all of its tables are copied."""
    name = cluster.new_ledger()
    schema = f"modicum_{name.rpartition('=')[2]}"
    changing = ("events", "head", "checkpoints", "snapshot", "answers")

    def of(text: str, table: str) -> Any:
        return SQL(text).format(Identifier(schema, table))

    def copy() -> Callable[[], None]:
        with psycopg.connect(cluster.url) as connection:
            rows = {
                table: connection.execute(of("SELECT * FROM {}", table)).fetchall()
                for table in changing
            }
        return partial(put_back, rows)

    def put_back(rows: dict[str, list[tuple[Any, ...]]]) -> None:
        with psycopg.connect(cluster.url) as connection:
            for table in ("events", "checkpoints"):
                connection.execute(of("ALTER TABLE {} DISABLE TRIGGER ALL", table))
            for table, kept in rows.items():
                connection.execute(of("DELETE FROM {}", table))
                for row in kept:
                    marks = ", ".join(["%s"] * len(row))
                    insert = f"INSERT INTO {{}} VALUES ({marks})"
                    connection.execute(of(insert, table), row)

    return Stored(name, copy)


def decided(store: Store) -> Decider:
    return Decider(store, FixedClock(NOON), policy=compiled(POLICY), actor="ann")


def do(decider: Decider, step: Step) -> None:
    """Do something with a release; what cannot be done adds no entry."""
    kind, number = step
    with suppress(InputError, ConflictError):
        if kind in {"submit", "large"}:
            rho = "3" if kind == "large" else "0.01"
            decider.submit(counts(f"{kind}-{number}", rho=rho))
        elif kind == "start":
            decider.start(f"submit-{number}")
        elif kind == "publish":
            decider.publish(f"submit-{number}")
        else:
            decider.cancel(f"submit-{number}", reason="called off")


def attempts(decider: Decider) -> Iterator[Callable[[], object]]:
    """Yield what reads, checks, decides and looks whether it can."""
    yield decider.must_be_sound
    yield lambda: decider.check(counts("new"))
    yield lambda: decider.submit(counts("new"))
    yield lambda: decider.submit(counts("submit-8", rho="0.01"))
    yield lambda: decider.start("submit-8")
    yield lambda: decider.study(LedgerView.state)
    yield decider.must_be_sound


def refusal(attempt: Callable[[], object]) -> Code:
    """Return why it is refused."""
    with pytest.raises((VerificationError, UnavailableError)) as caught:
        attempt()
    error: ModicumError = caught.value
    return error.code


def refused_in_a_new_process(open_again: Callable[[], Store]) -> None:
    """Check that nothing of a ledger that went back is used by a new process."""
    store = open_again()
    assert refusal(lambda: decided(store)) is Code.LEDGER_BEHIND
    assert refusal(lambda: store.record(1)) is Code.LEDGER_BEHIND
    assert refusal(lambda: list(store.read(0))) is Code.LEDGER_BEHIND

    def turn() -> None:
        with store.turn():
            raise AssertionError

    assert refusal(turn) is Code.LEDGER_BEHIND
    store.close()


def goes_back(stored: Stored, witness: str, steps: Sequence[Step], *, wal: bool) -> int:
    """Check a history, rolled back to each of its entries; return how many."""
    now = [0.0]

    def open_again() -> Store:
        store = open_store(stored.name, keep_open=wal)
        clock = lambda: now[0]  # noqa: E731
        return WitnessedStore(store, opened(witness), clock=clock)

    decider = decided(open_again())
    copies: dict[int, Callable[[], None]] = {}
    for step in (("submit", 8), *steps, ("submit", 9)):
        do(decider, step)
        copies[decider.study(LedgerView.state).seq] = stored.copy()
    last = max(copies)
    newest = list(open_store(stored.name).read(0))
    for seq in [one for one in copies if one < last]:
        copies[seq]()
        now[0] += 1  # Reads look once a second.
        for attempt in attempts(decider):
            refusal(attempt)
        refused_in_a_new_process(open_again)
        copies[last]()
        assert list(open_store(stored.name).read(0)) == newest  # Nothing was written.
        with decided(open_again()) as other:  # The intact one is not refused.
            assert other.check(counts("new")).allowed
            assert other.submit(counts("submit-8", rho="0.01")).allowed
            other.must_be_sound()
        now[0] += 1
        decider.must_be_sound()
        assert decider.check(counts("new")).allowed
    decider.close()
    return len(copies) - 1


@pytest.fixture(scope="module")
def register_url() -> Iterator[str]:
    with register() as url:
        yield url


@pytest.fixture(scope="module")
def buckets_url() -> Iterator[str]:
    with buckets() as url:
        yield url


@pytest.mark.spec("LED-31")
@pytest.mark.parametrize(("place", "kind"), [*product(("pages", "postgresql"), KINDS)])
def test_a_ledger_that_went_back_is_refused(
    place: str, kind: str, request: pytest.FixtureRequest
) -> None:
    seen = 0

    @settings(max_examples=examples(6, 3), deadline=None)
    @given(STEPS)
    def check(steps: list[Step]) -> None:
        nonlocal seen
        with TemporaryDirectory() as name:
            folder = Path(name)
            if place == "postgresql":
                stored = tables(request.getfixturevalue("postgres"))
            else:
                stored = pages(folder)
            witness = new_name(kind, folder, request)
            seen += goes_back(stored, witness, steps, wal=True)

    check()
    assert seen > 4


@pytest.mark.spec("LED-31")
@settings(max_examples=examples(12, 6), deadline=None)
@given(STEPS, st.booleans())
def test_a_file_with_its_write_ahead_log_went_back(
    steps: list[Step], is_open: bool
) -> None:
    with TemporaryDirectory() as name:
        folder, copies = Path(name), dict[int, Callable[[], None]]()
        stored = files(folder)

        def open_again() -> Store:
            store = open_store(stored.name, keep_open=is_open)
            return WitnessedStore(store, opened(str(folder / "head")))

        decider = decided(open_again())
        for step in (("submit", 8), *steps, ("submit", 9)):
            do(decider, step)
            copies[decider.study(LedgerView.state).seq] = stored.copy()
        decider.close()
        last = max(copies)
        for seq, put_back in copies.items():
            put_back()
            if seq < last:
                refused_in_a_new_process(open_again)
        with decided(open_again()) as other:
            assert other.submit(counts("submit-8", rho="0.01")).allowed
            assert other.study(LedgerView.state).seq == last
