"""The signed statement of a vote. This page is a format that others read.

The statement contains all that the entry contains, and the policy. It starts with its
own type, as checkpoints and receipts do, so that a signature for one purpose is invalid
for another. It contains the head, so that it is valid at one place of one log and
cannot be replayed later.
"""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from modicum.core.canonical import encode
from modicum.core.ed25519 import verify_signature
from modicum.ledger.log.events import ApprovalGiven

APPROVAL_KIND = "modicum-approval/v1"


class Signer(Protocol):
    """A private key, or another signing device."""

    @property
    def public(self) -> bytes:
        """The raw Ed25519 public key, 32 bytes."""
        ...

    def signature_of(self, message: bytes) -> bytes:
        """Return the signature of a message, 64 bytes."""
        ...


def statement_bytes(body: ApprovalGiven, *, by: str, policy: str, key: str) -> bytes:
    """Return the canonical bytes to sign.

    Args:
        body: The vote; its key and signature are ignored.
        by: The voter: the actor of the event.
        policy: The digest of the policy that is active.
        key: The raw public key of who signs it, in hexadecimal.
    """
    return encode(
        {
            "kind": APPROVAL_KIND,
            "subject": body.subject,
            "id": body.id,
            "content": body.content,
            "approves": body.approves,
            "roles": list(body.roles),
            "reason": body.reason,
            "by": by,
            "head": body.head,
            "policy": policy,
            "key": key,
        }
    )


def signed(
    body: ApprovalGiven, *, by: str, policy: str, signer: Signer
) -> ApprovalGiven:
    """Return a vote with a signature.

    Args:
        body: The vote, with its head.
        by: The voter: the actor of the event.
        policy: The digest of the policy that is active.
        signer: The signer.
    """
    key = signer.public.hex()
    message = statement_bytes(body, by=by, policy=policy, key=key)
    return replace(body, key=key, signature=signer.signature_of(message).hex())


def is_genuine(body: ApprovalGiven, by: str, policy: str) -> bool:
    """Return whether the signature matches the vote; True if it is not signed."""
    return not body.key or verify_signature(
        bytes.fromhex(body.key),
        statement_bytes(body, by=by, policy=policy, key=body.key),
        bytes.fromhex(body.signature),
    )
