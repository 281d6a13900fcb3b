"""Releases as the ledger records them. This page is a storage format: see ADR 0003.

Most releases repeat another one on a different part of the data. So what does not
depend on the part is encoded once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from types import MappingProxyType

from msgspec import Struct

from modicum.accounting import INFINITE, Loss
from modicum.core.canonical import Plain, Written, encode
from modicum.release import (
    EVERYTHING,
    Part,
    PricedMechanism,
    PricedRelease,
    Relation,
    content_digest,
)
from modicum.release.model import mechanism_to_plain
from modicum.release.parts import part_written
from modicum.release.priced_release import StoredMechanism
from modicum.release.unit_losses import STATED, rests_on_claims


def losses_to_plain(losses: Mapping[str, Loss]) -> dict[str, Plain]:
    """Return losses by privacy unit as plain data."""
    return {
        unit: ["inf" if value == INFINITE else value for value in loss.coordinates]
        for unit, loss in losses.items()
    }


def stored_mechanism(one: PricedMechanism) -> StoredMechanism:
    """Return the stored form of a mechanism, independent of its part of the data."""
    known = one.elsewhere.get()
    return one.elsewhere.keep(_elsewhere(one)) if known is None else known


def written_mechanism(one: PricedMechanism) -> Written:
    """Return the bytes of a mechanism as the ledger stores it."""
    _, where, periods, groups = part_written(one.mechanism.part)
    known = stored_mechanism(one)
    return Written(
        b'{"attributes":%b,"description":%b,"groups":%b,%b,"periods":%b,"where":%b}'
        % (known.first, one.mechanism.encoded, groups, known.later, periods, where)
    )


def _elsewhere(one: PricedMechanism) -> StoredMechanism:
    attributes = tuple(sorted(one.mechanism.attributes))
    neighbors: dict[str, Relation] = {
        unit: relation
        for unit, relation in one.neighbors.items()
        if relation != "add-remove"
    }
    later: dict[str, Plain] = {
        "labels": dict(one.labels),
        "losses": losses_to_plain(one.losses),
    }
    if neighbors:  # Omitted by default, so that one mechanism has one encoding.
        later["neighbors"] = dict(neighbors)
    derived = tuple(
        sorted(
            unit
            for unit in one.losses
            if one.sources.get(unit) not in STATED
            or rests_on_claims(
                one.mechanism.kind, one.mechanism.contribution_bound.keys(), unit
            )
        )
    )
    first = encode(attributes) + b',"derived":' + encode(derived)
    last = encode(later)[1:-1]
    described = one.mechanism.pieces.whole()
    return StoredMechanism(
        attributes,
        MappingProxyType(dict(one.losses)),
        MappingProxyType(neighbors),
        first,
        last,
        derived,
        alike=b'{"attributes":%b,"description":%b,%b}' % (first, described, last),
    )


@dataclass(frozen=True, slots=True)
class RecordedMechanism:
    """A priced mechanism as stored in the ledger.

    Attributes:
        description: The complete description, as plain data.
        attributes: The attributes it reads.
        labels: A value for every label, defaults filled in.
        losses: Its loss by privacy unit.
        part: The part of the data it reads.
        neighbors: By unit, the neighboring relation that its loss is proven under,
            where that is not `add-remove`.
        derived: The units whose loss follows from that of another unit, at least in
            part, sorted; None if that is unknown, as before events of version 6.
        undivided: By unit, the part that is charged instead, where instances were not
            known to keep a value when it was recorded. It is not stored.
        some_of: If attributes were split since, the present names of each that it read:
            it reads one or more of these. Not stored; empty if it reads all.
        sources: By unit, the source of its loss; None if it was read from the log,
            which does not store it.
        written: Its stored bytes, once known.
        alike: Its bytes without the part, once known.
    """

    description: Mapping[str, Plain]
    attributes: tuple[str, ...]
    labels: Mapping[str, str]
    losses: Mapping[str, Loss]
    part: Part = EVERYTHING
    neighbors: Mapping[str, Relation] = field(default_factory=dict)
    derived: tuple[str, ...] | None = None
    undivided: Mapping[str, Part] = field(default_factory=dict)
    some_of: tuple[frozenset[str], ...] = ()
    sources: Mapping[str, str] | None = field(repr=False, compare=False, default=None)
    written: Written | None = field(init=False, repr=False, compare=False, default=None)
    alike: bytes | None = field(init=False, repr=False, compare=False, default=None)

    def keep_written(self, written: Written) -> Written:
        """Return the bytes that it is stored as, and remember them."""
        object.__setattr__(self, "written", written)
        return written

    def cache_common_bytes(self, alike: bytes) -> bytes:
        """Return the bytes of all but its part, and remember them."""
        object.__setattr__(self, "alike", alike)
        return alike

    def over(self, part: Part) -> RecordedMechanism:
        """Return it as if it read another part of the data, at the same loss."""
        moved = replace(self, part=part)
        if self.alike is not None:
            moved.cache_common_bytes(self.alike)
        return moved


class RecordedRelease(Struct, frozen=True):
    """A priced release as stored in the ledger.

    Attributes:
        id: Its id.
        content: SHA-256 of the description; distinguishes a retry from a conflict.
        labels: A value for every label, for the release as a whole.
        metadata: Open text.
        mechanisms: Its mechanisms, in order.
        given: The labels that were given, sorted; the others have their default. They
            allow recomputing the content. None in version 1, which did not record them.
    """

    id: str
    content: str
    labels: Mapping[str, str]
    metadata: Mapping[str, str]
    mechanisms: tuple[RecordedMechanism, ...]
    given: tuple[str, ...] | None = None


def difference(one: RecordedRelease, other: RecordedRelease) -> str:
    """Return how two descriptions of a release differ besides `periods`.

    Losses may differ: they follow from the description, and the periods in it.

    Args:
        one: A description.
        other: Another one.

    Returns:
        The first key that is not the same; empty if they differ in nothing else.
    """
    pairs = zip_longest(_fields(one), _fields(other), fillvalue=("mechanisms", None))
    return next((mine[0] for mine, yours in pairs if mine != yours), "")


def _fields(release: RecordedRelease) -> Iterator[tuple[str, object]]:
    """Yield all properties of a release but its periods and losses, by key."""
    yield "release", release.id
    yield "labels", (release.given, {**release.labels})
    yield from sorted(release.metadata.items())
    for one in release.mechanisms:
        for key, value in sorted(one.description.items()):
            if key == "parameters" and isinstance(value, dict):
                yield from sorted(value.items())  # These are the names that users know.
            if key not in ("where", "periods", "groups"):
                yield key, value
        yield "where", one.part.where
        yield "groups", one.part.groups
        yield "mechanisms", (one.attributes, {**one.labels}, {**one.neighbors})


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
    known = stored_mechanism(one)
    recorded = RecordedMechanism(
        description=mechanism_to_plain(one.mechanism),
        attributes=known.attributes,
        labels=dict(one.labels),
        losses=known.losses,
        part=one.mechanism.part,
        neighbors=known.neighbors,
        derived=known.derived,
        sources=one.sources,
    )
    recorded.keep_written(written_mechanism(one))
    recorded.cache_common_bytes(known.alike)
    return recorded
