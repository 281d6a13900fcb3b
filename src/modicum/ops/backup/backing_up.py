"""Making a backup: the log and its checkpoints, in a new file that is a ledger.

A backup of either store is a SQLite ledger, entry for entry what the ledger holds, so
it can be verified, asked, and restored into either store. It holds what cannot be had
again, and nothing else: no snapshot, which is a cache, and none of what a server keeps
beside the log to serve people (sessions, API tokens, kept answers). A token that was
revoked after the backup would live again once it is restored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from modicum.api.ports.storage import Store
from modicum.core.errors import Code, Problem, UsageError
from modicum.ops.backup.backup import (
    ChainReading,
    fill,
    require_same,
    require_same_checkpoints,
)
from modicum.ops.backup.new_ledger import new_ledger


@dataclass(frozen=True, slots=True)
class BackedUp:
    """What a backup holds.

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
    """Write a ledger, as it is now, into a new file; writers go on meanwhile.

    The chain is checked while it is read, and again in the file before that gets its
    name. Decisions are not taken again: `modicum ledger verify` does that.

    Args:
        store: The ledger.
        path: The new file.
        on_entry: Called with the number of each entry that was copied.

    Raises:
        UsageError: If something is at the path, or the ledger has no entry.
        UnavailableError: If the ledger, the folder or the disk refuses.
        VerificationError: If the ledger is broken; there is no new file then.
    """
    with new_ledger(path) as draft:
        # Read first: what is signed must be among the entries that are read after it.
        signed = store.checkpoints()
        source = ChainReading(store.read(0), on_entry)
        with draft.turn() as turn:
            fill(turn, source, signed)
        if not source.seq:
            raise UsageError(
                Problem(Code.LEDGER_MISSING, f"there is no entry in {store.name}")
            )
        require_same(draft.read(0), source)
        require_same_checkpoints(draft.checkpoints(), signed)
    return BackedUp(source.seq, source.head, source.at, len(signed))
