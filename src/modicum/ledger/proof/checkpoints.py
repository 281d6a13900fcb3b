"""Checkpoints and receipts, compared with a log.

The chain proves that entries fit together. It cannot prove that the end was not cut
off, or that the whole log was not rewritten; a signed claim about one entry, held by
another party, can.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from modicum.core.errors import Code, Problem, VerificationError
from modicum.ledger.log.chain import Record, event_of
from modicum.ledger.log.events import PastRecorded, ReleaseDenied, ReleaseReserved
from modicum.ledger.proof.claims import Claim, Outcome, Receipt, Signed, Verify

# --- decisions of entries -----------------------------------------------------


def receipt_of(record: Record, *, ledger: str, at: str, key: str) -> Receipt | None:
    """Return the receipt for the answer that an entry gives; None if it gives none.

    Args:
        record: A record.
        ledger: Hash of the ledger's first entry.
        at: When the receipt is signed.
        key: Id of the key that will sign it.

    Raises:
        ChainBreakError: If the record does not have its hash, or cannot be read.
    """
    body = event_of(record, record.seq).body
    blocking: tuple[str, ...] = ()
    decision: Outcome
    match body:
        case ReleaseReserved():
            decision = "allow"
        case ReleaseDenied():
            decision, blocking = "deny", body.blocking
        case PastRecorded():
            decision = "recorded"
        case _:
            return None
    return Receipt(
        ledger=ledger,
        seq=record.seq,
        head=record.hash,
        release=body.release.id,
        content=body.release.content,
        decision=decision,
        policy=body.policy,
        blocking=blocking,
        at=at,
        key=key,
    )


# --- holding claims against a log --------------------------------------------


@dataclass(frozen=True, slots=True)
class Presented:
    """A signed claim and its source.

    Attributes:
        signed: The claim.
        source: Its source, for display: a file, or "the bundle".
        held: Whether it was stored outside of what is checked.
    """

    signed: Signed
    source: str
    held: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim that the log confirms.

    Attributes:
        claim: The claim.
        source: Its source.
        held: Whether it was stored outside of what was checked.
        trusted: Whether its key was listed as trusted. A signature by an unlisted key
            proves nothing.
    """

    claim: Claim
    source: str
    held: bool
    trusted: bool


class Watch:
    """Collects the records that claims refer to while a log is read.

    Args:
        claims: The claims.
        noted_hash: A hash noted elsewhere; `noted` is its entry.
    """

    def __init__(self, claims: Iterable[Claim], noted_hash: str | None = None) -> None:
        self._wanted = {1, *(claim.seq for claim in claims)}
        self._noted_hash = noted_hash
        self._kept: dict[int, Record] = {}
        self.last = 0
        self.noted: int | None = None

    @property
    def ledger(self) -> str:
        """The hash of the first record read; empty if there was none."""
        return self._kept[1].hash if 1 in self._kept else ""

    def passing(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield the records unchanged, and remember those that claims refer to."""
        for record in records:
            self.last = record.seq
            if record.seq in self._wanted:
                self._kept[record.seq] = record
            if record.hash == self._noted_hash:
                self.noted = record.seq
            yield record

    def contradiction(self, claim: Claim) -> str:
        """Return how the log contradicts a claim, as text; empty if it does not."""
        there = self._kept.get(claim.seq)
        if self.ledger != claim.ledger:
            return "it is for another ledger, or this one was rewritten"
        if there is None:
            return (
                f"it is for entry {claim.seq}, and the log ends at {self.last}:"
                " entries were removed"
            )
        if there.hash != claim.head:
            return f"entry {claim.seq} is not the one that it was signed for"
        if isinstance(claim, Receipt):
            receipt = receipt_of(there, ledger=claim.ledger, at=claim.at, key=claim.key)
            if receipt != claim:
                return f"entry {claim.seq} does not have the stated outcome"
        return ""


def genuine(presented: Presented, verify: Verify, trusted: Collection[str]) -> None:
    """Refuse a claim with a bad signature, or a held one of an untrusted key.

    Args:
        presented: The claim.
        verify: Verifies a signature.
        trusted: Ids of the trusted keys; if empty, any key may have signed a held
            claim, and the finding shows that.

    Raises:
        VerificationError: If the signature is not by its key, or the key is unknown.
    """
    signed = presented.signed
    if not signed.is_genuine(verify):
        raise _refused(presented, "its signature does not match its key")
    if presented.held and trusted and signed.claim.key not in trusted:
        raise _refused(
            presented,
            f"it is signed by the key {signed.claim.key[:12]}…, which is not a"
            " trusted key",
            remedy="perhaps you gave another key; if not, keep it as evidence",
        )


def findings_of(
    presented: Iterable[Presented], watch: Watch, trusted: Collection[str]
) -> tuple[Finding, ...]:
    """Return the claims as findings, after reading a log.

    Args:
        presented: The claims, each of which is genuine.
        watch: The watch that read the log.
        trusted: Ids of the keys that were named as trusted.

    Raises:
        VerificationError: If the log contradicts one of them.
    """
    findings = []
    for one in presented:
        claim = one.signed.claim
        why = watch.contradiction(claim)
        if why:
            raise _refused(one, why)
        findings.append(Finding(claim, one.source, one.held, claim.key in trusted))
    return tuple(findings)


def _refused(
    presented: Presented,
    why: str,
    remedy: str = "keep both, the signed state and the current one, as evidence",
) -> VerificationError:
    what = "receipt" if isinstance(presented.signed.claim, Receipt) else "checkpoint"
    return VerificationError(
        Problem(
            Code.LEDGER_BROKEN,
            f"the {what} of {presented.source} is invalid: {why}",
            help=remedy,
        )
    )
