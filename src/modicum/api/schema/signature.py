"""Signed words: the files that `modicum ledger checkpoint` and `receipt` write."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from modicum.api.schema.shape import Digest, Shape

#: Raw bytes of Ed25519 as hexadecimal digits.
PublicKey = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Signature = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{128}$")]


class _Claim(Shape, frozen=True, kw_only=True):
    """A claim about an entry: `key` is the SHA-256 of the public key that signs."""

    ledger: Digest
    seq: int
    head: Digest
    at: str
    key: Digest


class CheckpointClaim(_Claim, frozen=True, kw_only=True):
    """An entry is what it is, and so are all before it."""

    kind: Literal["modicum-checkpoint/v1"]
    state: Digest | None


class ReceiptClaim(_Claim, frozen=True, kw_only=True):
    """An entry gave a release an answer."""

    kind: Literal["modicum-receipt/v1"]
    release: str
    content: Digest
    decision: Literal["allow", "deny", "recorded"]
    policy: Digest
    blocking: tuple[str, ...]


class _Signed(Shape, frozen=True, kw_only=True):
    public_key: PublicKey
    signature: Signature


class SignedCheckpoint(_Signed, frozen=True, kw_only=True):
    """A checkpoint, its signature, and the key that made it."""

    claim: CheckpointClaim


class SignedReceipt(_Signed, frozen=True, kw_only=True):
    """A receipt, its signature, and the key that made it."""

    claim: ReceiptClaim
