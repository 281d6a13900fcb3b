"""Receipts: the answer that a ledger gave to a release, signed."""

from __future__ import annotations

from modicum.core.canonical import encode
from modicum.ledger import Record
from modicum.ledger.checkpoints import receipt_of
from modicum.ledger.claims import Receipt, Signed
from modicum.ledger.life import unknown_release
from modicum.shell.keys import Signing
from modicum.shell.logs import first_hash
from modicum.workspace.ports import EventStore


def sign_receipt(store: EventStore, release: str, signing: Signing) -> Signed:
    """Return a receipt for the latest answer that a ledger gave to a release.

    Args:
        store: The ledger, whose chain was checked.
        release: The id of the release.
        signing: What signs the receipt.

    Raises:
        InputError: If the ledger never answered to such a release.
    """
    ledger = first_hash(store)
    latest: Receipt | None = None
    for record in store.read(0):
        found = _answer(record, release, ledger, signing)
        latest = found or latest
    if latest is None:
        raise unknown_release(release)
    return signing.key.sign(latest)


def _answer(
    record: Record, release: str, ledger: str, signing: Signing
) -> Receipt | None:
    """Return the receipt of a record about a release; most records are not read."""
    if encode(release) not in record.payload:
        return None
    found = receipt_of(record, ledger=ledger, at=signing.at, key=signing.key.id)
    return found if found is not None and found.release == release else None
