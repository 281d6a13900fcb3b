"""Releases as the ledger records them. This page is a storage format: see ADR 0003."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from modicum.accounting import Loss
from modicum.core.canonical import Plain, Written
from modicum.ledger.log.written_mechanisms import elsewhere, written_mechanism
from modicum.release import (
    EVERYTHING,
    Part,
    PricedMechanism,
    PricedRelease,
    Relation,
    content_digest,
)
from modicum.release.memory import Once
from modicum.release.model import mechanism_to_plain


@dataclass(frozen=True, slots=True)
class RecordedMechanism:
    """A priced mechanism as the ledger keeps it.

    Attributes:
        description: Everything said about it, as plain data.
        attributes: The attributes it reads.
        labels: A value for every label, defaults filled in.
        losses: Its loss by privacy unit.
        part: The part of the data it reads.
        neighbors: By unit, the neighboring relation that its loss is proven under,
            where that is not `add-remove`.
        written: Remembers the bytes that it is stored as.
    """

    description: Mapping[str, Plain]
    attributes: tuple[str, ...]
    labels: Mapping[str, str]
    losses: Mapping[str, Loss]
    part: Part = EVERYTHING
    neighbors: Mapping[str, Relation] = field(default_factory=dict)
    written: Once[Written] = field(
        init=False, repr=False, compare=False, default_factory=Once
    )


@dataclass(frozen=True, slots=True)
class RecordedRelease:
    """A priced release as the ledger keeps it.

    Attributes:
        id: Its id.
        content: SHA-256 of what was described; tells a retry from a conflict.
        labels: A value for every label, for the release as a whole.
        metadata: Open text.
        mechanisms: Its mechanisms, in order.
        given: The labels that were given, sorted; the others have their default. With
            them the content can be worked out anew. None where version 1 did not say.
    """

    id: str
    content: str
    labels: Mapping[str, str]
    metadata: Mapping[str, str]
    mechanisms: tuple[RecordedMechanism, ...]
    given: tuple[str, ...] | None = None


def record_release(priced: PricedRelease) -> RecordedRelease:
    """Return a priced release in the form the ledger keeps."""
    return RecordedRelease(
        id=priced.release.id,
        content=content_digest(priced.release),
        labels=dict(priced.labels),
        metadata=dict(priced.release.metadata),
        mechanisms=tuple([_record_mechanism(one) for one in priced.mechanisms]),
        given=tuple(sorted(priced.release.labels)),
    )


def _record_mechanism(one: PricedMechanism) -> RecordedMechanism:
    attributes, neighbors, _ = elsewhere(one)
    recorded = RecordedMechanism(
        description=mechanism_to_plain(one.mechanism),
        attributes=attributes,
        labels=dict(one.labels),
        losses=dict(one.losses),
        part=one.mechanism.part,
        neighbors=dict(neighbors),
    )
    recorded.written.keep(written_mechanism(one))
    return recorded
