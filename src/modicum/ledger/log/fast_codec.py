"""Reading the most frequent entries quickly: those about a release.

This only ever says what the strict reader says. Each level is read into fixed fields
and written again: where that gives the same bytes, they were canonical, with exactly
these fields. What many entries share is known by its bytes. Everything else, and
whatever is wrong, is left to the strict reader, which also finds the words for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar, get_args

import msgspec

from modicum.accounting import GRID_VERSION, Loss
from modicum.core.canonical import Plain, Written, decode
from modicum.ledger.log.events import (
    EVENT_VERSION,
    NAMES,
    Event,
    PastRecorded,
    ReleaseDenied,
    ReleaseExpired,
    ReleasePosted,
    ReleaseReserved,
    ReleaseStarted,
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
    read_losses,
    read_part,
)
from modicum.ledger.log.stored_entries import (
    FIELDS,
    StoredById,
    StoredDenied,
    StoredMechanism,
    StoredPast,
    StoredRecord,
    StoredRelease,
    StoredReserved,
)
from modicum.release import Part
from modicum.release.memo import Memory

T = TypeVar("T")
#: What is said of a release that stands: no more than its id.
Followed: TypeAlias = ReleaseStarted | ReleasePosted | ReleaseExpired
Body: TypeAlias = ReleaseReserved | ReleaseDenied | PastRecorded | Followed


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
    """Return what a record of a release says; None if the strict reader must look.

    Args:
        payload: The record's bytes.
    """
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
    """Return what bytes hold.

    Raises:
        ValueError: If they are not what is written for it.
        msgspec.MsgspecError: If they hold something else.
    """
    value = decoder.decode(data)
    if FIELDS.encode(value) != bytes(data):
        message = "not in canonical form"
        raise ValueError(message)
    return value


def _reserved(data: Written) -> ReleaseReserved:
    body = _read(_RESERVED, data)
    return ReleaseReserved(
        _release(body.release),
        read_digest(body.policy),
        read_time(body.expires_at),
        tuple(body.approved_by),
    )


def _denied(data: Written) -> ReleaseDenied:
    body = _read(_DENIED, data)
    release = _release(body.release)
    return ReleaseDenied(release, read_digest(body.policy), tuple(body.blocking))


def _past(data: Written) -> PastRecorded:
    body = _read(_PAST, data)
    release = _release(body.release)
    return PastRecorded(release, read_digest(body.policy), tuple(body.assumptions))


def _by_id(kind: type[Followed], data: Written) -> Followed:
    return kind(_read(_BY_ID, data).release)


_BODIES: Mapping[str, Callable[[Written], Body]] = {
    NAMES[ReleaseReserved]: _reserved,
    NAMES[ReleaseDenied]: _denied,
    NAMES[PastRecorded]: _past,
    **{NAMES[one]: partial(_by_id, one) for one in get_args(Followed)},
}


def _release(stored: StoredRelease) -> RecordedRelease:
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


class _Shared(Memory[bytes, T]):
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
