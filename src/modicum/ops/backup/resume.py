"""Going on with a ledger that lacks entries which its witness knows of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from modicum.api.local import Clock
from modicum.api.local.governance.gaps import agree_to_resume, ask_to_resume
from modicum.api.ports.storage import Store
from modicum.core.canonical import decode, digest
from modicum.core.errors import Code, InputError, Problem, UsageError
from modicum.ledger import Record
from modicum.ledger.log.events import LostEntries
from modicum.ops import wiring
from modicum.storage.proofs.bundles import is_bundle, open_bundle
from modicum.storage.proofs.ledger_log import open_log
from modicum.storage.witness.heads import KnownHead
from modicum.storage.witness.store import WitnessedStore

#: What a call did: it asked, or the ledger and its witness go on.
Outcome: TypeAlias = Literal["asked", "resumed"]
_HASH_DIGITS = 64


class Resumption(Struct, frozen=True):
    """How far a ledger is on its way to go on.

    Attributes:
        outcome: What was done.
        lost: The entries that are lost.
        seq: The number of the last entry.
        is_followed: Whether the witness has this entry now.
    """

    outcome: Outcome
    lost: LostEntries
    seq: int
    is_followed: bool = False


def resume_after_loss(
    store: Store,
    actor: str,
    reason: str,
    *,
    agree: bool,
    clock: Clock | None = None,
) -> Resumption:
    """Ask to go on with a ledger that is behind its witness, or agree to it.

    If it was agreed to, and the witness still has the old line, it is replaced: so this
    may be repeated after a crash.

    Args:
        store: The ledger with its witness.
        actor: Who acts.
        reason: Why, for the record; 1 to 2000 characters.
        agree: Whether to agree to the request of another person.
        clock: The time of day; None for the machine's clock.

    Raises:
        ConflictError: If the same person asks and agrees, or another one asked already.
        UsageError: If there is no witness, or nothing is lost.
        VerificationError: If the witness is of another ledger, or moved on.
    """
    workspace = wiring.workspace_on(
        store.unwitnessed if isinstance(store, WitnessedStore) else store,
        actor=actor,
        clock=clock,
        from_beginning=True,
    )
    gaps = workspace.state().planning.gaps
    if not isinstance(store, WitnessedStore):
        raise UsageError(
            Problem(
                Code.BAD_NAME,
                "no witness is named, so it is not known what is lost",
                help="name it in MODICUM_WITNESS",
            )
        )
    known = _lost(store)
    lost = LostEntries(known.seq, known.digits)
    if known.digits not in gaps.open and known.digits not in gaps.closed:
        if not agree:
            seq = workspace.turn(
                # What expired here may have been started in the lost entries.
                lambda entry: ask_to_resume(entry, lost, reason),
                expiring=False,
            )
            return Resumption("asked", lost, seq)
        workspace.turn(
            lambda entry: agree_to_resume(entry, known.digits, reason), expiring=False
        )
    state = workspace.state()
    return Resumption("resumed", lost, state.seq, store.resume(known))


def _lost(store: WitnessedStore) -> KnownHead:
    """Return the head that the witness has and the ledger lacks."""
    known = store.lost()
    if known is None:
        raise UsageError(
            Problem(
                Code.LEDGER_BEHIND,
                "the ledger has all that its witness knows of: nothing is lost",
            )
        )
    if len(known.digits) != _HASH_DIGITS:
        raise UsageError(
            Problem(
                Code.LEDGER_BEHIND,
                "the witness has only the first digits of the hash that is lost",
                help="write its 64 digits into the line of the witness",
            )
        )
    return known


def exported_records(source: str) -> Iterator[Record]:
    """Yield the records of a ledger, a bundle, or a file with one record a line.

    Nothing is verified here.

    Args:
        source: The name of the ledger, or the path of the file.

    Raises:
        InputError: If the file cannot be read.
        UsageError: If there is no such ledger.
    """
    path = Path(source)
    if is_bundle(source):
        with open_bundle(source) as bundle:
            yield from bundle.records()
    elif path.is_file() and _begins_with_a_record(path):
        for line in path.read_bytes().splitlines():
            yield _record_in(line, source)
    else:
        yield from open_log(source).read(0)


def _begins_with_a_record(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(1) == b"{"


def _record_in(line: bytes, source: str) -> Record:
    try:
        match decode(line):
            case {"seq": int(seq)}:
                return Record(seq, line, digest(line))
            case _:
                pass
    except ValueError:
        pass
    raise InputError(
        Problem(Code.FILE_UNREADABLE, f"{source} has a line that is no entry")
    )
