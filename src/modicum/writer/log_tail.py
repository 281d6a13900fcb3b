"""The latest records of a log in memory, for readers in this process.

The writer's store feeds them as its turns end. Another store hands them to a reader,
which then needs neither the file nor its locks; it reads the real store for what is not
in memory, and periodically for records of other processes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice

from modicum.api.local.live_ledger import lost_entries
from modicum.api.ports.storage import EventStore, Patient, Store, StoredAnswer, Turn
from modicum.core.errors import VerificationError
from modicum.ledger import Record, event_of, read_record
from modicum.ledger.log.events import Event
from modicum.storage.read_only import ReadOnlyStore

#: Minimum number of latest records kept in memory.
RECORDS_KEPT = 5_000
#: But at most about twice this many bytes, or the latest record alone.
BYTES_KEPT = 32 * 2**20
#: Maximum delay until records of other processes are seen, in seconds.
FRESH_SECONDS = 0.5


class _Watching:
    """Breaks a feed if a block finds a contradiction; entered several times a turn."""

    __slots__ = ("_feed",)

    def __init__(self, feed: LogTail) -> None:
        self._feed = feed

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, VerificationError):
            self._feed.is_broken = True


class LogTail:
    """The latest records of one log; any thread may use it.

    Args:
        records_kept: The minimum number of records kept, and half the maximum;
        bytes_kept: fewer if they are large: at most twice this many bytes. The latest
            one is always kept.
        clock: Returns seconds, from any origin.

    Attributes:
        is_broken: Whether the log was found to contradict itself, or what was read
            before. Nothing is served from memory then.
        is_suspect: Whether a reader found that it contradicts itself, and nobody has
            read it since.
    """

    def __init__(
        self,
        records_kept: int = RECORDS_KEPT,
        bytes_kept: int = BYTES_KEPT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._guard = threading.Lock()
        self._records: list[Record] = []
        self._bytes = 0
        self._records_kept = records_kept
        self._bytes_kept = bytes_kept
        self._clock = clock
        self._looked_at = float("-inf")
        self.is_broken = False
        self.is_suspect = False
        #: Records a contradiction found in its block, for all readers.
        self.watching = _Watching(self)

    def add(self, records: Iterable[Record]) -> None:
        """Take in records of the log, in order; those that are known are passed over.

        Args:
            records: They are stored durably.
        """
        with self._guard:
            for record in records:
                self._add(record)
            self._let_go()

    def last(self) -> Record | None:
        """Return the last record that is known."""
        with self._guard:
            return self._records[-1] if self._records else None

    def contradicted(self, records: Iterable[Record]) -> int | None:
        """Return the number of the first record that was another one; else None."""
        with self._guard:
            known = self._records
            for one in records:
                if (
                    known
                    and known[0].seq <= one.seq <= known[-1].seq
                    and known[one.seq - known[0].seq].hash != one.hash
                ):
                    return one.seq
        return None

    def note_refresh(self) -> None:
        """Record that all present records of the log were read."""
        self._looked_at = self._clock()

    def force_refresh(self) -> None:
        """Make the next reader read the log, however fresh this is."""
        self._looked_at = float("-inf")

    def is_fresh(self, seconds: float) -> bool:
        """Return whether the log was read within this many seconds."""
        return bool(self._records) and self._clock() - self._looked_at <= seconds

    def since(self, after: int) -> Sequence[Record] | None:
        """Return the records after a number; None if they are not all here."""
        with self._guard:
            if not self._records:
                return None
            first = self._records[0].seq
            # The record after the last one is not here because it does not exist.
            if not first - 1 <= after <= self._records[-1].seq:
                return None
            return self._records[after + 1 - first :]

    def _add(self, record: Record) -> None:
        records = self._records
        if records and records[0].seq <= record.seq <= records[-1].seq:
            if records[record.seq - records[0].seq].hash == record.hash:
                return
            self._clear()  # The log was replaced by another one.
        elif records and record.seq != records[-1].seq + 1:
            if record.seq < records[0].seq:
                return  # It is older than what is kept.
            self._clear()
        records.append(record)
        self._bytes += len(record.payload)

    def _clear(self) -> None:
        self._records.clear()
        self._bytes = 0

    def _let_go(self) -> None:
        """Drop the oldest if there are too many: rarely, and many at once."""
        records = self._records
        if len(records) > 2 * self._records_kept or self._bytes > 2 * self._bytes_kept:
            del records[: -self._count_kept()]
            self._bytes = sum(len(one.payload) for one in records)

    def _count_kept(self) -> int:
        """Return how many of the latest records are to stay: one at least."""
        size = 0
        for count, record in enumerate(reversed(self._records)):
            size += len(record.payload)
            if count and (count == self._records_kept or size > self._bytes_kept):
                return count
        return len(self._records)


class FeedingStore:
    """The writer's store: what is read and appended through it is fed, once durable.

    Args:
        store: The store of the log.
        feed: The tail to feed.
    """

    def __init__(self, store: EventStore, feed: LogTail) -> None:
        self._store = store
        self._feed = feed

    @property
    def name(self) -> str:
        """Return the display name of the log."""
        return self._store.name

    def exists(self) -> bool:
        """Return whether there is a ledger."""
        return _exists(self._store, self._feed)

    def read(self, after: int, limit: int | None = None) -> Iterable[Record]:
        """Return the records after a number, and feed them."""
        return _fed(self._store, self._store.read, self._feed, after, limit)

    def record(self, seq: int) -> Record | None:
        """Return the record with a number, or None if there is none."""
        return self._store.record(seq)

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """Hold the store's turn, and feed its records."""
        with self._feed.watching, self._store.turn() as turn:
            noting = _NotingTurn(self._store, turn, self._feed)
            yield noting
        self._feed.add(noting.added)
        self._feed.note_refresh()

    def while_waiting(self, chore: Callable[[], bool]) -> None:
        """Let this thread do some work while it waits for a turn, if possible."""
        if isinstance(self._store, Patient):
            self._store.while_waiting(chore)

    def close(self) -> None:
        """Close connections."""
        self._store.close()


class _NotingTurn:
    """A turn that feeds the records of others, and collects its own."""

    def __init__(self, store: EventStore, turn: Turn, feed: LogTail) -> None:
        self._store = store
        self._turn = turn
        self._feed = feed
        self.added: list[Record] = []

    def read(self, after: int) -> Iterator[Record]:
        def read(after: int, _: int | None) -> Iterable[Record]:
            return self._turn.read(after)

        return _fed(self._store, read, self._feed, after)

    def append(self, records: Sequence[Record]) -> None:
        self._turn.append(records)
        self.added += records

    def answered(self, keys: Collection[str]) -> Mapping[str, StoredAnswer]:
        return self._turn.answered(keys)

    def keep(self, answers: Sequence[StoredAnswer], *, forget_before: str) -> None:
        self._turn.keep(answers, forget_before=forget_before)


class FollowingStore:
    """A reader's store: the fed records, and otherwise the log.

    Args:
        store: The store of the log.
        feed: The tail in memory.
        fresh_seconds: The maximum delay until records of others are seen.
    """

    def __init__(
        self, store: EventStore, feed: LogTail, fresh_seconds: float = FRESH_SECONDS
    ) -> None:
        self._store = store
        self._feed = feed
        self._fresh_seconds = fresh_seconds

    @property
    def name(self) -> str:
        """Return the display name of the log."""
        return self._store.name

    def exists(self) -> bool:
        """Return whether there is a ledger."""
        return self._is_fresh() or _exists(self._store, self._feed)

    def read(self, after: int, limit: int | None = None) -> Iterable[Record]:
        """Return the records after a number, from memory if they are fresh there."""
        if self._feed.is_broken:
            self._refresh()
        if self._is_fresh():
            known = self._feed.since(after)
            if known is not None:
                return known if limit is None else known[:limit]
        records = _fed(self._store, self._store.read, self._feed, after, limit)
        return records if limit is not None else self._noted(records)

    def record(self, seq: int) -> Record | None:
        """Return the record with a number, or None if there is none."""
        return next(iter(self.read(seq - 1, 1)), None)

    def refresh_now(self) -> None:
        """Read the log next, for records that others have just added."""
        self._feed.force_refresh()

    def suspect(self) -> None:
        """Note that the log was found to contradict itself."""
        self._feed.is_suspect = True

    def last_event(self) -> Event | None:
        """Read the log from its last known entry on; return the event of its last one.

        It needs no book: those who decide check what the entries mean.

        Raises:
            VerificationError: If the entries do not continue the chain, or contradict
                what was read before.
        """
        self._feed.force_refresh()
        known = self._feed.last()
        if not self.exists():
            return None
        event: Event | None = None
        previous: Record | None = None
        for record in self.read(known.seq - 1 if known else 0):
            if previous is None:
                event = event_of(record, known.seq if known else 1)
            else:
                event = read_record(record, previous.seq + 1, previous.hash)
            previous = record
        return event

    def turn(self) -> AbstractContextManager[Turn]:
        """Wait for the store's turn; its records are not fed."""
        return self._store.turn()

    def close(self) -> None:
        """Close connections."""
        self._store.close()

    def _is_fresh(self) -> bool:
        return self._feed.is_fresh(self._fresh_seconds)

    def _refresh(self) -> None:
        """Go on with a log that has the last known record again; else refuse it."""
        last = self._feed.last()
        with self._feed.watching:
            found = self._store.record(last.seq) if last else None
            if last and (found is None or found.hash != last.hash):
                raise lost_entries(self.name, _other(last.seq))
        self._feed.is_broken = False

    def _noted(self, records: Iterable[Record]) -> Iterator[Record]:
        yield from records
        self._feed.note_refresh()


def _exists(store: EventStore, feed: LogTail) -> bool:
    """Return whether there is a ledger; refuse one that is gone."""
    with feed.watching:
        is_there = store.exists()
        if not is_there and feed.last() is not None:
            raise lost_entries(store.name, "it was removed")
    return is_there


def _fed(
    store: EventStore,
    read: Callable[[int, int | None], Iterable[Record]],
    feed: LogTail,
    after: int,
    limit: int | None = None,
) -> Iterator[Record]:
    """Yield records that are stored, and feed them if they are all up to the end."""
    last = feed.last()  # Before the reading, which sees all that was fed by then.
    with feed.watching:
        following = iter(read(after, limit))

    def pages() -> Iterator[Record]:
        seq = after
        with feed.watching:
            while page := list(islice(following, 100)):
                other = feed.contradicted(page)
                if other is not None:
                    raise lost_entries(store.name, _other(other))
                if limit is None:
                    feed.add(page)
                seq = page[-1].seq
                yield from page
            if last and seq < last.seq and (limit is None or seq < after + limit):
                raise lost_entries(store.name, f"it ends before entry {last.seq}")

    return pages()


def _other(seq: int) -> str:
    return f"entry {seq} differs from the one that was read before"


class ReadLog(ReadOnlyStore):
    """A log and its checkpoints; records appended later appear, too.

    Args:
        store: The store; it stays open.
    """

    def __init__(self, store: Store) -> None:
        def read(after: int, limit: int | None) -> Iterator[Record]:
            return iter(store.read(after, limit))

        super().__init__(store.name, read)
        self._store = store

    def checkpoints(self) -> list[bytes]:
        """Return every checkpoint, in the order in which they were added."""
        return self._store.checkpoints()
