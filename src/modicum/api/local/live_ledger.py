"""A live ledger: its book follows the log, and events are added in turns."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from modicum.api.local.balances import Entry, LedgerBalances, Reader, is_entry
from modicum.api.ports.storage import Clock, EventStore, Patient, SnapshotStore, Witness
from modicum.core.errors import (
    ApprovalError,
    Code,
    ConflictError,
    InputError,
    ModicumError,
    Problem,
    StaleError,
    UnavailableError,
    UsageError,
    VerificationError,
)
from modicum.ledger.replay.snapshot import read_snapshot, write_snapshot
from modicum.policy import CompiledPolicy

T = TypeVar("T")

#: A start from a snapshot reads at most this many entries, or those of one more turn.
SNAPSHOT_EVERY = 20_000

#: Maximum number of entries read at once while waiting for a turn. The turn may start
#: meanwhile, and others wait for its end.
FOLLOWED_AT_ONCE = 4

#: A clock this many years after the last entry is considered wrong.
YEARS_MAX = 10

#: Errors after which a book without additions still matches the log.
_HARMLESS = (
    InputError,
    ConflictError,
    UsageError,
    ApprovalError,
    StaleError,
    UnavailableError,
)


class LiveLedger:
    """A log and the book that follows it, for one thread at a time.

    Entries read once are remembered: a log that does not extend them is refused for the
    lifetime of this object. It never starts over.

    Args:
        store: The store of the log.
        clock: The time of day.
        policy: The policy whose balances are followed; None for the active one.
        actor: The actor; recorded in every event.
        snapshots: The store of snapshots for a fast start, or a `Witness`; None for
            none.
        snapshot_every: After how many entries the next one is written.

    Attributes:
        book: The log as far as it was read.
    """

    def __init__(
        self,
        store: EventStore,
        clock: Clock,
        *,
        policy: CompiledPolicy | None,
        actor: str,
        snapshots: SnapshotStore | None,
        snapshot_every: int,
    ) -> None:
        self.book = LedgerBalances()
        self._store = store
        self._clock = clock
        self._policy = policy
        self._actor = actor
        self._snapshots = snapshots
        self._snapshot_every = snapshot_every
        self._snapshot_seq = 0
        self._read_to = (0, "")  # The last entry that is known to be stored.

    @property
    def now(self) -> str:
        """The time; it never falls, and a clock that jumps does not move it."""
        at = self.book.state.at
        return max(self._clock.checked(self._clock.now(), at), at)

    @property
    def unsaved(self) -> int:
        """The number of entries that are in no snapshot."""
        return self.book.state.seq - self._snapshot_seq

    def must_exist(self) -> None:
        """Refuse to go on if there is no ledger.

        Raises:
            UsageError: If there is none.
        """
        if not self._store.exists():
            raise UsageError(
                Problem(
                    Code.LEDGER_MISSING,
                    f"there is no ledger at {self._store.name}",
                    help="create one with  modicum init --policy policy.yaml",
                    places=(self._store.name,),
                )
            )

    def read(self, *, deciding: bool = False) -> LedgerBalances:
        """Return the up-to-date book, without a turn.

        Args:
            deciding: Whether balances are needed.

        Raises:
            UsageError: If there is no ledger and no policy to begin one with.
            VerificationError: If the log contradicts itself, or what was read before.
        """
        if self._is_there():
            self._follow(self._store.read, deciding=deciding)
        elif self._policy is None:
            self.must_exist()
        return self.book

    def turn(
        self,
        work: Callable[[Entry], T],
        *,
        deciding: bool = True,
        expiring: bool = True,
    ) -> T:
        """Return the result of some work in the ledger's turn; its events are durable.

        Args:
            work: Adds events.
            deciding: Whether it needs balances.
            expiring: Whether due reservations are expired first.

        Raises:
            ModicumError: From `work`; nothing is stored then.
            UnavailableError: If it is unknown whether the events were stored; or the
                clock jumped, and nothing was stored.
            VerificationError: If the log contradicts itself, or what was read before.
        """
        entry: Entry | None = None
        self._is_there()  # Else the store would make a new one.
        try:
            with self._store.turn() as turn:
                self._follow(turn.read, deciding=deciding)
                now = self._clock.now()
                self._refuse_wrong_clock(now)
                self.refuse_jump(now)
                now = max(now, self.book.state.at)
                entry = Entry(self.book, turn, now, self._actor)
                if expiring:
                    entry.expire_due()
                result = work(entry)
                entry.commit()
        except BaseException as error:
            if not isinstance(error, _HARMLESS) or (entry and entry.is_ahead_of_store):
                # The events may or may not be stored: read the log again next time.
                self.book = LedgerBalances()
            raise
        if entry.withdrawn:
            self.book = LedgerBalances()
        else:
            self._read_to = (self.book.state.seq, self.book.state.head)
        if self.unsaved >= self._snapshot_every:
            with suppress(UnavailableError):  # The added events are durable anyway.
                self.save_snapshot()
        return result

    def refuse_jump(self, now: str = "") -> None:
        """Refuse a clock that advanced by far more than the elapsed time.

        Args:
            now: The time of the clock; empty to read it.

        Raises:
            UnavailableError: If it did since a time that is believed: when this
                process began, or that of the last entry.
        """
        refuse_jump(self._clock, now or self._clock.now(), self.book.state.at)

    def follow_in_idle_time(self) -> None:
        """Let this thread read new entries while it waits for a turn.

        So little is left to read in a turn, where all others have to wait for it.
        """
        if isinstance(self._store, Patient):
            self._store.while_waiting(self._follow_a_little)

    def save_snapshot(self) -> None:
        """Write a snapshot of the state, for a fast start.

        It is a cache: losing it, or the process while it is written, loses nothing.
        """
        if self._snapshots is not None and self.book.state.seq:
            self._snapshot_seq = self.book.state.seq
            self._snapshots.save_snapshot(write_snapshot(self.book.snapshot()))

    def _is_there(self) -> bool:
        """Return whether there is a ledger.

        Raises:
            VerificationError: If there is none, and there was one.
        """
        is_there = self._store.exists()
        if not is_there and (self._read_to[0] or self._resumed().state.seq):
            raise lost_entries(self._store.name, "it was removed")
        return is_there

    def _follow(self, read: Reader, *, deciding: bool) -> None:
        """Fold new entries into the state."""
        book = self.book if self.book.state.seq else self._resumed()
        if book.state.seq != self._read_to[0]:
            self._refuse_another(read)
        records = iter(read(max(book.state.seq - 1, 0)))
        if not book.continues_with(records):
            self._refuse_another(read)
            self._refuse_shorter(read, book.state.seq)
            book = LedgerBalances()
            records = iter(read(0))
        if isinstance(self._snapshots, Witness) and not self.book.state.seq:
            book, records = LedgerBalances(), iter(read(0))
        if deciding:
            book.decide_by(self._policy)
        try:
            book.fold(records)
        except BaseException:
            self.book = LedgerBalances()  # Reading broke off midway: it begins anew.
            raise
        self.book = book
        self._read_to = (book.state.seq, book.state.head)

    def _follow_a_little(self) -> bool:
        """Fold some new entries, if anything was read before.

        Returns:
            Whether there were any. Errors are reported in the turn.
        """
        before = self.book.state.seq
        if before:
            with suppress(ModicumError):
                self._follow(
                    lambda after: self._store.read(after, 1 + FOLLOWED_AT_ONCE),
                    deciding=True,
                )
        return self.book.state.seq > before

    def _refuse_another(self, read: Reader) -> None:
        """Refuse a log without the last entry that was read before, as it was."""
        known, head = self._read_to
        if known and not is_entry(next(iter(read(known - 1)), None), head):
            raise lost_entries(
                self._store.name,
                f"entry {known} differs from the one that was read before",
            )

    def _refuse_shorter(self, read: Reader, seq: int) -> None:
        """Refuse a log that ends before the entry that a snapshot was made at."""
        if next(iter(read(seq - 1)), None) is None:
            raise lost_entries(
                self._store.name,
                f"there is a snapshot of entry {seq}, which is missing",
            )

    def _refuse_wrong_clock(self, now: str) -> None:
        """Refuse to write a time that would stay, since times never fall."""
        last = self.book.state.at
        if last and int(now[:4]) - int(last[:4]) > YEARS_MAX:
            raise UnavailableError(
                Problem(
                    Code.LEDGER_UNWRITABLE,
                    f"the clock shows {now[:10]}, and the last entry of"
                    f" {self._store.name} is of {last[:10]}",
                    notes=("times in the ledger never decrease",),
                    help="correct the clock",
                    places=(self._store.name,),
                )
            )

    def _resumed(self) -> LedgerBalances:
        """Return a book from the latest snapshot, or an empty one."""
        data = self._snapshots.load_snapshot() if self._snapshots else None
        snapshot = read_snapshot(data) if data else None
        self._snapshot_seq = snapshot.state.seq if snapshot else 0
        return LedgerBalances(snapshot)


def refuse_jump(clock: Clock, now: str, at: str) -> None:
    """Refuse a clock that advanced by far more than the elapsed time.

    Args:
        clock: The clock.
        now: The time that it shows.
        at: The time of the last entry; empty if there is none.

    Raises:
        UnavailableError: If it did.
    """
    checked = clock.checked(now, at)
    if at and checked < now:
        raise UnavailableError(
            Problem(
                Code.CLOCK_JUMPED,
                f"the clock of this machine jumped: it shows {now[:19]}Z, but by"
                f" elapsed time it is {checked[:19]}Z",
                notes=(
                    "nothing was written, so that no reservation expires by mistake",
                ),
                help="correct the clock; if it is right now, confirm that with "
                " modicum ledger annotate 'the clock is right: …'  on this machine",
            )
        )


def lost_entries(name: str, why: str) -> VerificationError:
    """Return the error for a log that lost entries.

    Args:
        name: Its display name.
        why: The evidence.
    """
    return VerificationError(
        Problem(
            Code.LEDGER_BROKEN,
            f"the ledger {name} has lost entries: {why}",
            notes=("no decision was made, so that nothing is spent twice",),
            help="stop everything that uses it; then replace it with a copy that"
            " verifies, and remove its snapshot",
            places=(name,),
        )
    )
