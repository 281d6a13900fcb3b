"""Receipts: the answer that a ledger gave to a release, signed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from modicum.api.ports.storage import EventStore
from modicum.core.canonical import encode
from modicum.ledger import ChainBreakError, Record, RecordedRelease, audit, event_of
from modicum.ledger.log.events import PastRecorded, ReleaseDenied, ReleaseReserved
from modicum.ledger.proof.audit import RunningAudit
from modicum.ledger.proof.checkpoints import receipt_of
from modicum.ledger.proof.claims import Receipt, Signed
from modicum.ledger.state.lifecycle import unknown_release
from modicum.storage.proofs.signing_keys import Signing

#: Entries that answer to a release.
ANSWERS: Final = (ReleaseReserved, ReleaseDenied, PastRecorded)


def sign_receipt(store: EventStore, release: str, signing: Signing) -> Signed:
    """Return a receipt for a ledger's latest decision about a release.

    The whole log is audited in the same pass: nothing is signed about an invalid log.
    """
    answers = _Answers(release, signing)
    audit(answers.passing(store.read(0)), again=lambda: store.read(0))
    if answers.latest is None:
        raise unknown_release(release)
    return signing.key.sign(answers.latest)


class AuditedAnswers:
    """The decisions of a growing log, each entry audited once; for one thread.

    Args:
        store: The ledger. Nothing is written to it.
    """

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._begin()

    def sign_receipt(
        self,
        release: str,
        signing: Signing,
        may_see: Callable[[RecordedRelease], bool] = lambda _: True,
    ) -> Signed:
        """Return a receipt, as `sign_receipt` does; only new entries are audited."""
        self._follow()
        known = self._answers.get(release)
        if known is None:
            raise unknown_release(release)
        seq, head = known
        record = next(iter(self._store.read(seq - 1, 1)), None)
        # The audited content counts, not the present one.
        if record is None or record.hash != head:
            self._begin()
            raise ChainBreakError(seq, "it changed after it was read")
        body = event_of(record, seq).body
        assert isinstance(body, ANSWERS)
        if not may_see(body.release):
            raise unknown_release(release)
        found = receipt_of(
            record, ledger=self._ledger, at=signing.at, key=signing.key.id
        )
        assert found is not None
        return signing.key.sign(found)

    def _begin(self) -> None:
        self._audit = RunningAudit(lambda: self._store.read(0))
        self._ledger = ""
        self._answers: dict[str, tuple[int, str]] = {}

    def _follow(self) -> None:
        try:
            for record in self._store.read(self._audit.seq):
                body = self._audit.take(record).body
                self._ledger = self._ledger or record.hash
                if isinstance(body, ANSWERS):
                    self._answers[body.release.id] = record.seq, record.hash
        except BaseException:
            self._begin()  # It is reported until the log is valid.
            raise


class _Answers:
    """Collects the latest decision about a release while a log is read.

    Args:
        release: The id of the release.
        signing: The signing key.
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
