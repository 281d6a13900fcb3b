"""Audit bundles: a ledger and all that is needed to verify it, in one file.

A bundle is a zip of stored members in a fixed order: the manifest, public keys,
checkpoints, the records in pages, the policies as files, and the access trail in pages.
All but records and trail follows from the records or is signed, so nothing in it is
trusted unchecked. A bundle without a trail has the first version of the format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from modicum.core.canonical import Plain, digest, encode
from modicum.ledger.log.chain import ChainBreakError, Record, event_of
from modicum.ledger.log.events import PolicyActivated
from modicum.ledger.proof.access_trail import verified
from modicum.ledger.proof.claims import (
    CLAIM_BYTES_MAX,
    Signed,
    public_pem,
    signed_bytes,
)
from modicum.ledger.proof.zip_format import MEMBER_BYTES_MAX, Member

BUNDLE_KIND = "modicum-audit/v1"
BUNDLE_KIND_TRAIL = "modicum-audit/v2"
MANIFEST = "manifest.json"
#: A page ends after this many records …
PAGE_RECORDS = 1000
#: … or before the record that would exceed this size; a single record may.
PAGE_BYTES = 1 << 20
#: A public key is 113 bytes.
_KEY_BYTES_MAX = 200
#: Some thousand keys fit into a manifest of this size.
_MANIFEST_BYTES_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class TrailManifest:
    """What a manifest contains about the access trail.

    Attributes:
        events: The number of events.
        head: Hash of the last one.
        pages: The number of their pages.
    """

    events: int
    head: str
    pages: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a bundle; all of it is checked.

    Attributes:
        ledger: Hash of the first record.
        entries: The number of records.
        head: Hash of the last record.
        pages: The number of pages of records.
        checkpoints: The number of checkpoints.
        keys: Ids of the public keys, sorted.
        policies: How many times a policy was activated.
        trail: The access trail; None if there is none.
    """

    ledger: str
    entries: int
    head: str
    pages: int
    checkpoints: int
    keys: tuple[str, ...]
    policies: int
    trail: TrailManifest | None = None

    def to_bytes(self) -> bytes:
        """Return the manifest as one line of canonical JSON."""
        trail = self.trail
        plain: dict[str, Plain] = {
            "kind": BUNDLE_KIND if trail is None else BUNDLE_KIND_TRAIL,
            "ledger": self.ledger,
            "entries": self.entries,
            "head": self.head,
            "pages": self.pages,
            "checkpoints": self.checkpoints,
            "keys": list(self.keys),
            "policies": self.policies,
        }
        if trail is not None:
            plain["trail"] = asdict(trail)
        return encode(plain) + b"\n"


class Survey:
    """The contents of the manifest, computed from the records.

    Attributes:
        entries: The number of records.
        ledger: Hash of the first record.
        head: Hash of the last record.
        pages: How many pages they fill.
        policies: How many of them activate a policy.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        self.entries = self.pages = self.policies = 0
        self.ledger = self.head = ""
        for page in paged(self._counted(records)):
            self.pages += 1
            del page

    def _counted(self, records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            self.entries += 1
            _refuse_damaged(record, self.entries)
            self.ledger = self.ledger or record.hash
            self.head = record.hash
            self.policies += policy_of(record) is not None
            yield record

    def manifest(
        self, signed: Sequence[Signed], trail: TrailManifest | None = None
    ) -> Manifest:
        """Return the manifest of a bundle with these checkpoints."""
        return Manifest(
            self.ledger,
            self.entries,
            self.head,
            self.pages,
            len(signed),
            tuple(sorted({one.claim.key for one in signed})),
            self.policies,
            trail,
        )


def survey_trail(records: Iterable[Record]) -> TrailManifest | None:
    """Return what a manifest contains about an access trail, which is checked.

    Raises:
        VerificationError: If it contradicts itself.
    """
    last: Record | None = None

    def counted() -> Iterator[Record]:
        nonlocal last
        for last, _ in verified(records):
            yield last

    pages = sum(1 for _ in paged(counted()))
    return None if last is None else TrailManifest(last.seq, last.hash, pages)


def _refuse_damaged(record: Record, seq: int) -> None:
    """Refuse a stored record whose hash is wrong: a bundle derives hashes anew."""
    if record.seq != seq:
        raise ChainBreakError(seq, f"its number is {record.seq}")
    if digest(record.payload) != record.hash:
        raise ChainBreakError(seq, "its contents do not match its hash")
    if b"\n" in record.payload:
        raise ChainBreakError(seq, "it is not in canonical form")


def members(
    manifest: Manifest,
    signed: Sequence[Signed],
    records: Iterable[Record],
    trail: Iterable[Record] = (),
) -> Iterator[Member]:
    """Yield the members of a bundle, in order.

    Args:
        manifest: Its manifest.
        signed: The checkpoints.
        records: All records, as many as in the manifest.
        trail: The access trail, as many events as in the manifest.
    """
    yield MANIFEST, manifest.to_bytes()
    for key, pem in sorted(pems_of(signed).items()):
        yield key_name(key), pem
    for place, data in enumerate(in_order(signed), 1):
        yield checkpoint_name(place), data
    policies: list[Member] = []

    def noted() -> Iterator[Record]:
        for record in records:
            policy = policy_of(record)
            if policy is not None:
                name = policy_name(record.seq, policy.digest)
                policies.append((name, policy.text.encode("utf-8")))
            yield record

    for place, page in enumerate(paged(noted()), 1):
        yield page_name(place), page
    yield from policies
    for place, page in enumerate(paged(trail), 1):
        yield trail_name(place), page


def in_order(signed: Iterable[Signed]) -> list[bytes]:
    """Return signed claims as bytes, by the entry that they are about."""
    ordered = sorted((one.claim.seq, signed_bytes(one)) for one in signed)
    return [data for _, data in ordered]


def pems_of(signed: Iterable[Signed]) -> dict[str, bytes]:
    """Return the public keys of signed claims as PEM, by their ids."""
    return {one.claim.key: public_pem(one.public_key) for one in signed}


def member_bytes_max(name: str) -> int:
    """Return the most bytes that a member of a bundle may have."""
    if name == MANIFEST:
        return _MANIFEST_BYTES_MAX
    folder, _, _ = name.partition("/")
    return {"keys": _KEY_BYTES_MAX, "checkpoints": CLAIM_BYTES_MAX}.get(
        folder, MEMBER_BYTES_MAX
    )


def is_full(lines: int, size: int, following: int) -> bool:
    """Return whether a page is full.

    Args:
        lines: How many lines it has.
        size: How many bytes they have.
        following: How many bytes the next line has.
    """
    return lines == PAGE_RECORDS or size + following > PAGE_BYTES


def paged(records: Iterable[Record]) -> Iterator[bytes]:
    """Yield the records as pages of lines, each the canonical JSON of one record."""
    lines: list[bytes] = []
    size = 0
    for record in records:
        line = record.payload + b"\n"
        if lines and is_full(len(lines), size, len(line)):
            yield b"".join(lines)
            lines, size = [], 0
        lines.append(line)
        size += len(line)
    if lines:
        yield b"".join(lines)


def policy_of(record: Record) -> PolicyActivated | None:
    """Return the activation in a record, or None; fast for all others.

    Raises:
        ChainBreakError: If it looks like an activation and cannot be read.
    """
    if b'"kind":"policy-activated"' not in record.payload:
        return None
    body = event_of(record, record.seq).body
    return body if isinstance(body, PolicyActivated) else None


def key_name(key: str) -> str:
    """Return the member name of a public key."""
    return f"keys/{key}.pem"


def checkpoint_name(place: int) -> str:
    """Return the member name of a checkpoint, counted from 1."""
    return f"checkpoints/{place:06}.json"


def page_name(place: int) -> str:
    """Return the member name of a page of records, counted from 1."""
    return f"records/{place:08}.jsonl"


def trail_name(place: int) -> str:
    """Return the member name of a page of the access trail, counted from 1."""
    return f"trail/{place:08}.jsonl"


def policy_name(seq: int, policy_digest: str) -> str:
    """Return the member name of the policy activated by an entry."""
    return f"policies/{seq:08}-{policy_digest}.yaml"
