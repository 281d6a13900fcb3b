"""What somebody signs who agrees or refuses. This page is a format that others read.

The statement says everything that the entry says, and under which policy. It names
itself first, as checkpoints and receipts do, so that no signature made for one thing
is one for another. It names the head, so that it holds at one place of one log: what
was signed once cannot be said again later.
"""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from modicum.core.canonical import encode
from modicum.core.ed25519 import verify_signature
from modicum.ledger.log.events import ApprovalGiven

APPROVAL_KIND = "modicum-approval/v1"


class Signer(Protocol):
    """A private key, or whatever can sign with one."""

    @property
    def public(self) -> bytes:
        """The raw Ed25519 public key, 32 bytes."""
        ...

    def signature_of(self, message: bytes) -> bytes:
        """Return the signature of a message, 64 bytes."""
        ...


def statement_bytes(body: ApprovalGiven, *, by: str, policy: str, key: str) -> bytes:
    """Return the canonical bytes that are signed.

    Args:
        body: What is said; its own key and signature are not looked at.
        by: Who says it: the actor of the event.
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
    """Return what is said with a signature.

    Args:
        body: What is said, with the head that it is said at.
        by: Who says it: the actor of the event.
        policy: The digest of the policy that is active.
        signer: What signs it.
    """
    key = signer.public.hex()
    message = statement_bytes(body, by=by, policy=policy, key=key)
    return replace(body, key=key, signature=signer.signature_of(message).hex())


def is_genuine(body: ApprovalGiven, by: str, policy: str) -> bool:
    """Return whether what was signed is what is said; so it is if nobody signed."""
    return not body.key or verify_signature(
        bytes.fromhex(body.key),
        statement_bytes(body, by=by, policy=policy, key=body.key),
        bytes.fromhex(body.signature),
    )
