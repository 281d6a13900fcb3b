"""The log: its entries, remarks, disclosures and proofs."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from modicum.api.schema.shape import Amount, Digest, Input, Plain, Shape, Text


class Head(Shape, frozen=True, kw_only=True):
    """The last entry of the log.

    Attributes:
        seq: The number of its last entry; 0 if it is empty.
        head: The hash of that entry; 64 zeros if it is empty.
    """

    seq: int
    head: Digest


class Spender(Shape, frozen=True, kw_only=True):
    """What one release is charged under a rule.

    Attributes:
        release: Its id, or a phrase if the reader may not see it.
        coordinate: The measure.
        amount: Its loss on that.
        share: Its part of the sum, from 0 to 1; None if the sum is infinite.
        undated: Whether it is charged to every period, because it names no `periods`.
    """

    release: str
    coordinate: str
    amount: Amount
    share: float | None
    undated: bool


class LoggedEvent(Shape, frozen=True, kw_only=True):
    """An event.

    Attributes:
        at: When, in UTC.
        actor: The actor.
        kind: `policy-activated`, `release-reserved`, `release-started`,
            `release-posted`, `release-voided`, `release-expired`, `release-denied` or
            `past-recorded`, among others; of an escrow `data-registered`,
            `data-shredded`, `contract-proposed`, `contract-withdrawn`, `flow-begun`,
            `flow-withheld`, `flow-failed` or `flow-released`.
        blocking: For a denial: the rules that denied.
        unmatched: For a denial: the mechanisms that denied, as no rule over history
            limits them.
    """

    at: str
    actor: str
    kind: str
    blocking: tuple[str, ...]
    unmatched: tuple[str, ...] = ()


class Entry(LoggedEvent, frozen=True, kw_only=True):
    """A log entry.

    Attributes:
        seq: The number, from 1.
        what: The release id, or the name and digest of the policy.
        hash: The hash of the entry.
    """

    seq: int
    what: str
    hash: Digest


class StoredEntry(Entry, frozen=True, kw_only=True):
    """An entry as it is stored.

    Attributes:
        payload: The bytes that are hashed, as a text.
    """

    payload: str


class RemarkInput(Input, frozen=True, kw_only=True):
    """A remark and its subject.

    Attributes:
        remark: The remark.
        about: The id of a release or a disclosure; empty for the ledger as a whole.
    """

    remark: Text
    about: Annotated[str, Meta(max_length=200)] = ""


class Remark(Shape, frozen=True, kw_only=True):
    """A new remark; `about` is its subject, or null for the whole ledger.

    Attributes:
        entry: The number of the entry.
        about: The id of a release or a disclosure; None for the ledger as a whole.
    """

    entry: int
    about: str | None


class Disclosure(Shape, frozen=True, kw_only=True):
    """A recorded disclosure outside differential privacy.

    Attributes:
        disclosure: Its id.
        entry: The number of the entry.
        attributes: The disclosed attributes.
    """

    disclosure: str
    entry: int
    attributes: tuple[str, ...]


class AccessEntry(Shape, frozen=True, kw_only=True):
    """An event of the access trail.

    Attributes:
        seq: Its number.
        hash: SHA-256 of its stored bytes, which contain the hash of the event before.
        at: When, in UTC.
        kind: What it is about.
        outcome: Whether it was done or refused.
        who: The name of the identity; empty if it is not known.
        via: How it was recognized.
        action: The method and the route.
        client: The network address of a client that is not known by name.
        code: The code of the refusal.
        token: The id of the token.
        owner: The actor of the token.
        settings: The digest of the settings.
        parts: The names of the settings that changed.
        count: How many events were left out.
        of: The kind of the events that were left out.
    """

    seq: int
    hash: Digest
    at: str
    kind: str
    outcome: Literal["done", "refused"]
    who: str
    via: str
    action: str
    client: str
    code: str
    token: str
    owner: str
    settings: str
    parts: tuple[str, ...]
    count: int
    of: str


class AccessPage(Shape, frozen=True, kw_only=True):
    """Events of the access trail, oldest first.

    Attributes:
        events: The events.
        next: The cursor of the next page; None at the end.
        head: The number and the hash of the last event.
    """

    events: tuple[AccessEntry, ...]
    next: str | None
    head: Head


class EntryPage(Shape, frozen=True, kw_only=True):
    """Log entries, in the order that was asked for.

    Attributes:
        entries: The entries.
        next: The cursor of the next page; None at the end.
        ledger: The head of the log.
    """

    entries: tuple[Entry, ...]
    next: str | None
    ledger: Head


class Link(Shape, frozen=True, kw_only=True):
    """An entry as it is stored: `hash` is the SHA-256 of `payload`.

    Attributes:
        seq: The number of the entry.
        payload: The bytes that are hashed, as a text; they name the hash of the entry
            before.
        hash: The SHA-256 of `payload`.
    """

    seq: int
    payload: str
    hash: Digest


class Proof(Shape, frozen=True, kw_only=True):
    """A proof that the current ledger extends a noted head.

    Each payload contains the hash of the previous entry: the links from the noted hash
    lead to the head, or the log was changed.

    Attributes:
        first: The hash of the first entry: which ledger it is.
        stands: Whether the noted entry has the noted hash.
        links: The entries after it, oldest first.
        next: The cursor of the next page; None at the end.
        checkpoints: The signed checkpoints, each as stored in its file.
        ledger: The head of the log.
    """

    first: Digest
    stands: bool
    links: tuple[Link, ...]
    next: str | None
    checkpoints: tuple[Plain, ...]
    ledger: Head
