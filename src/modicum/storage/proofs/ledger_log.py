"""A ledger's raw log, and signed claims about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from modicum.api.ports.storage import MaintainedStore, Store
from modicum.core.errors import Code, Problem, UsageError, VerificationError
from modicum.ledger import Record
from modicum.ledger.proof.claims import Signed, read_signed
from modicum.storage.factory import open_store
from modicum.storage.proofs.bundles import is_bundle
from modicum.storage.proofs.signing_keys import Signing, claim_fault
from modicum.storage.proofs.verification import Trust, Verified, verify_log


class StoredLog(Protocol):
    """A log and the checkpoints beside it."""

    def read(self, after: int) -> Iterable[Record]:
        """Return the records whose number exceeds `after`, in order."""
        ...

    def checkpoints(self) -> list[bytes]:
        """Return every checkpoint, in the order in which they were added."""
        ...


def open_log(ledger: str | Path) -> MaintainedStore:
    """Return the store of a ledger that is there."""
    store = open_store(ledger)
    if not store.exists():
        raise UsageError(
            Problem(
                Code.LEDGER_MISSING,
                f"there is no ledger at {store.name}",
                help="create one with  modicum init --policy policy.yaml",
            )
        )
    if Path(store.name).is_dir():
        problem = f"{store.name} is a folder, not a ledger"
        raise UsageError(Problem(Code.LEDGER_MISSING, problem))
    if is_bundle(store.name):
        problem = f"{ledger} is an audit bundle, not a ledger"
        remedy = f"check it with  modicum audit verify {ledger}"
        raise UsageError(Problem(Code.LEDGER_MISSING, problem, help=remedy))
    return store


def sign_checkpoint(store: Store, signing: Signing) -> Signed:
    """Return a checkpoint of a ledger's last entry, after checking all of it.

    Snapshots are not used, and what is signed comes from the same pass that was
    checked.
    """
    found = verify_store(store, Trust())
    if not found.report.entries:
        problem = Problem(Code.LEDGER_MISSING, f"there is no entry in {store.name}")
        raise UsageError(problem)
    return signing.checkpoint(found.ledger, found.report.entries, found.report.head)


def stored_checkpoints(store: StoredLog) -> list[Signed]:
    """Return the checkpoints that lie beside a log; signatures are not checked."""
    found = []
    for place, data in enumerate(store.checkpoints(), 1):
        try:
            found.append(read_signed(data))
        except ValueError as error:
            wrong = claim_fault(error)
            problem = f"checkpoint {place} next to the ledger is damaged{wrong}"
            raise VerificationError(Problem(Code.LEDGER_BROKEN, problem)) from error
    return found


def verify_ledger(
    ledger: str | Path,
    trust: Trust,
    *,
    on_entry: Callable[[int], None] | None = None,
    noted_hash: str | None = None,
) -> Verified:
    """Return the verification result of a ledger. Writes nothing."""
    found = verify_store(
        open_log(ledger), trust, on_entry=on_entry, noted_hash=noted_hash
    )
    found.report.refuse_understated()
    return found


def verify_store(
    store: StoredLog,
    trust: Trust,
    *,
    on_entry: Callable[[int], None] | None = None,
    noted_hash: str | None = None,
) -> Verified:
    """Return the verification result of a ledger. Writes nothing."""
    # Read first: what is signed must still be there when the log is read after it.
    carried = [(signed, "the ledger") for signed in stored_checkpoints(store)]
    return verify_log(
        store.read(0),
        carried,
        trust,
        on_entry=on_entry,
        noted_hash=noted_hash,
        again=lambda: store.read(0),
    )
