"""What the workspace needs from the world; the shell implements it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from modicum.ledger import Record


class Turn(Protocol):
    """The exclusive right to append, held for the length of a `with` block."""

    def read(self, after: int) -> Iterable[Record]:
        """Return the records whose number exceeds `after`, in order."""
        ...

    def append(self, records: Sequence[Record]) -> None:
        """Store records, all or none, durably before the block ends."""
        ...


class EventStore(Protocol):
    """Where the log lives."""

    @property
    def name(self) -> str:
        """What people call it, such as its path."""
        ...

    def exists(self) -> bool:
        """Return whether there is a ledger."""
        ...

    def read(self, after: int) -> Sequence[Record]:
        """Return the records whose number exceeds `after`; write nothing at all."""
        ...

    def turn(self) -> AbstractContextManager[Turn]:
        """Wait for the exclusive turn. What was appended is durable on exit."""
        ...


class Clock(Protocol):
    """The time of day."""

    def now(self) -> str:
        """Return the time in UTC, as `YYYY-MM-DDTHH:MM:SS.ffffffZ`."""
        ...

    def after(self, now: str, seconds: int) -> str:
        """Return the time that many seconds after `now`, in the same form."""
        ...
