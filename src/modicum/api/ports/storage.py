"""Interfaces of storage, implemented by `storage`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from modicum.ledger import Record


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A stored response to a request, for idempotent retries.

    Attributes:
        key: The idempotency key of the request.
        digest: The SHA-256 of the request, in hexadecimal.
        answer: The answer, as bytes.
        at: When it was made, in UTC, formatted as in events.
    """

    key: str
    digest: str
    answer: bytes = field(repr=False)
    at: str


class Turn(Protocol):
    """The exclusive right to append, held for the length of a `with` block."""

    def read(self, after: int) -> Iterable[Record]:
        """Return the records whose number exceeds `after`, in order, page by page."""
        ...

    def append(self, records: Sequence[Record]) -> None:
        """Store the records that follow the last one, durably before the block ends.

        All records of a turn are stored, or none. If the block ends with an
        exception, it is none.
        """
        ...

    def answered(self, keys: Collection[str]) -> Mapping[str, StoredAnswer]:
        """Return the stored responses for some keys, by key."""
        ...

    def keep(self, answers: Sequence[StoredAnswer], *, forget_before: str) -> None:
        """Store responses with the records of this turn, atomically."""
        ...


class EventStore(Protocol):
    """A store of the log.

    One store may be used by several threads; a turn is held by one thread of one
    process at a time, and waiting threads are served in order.

    Every method raises `UnavailableError` where the store failed and the call may be
    retried, and `VerificationError` where the stored data is damaged.
    """

    @property
    def name(self) -> str:
        """Return its display name, such as its path, without secrets."""
        ...

    def exists(self) -> bool:
        """Return whether there is a ledger."""
        ...

    def read(self, after: int, limit: int | None = None) -> Iterable[Record]:
        """Return the records with numbers above `after`, in order.

        They are fetched in pages, the first one immediately; records appended after the
        call are left out. Reading needs no turn, and writes nothing to a ledger that no
        other process has open.
        """
        ...

    def record(self, seq: int) -> Record | None:
        """Return the record with a number, or None if there is none."""
        ...

    def turn(self) -> AbstractContextManager[Turn]:
        """Wait for the exclusive turn. Appended records are durable on exit.

        Where the outcome of the exit is unknown, it raises `UnavailableError`; reading
        the log again shows the outcome.
        """
        ...

    def close(self) -> None:
        """Close connections. The store may be used again: it opens new ones."""
        ...


@runtime_checkable
class Patient(Protocol):
    """A store whose threads need not be idle while they wait for a turn."""

    def while_waiting(self, chore: Callable[[], bool]) -> None:
        """Register work for this thread to do while it waits for a turn."""
        ...


class SnapshotStore(Protocol):
    """A cache of the state. Losing it costs only time."""

    def load_snapshot(self) -> bytes | None:
        """Return the latest snapshot; None if there is none that can be read."""
        ...

    def save_snapshot(self, data: bytes) -> None:
        """Keep a snapshot in place of the one before, if it can be kept."""
        ...


class Witness:
    """Snapshots used only as evidence of the log's minimum length.

    Snapshots are not signed. Where a snapshot would allow a disclosure, the log is read
    from its first entry instead.

    Args:
        store: The store of the snapshots.
    """

    def __init__(self, store: SnapshotStore) -> None:
        self._store = store

    def load_snapshot(self) -> bytes | None:
        """Return the latest snapshot; None if there is none that can be read."""
        return self._store.load_snapshot()

    def save_snapshot(self, data: bytes) -> None:
        """Keep a snapshot in place of the one before, if it can be kept."""
        self._store.save_snapshot(data)


class CheckpointStore(Protocol):
    """The store of signed checkpoints, beside the log."""

    def checkpoints(self) -> list[bytes]:
        """Return every checkpoint, in the order in which they were added."""
        ...

    def add_checkpoint(self, data: bytes) -> None:
        """Store a checkpoint durably; storing it again changes nothing."""
        ...


class TableVersions(NamedTuple):
    """The versions of a ledger's tables.

    Attributes:
        stored: The version that they have; 0 if there are none.
        current: The version that the next turn makes them.
    """

    stored: int
    current: int


class StoreTurn(Turn, Protocol):
    """A turn that may also write the service tables."""

    def checkpoints(self) -> list[bytes]:
        """Return every checkpoint, those of this turn too, in order."""
        ...

    def add_checkpoint(self, data: bytes) -> None:
        """Store a checkpoint with the turn; storing it again changes nothing."""
        ...


class Store(EventStore, SnapshotStore, CheckpointStore, Protocol):
    """A log with its snapshots and checkpoints."""


@runtime_checkable
class Versioned(Protocol):
    """A store whose tables have a version."""

    def table_versions(self) -> TableVersions:
        """Return the version of the tables, and that which a turn makes them."""
        ...


class MaintainedStore(Store, Versioned, Protocol):
    """A store that can be restored from a copy and migrated."""

    def turn(self) -> AbstractContextManager[StoreTurn]:
        """Wait for the exclusive turn, as an `EventStore` does."""
        ...


class HeadWitness(Protocol):
    """A register of one line outside of the store: the head of one ledger.

    Several threads may use it. Every method raises `UnavailableError` where the
    witness does not answer.
    """

    @property
    def name(self) -> str:
        """Return its display name, such as its path, without secrets."""
        ...

    @property
    def kind(self) -> str:
        """Return `file`, `postgresql`, `s3` or `http`."""
        ...

    @property
    def ahead(self) -> float | None:
        """Return by how many seconds its clock was ahead of this machine's.

        None if it has no clock, or has not answered yet.
        """
        ...

    def is_beside(self, ledger: str) -> bool:
        """Return whether it is known to be lost or restored together with a ledger."""
        ...

    def latest(self) -> bytes | None:
        """Return the line; None if it has none."""
        ...

    def kept(self) -> list[bytes]:
        """Return earlier lines, as far as it keeps them."""
        ...

    def replace(self, known: bytes | None, new: bytes) -> bool:
        """Put a line in place of the one that is known, durably and atomically.

        Returns:
            False if another one is there; nothing is changed then.
        """
        ...

    def close(self) -> None:
        """Close connections. The witness may be used again: it opens new ones."""
        ...


class Clock(Protocol):
    """The time of day."""

    def now(self) -> str:
        """Return the time in UTC, as `YYYY-MM-DDTHH:MM:SS.ffffffZ`."""
        ...

    def after(self, now: str, seconds: int) -> str:
        """Return the time that many seconds after `now`, in the same form."""
        ...

    def checked(self, now: str, at: str) -> str:
        """Return `now`; if the clock jumped, the last time plus the elapsed seconds."""
        ...


@runtime_checkable
class Timed(Protocol):
    """A store on a server with its own clock."""

    def refuse_skew(self) -> None:
        """Refuse a clock of this machine that is far from the server's."""
        ...
