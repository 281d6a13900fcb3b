"""The feed: what is in memory is what the log says, whoever fed it."""

from __future__ import annotations

import random

import pytest
from budget import examples
from samples.simulation import Disk, FaultyStore

from modicum.core.errors import Code, VerificationError
from modicum.ledger import Record
from modicum.writer.log_tail import FeedingStore, FollowingStore, LogTail


class Seconds:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Counted(FaultyStore):
    """A store that counts how often it is read."""

    reads = 0

    def read(self, after: int, limit: int | None = None):  # type: ignore[no-untyped-def]
        self.reads += 1
        return super().read(after, limit)


def record(seq: int, log: str = "a") -> Record:
    return Record(seq, b"payload", f"{log}-{seq}")


def records(first: int, last: int, log: str = "a") -> list[Record]:
    return [record(seq, log) for seq in range(first, last + 1)]


def store_of(disk: Disk) -> Counted:
    from collections import Counter

    return Counted(disk, None, Counter())


def test_what_is_not_here_is_not_guessed() -> None:
    feed = LogTail(clock=Seconds())
    assert feed.since(0) is None
    feed.add(records(5, 9))
    assert feed.since(3) is None
    assert feed.since(4) == records(5, 9)
    assert feed.since(7) == records(8, 9)
    assert feed.since(9) == []
    assert feed.since(10) is None


def test_only_the_latest_are_kept() -> None:
    feed = LogTail(records_kept=10, clock=Seconds())
    for seq in range(1, 100):
        feed.add([record(seq)])
    assert feed.since(88) is not None
    assert feed.since(50) is None
    feed.add(records(1, 3))  # Somebody reads the log from its beginning.
    assert feed.since(98) == [record(99)]


def test_another_log_takes_the_place_of_this_one() -> None:
    feed = LogTail(clock=Seconds())
    feed.add(records(1, 9))
    feed.add(records(1, 4, log="b"))
    assert feed.since(0) == records(1, 4, log="b")
    feed.add(records(20, 21, log="b"))
    assert feed.since(18) is None
    assert feed.since(19) == records(20, 21, log="b")


@pytest.mark.parametrize("seed", range(examples(20)))
def test_a_reader_reads_the_log_whoever_feeds(seed: int) -> None:
    rng, seconds, disk = random.Random(seed), Seconds(), Disk()
    feed = LogTail(records_kept=rng.choice([1, 5, 1000]), clock=seconds)
    reader = FollowingStore(store_of(disk), feed, fresh_seconds=1.0)
    known: list[Record] = []
    for _ in range(60):
        seconds.now += rng.choice([0.0, 0.4, 2.0])
        size = len(disk.records)
        new = records(size + 1, size + rng.randrange(4))
        disk.records += new
        if rng.random() < 0.6:  # Else another process did it.
            feed.add(disk.records[max(0, size - rng.randrange(3)) :])
            feed.note_refresh()
        if rng.random() < 0.7:
            after = max(0, len(known) - rng.choice([0, 1, 5]))
            got = list(reader.read(after))
            assert got == disk.records[after : after + len(got)]
            known = [*known[:after], *got]
    seconds.now += 2.0
    assert list(reader.read(0)) == disk.records


def test_the_store_is_left_alone_while_memory_is_fresh() -> None:
    seconds, disk = Seconds(), Disk()
    disk.records += records(1, 3)
    store, feed = store_of(disk), LogTail(clock=seconds)
    reader = FollowingStore(store, feed, fresh_seconds=1.0)
    assert list(reader.read(0)) == disk.records
    assert (store.reads, reader.exists()) == (1, True)
    assert reader.record(2) == record(2)
    assert list(reader.read(2)) == [record(3)]
    assert store.reads == 1
    seconds.now = 1.5
    assert list(reader.read(2)) == [record(3)]
    assert store.reads == 2


def test_large_records_are_let_go_earlier() -> None:
    feed = LogTail(records_kept=1000, bytes_kept=100, clock=Seconds())
    for seq in range(1, 60):
        feed.add([Record(seq, b"x" * 30, f"a-{seq}")])
        kept = feed.since(seq - 1)
        assert kept == [Record(seq, b"x" * 30, f"a-{seq}")]
    assert feed.since(56) is not None
    assert feed.since(50) is None
    feed.add([Record(60, b"x" * 1000, "a-60")])  # One is kept, however large it is.
    assert feed.since(59) is not None
    assert feed.since(58) is None
    feed.add([Record(61, b"x", "a-61"), Record(62, b"x", "a-62")])
    assert feed.since(60) is not None
    assert feed.since(59) is None


@pytest.mark.parametrize("seed", range(examples(10)))
def test_what_is_kept_is_bounded_whatever_comes(seed: int) -> None:
    rng = random.Random(seed)
    feed, seq = LogTail(records_kept=8, bytes_kept=200, clock=Seconds()), 0
    for _ in range(80):
        if rng.random() < 0.05:
            seq = rng.randrange(seq + 5)  # Another log, or a gap.
        log = rng.choice("ab") if rng.random() < 0.1 else "a"
        size = rng.choice([1, 20, 90, 500])
        feed.add([Record(seq + 1, b"x" * size, f"{log}-{seq + 1}")])
        seq += 1
        kept = feed._records
        assert feed._bytes == sum(len(one.payload) for one in kept)
        assert len(kept) <= 16
        assert len(kept) == 1 or feed._bytes <= 400


# --- a log that lost what was known ---


def lost(reader: FollowingStore, after: int, limit: int | None = None) -> None:
    with pytest.raises(VerificationError, match="lost entries") as caught:
        list(reader.read(after, limit))
    assert caught.value.code is Code.LEDGER_BROKEN


@pytest.mark.spec("LED-18")
@pytest.mark.parametrize("limit", [None, 2])
def test_a_log_that_ends_too_early_is_refused_until_it_is_whole(
    limit: int | None,
) -> None:
    seconds, disk = Seconds(), Disk()
    whole = records(1, 4)
    disk.records += whole
    feed = LogTail(clock=seconds)
    reader = FollowingStore(store_of(disk), feed, fresh_seconds=1.0)
    assert list(reader.read(0)) == whole
    disk.records = whole[:3]
    assert list(reader.read(0)) == whole  # It is fresh in memory.
    seconds.now = 2.0
    lost(reader, 2, limit)
    lost(reader, 0)  # Nothing is answered from memory any more.
    assert feed.is_broken
    disk.records = [*whole[:3], record(4, log="b")]
    lost(reader, 0, 1)
    disk.records = []
    lost(reader, 0)
    with pytest.raises(VerificationError, match="it was removed"):
        reader.exists()
    disk.records = whole + records(5, 6)
    assert list(reader.read(3)) == records(4, 6)
    assert not feed.is_broken


@pytest.mark.spec("LED-18")
@pytest.mark.parametrize("limit", [None, 2])
def test_another_record_in_place_of_a_known_one_is_refused(limit: int | None) -> None:
    seconds, disk = Seconds(), Disk()
    disk.records += records(1, 4)
    reader = FollowingStore(store_of(disk), LogTail(clock=seconds), fresh_seconds=1.0)
    assert len(list(reader.read(0))) == 4
    disk.records = [*records(1, 2), *records(3, 9, log="b")]
    seconds.now = 2.0
    lost(reader, 2, limit)


@pytest.mark.spec("LED-18")
def test_what_the_writer_finds_missing_no_reader_reads_from_memory() -> None:
    disk, feed = Disk(), LogTail(clock=Seconds())
    disk.records += records(1, 4)
    writer = FeedingStore(store_of(disk), feed)
    reader = FollowingStore(store_of(disk), feed)
    assert list(reader.read(0)) == records(1, 4)
    del disk.records[3:]
    with pytest.raises(VerificationError), writer.turn() as turn:
        list(turn.read(3))
    lost(reader, 0)


@pytest.mark.spec("LED-18")
def test_a_part_of_a_log_is_no_contradiction() -> None:
    seconds, disk = Seconds(), Disk()
    disk.records += records(1, 9)
    feed = LogTail(records_kept=2, clock=seconds)
    reader = FollowingStore(store_of(disk), feed, fresh_seconds=0.0)
    for after, limit in ((0, None), (0, 3), (8, 1), (9, None), (9, 2), (4, 0)):
        seconds.now += 1.0
        got = list(reader.read(after, limit))
        assert got == disk.records[after : None if limit is None else after + limit]
    assert reader.record(3) == record(3)
    assert reader.record(10) is None
    assert not feed.is_broken
