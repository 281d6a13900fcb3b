"""Checkpoints, receipts and witnessed heads as bytes: a format that others read.

Keys and files are handled elsewhere; the meaning of a claim is in `checkpoints`.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from modicum.core.canonical import Plain, decode, digest, encode

CHECKPOINT_KIND = "modicum-checkpoint/v1"
RECEIPT_KIND = "modicum-receipt/v1"
WITNESS_KIND = "modicum-witness/v1"
#: A claim is a few hundred bytes, a receipt of a denial by many rules a few thousand.
CLAIM_BYTES_MAX = 1 << 22

#: Whether a signature of a message is by a public key; each as raw bytes.
Verify: TypeAlias = Callable[[bytes, bytes, bytes], bool]
#: The decision about a release in the log: allowed, denied, or recorded as past.
Outcome: TypeAlias = Literal["allow", "deny", "recorded"]


@dataclass(frozen=True, slots=True)
class _Claim:
    """A claim about an entry of a ledger.

    Attributes:
        ledger: Hash of the ledger's first entry: which ledger it is.
        seq: The entry's number.
        head: The entry's hash.
        at: When it was signed.
        key: Id of the key: the SHA-256 of the raw public key.
    """

    ledger: str
    seq: int
    head: str
    at: str
    key: str


@dataclass(frozen=True, slots=True)
class Checkpoint(_Claim):
    """A claim that an entry has a given hash, and thus all entries before it.

    Attributes:
        state: Digest of the folded state at that entry, or None.
    """

    state: str | None


@dataclass(frozen=True, slots=True)
class Receipt(_Claim):
    """A claim that an entry of a ledger decided about a release.

    Attributes:
        release: The id of the release.
        content: SHA-256 of the description.
        decision: The answer.
        policy: Digest of the policy of the decision.
        blocking: The ids of the rules that deny.
    """

    release: str
    content: str
    decision: Outcome
    policy: str
    blocking: tuple[str, ...]


Claim: TypeAlias = Checkpoint | Receipt


@dataclass(frozen=True, slots=True)
class WitnessedHead(_Claim):
    """A statement of what was the last entry of a ledger. It claims no audit.

    `at` is the time of the entry, and `key` is empty if no key signs.
    """


@dataclass(frozen=True, slots=True)
class Signed:
    """A claim with its signature and public key.

    Attributes:
        claim: The claim.
        public_key: The raw Ed25519 public key, 32 bytes.
        signature: The Ed25519 signature of `claim_bytes(claim)`, 64 bytes.
    """

    claim: Claim
    public_key: bytes
    signature: bytes

    def is_genuine(self, verify: Verify) -> bool:
        """Return whether the signature is by the key that it carries."""
        return verify(self.public_key, claim_bytes(self.claim), self.signature)


def key_id(public_key: bytes) -> str:
    """Return the id of a raw public key: its SHA-256."""
    return digest(public_key)


#: The prefix of the 32 raw bytes in the DER form of an Ed25519 public key.
_DER_PREFIX = bytes.fromhex("302a300506032b6570032100")


def public_pem(public_key: bytes) -> bytes:
    """Return a raw public key as PEM (SubjectPublicKeyInfo), in its one form."""
    body = b64encode(_DER_PREFIX + public_key)
    return b"-----BEGIN PUBLIC KEY-----\n" + body + b"\n-----END PUBLIC KEY-----\n"


# --- the format --------------------------------------------------------------


def claim_bytes(claim: Claim | WitnessedHead) -> bytes:
    """Return the canonical bytes of a claim, which are signed."""
    plain: dict[str, Plain] = {
        "ledger": claim.ledger,
        "seq": claim.seq,
        "head": claim.head,
        "at": claim.at,
        "key": claim.key,
    }
    match claim:
        case Checkpoint():
            plain |= {"kind": CHECKPOINT_KIND, "state": claim.state}
        case Receipt():
            plain |= {
                "kind": RECEIPT_KIND,
                "release": claim.release,
                "content": claim.content,
                "decision": claim.decision,
                "policy": claim.policy,
                "blocking": list(claim.blocking),
            }
        case WitnessedHead():
            plain |= {"kind": WITNESS_KIND}
    return encode(plain)


def signed_bytes(signed: Signed) -> bytes:
    """Return a signed claim as one line of canonical JSON, with its line break."""
    return _signed_line(claim_bytes(signed.claim), signed.public_key, signed.signature)


def witnessed_bytes(
    claim: WitnessedHead, public_key: bytes = b"", signature: bytes = b""
) -> bytes:
    """Return a witnessed head as one line of canonical JSON, with its line break."""
    return _signed_line(claim_bytes(claim), public_key, signature)


def _signed_line(claim: bytes, public_key: bytes, signature: bytes) -> bytes:
    plain: dict[str, Plain] = {
        "claim": decode(claim),
        "public_key": public_key.hex(),
        "signature": signature.hex(),
    }
    return encode(plain) + b"\n"


def read_witnessed(data: bytes, verify: Verify) -> WitnessedHead:
    """Return the head in a line of `witnessed_bytes`; its signature is checked.

    Raises:
        ValueError: If it is anything else, or the signature is not genuine.
    """
    fields = _exactly(
        decode(data.removesuffix(b"\n")), {"claim", "public_key", "signature"}
    )
    inner = _exactly(fields["claim"], {"kind", "ledger", "seq", "head", "at", "key"})
    key = _text(inner["key"])
    found = WitnessedHead(*_place(inner), at=_time(inner["at"]), key=key)
    public_key, signature = (
        _bytes(fields[name], size if key else 0)
        for name, size in (("public_key", 32), ("signature", 64))
    )
    is_signed = not key or (
        key == key_id(public_key) and verify(public_key, claim_bytes(found), signature)
    )
    if inner["kind"] != WITNESS_KIND or not is_signed:
        message = "its kind or its signature is wrong"
        raise ValueError(message)
    return found


def read_signed(data: bytes) -> Signed:
    """Return the signed claim in a line of canonical JSON; unverified.

    Args:
        data: The bytes of `signed_bytes`, with or without the line break.

    Raises:
        ValueError: If they are anything else.
    """
    plain = decode(data.removesuffix(b"\n"))
    fields = _exactly(plain, {"claim", "public_key", "signature"})
    public_key = _bytes(fields["public_key"], 32)
    claim = _claim(fields["claim"])
    if claim.key != key_id(public_key):
        message = "its key id does not match its public key"
        raise ValueError(message)
    return Signed(claim, public_key, _bytes(fields["signature"], 64))


def _claim(plain: Plain) -> Claim:
    match plain:
        case {"kind": "modicum-checkpoint/v1"}:
            fields = _exactly(
                plain, {"kind", "ledger", "seq", "head", "state", "at", "key"}
            )
            state = fields["state"]
            return Checkpoint(
                *_place(fields),
                state=None if state is None else _hash(state),
                at=_time(fields["at"]),
                key=_hash(fields["key"]),
            )
        case {"kind": "modicum-receipt/v1"}:
            return _receipt(plain)
        case _:
            message = "it is neither a checkpoint nor a receipt"
            raise ValueError(message)


def _receipt(plain: Plain) -> Receipt:
    names = {"kind", "ledger", "seq", "head", "release", "content", "decision"}
    fields = _exactly(plain, names | {"policy", "blocking", "at", "key"})
    return Receipt(
        *_place(fields),
        release=_text(fields["release"]),
        content=_hash(fields["content"]),
        decision=_outcome(fields["decision"]),
        policy=_hash(fields["policy"]),
        blocking=_texts(fields["blocking"]),
        at=_time(fields["at"]),
        key=_hash(fields["key"]),
    )


def _place(fields: Mapping[str, Plain]) -> tuple[str, int, str]:
    seq = fields["seq"]
    if isinstance(seq, bool) or not isinstance(seq, int) or seq < 1:
        message = "`seq` is not the number of an entry"
        raise ValueError(message)
    return _hash(fields["ledger"]), seq, _hash(fields["head"])


def _exactly(plain: Plain, names: set[str]) -> Mapping[str, Plain]:
    if not isinstance(plain, dict) or set(plain) != names:
        message = f"it does not have exactly the keys {', '.join(sorted(names))}"
        raise ValueError(message)
    return plain


def _text(value: Plain) -> str:
    match value:
        case str():
            return value
        case _:
            message = "a text was expected"
            raise ValueError(message)


def _texts(value: Plain) -> tuple[str, ...]:
    match value:
        case list():
            return tuple(map(_text, value))
        case _:
            message = "a list of texts was expected"
            raise ValueError(message)


_HASH = re.compile(r"[0-9a-f]{64}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}Z", re.ASCII)


def _hash(value: Plain) -> str:
    found = _text(value)
    if not _HASH.fullmatch(found):
        message = "a hash is 64 lower-case hexadecimal digits"
        raise ValueError(message)
    return found


def _time(value: Plain) -> str:
    found = _text(value)
    if not _TIME.fullmatch(found):
        message = "a time is written YYYY-MM-DDTHH:MM:SS.ffffffZ"
        raise ValueError(message)
    return found


def _bytes(value: Plain, length: int) -> bytes:
    found = _text(value)
    if not re.fullmatch(rf"[0-9a-f]{{{2 * length}}}", found):
        message = f"{length} bytes are {2 * length} lower-case hexadecimal digits"
        raise ValueError(message)
    return bytes.fromhex(found)


def _outcome(value: Plain) -> Outcome:
    match value:
        case "allow" | "deny" | "recorded":
            return value
        case _:
            message = "a decision is `allow`, `deny` or `recorded`"
            raise ValueError(message)
