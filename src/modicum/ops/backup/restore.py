"""Restoring a backup in place of a lost ledger.

A ledger that goes back in time has lost losses. So a backup is first verified
completely, and compared with heads noted elsewhere; and it is only restored where there
is no ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import takewhile

from modicum.api.ports.storage import MaintainedStore
from modicum.core.errors import Code, Problem, UsageError, VerificationError
from modicum.ledger import Record
from modicum.ops import wiring
from modicum.ops.backup.backup import (
    ChainReader,
    fill,
    require_same,
    require_same_checkpoints,
)
from modicum.ops.backup.new_ledger import new_ledger, refuse_present
from modicum.storage.factory import open_store
from modicum.storage.proofs.ledger_log import (
    StoredLog,
    open_log,
    stored_checkpoints,
    verify_store,
)
from modicum.storage.proofs.verification import Trust, Verified, require_noted
from modicum.storage.sqlite_store import SqliteStore
from modicum.storage.witness.store import WitnessedStore


@dataclass(frozen=True, slots=True)
class Heads:
    """The noted heads of the lost ledger.

    Attributes:
        noted: The hash of an entry that must be in the backup; None for none.
        known: Hashes, or first digits of them; what is restored must end with one of
            them. None for any.
        until: The hash of the last entry to restore; None for the last one. Later ones
            are left out, and the witness gets the last of them.
    """

    noted: str | None = None
    known: Sequence[str] = ()
    until: str | None = None


@dataclass(frozen=True, slots=True)
class Beginning:
    """A log up to one of its entries.

    Attributes:
        store: All of it.
        last: The number of that entry.
    """

    store: StoredLog
    last: int

    def read(self, after: int) -> Iterator[Record]:
        """Return the records whose number exceeds `after`, in order."""
        return takewhile(lambda one: one.seq <= self.last, self.store.read(after))

    def checkpoints(self) -> list[bytes]:
        """Return the checkpoints of these entries."""
        signed = stored_checkpoints(self.store)
        every = zip(signed, self.store.checkpoints(), strict=False)
        return [data for one, data in every if one.claim.seq <= self.last]


@dataclass(frozen=True, slots=True)
class Restored:
    """A restored ledger.

    Attributes:
        verified: The verification result of what was restored.
        at: The time of the last entry: later ones are lost.
        left_out: How many entries of the backup are not in the ledger.
    """

    verified: Verified
    at: str
    left_out: int = 0


def restore(
    backup: str,
    ledger: str,
    heads: Heads,
    on_entry: Callable[[int], None] | None = None,
) -> Restored:
    """Copy a backup to where no ledger is; it is there as a whole, or not at all."""
    target = open_store(ledger)
    _refuse_present(target, ledger)
    copied: StoredLog = open_log(backup)
    left_out = 0
    if heads.until is not None:
        last = end = 0
        for one in copied.read(0):
            end = one.seq
            if one.hash == heads.until:
                last = end
        if not last:
            raise _without(f"the backup has no entry {heads.until[:12]}")
        left_out = end - last
        if left_out:  # What is wrong after it could not be brought back.
            verify_store(copied, Trust())
        copied = Beginning(copied, last)
    # The effect of a policy on losses is no reason to lose them.
    verified = verify_store(copied, Trust(), on_entry=on_entry, noted_hash=heads.noted)
    if heads.noted is not None:
        require_noted(verified, heads.noted)
    _require_known(verified, heads.known)
    if not verified.report.entries:
        raise UsageError(Problem(Code.LEDGER_MISSING, f"there is no entry in {backup}"))
    if left_out:
        _witness_all(backup)
    source = _copied(copied, target, ledger, verified.report.head)
    return Restored(verified, source.at, left_out)


def _witness_all(backup: str) -> None:
    """Give the witness the last entry of all, so that a part of them is refused.

    Raises:
        UsageError: If no witness is named.
        VerificationError: If the witness knows of other entries.
    """
    with closing(wiring.opened_store(backup)) as store:
        if not isinstance(store, WitnessedStore):
            raise UsageError(
                Problem(
                    Code.BAD_NAME,
                    "no witness is named: the restored ledger would spend what the"
                    " entries that are left out have spent",
                    help="name the witness of the ledger in MODICUM_WITNESS",
                )
            )
        with store.turn():
            pass  # It has the last entry now.


def _copied(
    source: StoredLog, target: MaintainedStore, ledger: str, head: str
) -> ChainReader:
    signed = source.checkpoints()
    reading = ChainReader(source.read(0))
    if isinstance(target, SqliteStore):
        with new_ledger(ledger) as draft:
            with draft.turn() as turn:
                fill(turn, reading, signed)
            _refuse_other(reading, head)
            require_same(draft.read(0), reading)
            require_same_checkpoints(draft.checkpoints(), signed)
        return reading
    # All of it is in one transaction, and is looked at before that is committed.
    with target.turn() as turn:
        if next(iter(turn.read(0)), None) is not None:
            raise _present(target)
        fill(turn, reading, signed)
        _refuse_other(reading, head)
        require_same(turn.read(0), reading)
        require_same_checkpoints(turn.checkpoints(), signed)
    return reading


def _refuse_present(target: MaintainedStore, ledger: str) -> None:
    """Refuse to restore where a ledger is, or something else.

    Tables without an entry are no ledger: they are left by a restore that was killed.
    """
    if isinstance(target, SqliteStore):
        if target.exists():
            target.table_versions()  # Raises if it is no ledger.
        refuse_present(ledger)
    elif next(iter(target.read(0, 1)), None) is not None or target.checkpoints():
        raise _present(target)


def _present(target: MaintainedStore) -> UsageError:
    return UsageError(
        Problem(
            Code.ALREADY_EXISTS,
            f"a ledger exists at {target.name}",
            notes=("a ledger is never overwritten: it may have recorded losses",),
            help="name an empty database, or another  modicum_ledger=NAME",
        )
    )


def _require_known(verified: Verified, known: Sequence[str]) -> None:
    head = verified.report.head
    if known and not any(head.startswith(one) for one in known):
        raise _without(
            f"the backup ends with {head[:12]}, which is not one of the given heads"
        )


def _without(problem: str) -> VerificationError:
    return VerificationError(
        Problem(
            Code.LEDGER_BROKEN,
            problem,
            notes=("it is not the backup whose head was noted",),
            help="find the backup that has it",
        )
    )


def _refuse_other(reading: ChainReader, head: str) -> None:
    """Refuse a backup that is another one than when it was verified just now."""
    if reading.head != head:
        raise VerificationError(
            Problem(Code.LEDGER_BROKEN, "the backup changed while it was read")
        )
