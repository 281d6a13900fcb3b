"""A ledger on trial: what is added to it is decided as ever, and stored nowhere."""

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
    """Return a ledger to try things on: it goes on from another one as it is now.

    Nothing that is done to it reaches the other one. It is read from its beginning.
    Nothing can be reserved in it: its clock stands still.

    Args:
        workspace: The ledger that is left as it is.

    Raises:
        UsageError: If there is none, or it has no policy.
    """
    book, read, now = workspace.look()
    store = TrialStore("the trial", read, book.state.seq)
    return Workspace(store, EarlierClock(now), policy=workspace.policy())


class TrialStore:
    """A log that goes on in memory from where another one ended.

    Args:
        name: What people call it.
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
        """What people call it."""
        return self._name

    def exists(self) -> bool:
        """Return True: the other log was there."""
        return True

    def read(self, after: int, limit: int | None = None) -> Iterable[Record]:
        """Return the records whose number exceeds `after`, in order.

        Args:
            after: A number; 0 for all records.
            limit: How many records at most; None for all.
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
        """Return nothing: nobody waits for an answer of a trial.

        Args:
            keys: Whatever they are.
        """
        del keys
        return {}

    def keep(self, answers: Sequence[StoredAnswer], *, forget_before: str) -> None:
        """Keep nothing.

        Args:
            answers: Whatever they are.
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
