"""Verification of a log, in a ledger or in a bundle, and of signed claims about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from modicum.core.ed25519 import verify_signature
from modicum.core.errors import Code, Problem, VerificationError
from modicum.ledger import AuditReport, Record, audit
from modicum.ledger.proof.checkpoints import (
    Finding,
    Presented,
    Watch,
    findings_of,
    genuine,
)
from modicum.ledger.proof.claims import Checkpoint, Signed, key_id
from modicum.storage.proofs.signing_keys import load_claim, load_public_key

#: Maximum number of keys listed in a remedy.
_KEYS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Trust:
    """The keys and claims that a verifier trusts.

    Attributes:
        keys: Ids of the public keys that they trust.
        held: Checkpoints and receipts that they held outside of the log.
    """

    keys: frozenset[str] = frozenset()
    held: tuple[Presented, ...] = ()


@dataclass(frozen=True, slots=True)
class Verified:
    """A log that contradicts neither itself nor the signed claims about it.

    Attributes:
        ledger: Hash of its first entry.
        report: The audit report of the log.
        findings: The checkpoints and receipts, all confirmed.
        noted: The entry of a hash noted elsewhere; None if there is none.
        keys_named: Whether the reader named keys that they trust.
    """

    ledger: str
    report: AuditReport
    findings: tuple[Finding, ...]
    noted: int | None
    keys_named: bool = False

    @property
    def pinned(self) -> int:
        """The last entry that a trusted signature vouches for; 0 if none does."""
        return max((one.claim.seq for one in self.findings if one.trusted), default=0)

    def to_dict(self) -> dict[str, object]:
        """Return the documented JSON form (docs/reference/json.md)."""
        return {
            "ok": True,
            "entries": self.report.entries,
            "head": self.report.head,
            "state": self.report.state_digest,
            "decisions": self.report.decisions,
            "approvals": self.report.approvals,
            "signed_approvals": self.report.signed,
            "unpriced": self.report.unpriced.to_dict(),
            "gaps": [one.text() for one in self.report.gaps.open.values()],
            "losses_accepted": list(self.report.gaps.accepted),
            "noted": self.noted,
            "ledger": self.ledger,
            "pinned": self.pinned,
            "signed": [_finding_to_dict(one) for one in self.findings],
        }


def load_trust(public_keys: Sequence[Path], claims: Sequence[Path]) -> Trust:
    """Return the trust given by files of public keys, checkpoints and receipts.

    Args:
        public_keys: PEM files.
        claims: Files of checkpoints or receipts.

    Raises:
        InputError: If one of them is something else.
    """
    return Trust(
        frozenset(key_id(load_public_key(path)) for path in public_keys),
        tuple(Presented(load_claim(path), str(path), held=True) for path in claims),
    )


def verify_log(
    records: Iterable[Record],
    carried: Iterable[tuple[Signed, str]],
    trust: Trust,
    *,
    on_entry: Callable[[int], None] | None = None,
    noted_hash: str | None = None,
    again: Callable[[], Iterable[Record]] | None = None,
) -> Verified:
    """Return the verification result of a log, after checking all of it."""
    presented = [
        *trust.held,
        *(Presented(signed, source, held=False) for signed, source in carried),
    ]
    for one in presented:
        genuine(one, verify_signature, trust.keys)
    watch = Watch((one.signed.claim for one in presented), noted_hash)
    stated = {
        one.signed.claim.seq
        for one in presented
        if isinstance(one.signed.claim, Checkpoint)
        and one.signed.claim.state is not None
    }
    report = audit(watch.passing(records), on_entry, again=again, states_at=stated)
    findings = findings_of(presented, watch, trust.keys)
    for finding in findings:
        _refuse_other_state(finding, report)
    return Verified(watch.ledger, report, findings, watch.noted, bool(trust.keys))


def require_noted(verified: Verified, noted_hash: str) -> None:
    """Refuse a log that has no entry with a hash that was noted elsewhere."""
    if verified.noted is None:
        raise VerificationError(
            Problem(
                Code.LEDGER_BROKEN,
                f"no entry has the hash {noted_hash[:64]}",
                notes=("entries were removed or replaced since then",),
            )
        )


def require_pinned(verified: Verified) -> None:
    """Refuse a log that no trusted checkpoint vouches for."""
    if not any(
        one.trusted and isinstance(one.claim, Checkpoint) for one in verified.findings
    ):
        raise VerificationError(
            Problem(
                Code.LEDGER_BROKEN,
                "no checkpoint is signed by a trusted key",
                notes=("without one, the log may have been rewritten",),
                help=_pinning_remedy(verified),
            )
        )


def _pinning_remedy(verified: Verified) -> str:
    if not verified.keys_named:
        return "give the key with  --public-key, or a checkpoint with  --checkpoint"
    others = sorted({one.claim.key for one in verified.findings})
    if not others:
        return (
            "give one that you kept, with  --checkpoint; there is none next to the log"
        )
    named = ", ".join(f"{key[:12]}…" for key in others[:_KEYS_SHOWN])
    return f"perhaps you gave another key: the existing ones were signed by {named}"


def _refuse_other_state(finding: Finding, report: AuditReport) -> None:
    """Refuse a checkpoint that states another folded state than its entry has."""
    claim = finding.claim
    if isinstance(claim, Checkpoint) and claim.state not in (
        None,
        report.states.get(claim.seq),
    ):
        raise VerificationError(
            Problem(
                Code.LEDGER_BROKEN,
                f"the checkpoint of {finding.source} is invalid: the state of the"
                " log differs from the signed one",
            )
        )


def _finding_to_dict(finding: Finding) -> dict[str, object]:
    return {
        "kind": "checkpoint" if isinstance(finding.claim, Checkpoint) else "receipt",
        "seq": finding.claim.seq,
        "at": finding.claim.at,
        "key": finding.claim.key,
        "source": finding.source,
        "held": finding.held,
        "trusted": finding.trusted,
    }
