"""Audit bundles as files: writing, reading, verifying, and querying them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO

from modicum.api.ports.storage import EventStore
from modicum.core.errors import (
    Code,
    InputError,
    Problem,
    UsageError,
)
from modicum.ledger import ChainBreakError, Record, audit
from modicum.ledger.proof.bundle import (
    MANIFEST,
    Manifest,
    Survey,
    member_bytes_max,
    members,
    survey_trail,
)
from modicum.ledger.proof.bundle_reader import BundleReader
from modicum.ledger.proof.claims import Signed
from modicum.ledger.proof.zip_format import begins_like, packed, unpacked
from modicum.storage.access_table import AccessTable
from modicum.storage.proofs.signing_keys import Signing
from modicum.storage.proofs.verification import Trust, Verified, verify_log
from modicum.storage.read_only import ReadOnlyStore
from modicum.system.files import write_whole

#: Number of first bytes that identify a file as a bundle.
_START = 64


def export_bundle(
    store: EventStore,
    path: str | Path,
    *,
    stored: Sequence[Signed] = (),
    signing: Signing | None = None,
    trail: AccessTable | None = None,
) -> Manifest:
    """Write a ledger as a bundle; the same ledger gives the same bytes.

    Records appended meanwhile are left out. With an access trail, it is in the bundle.
    """
    survey = Survey(store.read(0))
    if not survey.entries:
        raise UsageError(
            Problem(Code.LEDGER_MISSING, f"there is no entry in {store.name}")
        )
    signed = list(stored)
    if signing is not None:
        _audited(store, survey)
        signed.append(signing.checkpoint(survey.ledger, survey.entries, survey.head))
    signed = list(dict.fromkeys(signed))
    events = None if trail is None else survey_trail(trail.read())
    manifest = survey.manifest(signed, events)
    records = islice(store.read(0), survey.entries)
    noted = islice(trail.read(), events.events) if trail and events else ()
    write_whole(path, packed(members(manifest, signed, records, noted)))
    return manifest


def _audited(store: EventStore, survey: Survey) -> None:
    """Refuse to sign a log that does not hold, or is not the one surveyed."""
    report = audit(islice(store.read(0), survey.entries), again=lambda: store.read(0))
    if report.head != survey.head:
        raise ChainBreakError(report.entries, "it changed while it was read")


@contextmanager
def open_bundle(path: str | Path) -> Iterator[BundleReader]:
    """Open a bundle for one reading from the front."""
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - closed by the `with` below
    except OSError as error:
        reason = (error.strerror or "it cannot be read").lower()
        problem = Problem(Code.FILE_UNREADABLE, f"cannot read {path}: {reason}")
        raise InputError(problem) from error
    with file:
        _refuse_other_files(file, path)
        yield BundleReader(unpacked(file.read, member_bytes_max))


def verify_bundle(
    bundle: BundleReader,
    trust: Trust,
    *,
    path: str | Path,
    on_entry: Callable[[int], None] | None = None,
) -> Verified:
    """Return the verification result of a bundle, after checking all of it."""
    found = verify_log(
        bundle.records(),
        [(signed, "the bundle") for signed in bundle.checkpoints],
        trust,
        on_entry=on_entry,
        again=lambda: bundle_store(path).read(0),
    )
    found.report.refuse_understated()
    return found


def _refuse_other_files(file: IO[bytes], path: str | Path) -> None:
    try:
        start = file.read(_START)
        file.seek(0)
    except OSError as error:  # A folder, or a pipe.
        reason = (error.strerror or "it cannot be read").lower()
        problem = Problem(Code.FILE_UNREADABLE, f"cannot read {path}: {reason}")
        raise InputError(problem) from error
    if not begins_like(start, MANIFEST):
        raise InputError(
            Problem(
                Code.FILE_UNREADABLE,
                f"{path} is not an audit bundle",
                help="create one with  modicum audit export",
            )
        )


def is_bundle(path: str | Path) -> bool:
    """Return whether a file begins like a bundle."""
    try:
        with Path(path).open("rb") as file:
            return begins_like(file.read(_START), MANIFEST)
    except (OSError, ValueError):
        return False


def bundle_store(path: str | Path) -> ReadOnlyStore:
    """Return a bundle that was verified as a readable ledger."""

    def read(after: int, limit: int | None) -> Iterator[Record]:
        with open_bundle(path) as bundle:
            found = (record for record in bundle.records() if record.seq > after)
            yield from islice(found, limit)

    return ReadOnlyStore(str(path), read)
