"""The life of a release: reserved, started, published; or canceled before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

import msgspec

from modicum.core.errors import Code, ConflictError, InputError, Mark, Problem
from modicum.ledger.log.events import (
    Body,
    ReleaseExpired,
    ReleasePosted,
    ReleaseStarted,
    ReleaseVoided,
)


class ReleaseStatus(Enum):
    """The status of a release."""

    RESERVED = "reserved"
    STARTED = "started"
    PUBLISHED = "published"
    CANCELED = "canceled"
    EXPIRED = "expired"
    RECORDED = "recorded"

    @property
    def counts(self) -> bool:
        """Whether its loss is spent."""
        return self not in (ReleaseStatus.CANCELED, ReleaseStatus.EXPIRED)


class Standing(msgspec.Struct, frozen=True):
    """A release that was allowed or recorded. Its loss is in its entry.

    Attributes:
        id: Its id.
        content: SHA-256 of the description.
        status: Its status.
        expires_at: When its reservation expires; empty unless it is reserved.
        seq: The number of the entry that recorded it.
        day: The day that it counts as made on, as an ordinal.
    """

    id: str
    content: str
    status: ReleaseStatus
    expires_at: str
    seq: int
    day: int


_STEPS: Mapping[tuple[ReleaseStatus, type[Body]], ReleaseStatus] = MappingProxyType(
    {
        (ReleaseStatus.RESERVED, ReleaseStarted): ReleaseStatus.STARTED,
        (ReleaseStatus.RESERVED, ReleaseVoided): ReleaseStatus.CANCELED,
        (ReleaseStatus.RESERVED, ReleaseExpired): ReleaseStatus.EXPIRED,
        (ReleaseStatus.STARTED, ReleasePosted): ReleaseStatus.PUBLISHED,
    }
)


#: The resulting status of each event.
STATUS_AFTER: Mapping[type[Body], ReleaseStatus] = MappingProxyType(
    {event: status for (_, event), status in _STEPS.items()}
)


def next_status(standing: Standing, body: Body, at: str) -> ReleaseStatus:
    """Return the status of a release after an event.

    Args:
        standing: The status before.
        body: The event.
        at: When it happens. A reservation expires when its time is over and not
            before, and from then on it can only expire.

    Raises:
        ConflictError: If the release's life does not allow the event.
    """
    status = _STEPS.get((standing.status, type(body)))
    over = standing.status is ReleaseStatus.RESERVED and standing.expires_at <= at
    if status is not None and over == isinstance(body, ReleaseExpired):
        return status
    step = STATUS_AFTER[type(body)].value
    raise ConflictError(
        Problem(
            Code.RELEASE_STATE,
            f"release `{standing.id}` is {standing.status.value} and cannot be {step}",
            help=_REMEDIES[standing.status],
        )
    )


_ANEW = (
    "its reservation was released, and its id cannot be reused: submit it under a"
    " new id"
)
#: The possible actions on a release in the wrong status, by status.
_REMEDIES: Mapping[ReleaseStatus, str] = MappingProxyType(
    {
        ReleaseStatus.RESERVED: "start it first; starting a release accounts for"
        " reading rows",
        ReleaseStatus.STARTED: "it stays spent: rows may have been read; if your own"
        " start got no response and nobody else runs it, continue, and publish it at"
        " the end",
        ReleaseStatus.PUBLISHED: "it is published and stays spent: nothing is left to"
        " do",
        ReleaseStatus.CANCELED: _ANEW,
        ReleaseStatus.EXPIRED: _ANEW,
        ReleaseStatus.RECORDED: "it is a past release and is counted: nothing is left"
        " to do",
    }
)


def unknown_release(identifier: str) -> InputError:
    """Return the error for a release id that the ledger does not know."""
    return InputError(
        Problem(
            Code.RELEASE_UNKNOWN,
            f"unknown release `{identifier[:200]}`",
            help="list them with  modicum release list",
        )
    )


def not_correctable(standing: Standing) -> ConflictError:
    """Return the error for correcting a release that was not recorded as past."""
    return ConflictError(
        Problem(
            Code.NOT_CORRECTABLE,
            f"release `{standing.id}` is {standing.status.value} (entry"
            f" {standing.seq}): only past releases can be corrected",
            notes=("decisions are final",),
        )
    )


def id_taken(standing: Standing, mark: Mark | None = None) -> ConflictError:
    """Return the error for an id in use; `mark` is its position."""
    remedy = "give the new release a different id"
    if standing.status.counts:
        remedy = (
            "it stays counted, and a new id would count it again: use one for"
            " another release only"
        )
    if standing.status is ReleaseStatus.RECORDED:
        remedy += "; if only its `periods` differ:  modicum release redescribe FILE"
    return ConflictError(
        Problem(
            Code.RELEASE_CONFLICT,
            f"release `{standing.id}` already exists with other contents"
            f" ({standing.status.value}, entry {standing.seq})",
            mark,
            notes=("the same id with the same contents is one release",),
            help=remedy,
        )
    )
