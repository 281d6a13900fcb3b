"""The most frequent entries, those about a release, read and written quickly.

Fields stand in the order of their names, which is that of canonical bytes.

This only ever says what the strict reader says. Each level is read into fixed fields
and written again: where that gives the same bytes, they were canonical, with exactly
these fields. What many entries share is known by its bytes. Everything else, and
whatever is wrong, is left to the strict reader, which also finds the words for it.

This only ever writes what the strict writer writes. Its fields have fixed places, so
nothing is sorted, and one look tells whether every text is one. Everything else is
left to the strict writer, which also refuses what cannot be written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar, get_args

import msgspec

from modicum.accounting import GRID_VERSION, Loss
from modicum.core.canonical import Plain, Written, decode
from modicum.ledger.log.events import (
    EVENT_VERSION,
    NAMES,
    Body,
    Event,
    PastRecorded,
    ReleaseDenied,
    ReleaseExpired,
    ReleasePosted,
    ReleaseReserved,
    ReleaseStarted,
    event_name,
)
from modicum.ledger.log.field_codec import (
    read_digest,
    read_mapping,
    read_text_map,
    read_time,
)
from modicum.ledger.log.recorded_release import RecordedMechanism, RecordedRelease
from modicum.ledger.log.release_codec import (
    mechanism_from_plain,
    mechanism_written,
    read_losses,
    read_part,
)
from modicum.release import Part
from modicum.release.memo import Memo

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


T = TypeVar("T")
#: What is said of a release that stands: no more than its id.
Followed: TypeAlias = ReleaseStarted | ReleasePosted | ReleaseExpired
EntryBody: TypeAlias = ReleaseReserved | ReleaseDenied | PastRecorded | Followed


class Chained(NamedTuple):
    """What a record says.

    Attributes:
        seq: Its number.
        prev: The hash that it names.
        event: Its event.
    """

    seq: int
    prev: str
    event: Event


def read_release_entry(payload: bytes) -> Chained | None:
    """Return what a record of a release says; None if the strict reader must look."""
    try:
        record = _read(_RECORD, payload)
        stored = record.event
        read_body = _BODIES.get(stored.kind)
        if read_body is None or stored.v not in _VERSIONS:
            return None
        body = read_body(stored.body)
        event = Event(read_time(stored.at), stored.actor, body, stored.v)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return Chained(record.seq, record.prev, event)


#: Versions in which the entries about a release have the same fields.
_VERSIONS = range(2, EVENT_VERSION + 1)
_RECORD = msgspec.json.Decoder(StoredRecord)
_RESERVED = msgspec.json.Decoder(StoredReserved)
_DENIED = msgspec.json.Decoder(StoredDenied)
_PAST = msgspec.json.Decoder(StoredPast)
_BY_ID = msgspec.json.Decoder(StoredById)
_MECHANISM = msgspec.json.Decoder(StoredMechanism)


def _read(decoder: msgspec.json.Decoder[T], data: bytes | Written) -> T:
    """Return what bytes hold."""
    value = decoder.decode(data)
    if FIELDS.encode(value) != bytes(data):
        message = "not in canonical form"
        raise ValueError(message)
    return value


def _read_reserved(data: Written) -> ReleaseReserved:
    body = _read(_RESERVED, data)
    return ReleaseReserved(
        _read_release(body.release),
        read_digest(body.policy),
        read_time(body.expires_at),
        tuple(body.approved_by),
    )


def _read_denied(data: Written) -> ReleaseDenied:
    body = _read(_DENIED, data)
    release = _read_release(body.release)
    return ReleaseDenied(release, read_digest(body.policy), tuple(body.blocking))


def _read_past(data: Written) -> PastRecorded:
    body = _read(_PAST, data)
    release = _read_release(body.release)
    return PastRecorded(release, read_digest(body.policy), tuple(body.assumptions))


def _read_by_id(kind: type[Followed], data: Written) -> Followed:
    return kind(_read(_BY_ID, data).release)


_BODIES: Mapping[str, Callable[[Written], EntryBody]] = {
    NAMES[ReleaseReserved]: _read_reserved,
    NAMES[ReleaseDenied]: _read_denied,
    NAMES[PastRecorded]: _read_past,
    **{NAMES[one]: partial(_read_by_id, one) for one in get_args(Followed)},
}


def _read_release(stored: StoredRelease) -> RecordedRelease:
    if stored.grid != GRID_VERSION:
        message = "losses are on another grid"
        raise ValueError(message)
    return RecordedRelease(
        stored.id,
        read_digest(stored.content),
        stored.labels,
        stored.metadata,
        tuple([_MECHANISMS.of(bytes(one)) for one in stored.mechanisms]),
        None if stored.given is None else tuple(stored.given),
    )


def _mechanism(data: bytes) -> RecordedMechanism:
    try:
        stored = _read(_MECHANISM, data)
    except (msgspec.MsgspecError, ValueError):  # Or it names its neighbors.
        return mechanism_from_plain(decode(data))
    part = b'{"groups":%b,"periods":%b,"where":%b}' % (
        stored.groups,
        stored.periods,
        stored.where,
    )
    return RecordedMechanism(
        read_mapping(decode(bytes(stored.description))),
        tuple(stored.attributes),
        _LABELS.of(bytes(stored.labels)),
        _LOSSES.of(bytes(stored.losses)),
        _PARTS.of(part),
    )


class _Shared(Memo[bytes, T]):
    """What parts of entries say, by their canonical bytes.

    Args:
        read: Returns what bytes say; raises `ValueError` if they say it wrongly.
    """

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[bytes], T]) -> None:
        super().__init__(_SHARED_MAX)
        self._read = read

    def of(self, data: bytes) -> T:
        """Return what bytes say; what is wrong is never remembered."""
        known = self.get(data)
        if known is not None:
            return known
        value = self._read(data)
        return self.keep(data, value) if len(data) <= _BYTES_MAX else value


#: So many parts of one kind are remembered, none of them longer.
_SHARED_MAX = 1024
_BYTES_MAX = 10_000


def _decoded(read: Callable[[Plain], T], data: bytes) -> T:
    return read(decode(data))


_MECHANISMS: _Shared[RecordedMechanism] = _Shared(_mechanism)
_LABELS: _Shared[dict[str, str]] = _Shared(partial(_decoded, read_text_map))
_LOSSES: _Shared[dict[str, Loss]] = _Shared(partial(_decoded, read_losses))
_PARTS: _Shared[Part] = _Shared(partial(_decoded, read_part))


_TEXT = frozenset({str})
#: What is said of a release that stands: no more than its id.
_Step: TypeAlias = ReleaseStarted | ReleasePosted | ReleaseExpired


class _NotUsualError(Exception):
    """Something is not of the very type that its field has."""


def write_release_entry(event: Event, seq: int, previous: str) -> bytes | None:
    """Return the record of an event about a release; None if it is another one."""
    body = event.body
    form = _FORMS.get(type(body))
    if form is None or type(seq) is not int:
        return None
    try:
        _texts_only(event.actor, event.at, previous)
        fields = Written(FIELDS.encode(form(body)))
    except _NotUsualError:
        return None
    stored = StoredEvent(event.actor, event.at, fields, event_name(body), EVENT_VERSION)
    return FIELDS.encode(StoredRecord(stored, previous, seq))


def _write_reserved(body: ReleaseReserved) -> StoredReserved:
    approved_by = list(body.approved_by)
    _texts_only(body.expires_at, body.policy, *approved_by)
    release = _write_release(body.release)
    return StoredReserved(approved_by, body.expires_at, body.policy, release)


def _write_denied(body: ReleaseDenied) -> StoredDenied:
    blocking = list(body.blocking)
    _texts_only(body.policy, *blocking)
    return StoredDenied(blocking, body.policy, _write_release(body.release))


def _write_past(body: PastRecorded) -> StoredPast:
    assumptions = list(body.assumptions)
    _texts_only(body.policy, *assumptions)
    return StoredPast(assumptions, body.policy, _write_release(body.release))


def _write_by_id(body: _Step) -> StoredById:
    _texts_only(body.release)
    return StoredById(body.release)


_FORMS: Mapping[type[Body], Callable[[Any], msgspec.Struct]] = {
    ReleaseReserved: _write_reserved,
    ReleaseDenied: _write_denied,
    PastRecorded: _write_past,
    ReleaseStarted: _write_by_id,
    ReleasePosted: _write_by_id,
    ReleaseExpired: _write_by_id,
}


def _write_release(release: RecordedRelease) -> StoredRelease:
    given = None if release.given is None else list(release.given)
    labels, metadata = dict(release.labels), dict(release.metadata)
    _texts_only(
        release.content,
        release.id,
        *(given or ()),
        *labels,
        *labels.values(),
        *metadata,
        *metadata.values(),
    )
    return StoredRelease(
        content=release.content,
        given=given,
        grid=GRID_VERSION,
        id=release.id,
        labels=labels,
        mechanisms=[mechanism_written(one) for one in release.mechanisms],
        metadata=metadata,
    )


def _texts_only(*values: object) -> None:
    """Refuse what is not text, or more than text."""
    if not _TEXT.issuperset(map(type, values)):
        raise _NotUsualError
