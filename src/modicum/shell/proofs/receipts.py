"""Receipts: the answer that a ledger gave to a release, signed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from modicum.core.canonical import encode
from modicum.ledger import Record, audit
from modicum.ledger.proof.checkpoints import receipt_of
from modicum.ledger.proof.claims import Receipt, Signed
from modicum.ledger.state.life import unknown_release
from modicum.shell.proofs.keys import Signing
from modicum.workspace.ports import EventStore


def sign_receipt(store: EventStore, release: str, signing: Signing) -> Signed:
    """Return a receipt for the latest answer that a ledger gave to a release.

    The whole log is audited on the way, in the same reading: nothing is signed about
    a log that does not hold.

    Args:
        store: The ledger.
        release: The id of the release.
        signing: What signs the receipt.

    Raises:
        InputError: If the ledger never answered to such a release.
        VerificationError: If the log does not hold.
    """
    answers = _Answers(release, signing)
    audit(answers.passing(store.read(0)), again=lambda: store.read(0))
    if answers.latest is None:
        raise unknown_release(release)
    return signing.key.sign(answers.latest)


class _Answers:
    """Keeps the latest answer to a release while a log goes by.

    Args:
        release: The id of the release.
        signing: What will sign the answer.
    """

    def __init__(self, release: str, signing: Signing) -> None:
        self._release = release
        self._signing = signing
        self._ledger = ""
        self.latest: Receipt | None = None

    def passing(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield the records unchanged, and remember the latest answer."""
        for record in records:
            self._ledger = self._ledger or record.hash
            self.latest = self._answer(record) or self.latest
            yield record

    def _answer(self, record: Record) -> Receipt | None:
        """Return the receipt of a record that is one; most records are not read."""
        if encode(self._release) not in record.payload:
            return None
        signing = self._signing
        found = receipt_of(
            record, ledger=self._ledger, at=signing.at, key=signing.key.id
        )
        return found if found is not None and found.release == self._release else None
