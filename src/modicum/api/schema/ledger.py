"""The log: its entries, remarks, disclosures and proofs."""

from __future__ import annotations

from modicum.api.schema.common import Head
from modicum.api.schema.shape import Digest, Plain, Shape


class Entry(Shape, frozen=True, kw_only=True):
    """An entry of the log."""

    seq: int
    at: str
    actor: str
    kind: str
    what: str
    blocking: tuple[str, ...]
    hash: Digest


class StoredEntry(Entry, frozen=True, kw_only=True):
    """An entry as it is stored."""

    payload: str


class Remark(Shape, frozen=True, kw_only=True):
    """A remark that was added; `about` what, or null for the ledger as a whole."""

    entry: int
    about: str | None


class Disclosure(Shape, frozen=True, kw_only=True):
    """What was disclosed outside differential privacy, as it was recorded."""

    disclosure: str
    entry: int
    attributes: tuple[str, ...]


class EntryPage(Shape, frozen=True, kw_only=True):
    """Entries, oldest first."""

    entries: tuple[Entry, ...]
    next: str | None
    ledger: Head


class Link(Shape, frozen=True, kw_only=True):
    """An entry as it is stored: `hash` is the SHA-256 of `payload`."""

    seq: int
    payload: str
    hash: Digest


class Proof(Shape, frozen=True, kw_only=True):
    """What connects a head that was noted to the ledger as it is.

    Each payload names the hash of the entry before: whoever follows the links from the
    hash that they noted arrives at the head, or the log was changed.
    """

    first: Digest
    stands: bool
    links: tuple[Link, ...]
    next: str | None
    checkpoints: tuple[Plain, ...]
    ledger: Head
