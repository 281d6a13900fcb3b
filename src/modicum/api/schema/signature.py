"""Signed claims: the files that `modicum ledger checkpoint` and `receipt` write."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from modicum.api.schema.shape import Digest, Shape

#: Raw bytes of Ed25519 as hexadecimal digits.
PublicKey = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Signature = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{128}$")]


class _Claim(Shape, frozen=True, kw_only=True):
    """A claim about an entry: `key` is the SHA-256 of the public key that signs.

    Attributes:
        ledger: The hash of the first entry: which ledger it is.
        seq: The number of the entry.
        head: The hash of the entry.
        at: When it was signed, according to the signer.
        key: The SHA-256 of the public key that signs.
    """

    ledger: Digest
    seq: int
    head: Digest
    at: str
    key: Digest


class CheckpointClaim(_Claim, frozen=True, kw_only=True):
    """The claim that an entry has a given hash, and thus all entries before it.

    Attributes:
        kind: The kind of claim.
        state: A digest of the folded state; None if omitted.
    """

    kind: Literal["modicum-checkpoint/v1"]
    state: Digest | None


class ReceiptClaim(_Claim, frozen=True, kw_only=True):
    """The claim that an entry decided about a release.

    Attributes:
        kind: The kind of claim.
        release: The id of the release.
        content: SHA-256 of the description.
        decision: The answer.
        policy: The digest of the policy of the decision.
        blocking: The rules that deny.
    """

    kind: Literal["modicum-receipt/v1"]
    release: str
    content: Digest
    decision: Literal["allow", "deny", "recorded"]
    policy: Digest
    blocking: tuple[str, ...]


class _Signed(Shape, frozen=True, kw_only=True):
    """A claim with its signature, and the key that made it.

    Attributes:
        public_key: The raw public key, in hexadecimal.
        signature: The signature of the claim, in hexadecimal.
    """

    public_key: PublicKey
    signature: Signature


class SignedCheckpoint(_Signed, frozen=True, kw_only=True):
    """A checkpoint, its signature, and the signing key.

    Attributes:
        claim: The signed claim.
    """

    claim: CheckpointClaim


class SignedReceipt(_Signed, frozen=True, kw_only=True):
    """A receipt, its signature, and the signing key.

    Attributes:
        claim: The signed claim.
    """

    claim: ReceiptClaim
