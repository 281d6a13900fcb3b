"""What every store promises, tried on each of them."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from samples.stores import Place, append, numbered, postgres_place, sqlite_place

from modicum.api.ports.storage import MaintainedStore, Patient, Store
from modicum.core.errors import (
    Code,
    InvariantError,
    UnavailableError,
    VerificationError,
)
from modicum.ledger import Record
from modicum.storage import log_pages

#: No test waits longer for a thread; only a test that fails waits so long.
PATIENCE = 20.0


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
    yield opened
    opened.close()


# --- the log ---


def test_what_was_appended_is_read_back(place: Place, store: Store) -> None:
    assert not store.exists()
    with store.turn() as turn:
        assert list(turn.read(0)) == []
        turn.append(numbered(1, 2))
        assert list(turn.read(0)) == numbered(1, 2)
    with store.turn() as turn:
        assert list(turn.read(1)) == numbered(2, 2)
        turn.append(numbered(3, 3))
        turn.append([])
        turn.append(numbered(4, 5))
    assert store.exists()
    other = place.open()
    assert other.exists()
    assert list(other.read(0)) == list(store.read(0)) == numbered(1, 5)
    assert list(other.read(4)) == numbered(5, 5)
    assert list(other.read(5)) == list(other.read(99)) == []
    assert [other.record(n) for n in (0, 3, 6)] == [None, numbered(3, 3)[0], None]
    other.close()


def test_several_begin_one_ledger_at_once(place: Place) -> None:
    stores = [place.open() for _ in range(4)]
    together = threading.Barrier(len(stores))

    def begin(store: Store) -> None:
        together.wait(PATIENCE)
        with store.turn() as turn:
            last = len(list(turn.read(0)))
            turn.append(numbered(last + 1, last + 1))

    with ThreadPoolExecutor(len(stores)) as pool:
        list(pool.map(begin, stores))
    assert list(stores[0].read(0)) == numbered(1, 4)
    for one in stores:
        one.close()


def test_a_ledger_without_entries_reads_as_empty(store: Store) -> None:
    append(store, [])
    assert store.exists()
    assert list(store.read(0)) == []
    assert store.record(1) is None
    assert store.checkpoints() == []


def test_tables_are_of_the_current_version_once_there_was_a_turn(
    place: Place, store: MaintainedStore
) -> None:
    append(store, [])
    stored, current = store.table_versions()
    assert stored == current > 0
    assert place.open().table_versions() == (stored, current)


def test_checkpoints_of_a_turn_are_stored_with_it_or_not_at_all(
    place: Place, store: MaintainedStore
) -> None:
    with store.turn() as turn:
        turn.append(numbered(1, 2))
        for data in (b"one", b"two", b"one"):
            turn.add_checkpoint(data)
        assert turn.checkpoints() == [b"one", b"two"]

    def call_off() -> None:
        with store.turn() as turn:
            turn.add_checkpoint(b"three")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call_off()
    assert place.open().checkpoints() == [b"one", b"two"]
    with pytest.raises(InvariantError):
        turn.add_checkpoint(b"four")
    with pytest.raises(InvariantError):
        turn.checkpoints()


def test_contents_are_any_bytes_and_large(store: Store) -> None:
    records = [
        Record(1, bytes(range(256)) * 2, "é" * 64),
        Record(2, b"", ""),
        *numbered(3, 9, size=1_000_000),
    ]
    append(store, records)
    assert list(store.read(0)) == records
    with store.turn() as turn:
        assert list(turn.read(0)) == records


@pytest.mark.parametrize("page", [1, 2, 7, 1000])
def test_pages_make_no_difference(
    store: Store, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    append(store, numbered(1, 12))
    monkeypatch.setattr(log_pages, "PAGE_RECORDS", page)
    for after in (0, 1, 6, 11, 12):
        for limit in (None, 0, 1, 2, 7, 12, 13):
            last = 12 if limit is None else min(12, after + limit)
            assert list(store.read(after, limit)) == numbered(after + 1, last)
    with store.turn() as turn:
        assert list(turn.read(5)) == numbered(6, 12)


def test_a_long_log_is_read_in_pages_and_ends_where_it_ended(
    place: Place, store: Store
) -> None:
    append(store, numbered(1, 2500))
    records = store.read(0)
    assert next(records) == numbered(1, 1)[0]  # type: ignore[call-overload]
    writer = place.open()
    append(writer, numbered(2501, 2600))
    writer.close()
    assert list(records) == numbered(2, 2500)
    assert list(store.read(2499)) == numbered(2500, 2600)


def test_a_turn_that_fails_stores_nothing(store: Store) -> None:
    append(store, numbered(1, 1))
    with pytest.raises(KeyError), store.turn() as turn:  # noqa: PT012 - in the turn
        turn.append(numbered(2, 2))
        raise KeyError
    assert list(store.read(0)) == numbered(1, 1)
    append(store, numbered(2, 2))
    assert list(store.read(0)) == numbered(1, 2)


@pytest.mark.parametrize("wrong", [[2], [1], [4], [5], [0], [-1], [3, 3], [3, 5]])
def test_a_number_that_does_not_follow_is_refused(
    store: Store, wrong: list[int]
) -> None:
    append(store, numbered(1, 2))
    with pytest.raises(VerificationError) as caught, store.turn() as turn:
        turn.append([Record(n, b"x", "y") for n in wrong])
    assert caught.value.code is Code.LEDGER_BROKEN
    assert list(store.read(0)) == numbered(1, 2)


def test_a_number_taken_behind_the_stores_back_is_refused(
    place: Place, store: Store
) -> None:
    append(store, numbered(1, 2))
    place.damage("INSERT INTO {s}events VALUES (3, CAST('x' AS {b}), 'y')")
    with pytest.raises(VerificationError) as caught:
        append(store, numbered(3, 3))
    assert caught.value.code is Code.LEDGER_BROKEN


# --- turns ---


def test_a_turn_is_of_no_use_after_its_end(store: Store) -> None:
    """Its connection may be in another turn by now, or in none."""
    append(store, numbered(1, 1))
    with store.turn() as turn:
        begun_before = iter(turn.read(0))
    for attempt in (
        lambda: turn.append(numbered(2, 2)),
        lambda: list(turn.read(0)),
        lambda: list(begun_before),
    ):
        with pytest.raises(InvariantError):
            attempt()
    assert list(store.read(0)) == numbered(1, 1)
    with pytest.raises(KeyError), store.turn() as turn:
        raise KeyError
    with store.turn(), pytest.raises(InvariantError):
        turn.append(numbered(2, 2))
    assert list(store.read(0)) == numbered(1, 1)


def add_one(store: Store, payload: bytes) -> None:
    """Append an entry after the last one, as it is read in the turn."""
    with store.turn() as turn:
        last = max((record.seq for record in turn.read(0)), default=0)
        turn.append([Record(last + 1, payload, "h")])


@pytest.mark.parametrize("shared", [False, True])
def test_threads_take_turns(place: Place, store: Store, shared: bool) -> None:
    def work(name: int) -> None:
        mine = store if shared else place.open()
        try:
            for _ in range(10):
                add_one(mine, b"%d" % name)
                assert list(mine.read(0, 1))
        except BaseException as error:  # noqa: BLE001 - told below
            failures.append(error)
        finally:
            if not shared:
                mine.close()

    failures: list[BaseException] = []
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    records = list(store.read(0))
    assert [record.seq for record in records] == list(range(1, 41))
    assert Counter(record.payload for record in records) == Counter(
        {b"%d" % n: 10 for n in range(4)}
    )


#: Processes that begin together and work as fast as they can; each entry is signed.
GREEDY = """
store.close()
gate, open_gate = os.pipe()
children = []
for name in range(COUNT):
    children.append(os.fork())
    if children[-1] == 0:
        store = open_again()
        os.close(open_gate)
        os.read(gate, 1)
        mark = 0
        for _ in range(TURNS):
            with store.turn() as turn:
                mark = max((record.seq for record in turn.read(mark)), default=mark) + 1
                turn.append([Record(mark, str(name).encode(), "h")])
        store.close()
        os._exit(0)
os.close(open_gate)
for child in children:
    assert os.waitpid(child, 0)[1] == 0
"""


def test_no_process_starves(place: Place, store: Store) -> None:
    """From when all work until the first is done, each has half its share at least."""
    count, turns = 5, 60
    append(store, [])
    script = GREEDY.replace("COUNT", str(count)).replace("TURNS", str(turns))
    assert place.run(script)[0] == 0
    names = [record.payload for record in store.read(0)]
    assert len(names) == count * turns
    begin = max(names.index(name) for name in set(names))
    end = min(last_index(names, name) for name in set(names))
    together = Counter(names[begin:end])
    assert end - begin >= turns, "they hardly worked at the same time"
    assert min(together[name] for name in set(names)) >= (end - begin) // count // 2


def last_index(names: list[bytes], name: bytes) -> int:
    return len(names) - 1 - names[::-1].index(name)


def test_whoever_waits_too_long_is_told_so_and_may_come_again(
    place: Place, store: Store
) -> None:
    append(store, [])
    hasty = place.open(wait_seconds=0.05)
    with store.turn() as turn:
        turn.append(numbered(1, 1))
        with pytest.raises(UnavailableError) as caught, hasty.turn():
            raise AssertionError
        assert caught.value.code is Code.LEDGER_BUSY
    append(hasty, numbered(2, 2))
    assert list(hasty.read(0)) == numbered(1, 2)
    hasty.close()


def test_a_thread_that_waits_too_long_for_another_is_told_so(place: Place) -> None:
    shared = place.open(wait_seconds=0.05)
    caught: list[Exception] = []

    def hasty() -> None:
        try:
            append(shared, numbered(1, 1))
        except UnavailableError as error:
            caught.append(error)

    with shared.turn() as turn:
        thread = threading.Thread(target=hasty)
        thread.start()
        thread.join()
        turn.append(numbered(1, 1))
    assert [type(error) for error in caught] == [UnavailableError]
    append(shared, numbered(2, 2))
    shared.close()


def test_reading_beside_a_turn_sees_what_is_committed(place: Place) -> None:
    if is_at_rest(place):
        pytest.skip("a file at rest is not supported during a turn")
    store, other = place.open(), place.open()
    append(store, numbered(1, 1))
    assert list(other.read(0)) == numbered(1, 1)
    with store.turn() as turn:
        turn.append(numbered(2, 2))
        assert list(store.read(0)) == list(other.read(0)) == numbered(1, 1)
        assert other.exists()
    assert list(store.read(0)) == list(other.read(0)) == numbered(1, 2)
    store.close()
    other.close()


def test_a_thread_that_waits_may_do_something_meanwhile(
    place: Place, store: Store
) -> None:
    append(store, numbered(1, 1))
    patient = place.open()
    read: list[list[Record]] = []
    busy = threading.Event()

    def chore() -> bool:
        read.append(list(patient.read(0)))
        busy.set()
        return len(read) < 3

    def work() -> None:
        assert isinstance(patient, Patient)
        patient.while_waiting(chore)
        append(patient, numbered(2, 2))  # Now it knows that others write, too.
        ready.set()
        may_go_on.wait(PATIENCE)
        append(patient, numbered(3, 3))

    ready, may_go_on = threading.Event(), threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    assert ready.wait(PATIENCE)
    with store.turn():
        may_go_on.set()
        # A file at rest cannot be read by who stands in the queue.
        assert is_at_rest(place) or busy.wait(PATIENCE)
    thread.join()
    assert all(one in (numbered(1, 1), numbered(1, 2)) for one in read)
    read.clear()
    append(patient, numbered(4, 4))  # The chore is the other thread's.
    assert not read
    assert list(store.read(0)) == numbered(1, 4)
    patient.close()


def is_at_rest(place: Place) -> bool:
    return not place.keep_open and "postgresql" not in place.url


def test_who_cannot_wait_any_more_leaves_the_turn_to_others(
    place: Place, store: Store
) -> None:
    if is_at_rest(place):
        pytest.skip("nothing is done while one waits for a file at rest")
    append(store, numbered(1, 1))
    patient = place.open()
    tired = threading.Event()
    caught: list[object] = []

    def chore() -> bool:
        tired.set()
        raise RuntimeError("tired")

    def work() -> None:
        assert isinstance(patient, Patient)
        append(patient, numbered(2, 2))
        patient.while_waiting(chore)
        ready.set()
        may_go_on.wait(PATIENCE)
        with pytest.raises(RuntimeError, match="tired") as error, patient.turn():
            raise AssertionError
        caught.append(error)

    ready, may_go_on = threading.Event(), threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    assert ready.wait(PATIENCE)
    with store.turn():
        may_go_on.set()
        assert tired.wait(PATIENCE)
    thread.join()
    assert caught
    append(store, numbered(3, 3))
    append(patient, numbered(4, 4))
    patient.close()


# --- crashes ---


@pytest.mark.parametrize("when", ["in the turn", "at its end"])
def test_a_killed_process_leaves_all_or_nothing(
    place: Place, store: Store, when: str
) -> None:
    append(store, numbered(1, 1))
    ended, _ = place.run(
        "with store.turn() as turn:\n"
        "    turn.append(numbered(2, 4))\n"
        f"    if {when!r} == 'in the turn': die()\n"
        "die()\n"
    )
    assert ended == -9
    expected = numbered(1, 1 if when == "in the turn" else 4)
    assert list(store.read(0)) == list(place.open().read(0)) == expected
    follows = len(expected) + 1
    append(store, numbered(follows, follows))
    assert list(store.read(0)) == numbered(1, follows)


def test_a_process_killed_while_it_waits_blocks_nobody(
    place: Place, store: Store
) -> None:
    append(store, [])
    with store.turn() as turn:
        waiting = place.process(
            "children = [os.fork(), os.fork()]\n"
            "say('waits')\n"
            "with store.turn():\n"
            "    say('got')\n"
        )
        assert waiting.stdout is not None
        assert [waiting.stdout.readline() for _ in range(4)] == ["waits\n"] * 4
        os.killpg(waiting.pid, signal.SIGKILL)
        waiting.communicate()
        turn.append(numbered(1, 1))
    append(store, numbered(2, 2))


# --- what is kept beside the log ---


def test_checkpoints_are_kept_in_order_and_once(place: Place, store: Store) -> None:
    store.add_checkpoint(b"b\x00")
    store.add_checkpoint(b"a")
    other = place.open()
    other.add_checkpoint(b"b\x00")
    other.add_checkpoint(bytes(range(256)) * 40)
    assert other.checkpoints() == [b"b\x00", b"a", bytes(range(256)) * 40]
    other.close()
    assert store.checkpoints() == [b"b\x00", b"a", bytes(range(256)) * 40]
    append(store, numbered(1, 1))
    assert list(store.read(0)) == numbered(1, 1)


def test_the_latest_snapshot_is_kept(place: Place, store: Store) -> None:
    assert store.load_snapshot() is None
    append(store, numbered(1, 1))
    assert store.load_snapshot() is None
    store.save_snapshot(bytes(range(256)))
    store.save_snapshot(b"\x00" * 3_000_000)
    assert place.open().load_snapshot() == b"\x00" * 3_000_000
    assert list(store.read(0)) == numbered(1, 1)


def test_a_snapshot_that_cannot_be_kept_is_no_mistake(tmp_path: Path) -> None:
    nowhere = sqlite_place(tmp_path / "none" / "a.db", keep_open=False).open()
    nowhere.save_snapshot(b"x")
    assert nowhere.load_snapshot() is None


def test_a_closed_store_may_be_used_again(store: Store) -> None:
    store.close()
    append(store, numbered(1, 1))
    store.close()
    store.close()
    assert list(store.read(0)) == numbered(1, 1)
    append(store, numbered(2, 2))
    store.close()
    assert store.record(2) == numbered(2, 2)[0]


# --- what is no ledger ---


def newer(place: Place) -> None:
    if "postgresql" in place.url:
        place.damage("INSERT INTO {s}migrations (version) VALUES (99)")
    else:
        place.damage("PRAGMA user_version = 99")


def test_a_newer_table_version_is_refused(place: Place) -> None:
    store = place.open()
    append(store, numbered(1, 1))
    store.close()
    newer(place)
    for attempt in (
        lambda: store.read(0),
        lambda: append(store, numbered(2, 2)),
        lambda: store.add_checkpoint(b"x"),
    ):
        with pytest.raises(VerificationError) as caught:
            attempt()
        assert caught.value.code is Code.NOT_A_LEDGER
        assert "newer" in caught.value.problems[0].help


def test_a_name_is_what_was_given(place: Place, store: Store) -> None:
    assert store.name == place.url
