"""Making a backup: the log and its checkpoints, in a new ledger file.

A log is append-only, and each entry contains the hash of the one before. So reading it
up to an entry gives the ledger as of that entry, whatever is written meanwhile; and a
complete read proves that nothing of it is missing or damaged.

A backup of either store is a SQLite ledger with the same entries, so it can be
verified, queried, and restored into either store. It contains only what cannot be
recreated: no snapshot, which is a cache, and no service tables (sessions, API tokens,
stored responses). A token that was revoked after the backup would become valid again
when it is restored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from modicum.api.ports.storage import Store, StoreTurn
from modicum.core.errors import Code, Problem, UsageError, VerificationError
from modicum.ledger import GENESIS, Record, read_record
from modicum.ops.backup.new_ledger import new_ledger
from modicum.storage import log_pages


class ChainReader:
    """A reading of a log that checks that each entry follows the one before.

    Args:
        records: The log, from its first record.
        on_entry: Called with the number of each entry that was read.

    Attributes:
        seq: The number of the last entry that was read; 0 before the first.
        head: Its hash.
        at: Its time; empty before the first.
    """

    def __init__(
        self,
        records: Iterable[Record],
        on_entry: Callable[[int], None] | None = None,
    ) -> None:
        self.seq = 0
        self.head = GENESIS
        self.at = ""
        self._records = records
        self._on_entry = on_entry

    def __iter__(self) -> Iterator[Record]:
        for record in self._records:
            event = read_record(record, self.seq + 1, self.head)
            self.seq, self.head, self.at = record.seq, record.hash, event.at
            if self._on_entry is not None:
                self._on_entry(self.seq)
            yield record

    def to_the_end(self) -> ChainReader:
        """Read all that is left, and return this reading."""
        for _ in self:
            pass
        return self


def fill(turn: StoreTurn, records: Iterable[Record], signed: Iterable[bytes]) -> None:
    """Store a log and its checkpoints in a turn; the log is never in memory whole."""
    for batch in batches(records):
        turn.append(batch)
    for data in signed:
        turn.add_checkpoint(data)


def batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Yield records in batches of limited number and size."""
    batch: list[Record] = []
    size = 0
    for record in records:
        batch.append(record)
        size += len(record.payload)
        if len(batch) == log_pages.PAGE_RECORDS or size >= log_pages.PAGE_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def require_same(copy: Iterable[Record], source: ChainReader) -> None:
    """Refuse a copy that is not the log that was read."""
    found = ChainReader(copy).to_the_end()
    if (found.seq, found.head) != (source.seq, source.head):
        raise _changed(f"it ends at entry {found.seq}, the log at entry {source.seq}")


def require_same_checkpoints(copy: Sequence[bytes], source: Sequence[bytes]) -> None:
    """Refuse a copy that has other checkpoints than the log that was read."""
    if list(copy) != list(source):
        raise _changed("its checkpoints differ")


def _changed(why: str) -> VerificationError:
    problem = f"the copy differs from the log: {why}"
    remedy = "nothing was written; find out what changes files on this machine"
    return VerificationError(Problem(Code.LEDGER_BROKEN, problem, help=remedy))


@dataclass(frozen=True, slots=True)
class BackedUp:
    """The contents of a backup.

    Attributes:
        entries: How many entries.
        head: The hash of the last one.
        at: Its time.
        checkpoints: How many checkpoints.
    """

    entries: int
    head: str
    at: str
    checkpoints: int


def back_up(
    store: Store, path: str | Path, on_entry: Callable[[int], None] | None = None
) -> BackedUp:
    """Write the present ledger into a new file; writers continue meanwhile.

    The chain is checked while it is read, and again in the file before it is renamed.
    Decisions are not replayed: `modicum ledger verify` does that.
    """
    with new_ledger(path) as draft:
        # Read first: what is signed must be among the entries that are read after it.
        signed = store.checkpoints()
        source = ChainReader(store.read(0), on_entry)
        with draft.turn() as turn:
            fill(turn, source, signed)
        if not source.seq:
            raise UsageError(
                Problem(Code.LEDGER_MISSING, f"there is no entry in {store.name}")
            )
        require_same(draft.read(0), source)
        require_same_checkpoints(draft.checkpoints(), signed)
    return BackedUp(source.seq, source.head, source.at, len(signed))
