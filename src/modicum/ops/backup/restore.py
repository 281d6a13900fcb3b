"""Restoring a backup in place of a lost ledger.

A ledger that goes back in time has lost losses. So a backup is first verified
completely, and compared with heads noted elsewhere; and it is only restored where there
is no ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from modicum.api.ports.storage import MaintainedStore
from modicum.core.errors import Code, Problem, UsageError, VerificationError
from modicum.ops.backup.backup import (
    ChainReader,
    fill,
    require_same,
    require_same_checkpoints,
)
from modicum.ops.backup.new_ledger import new_ledger, refuse_present
from modicum.storage.factory import open_store
from modicum.storage.proofs.ledger_log import open_log, verify_store
from modicum.storage.proofs.verification import Trust, Verified, require_noted
from modicum.storage.sqlite_store import SqliteStore


@dataclass(frozen=True, slots=True)
class Heads:
    """The noted heads of the lost ledger.

    Attributes:
        noted: The hash of an entry that must be in the backup; None for none.
        known: Hashes, or first digits of them; the backup must end with one of them.
            None for any.
    """

    noted: str | None = None
    known: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Restored:
    """A restored ledger.

    Attributes:
        verified: The verification result of the backup.
        at: The time of the last entry: later ones are lost.
    """

    verified: Verified
    at: str


def restore(
    backup: str,
    ledger: str,
    heads: Heads,
    on_entry: Callable[[int], None] | None = None,
) -> Restored:
    """Copy a backup to where no ledger is; it is there as a whole, or not at all."""
    target = open_store(ledger)
    _refuse_present(target, ledger)
    # The effect of a policy on losses is no reason to lose them.
    verified = verify_store(
        open_log(backup), Trust(), on_entry=on_entry, noted_hash=heads.noted
    )
    if heads.noted is not None:
        require_noted(verified, heads.noted)
    _require_known(verified, heads.known)
    if not verified.report.entries:
        raise UsageError(Problem(Code.LEDGER_MISSING, f"there is no entry in {backup}"))
    source = _copied(open_log(backup), target, ledger, verified.report.head)
    return Restored(verified, source.at)


def _copied(
    source: MaintainedStore, target: MaintainedStore, ledger: str, head: str
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
        raise VerificationError(
            Problem(
                Code.LEDGER_BROKEN,
                f"the backup ends with {head[:12]}, which is not one of the given"
                " heads",
                notes=("it is not the backup whose head was noted",),
                help="find the backup that ends with one of them",
            )
        )


def _refuse_other(reading: ChainReader, head: str) -> None:
    """Refuse a backup that is another one than when it was verified just now."""
    if reading.head != head:
        raise VerificationError(
            Problem(Code.LEDGER_BROKEN, "the backup changed while it was read")
        )
