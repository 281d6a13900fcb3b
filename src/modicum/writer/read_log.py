"""A ledger's log that is read while others write to it."""

from __future__ import annotations

from collections.abc import Iterator

from modicum.api.ports.storage import Store
from modicum.ledger import Record
from modicum.storage.read_only import StillStore


class ReadLog(StillStore):
    """A log, with the checkpoints beside it; what is appended later is there, too.

    Args:
        store: Where it lies; it stays open.
    """

    def __init__(self, store: Store) -> None:
        def read(after: int, limit: int | None) -> Iterator[Record]:
            return iter(store.read(after, limit))

        super().__init__(store.name, read)
        self._store = store

    def checkpoints(self) -> list[bytes]:
        """Return every checkpoint, in the order in which they were added."""
        return self._store.checkpoints()
