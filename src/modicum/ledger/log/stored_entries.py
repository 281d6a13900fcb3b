"""The most frequent entries in fixed fields: those about a release.

Fields stand in the order of their names, which is that of canonical bytes.
"""

from __future__ import annotations

import msgspec

from modicum.core.canonical import Written

#: Writes them. The fields are sorted already, and only mappings are left to sort.
FIELDS = msgspec.json.Encoder(order="deterministic")


class StoredEvent(msgspec.Struct, gc=False):
    """An event, what happened in bytes."""

    actor: str
    at: str
    body: Written
    kind: str
    v: int


class StoredRecord(msgspec.Struct, gc=False):
    """A record."""

    event: StoredEvent
    prev: str
    seq: int


class StoredRelease(msgspec.Struct):
    """A release, its mechanisms in bytes."""

    content: str
    given: list[str] | None
    grid: str
    id: str
    labels: dict[str, str]
    mechanisms: list[Written]
    metadata: dict[str, str]


class StoredReserved(msgspec.Struct):
    """A release that was allowed."""

    approved_by: list[str]
    expires_at: str
    policy: str
    release: StoredRelease


class StoredDenied(msgspec.Struct):
    """A release that was denied."""

    blocking: list[str]
    policy: str
    release: StoredRelease


class StoredById(msgspec.Struct, gc=False):
    """A step of a release that stands."""

    release: str


class StoredPast(msgspec.Struct):
    """A release that happened before."""

    assumptions: list[str]
    policy: str
    release: StoredRelease


class StoredMechanism(msgspec.Struct):
    """A mechanism that names no neighbors."""

    attributes: list[str]
    description: Written
    groups: Written
    labels: Written
    losses: Written
    periods: Written
    where: Written
