"""A dry run: events are decided as usual and stored nowhere."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice, takewhile

from modicum.api.local.balances import Reader
from modicum.api.local.past_ledger import EarlierClock
from modicum.api.local.workspace import Workspace
from modicum.api.ports.storage import StoredAnswer
from modicum.ledger import Record


def on_trial(workspace: Workspace) -> Workspace:
    """Return a copy of a ledger for dry runs, starting at its present head.

    Changes never reach the original. The log is read from its beginning. Nothing can be
    reserved in the copy: its clock is fixed.

    Args:
        workspace: The ledger that is left as it is.

    Raises:
        UsageError: If there is none, or it has no policy.
    """
    book, read, now = workspace.current()
    store = TrialStore("the trial", read, book.state.seq)
    return Workspace(store, EarlierClock(now), policy=workspace.policy())


class TrialStore:
    """A log in memory that extends a stored one.

    Args:
        name: Its display name.
        read: Reads the other log.
        seq: The number of the last entry that it had.
    """

    def __init__(self, name: str, read: Reader, seq: int) -> None:
        self._name = name
        self._read = read
        self._seq = seq
        self._added: list[Record] = []

    @property
    def name(self) -> str:
        """Return its display name."""
        return self._name

    def exists(self) -> bool:
        """Return True: the other log was there."""
        return True

    def read(self, after: int, limit: int | None = None) -> Iterable[Record]:
        """Return the records whose number exceeds `after`, in order.

        Args:
            after: A number; 0 for all records.
            limit: The maximum number of records; None for all.
        """
        return islice(chain(self._stored(after), self._new(after)), limit)

    def record(self, seq: int) -> Record | None:
        """Return the record with a number, or None if there is none.

        Args:
            seq: The number.
        """
        return next(iter(self.read(seq - 1, 1)), None)

    @contextmanager
    def turn(self) -> Iterator[TrialStore]:
        """Lend the log to one who adds to it."""
        yield self

    def append(self, records: Sequence[Record]) -> None:
        """Keep records in memory.

        Args:
            records: Those that follow the last one.
        """
        self._added.extend(records)

    def answered(self, keys: Collection[str]) -> Mapping[str, StoredAnswer]:
        """Return nothing: no response of a dry run is stored.

        Args:
            keys: Ignored.
        """
        del keys
        return {}

    def keep(self, answers: Sequence[StoredAnswer], *, forget_before: str) -> None:
        """Store nothing.

        Args:
            answers: Ignored.
            forget_before: Whenever it is.
        """

    def close(self) -> None:
        """Do nothing: nothing was opened."""

    def _stored(self, after: int) -> Iterator[Record]:
        if after >= self._seq:
            return iter(())
        return takewhile(lambda one: one.seq <= self._seq, self._read(after))

    def _new(self, after: int) -> Sequence[Record]:
        return self._added[max(after - self._seq, 0) :]
