"""A read-only log with the interface of a ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import NoReturn

from modicum.api.ports.storage import EventStore
from modicum.core.errors import Code, Problem, UsageError
from modicum.ledger import Record

#: Number of records cached for lookups.
_AT_HAND = 10_000


class ReadOnlyStore:
    """A read-only store of existing records.

    Args:
        name: Its display name.
        read: Yields the records after a number, up to a limit.
    """

    def __init__(
        self, name: str, read: Callable[[int, int | None], Iterator[Record]]
    ) -> None:
        self._name = name
        self._read = read
        self._near: dict[int, Record] = {}

    @property
    def name(self) -> str:
        """Return its display name."""
        return self._name

    def exists(self) -> bool:
        """Return True: it was there when it was opened."""
        return True

    def read(self, after: int, limit: int | None = None) -> Iterator[Record]:
        """Return the records after a number."""
        return self._read(after, limit)

    def record(self, seq: int) -> Record | None:
        """Return the record with a number; those that follow it are kept at hand."""
        if seq not in self._near:
            self._near = {one.seq: one for one in self._read(seq - 1, _AT_HAND)}
        return self._near.get(seq)

    def turn(self) -> NoReturn:
        """Refuse to write."""
        raise UsageError(
            Problem(
                Code.ALREADY_EXISTS,
                f"{self._name} is read-only here",
                places=(self._name,),
            )
        )

    def close(self) -> None:
        """Drop the cache."""
        self._near = {}

    def load_snapshot(self) -> bytes | None:
        """Return None: such a log is read from the beginning."""
        return None

    def save_snapshot(self, data: bytes) -> None:
        """Keep nothing."""

    def checkpoints(self) -> list[bytes]:
        """Return no checkpoints: they are checked before a log is read."""
        return []

    def add_checkpoint(self, data: bytes) -> None:
        """Refuse to write."""
        self.turn()


def up_to(store: EventStore, last: int) -> ReadOnlyStore:
    """Return a ledger up to an entry, without later records."""

    def read(after: int, limit: int | None) -> Iterator[Record]:
        yield from takewhile(
            lambda record: record.seq <= last, store.read(after, limit)
        )

    return ReadOnlyStore(store.name, read)
