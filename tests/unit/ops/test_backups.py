"""Backups: the ledger entry for entry, as a whole or not at all, and over nothing."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from samples.audited import ASKING, LATER, activated, at, log, priced, sealed
from samples.kept import checkpoints_of, kept_ledger, rows_of
from samples.postgres import Cluster
from samples.small import compiled
from samples.stores import ROOT, append, numbered

from modicum.api.ports.storage import Store, StoredAnswer, StoreTurn
from modicum.core.errors import (
    Code,
    InvariantError,
    UnavailableError,
    UsageError,
    VerificationError,
)
from modicum.ledger import ChainBreakError, Record, seal
from modicum.ledger.log.events import Annotated, Event, ReleaseReserved
from modicum.ops.backup import backup as backing_up
from modicum.ops.backup import restore as restoring
from modicum.ops.backup.backup import (
    ChainReader,
    back_up,
    batches,
    fill,
    require_same,
    require_same_checkpoints,
)
from modicum.ops.backup.new_ledger import new_ledger
from modicum.ops.backup.restore import Heads, restore
from modicum.storage import log_pages
from modicum.storage.factory import open_store

ANY = Heads()


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a ledger is to be."""
    if request.param == "postgres":
        cluster: Cluster = request.getfixturevalue("postgres")
        return cluster.new_ledger()
    return str(tmp_path / "ledger.db")


def everything_in(folder: Path) -> dict[str, bytes]:
    return {
        str(one.relative_to(folder)): one.read_bytes()
        for one in sorted(folder.rglob("*"))
        if one.is_file()
    }


def entries(ledger: str | Path) -> list[Record]:
    """Return the entries of a ledger; none if there is no ledger."""
    store = open_store(ledger)
    return list(store.read(0)) if store.exists() else []


# --- what is in it ---


@pytest.mark.spec("OPS-1")
def test_a_backup_of_either_store_is_restored_into_either(
    address: str, tmp_path: Path, postgres: Cluster
) -> None:
    head = kept_ledger(address, tmp_path)
    backup = tmp_path / "backup.db"
    result = back_up(open_store(address), backup)
    expected = [(one.seq, one.payload, one.hash) for one in log()]
    assert rows_of(backup) == expected
    signed = checkpoints_of(backup)
    assert len(signed) == 2
    assert signed == open_store(address).checkpoints()
    assert (result.entries, result.head, result.checkpoints) == (len(expected), head, 2)
    assert result.at == at(len(expected))

    for target in (str(tmp_path / "restored.db"), postgres.new_ledger()):
        done = restore(str(backup), target, ANY)
        assert done.verified.report.head == head
        assert len(done.verified.findings) == 2
        assert done.at == result.at
        store = open_store(target)
        assert list(store.read(0)) == list(log())
        assert store.checkpoints() == signed
        append(store, [])  # It takes turns as any ledger does.
        store.close()


@pytest.mark.spec("OPS-2")
def test_a_backup_has_nothing_of_what_a_server_keeps_beside_the_log(
    tmp_path: Path,
) -> None:
    """A token that was revoked since would be good again once it is restored."""
    address = tmp_path / "ledger.db"
    kept_ledger(str(address), tmp_path)
    answer = StoredAnswer("a key", "0" * 64, b"an answer", at(1))
    with open_store(address).turn() as turn:
        turn.keep([answer], forget_before="")
    with closing(sqlite3.connect(address, isolation_level=None)) as connection:
        connection.execute("INSERT INTO tokens VALUES (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)")
        connection.execute("INSERT INTO sessions VALUES (1, 2, 3, 4, 5)")
    back_up(open_store(address), tmp_path / "b.db")
    restore(str(address), str(tmp_path / "r.db"), ANY)
    for file in ("b.db", "r.db"):
        with closing(sqlite3.connect(tmp_path / file)) as connection:
            for table in ("answers", "tokens", "sessions"):
                counted = connection.execute(f"SELECT count(*) FROM {table}")
                assert counted.fetchone() == (0,), (file, table)
        assert rows_of(tmp_path / file) == rows_of(address)


@pytest.mark.spec("OPS-1")
def test_a_backup_made_while_others_write_is_the_ledger_at_an_entry(
    address: str, tmp_path: Path
) -> None:
    kept_ledger(address, tmp_path)
    started, enough = threading.Event(), threading.Event()

    def write() -> None:
        store = open_store(address)
        while not enough.is_set():
            add_remark(store)
            started.set()
        store.close()

    writer = threading.Thread(target=write)
    writer.start()
    lengths = []
    try:
        assert started.wait(60)
        for number in range(5):
            before = len(list(open_store(address).read(0)))
            result = back_up(open_store(address), tmp_path / f"b{number}.db")
            assert result.entries >= before
            lengths.append(result.entries)
    finally:
        enough.set()
        writer.join()
    whole = [(one.seq, one.payload, one.hash) for one in open_store(address).read(0)]
    for number, length in enumerate(lengths):
        assert rows_of(tmp_path / f"b{number}.db") == whole[:length]
    assert lengths[0] < len(whole)


def add_remark(store: Store) -> None:
    """Append an entry to a ledger, in a turn."""
    with store.turn() as turn:
        last = list(turn.read(0))[-1]
        remark = Event("2026-07-01T12:00:00.000000Z", "bo", Annotated("", "a remark"))
        turn.append([seal(remark, last.seq + 1, last.hash)])


def test_writers_do_not_wait_for_a_backup(tmp_path: Path) -> None:
    address = str(tmp_path / "ledger.db")
    kept_ledger(address, tmp_path)
    length = len(list(log()))
    other = open_store(address, wait_seconds=0.5)

    def write(seq: int) -> None:
        if seq == 2:  # In the middle of it.
            add_remark(other)

    assert back_up(open_store(address), tmp_path / "b.db", write).entries == length
    assert len(rows_of(Path(address))) == length + 1


@pytest.mark.spec("OPS-1")
def test_a_checkpoint_that_is_copied_is_about_an_entry_that_is_copied(
    tmp_path: Path,
) -> None:
    """What is signed after the reading began may be of an entry that is left out."""
    address = str(tmp_path / "ledger.db")
    kept_ledger(address, tmp_path)
    store = open_store(address)
    signed = store.checkpoints()

    def sign(seq: int) -> None:
        if seq == 2:
            store.add_checkpoint(b"of an entry that came later")

    back_up(store, tmp_path / "b.db", sign)
    assert len(store.checkpoints()) == 3
    assert checkpoints_of(tmp_path / "b.db") == signed


def test_a_ledger_that_is_open_in_a_server_is_copied_with_its_write_ahead_log(
    tmp_path: Path,
) -> None:
    address = tmp_path / "ledger.db"
    served = open_store(address, keep_open=True)
    append(served, list(log()))
    assert Path(f"{address}-wal").stat().st_size
    back_up(open_store(address), tmp_path / "b.db")
    served.close()
    assert rows_of(tmp_path / "b.db") == rows_of(address)
    assert len(rows_of(address)) == len(list(log()))


@pytest.mark.spec("OPS-3")
def test_a_backup_is_at_rest_and_for_its_owner_only(tmp_path: Path) -> None:
    kept_ledger(str(tmp_path / "ledger.db"), tmp_path)
    (tmp_path / "to").mkdir()
    old = os.umask(0)
    try:
        back_up(open_store(tmp_path / "ledger.db"), tmp_path / "to" / "b.db")
    finally:
        os.umask(old)
    made = tmp_path / "to" / "b.db"
    assert os.listdir(tmp_path / "to") == ["b.db"]
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert made.stat().st_nlink == 1


# --- what it is never written over ---


@pytest.mark.spec("OPS-3")
@pytest.mark.parametrize("taken", ["b.db", "b.db-wal", "b.db.snapshot", "b.db-journal"])
@pytest.mark.parametrize("how", ["file", "folder", "link"])
def test_nothing_is_written_over(tmp_path: Path, taken: str, how: str) -> None:
    kept_ledger(str(tmp_path / "ledger.db"), tmp_path)
    back_up(open_store(tmp_path / "ledger.db"), tmp_path / "good.db")
    folder = tmp_path / "to"
    folder.mkdir()
    if how == "file":
        (folder / taken).write_text("mine")
    elif how == "folder":
        (folder / taken).mkdir()
    else:
        (folder / taken).symlink_to(tmp_path / "good.db")
    before = everything_in(folder)
    target = folder / "b.db"
    with pytest.raises(UsageError) as caught:
        back_up(open_store(tmp_path / "ledger.db"), target)
    assert caught.value.code is Code.ALREADY_EXISTS
    with pytest.raises((UsageError, VerificationError, UnavailableError)):
        restore(str(tmp_path / "good.db"), str(target), ANY)
    assert everything_in(folder) == before
    assert os.listdir(folder) == [taken]


def test_a_name_that_is_taken_meanwhile_stays_with_who_took_it(tmp_path: Path) -> None:
    kept_ledger(str(tmp_path / "ledger.db"), tmp_path)
    target = tmp_path / "to" / "b.db"
    target.parent.mkdir()

    def take(seq: int) -> None:
        target.write_text("mine")

    with pytest.raises(UsageError) as caught:
        back_up(open_store(tmp_path / "ledger.db"), target, take)
    assert caught.value.code is Code.ALREADY_EXISTS
    assert everything_in(target.parent) == {"b.db": b"mine"}


def test_a_name_that_is_taken_at_the_last_moment_stays_with_who_took_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "b.db"
    link = os.link

    def late(source: Path, to: Path) -> None:
        target.write_text("mine")
        link(source, to)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(UsageError) as caught, new_ledger(target) as store:
        append(store, list(log()))
    assert caught.value.code is Code.ALREADY_EXISTS
    assert everything_in(tmp_path) == {"b.db": b"mine"}


@pytest.mark.spec("OPS-4")
def test_a_ledger_is_never_restored_over(
    address: str, tmp_path: Path, postgres: Cluster
) -> None:
    (tmp_path / "of").mkdir()
    kept_ledger(str(tmp_path / "of" / "source.db"), tmp_path / "of")
    append(open_store(address), list(log())[:2])
    with pytest.raises(UsageError) as caught:
        restore(str(tmp_path / "of" / "source.db"), address, ANY)
    assert caught.value.code is Code.ALREADY_EXISTS
    assert list(open_store(address).read(0)) == list(log())[:2]


def test_a_ledger_that_begins_meanwhile_is_not_restored_over(
    address: str, tmp_path: Path
) -> None:
    (tmp_path / "of").mkdir()
    source = str(tmp_path / "of" / "source.db")
    kept_ledger(source, tmp_path / "of")

    def begin(seq: int) -> None:
        if seq == 2:
            append(open_store(address), list(log())[:2])

    with pytest.raises(UsageError) as caught:
        restore(source, address, ANY, begin)
    assert caught.value.code is Code.ALREADY_EXISTS
    assert list(open_store(address).read(0)) == list(log())[:2]


# --- what goes wrong ---


@pytest.mark.spec("OPS-4")
@pytest.mark.parametrize("harm", ["payload = x'00'", "hash = 'no'"])
def test_a_broken_ledger_is_not_backed_up(tmp_path: Path, harm: str) -> None:
    ledger = tmp_path / "ledger.db"
    kept_ledger(str(ledger), tmp_path)
    with closing(sqlite3.connect(ledger, isolation_level=None)) as connection:
        connection.execute(f"UPDATE events SET {harm} WHERE seq = 4")
    (tmp_path / "to").mkdir()
    with pytest.raises(ChainBreakError) as caught:
        back_up(open_store(ledger), tmp_path / "to" / "b.db")
    assert caught.value.seq == 4
    assert os.listdir(tmp_path / "to") == []
    with pytest.raises(ChainBreakError):
        restore(str(ledger), str(tmp_path / "to" / "r.db"), ANY)
    assert os.listdir(tmp_path / "to") == []


@pytest.mark.spec("OPS-4")
def test_a_ledger_that_decided_wrongly_is_not_restored(tmp_path: Path) -> None:
    """Its chain holds; only taking its decisions again shows what is wrong."""
    digest = compiled(ASKING).policy.digest
    denied = ReleaseReserved(priced("huge", rho="3"), digest, LATER)
    append(open_store(tmp_path / "w.db"), sealed([activated(ASKING), denied]))
    back_up(open_store(tmp_path / "w.db"), tmp_path / "copy.db")
    with pytest.raises(ChainBreakError) as caught:
        restore(str(tmp_path / "copy.db"), str(tmp_path / "restored.db"), ANY)
    assert caught.value.seq == 2
    assert not (tmp_path / "restored.db").exists()


@pytest.mark.spec("OPS-3")
def test_an_interrupted_backup_leaves_nothing(tmp_path: Path) -> None:
    kept_ledger(str(tmp_path / "ledger.db"), tmp_path)
    (tmp_path / "to").mkdir()

    def interrupt(seq: int) -> None:
        if seq == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        back_up(open_store(tmp_path / "ledger.db"), tmp_path / "to" / "b.db", interrupt)
    assert os.listdir(tmp_path / "to") == []


_KILLED = """
import os, signal, sys
sys.path[:0] = sys.argv[3:]
from modicum.ops.backup import restore as restoring
from modicum.ops.backup.restore import Heads, restore
filled = restoring.fill
def fill(turn, records, signed):
    filled(turn, records, signed)
    os.kill(os.getpid(), signal.SIGKILL)
restoring.fill = fill
restore(sys.argv[1], sys.argv[2], Heads())
"""


@pytest.mark.spec("OPS-3")
def test_a_restore_that_is_killed_leaves_no_ledger_and_can_be_repeated(
    address: str, tmp_path: Path
) -> None:
    (tmp_path / "of").mkdir()
    source = str(tmp_path / "of" / "source.db")
    kept_ledger(source, tmp_path / "of")
    command = [sys.executable, "-c", _KILLED, source, address]
    done = subprocess.run(
        [*command, ROOT / "src", ROOT / "tests"], check=False, capture_output=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert entries(address) == []
    assert not (tmp_path / "ledger.db").exists()
    # What is left lies in a hidden folder of its own, and was never committed.
    for one in tmp_path.glob(".ledger.db.*"):
        assert entries(one / "ledger.db") == []
    restore(source, address, ANY)
    assert list(open_store(address).read(0)) == list(log())


def test_an_empty_ledger_is_no_backup(tmp_path: Path) -> None:
    append(open_store(tmp_path / "ledger.db"), [])
    with pytest.raises(UsageError) as caught:
        back_up(open_store(tmp_path / "ledger.db"), tmp_path / "b.db")
    assert caught.value.code is Code.LEDGER_MISSING
    with pytest.raises(UsageError) as caught:
        restore(str(tmp_path / "ledger.db"), str(tmp_path / "b.db"), ANY)
    assert caught.value.code is Code.LEDGER_MISSING
    assert not (tmp_path / "b.db").exists()


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    kept_ledger(str(tmp_path / "ledger.db"), tmp_path)
    with pytest.raises(UnavailableError) as caught:
        back_up(open_store(tmp_path / "ledger.db"), tmp_path / "no" / "b.db")
    assert caught.value.code is Code.LEDGER_UNWRITABLE


def test_a_file_system_without_hard_links_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Path, to: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(UnavailableError), new_ledger(tmp_path / "b.db") as store:
        append(store, list(log()))
    assert os.listdir(tmp_path) == []


def test_a_draft_that_is_not_at_rest_gets_no_name(tmp_path: Path) -> None:
    def fill() -> None:
        with new_ledger(tmp_path / "b.db") as store:
            append(store, list(log()))
            Path(f"{store.name}-wal").write_text("something")

    with pytest.raises(InvariantError):
        fill()
    assert os.listdir(tmp_path) == []


# --- what it is held against ---


def other_hash(seq: int) -> str:
    return list(log())[seq - 1].hash


@pytest.mark.spec("OPS-4")
@pytest.mark.parametrize(
    ("heads", "passes"),
    [
        (Heads(noted=other_hash(2)), True),
        (Heads(noted=other_hash(len(list(log())))), True),
        (Heads(noted="0" * 64), False),
        (Heads(known=[other_hash(len(list(log())))]), True),
        (Heads(known=["0" * 12, other_hash(len(list(log())))[:12]]), True),
        (Heads(known=[other_hash(2)]), False),  # It goes on after that entry.
        (Heads(known=["0" * 12]), False),
        (Heads(noted=other_hash(2), known=["0" * 12]), False),
        (Heads(noted="0" * 64, known=[other_hash(len(list(log())))]), False),
    ],
)
def test_a_backup_is_held_against_what_was_noted(
    tmp_path: Path, heads: Heads, passes: bool
) -> None:
    kept_ledger(str(tmp_path / "source.db"), tmp_path)
    target = tmp_path / "restored.db"
    if passes:
        restore(str(tmp_path / "source.db"), str(target), heads)
        assert rows_of(target) == rows_of(tmp_path / "source.db")
        return
    with pytest.raises(VerificationError) as caught:
        restore(str(tmp_path / "source.db"), str(target), heads)
    assert caught.value.code is Code.LEDGER_BROKEN
    assert not target.exists()


def test_a_backup_that_changes_after_it_was_verified_is_not_restored(
    address: str, tmp_path: Path
) -> None:
    (tmp_path / "of").mkdir()
    source = str(tmp_path / "of" / "source.db")
    kept_ledger(source, tmp_path / "of")
    last = len(list(log()))

    def append_one(seq: int) -> None:
        if seq == last:
            add_remark(open_store(source))

    with pytest.raises(VerificationError, match="changed while it was read"):
        restore(source, address, ANY, append_one)
    assert entries(address) == []


@pytest.mark.parametrize("lost", ["entry", "checkpoint"])
def test_a_copy_that_lost_something_gets_no_name(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    (tmp_path / "of").mkdir()
    source = str(tmp_path / "of" / "source.db")
    kept_ledger(source, tmp_path / "of")

    def lossy(
        turn: StoreTurn, records: Iterable[Record], signed: Sequence[bytes]
    ) -> None:
        rows = list(records)
        fill(
            turn,
            rows[:-1] if lost == "entry" else rows,
            signed[:-1] if lost == "checkpoint" else signed,
        )

    monkeypatch.setattr(backing_up, "fill", lossy)
    monkeypatch.setattr(restoring, "fill", lossy)
    with pytest.raises(VerificationError, match="the copy differs from the log"):
        back_up(open_store(source), tmp_path / "b.db")
    with pytest.raises(VerificationError, match="the copy differs from the log"):
        restore(source, address, ANY)
    assert not (tmp_path / "b.db").exists()
    assert entries(address) == []


def test_a_copy_is_held_against_its_source() -> None:
    rows = list(log())
    source = ChainReader(rows).to_the_end()
    assert (source.seq, source.head) == (len(rows), rows[-1].hash)
    require_same(rows, source)
    with pytest.raises(VerificationError, match=f"ends at entry {len(rows) - 1}"):
        require_same(rows[:-1], source)
    for wrong in (rows[1:], [*rows, rows[-1]], [*rows[:2], *rows[3:]]):
        with pytest.raises(ChainBreakError):
            require_same(wrong, source)
    with pytest.raises(VerificationError):
        require_same(rows, ChainReader(rows[:-1]).to_the_end())
    other = sealed([Annotated("", str(number)) for number in range(len(rows))])
    with pytest.raises(VerificationError):
        require_same(other, source)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 7])
@pytest.mark.parametrize(("most", "size"), [(3, 10**6), (1000, 40), (1000, 1), (3, 40)])
def test_a_log_is_copied_in_batches(
    count: int, most: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_pages, "PAGE_RECORDS", most)
    monkeypatch.setattr(log_pages, "PAGE_BYTES", size)
    rows = numbered(1, count)  # Of 20 bytes each.
    found = list(batches(iter(rows)))
    assert [one for batch in found for one in batch] == rows
    full = min(most, max(1, size // 20))
    assert [len(batch) for batch in found] == [
        min(full, count - begin) for begin in range(0, count, full)
    ]


def test_checkpoints_of_a_copy_are_held_against_those_of_its_source() -> None:
    require_same_checkpoints((b"a", b"b"), [b"a", b"b"])
    for wrong in ([b"a"], [b"b", b"a"], [b"a", b"b", b"c"], []):
        with pytest.raises(VerificationError):
            require_same_checkpoints(wrong, [b"a", b"b"])
