"""Proofs of the log."""

from __future__ import annotations

from modicum.server.models.shared_forms import Digest, Form, Head, Plain


class LinkForm(Form):
    """An entry as it is stored: `hash` is the SHA-256 of `payload`."""

    seq: int
    payload: str
    hash: Digest


class ProofForm(Form):
    """What connects a head that was noted to the ledger as it is.

    Each payload names the hash of the entry before: whoever follows the links from the
    hash that they noted arrives at the head, or the log was changed.
    """

    first: Digest
    stands: bool
    links: list[LinkForm]
    next: str | None
    checkpoints: list[Plain]
    ledger: Head
