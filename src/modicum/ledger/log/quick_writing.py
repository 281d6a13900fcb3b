"""Writing the most frequent entries quickly: those about a release.

This only ever writes what the strict writer writes. Its fields have fixed places, so
nothing is sorted, and one look tells whether every text is one. Everything else is
left to the strict writer, which also refuses what cannot be written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from modicum.accounting import GRID_VERSION
from modicum.core.canonical import Written
from modicum.ledger.log.events import (
    EVENT_VERSION,
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
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.ledger.log.release_codec import mechanism_written
from modicum.ledger.log.stored_entries import (
    FIELDS,
    StoredById,
    StoredDenied,
    StoredEvent,
    StoredPast,
    StoredRecord,
    StoredRelease,
    StoredReserved,
)

_TEXT = frozenset({str})
#: What is said of a release that stands: no more than its id.
_Step: TypeAlias = ReleaseStarted | ReleasePosted | ReleaseExpired


class _NotUsualError(Exception):
    """Something is not of the very type that its field has."""


def write_release_entry(event: Event, seq: int, previous: str) -> bytes | None:
    """Return the record of an event about a release; None if it is another one.

    Args:
        event: The event.
        seq: The number of the record.
        previous: The hash of the record before.
    """
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


def _reserved(body: ReleaseReserved) -> StoredReserved:
    approved_by = list(body.approved_by)
    _texts_only(body.expires_at, body.policy, *approved_by)
    release = _release(body.release)
    return StoredReserved(approved_by, body.expires_at, body.policy, release)


def _denied(body: ReleaseDenied) -> StoredDenied:
    blocking = list(body.blocking)
    _texts_only(body.policy, *blocking)
    return StoredDenied(blocking, body.policy, _release(body.release))


def _past(body: PastRecorded) -> StoredPast:
    assumptions = list(body.assumptions)
    _texts_only(body.policy, *assumptions)
    return StoredPast(assumptions, body.policy, _release(body.release))


def _by_id(body: _Step) -> StoredById:
    _texts_only(body.release)
    return StoredById(body.release)


_FORMS: Mapping[type[Body], Callable[[Any], msgspec.Struct]] = {
    ReleaseReserved: _reserved,
    ReleaseDenied: _denied,
    PastRecorded: _past,
    ReleaseStarted: _by_id,
    ReleasePosted: _by_id,
    ReleaseExpired: _by_id,
}


def _release(release: RecordedRelease) -> StoredRelease:
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
    """Refuse what is not text, or more than text.

    Raises:
        _NotUsualError: If there is anything like that.
    """
    if not _TEXT.issuperset(map(type, values)):
        raise _NotUsualError
