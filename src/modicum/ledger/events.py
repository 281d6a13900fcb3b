"""What the ledger remembers. This page is a storage format: see ADR 0003.

Each event has a closed set of fields, one canonical encoding (`event_format`), and
carries all that replay needs: a priced release holds every unit's integer loss, and
its encoding names the grid, so nothing is ever priced again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from modicum.accounting import Loss
from modicum.core.canonical import Plain
from modicum.release import PricedRelease, Relation, content_digest
from modicum.release.model import mechanism_to_plain

#: Version of the event schema; a ledger of another version is refused.
EVENT_VERSION = 1


@dataclass(frozen=True, slots=True)
class PolicyActivated:
    """A policy holds from here on. Its text is kept verbatim."""

    digest: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class RecordedMechanism:
    """A priced mechanism as the ledger keeps it.

    Attributes:
        description: Everything said about it, as plain data.
        attributes: The attributes it reads.
        labels: A value for every label, defaults filled in.
        losses: Its loss by privacy unit.
        where: The part of the population it reads; None for everybody.
        periods: The periods it reads, by time unit; None for all of them.
        groups: The user groups it reads; None for all of them.
        sampling: The Poisson draw it reads; None if it reads every row.
        neighbors: By unit, the neighboring relation that its loss is proven under,
            where that is not `add-remove`.
    """

    description: Mapping[str, Plain]
    attributes: tuple[str, ...]
    labels: Mapping[str, str]
    losses: Mapping[str, Loss]
    where: None = None
    periods: None = None
    groups: None = None
    sampling: None = None
    neighbors: Mapping[str, Relation] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordedRelease:
    """A priced release as the ledger keeps it.

    Attributes:
        id: Its id.
        content: SHA-256 of what was described; tells a retry from a conflict.
        labels: A value for every label, for the release as a whole.
        metadata: Open text.
        mechanisms: Its mechanisms, in order.
    """

    id: str
    content: str
    labels: Mapping[str, str]
    metadata: Mapping[str, str]
    mechanisms: tuple[RecordedMechanism, ...]


@dataclass(frozen=True, slots=True)
class ReleaseReserved:
    """A release was allowed; its loss counts from here on."""

    release: RecordedRelease
    policy: str
    expires_at: str


@dataclass(frozen=True, slots=True)
class ReleaseStarted:
    """Rows may be read from here on; whatever happens now, it is spent."""

    release: str


@dataclass(frozen=True, slots=True)
class ReleasePosted:
    """The release is out."""

    release: str


@dataclass(frozen=True, slots=True)
class ReleaseVoided:
    """The release was given up before it started; its loss is taken back."""

    release: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReleaseExpired:
    """The reservation ran out before it started; its loss is taken back."""

    release: str


@dataclass(frozen=True, slots=True)
class ReleaseDenied:
    """A release was denied. It spends nothing, and its id may be tried again."""

    release: RecordedRelease
    policy: str
    blocking: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PastRecorded:
    """A release that happened before; it is counted and cannot be denied."""

    release: RecordedRelease
    policy: str


Body: TypeAlias = (
    PolicyActivated
    | ReleaseReserved
    | ReleaseStarted
    | ReleasePosted
    | ReleaseVoided
    | ReleaseExpired
    | ReleaseDenied
    | PastRecorded
)


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of the log, before it is chained.

    Attributes:
        at: When, in UTC, as `YYYY-MM-DDTHH:MM:SS.ffffffZ`.
        actor: Who asked.
        body: What happened.
    """

    at: str
    actor: str
    body: Body


_NAMES: Mapping[type[Body], str] = {
    PolicyActivated: "policy-activated",
    ReleaseReserved: "release-reserved",
    ReleaseStarted: "release-started",
    ReleasePosted: "release-posted",
    ReleaseVoided: "release-voided",
    ReleaseExpired: "release-expired",
    ReleaseDenied: "release-denied",
    PastRecorded: "past-recorded",
}


def event_name(body: Body) -> str:
    """Return the name of an event's kind, as it is stored."""
    return _NAMES[type(body)]


def record_release(priced: PricedRelease) -> RecordedRelease:
    """Return a priced release in the form the ledger keeps."""
    return RecordedRelease(
        id=priced.release.id,
        content=content_digest(priced.release),
        labels=dict(priced.labels),
        metadata=dict(priced.release.metadata),
        mechanisms=tuple(
            RecordedMechanism(
                description=mechanism_to_plain(one.mechanism),
                attributes=tuple(sorted(one.mechanism.attributes)),
                labels=dict(one.labels),
                losses=dict(one.losses),
                neighbors={
                    unit: relation
                    for unit, relation in one.neighbors.items()
                    if relation != "add-remove"
                },
            )
            for one in priced.mechanisms
        ),
    )
