"""What the workspace needs from the world; the shell implements it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from modicum.ledger import Record


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """What was answered to a request, kept for whoever sends the same one again.

    Attributes:
        key: What tells the request from all others.
        digest: The SHA-256 of what was asked for, in hexadecimal.
        answer: The answer, as bytes.
        at: When it was given, in UTC, as events write it.
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
        """Return the answers that are kept for some keys, by key."""
        ...

    def keep(self, answers: Sequence[StoredAnswer], *, forget_before: str) -> None:
        """Keep answers with the records of this turn: all of it is stored, or none."""
        ...


class EventStore(Protocol):
    """Where the log lives.

    One store may be used by several threads; a turn is held by one thread, of one
    process, at a time, and those who wait for it are served in their order.

    Every method raises `UnavailableError` where the outside failed and the call may
    be tried again, and `VerificationError` where what is stored is damaged.
    """

    @property
    def name(self) -> str:
        """What people call it, such as its path; it holds no secret."""
        ...

    def exists(self) -> bool:
        """Return whether there is a ledger."""
        ...

    def read(self, after: int, limit: int | None = None) -> Iterable[Record]:
        """Return the records whose number exceeds `after`, in order.

        They are fetched in pages, the first of them at once; what is appended after
        the call is left out. Reading needs no turn, and writes nothing to a ledger
        that nobody else has open.
        """
        ...

    def record(self, seq: int) -> Record | None:
        """Return the record with a number, or None if there is none."""
        ...

    def turn(self) -> AbstractContextManager[Turn]:
        """Wait for the exclusive turn. What was appended is durable on exit.

        Where the outcome of the exit is unknown, it raises `UnavailableError`; the
        log, read again, says what happened.
        """
        ...

    def close(self) -> None:
        """Let go of connections. The store may be used again: it opens new ones."""
        ...


@runtime_checkable
class Patient(Protocol):
    """A store whose threads need not be idle while they wait for a turn."""

    def while_waiting(self, chore: Callable[[], bool]) -> None:
        """Let this thread do something while it waits for a turn, from now on."""
        ...


class SnapshotStore(Protocol):
    """Where a cache of the state lives. Losing it loses nothing but time."""

    def load_snapshot(self) -> bytes | None:
        """Return the latest snapshot; None if there is none that can be read."""
        ...

    def save_snapshot(self, data: bytes) -> None:
        """Keep a snapshot in place of the one before, if it can be kept."""
        ...


class Witness:
    """Snapshots that tell how long a log must be at least, and nothing else.

    Nobody signs a snapshot. Where what it says would let data go, the log is read from
    its first entry instead.

    Args:
        store: Where the snapshots live.
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
    """Where signed checkpoints live, beside the log."""

    def checkpoints(self) -> list[bytes]:
        """Return every checkpoint, in the order in which they were added."""
        ...

    def add_checkpoint(self, data: bytes) -> None:
        """Store a checkpoint durably; storing it again changes nothing."""
        ...


class TableVersions(NamedTuple):
    """How the tables of a ledger are made.

    Attributes:
        stored: The version that they have; 0 if there are none.
        current: The version that the next turn makes them.
    """

    stored: int
    current: int


class StoreTurn(Turn, Protocol):
    """A turn that may also add what is kept beside the log."""

    def checkpoints(self) -> list[bytes]:
        """Return every checkpoint, those of this turn too, in order."""
        ...

    def add_checkpoint(self, data: bytes) -> None:
        """Store a checkpoint with the turn; storing it again changes nothing."""
        ...


class Store(EventStore, SnapshotStore, CheckpointStore, Protocol):
    """A log with what is kept beside it."""


class MaintainedStore(Store, Protocol):
    """A store that can be filled from a copy, and brought up to date."""

    def turn(self) -> AbstractContextManager[StoreTurn]:
        """Wait for the exclusive turn, as an `EventStore` does."""
        ...

    def table_versions(self) -> TableVersions:
        """Return the version of the tables, and that which a turn makes them."""
        ...


class Clock(Protocol):
    """The time of day."""

    def now(self) -> str:
        """Return the time in UTC, as `YYYY-MM-DDTHH:MM:SS.ffffffZ`."""
        ...

    def after(self, now: str, seconds: int) -> str:
        """Return the time that many seconds after `now`, in the same form."""
        ...

    def believed(self, now: str, at: str) -> str:
        """Return `now`; if the clock jumped, the time by the seconds that went by."""
        ...


@runtime_checkable
class Timed(Protocol):
    """A store on a server that has a clock of its own."""

    def refuse_skew(self) -> None:
        """Refuse a clock of this machine that is far from the server's."""
        ...
