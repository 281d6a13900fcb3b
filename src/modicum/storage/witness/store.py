"""A store whose head is with a witness before anyone gets an answer."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from modicum.api.ports.storage import (
    HeadWitness,
    MaintainedStore,
    Patient,
    StoreTurn,
    TableVersions,
    Timed,
)
from modicum.core.errors import UnavailableError
from modicum.ledger import Record, event_of
from modicum.ledger.proof.claims import WitnessedHead, claim_bytes, witnessed_bytes
from modicum.storage.proofs.signing_keys import SigningKey
from modicum.storage.witness.heads import (
    KnownHead,
    behind,
    refuse_unconfirmed,
    unreachable,
)
from modicum.system.clock import refuse_skew, seconds

#: Reads contact the witness at most once in so many seconds.
LOOK_SECONDS = 1.0
#: A witness that refuses the line that follows its own so many times is out of order.
REFUSED_MAX = 5

Read: TypeAlias = Callable[[int], Iterable[Record]]


class WitnessedStore:
    """A store of a log that contains what its witness has.

    A turn commits first, then the witness gets the new head, then the turn returns. So
    what is acknowledged is witnessed, and what is witnessed is stored.

    Every method raises `VerificationError` where the log does not contain the head
    that the witness has, and `UnavailableError` where the witness does not answer.

    Args:
        store: The store of the log.
        witness: The witness.
        key: The key that signs heads; None for none.
        clock: Returns seconds, from any origin.

    Attributes:
        witness: The witness.
    """

    def __init__(
        self,
        store: MaintainedStore,
        witness: HeadWitness,
        key: SigningKey | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self.witness = witness
        self._key = key
        self._clock = clock
        self._ledger = ""  # The hash of the first entry.
        self._known = KnownHead(0, "")  # The highest head that was ever witnessed.
        self._kept: list[KnownHead] | None = None  # To be compared; None: to be read.
        self._look_lock = threading.Lock()
        self._looked_at = float("-inf")
        self._fault: UnavailableError | None = None

    @property
    def name(self) -> str:
        """Return the display name of the log."""
        return self._store.name

    # --- after a loss ---

    @property
    def unwitnessed(self) -> MaintainedStore:
        """Return the store alone, to write what the witness is yet to accept."""
        return self._store

    def lost(self) -> KnownHead | None:
        """Return the head that the witness has and the log lacks; None if none.

        Raises:
            VerificationError: If the witness is that of another ledger.
        """
        known = self._latest()
        if known is None or known.is_that_of(self._store.record(known.seq)):
            return None
        first = self._store.record(1)
        if first is None or known.ledger not in {"", first.hash}:
            raise behind(
                f"the witness {self.witness.name} is not of the ledger {self.name}",
                "name the witness of this ledger, or restore a copy of the other one",
                self.name,
            )
        return known

    def resume(self, lost: KnownHead) -> bool:
        """Let the witness follow this log, in which people agreed to go on.

        Args:
            lost: What the witness has; the log names it as lost.

        Returns:
            False if it keeps earlier lines that this log lacks: new processes would
            refuse the log, so another witness must be named.

        Raises:
            VerificationError: If the witness has something else by now.
        """
        if not all(
            one.is_that_of(self._store.record(one.seq)) for one in self._kept or ()
        ):
            return False
        head = _last(self._store.read(0))
        line = None if head is None else self._line_of(head, self._store.read)
        if line is None or not self.witness.replace(lost.line, line):
            raise behind(
                f"the witness {self.witness.name} has another head by now, or refuses a"
                " lower one",
                "find out which process uses the ledger that was lost, and stop it;"
                " then ask again. If the witness refuses lower heads, let its keeper"
                " remove the line",
                self.witness.name,
            )
        self._known = KnownHead.read_line(line, self.witness.name)
        return True

    # --- reading ---

    def exists(self) -> bool:
        """Return whether there is a ledger; refuse one that is gone."""
        is_there = self._store.exists()
        if not is_there:
            self._refuse_behind(lambda _: None)
        return is_there

    def read(self, after: int, limit: int | None = None) -> Iterable[Record]:
        """Return the records after a number, in order."""
        self._look()
        return self._store.read(after, limit)

    def record(self, seq: int) -> Record | None:
        """Return the record with a number, or None if there is none."""
        self._look()
        return self._store.record(seq)

    def _look(self) -> None:
        """Compare the log with the witness, unless that was done just now."""
        with self._look_lock:
            now = self._clock()
            if now - self._looked_at < LOOK_SECONDS:
                if self._fault is not None:
                    raise UnavailableError(*self._fault.problems)
                return
            self._fault = None
            try:
                self._refuse_behind(self._store.record)
            except UnavailableError as error:
                self._fault, self._looked_at = error, now
                raise
            self._looked_at = now  # A contradiction is looked for again at once.

    # --- writing ---

    @contextmanager
    def turn(self) -> Iterator[StoreTurn]:
        """Wait for the exclusive turn. Appended records are witnessed on exit."""
        known = self._latest()  # Before the turn, in which others wait.
        self._refuse_skew()
        with self._store.turn() as turn:
            known = self._caught_up(known, turn.read)
            yield turn
            added = _last(turn.read(known.seq if known else 0))
        if added is not None:
            try:
                self._keep(known, added, self._store.read)
            except UnavailableError as error:
                refuse_unconfirmed(error)

    def _latest(self) -> KnownHead | None:
        """Return the head that the witness has; refuse one that went back."""
        if self._kept is None:
            self._kept = [
                KnownHead.read_line(one, self.witness.name)
                for one in self.witness.kept()
            ]
        before = self._known  # Another thread may raise it meanwhile.
        line = self.witness.latest()
        if line is not None and line == before.line:
            return before
        found = None if line is None else KnownHead.read_line(line, self.witness.name)
        if (found.seq if found else 0) < before.seq:
            raise behind(
                f"the witness {self.witness.name} had the head {before.seq}:"
                f"{before.digits[:12]}, and has an earlier one",
                "find out who changed it; then restore it, or restart this process",
                self.witness.name,
            )
        if found is not None:
            self._known = found
        return found

    def _refuse_behind(self, record: Callable[[int], Record | None]) -> None:
        """Refuse a log without the head that the witness has."""
        known = self._latest()
        if known is not None:
            known.must_be(record(known.seq), self.name)
        self._refuse_without_kept(record)

    def _refuse_without_kept(self, record: Callable[[int], Record | None]) -> None:
        """Refuse a log without a head that the witness had, once in a process."""
        for one in self._kept or ():
            one.must_be(record(one.seq), self.name)
        self._kept = []

    def _caught_up(self, known: KnownHead | None, read: Read) -> KnownHead | None:
        """Return the head of a log, which the witness has now.

        Args:
            known: What the witness had.
            read: Reads the log.
        """
        if known is None:
            last = _last(read(0))
        else:
            records = iter(read(known.seq - 1))
            first = next(records, None)
            known.must_be(first, self.name)
            last = _last(records)
        self._refuse_without_kept(lambda seq: next(iter(read(seq - 1)), None))
        return known if last is None else self._keep(known, last, read)

    def _keep(self, known: KnownHead | None, head: Record, read: Read) -> KnownHead:
        """Bring the witness up to a head that is stored.

        Args:
            known: What the witness had last; the log contains it.
            head: The last record.
            read: Reads the log.
        """
        refused = 0
        while known is None or known.seq < head.seq:
            line = self._line_of(head, read)
            if self.witness.replace(known and known.line, line):
                known = self._known = KnownHead.read_line(line, self.witness.name)
                continue
            before, known = known, self._latest()
            if known is not None:  # Another process was faster.
                known.must_be(next(iter(read(known.seq - 1)), None), self.name)
            refused = refused + 1 if known == before else 0
            if refused == REFUSED_MAX:
                reason = "it replaces nothing, although nobody else did"
                raise unreachable(self.witness.name, reason)
        return known

    def _line_of(self, head: Record, read: Read) -> bytes:
        if not self._ledger:
            self._ledger = next(iter(read(0))).hash
        at, key = event_of(head, head.seq).at, self._key
        claim = WitnessedHead(
            self._ledger, head.seq, head.hash, at, key.id if key else ""
        )
        if key is None:
            return witnessed_bytes(claim)
        return witnessed_bytes(claim, key.public, key.signature_of(claim_bytes(claim)))

    # --- the rest of a store ---

    def while_waiting(self, chore: Callable[[], bool]) -> None:
        """Let this thread do some work while it waits for a turn, if possible."""
        if isinstance(self._store, Patient):
            self._store.while_waiting(chore)

    def refuse_skew(self) -> None:
        """Refuse a clock that is far from the witness's or the store's."""
        self._look()
        self._refuse_skew()
        if isinstance(self._store, Timed):
            self._store.refuse_skew()

    def _refuse_skew(self) -> None:
        ahead = self.witness.ahead
        if ahead is not None:
            own = seconds()
            refuse_skew(self.witness.name, own, own + ahead)

    def table_versions(self) -> TableVersions:
        """Return the version of the tables, and that which a turn makes them."""
        return self._store.table_versions()

    def load_snapshot(self) -> bytes | None:
        """Return the latest snapshot; None if there is none that can be read."""
        return self._store.load_snapshot()

    def save_snapshot(self, data: bytes) -> None:
        """Keep a snapshot in place of the one before, if it can be kept."""
        self._store.save_snapshot(data)

    def checkpoints(self) -> list[bytes]:
        """Return every checkpoint, in the order in which they were added."""
        return self._store.checkpoints()

    def add_checkpoint(self, data: bytes) -> None:
        """Store a checkpoint durably; storing it again changes nothing."""
        self._store.add_checkpoint(data)

    def close(self) -> None:
        """Close connections."""
        self._store.close()
        self.witness.close()


def _last(records: Iterable[Record]) -> Record | None:
    """Return the last record; None if there is none."""
    found = deque(records, maxlen=1)
    return found[0] if found else None
