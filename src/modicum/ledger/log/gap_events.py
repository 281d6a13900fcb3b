"""The events of lost entries. This page is a storage format, as `events` is.

A ledger that was restored from an older copy lacks entries that its witness knows of.
While they are neither brought back nor given up by two people, nothing may be spent.
See ADR 0080.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from modicum.ledger.log.event_kind import EventBody, event
from modicum.ledger.log.field_codec import Digest

_LOST = "the entries after {0.common}, up to {0.seq} {0.head:.12}"


class LostEntries(Struct, frozen=True):
    """The entries that a ledger has lost.

    Attributes:
        seq: The number of the last one that the witness knows of.
        head: Its hash.
        common: The number of the last entry that this log is believed to share with the
            one that was lost.
    """

    seq: int
    head: Digest
    common: int


@event("resume-requested", 7, "nothing", claims=False, shown=_LOST)
class ResumeRequested(LostEntries, EventBody, frozen=True):
    """Somebody asked to go on without entries that are lost.

    Attributes:
        reason: Why they are lost.
    """

    reason: str


@event("ledger-resumed", 7, "decisions", claims=True, shown=_LOST)
class LedgerResumed(LostEntries, EventBody, frozen=True):
    """Another person agreed: the ledger goes on, and every limit counts as full.

    Attributes:
        reason: Why.
    """

    reason: str


@event("lost-entries-found", 7, "nothing", claims=False, shown="of {0.gap:.12}")
class LostEntriesFound(EventBody, frozen=True):
    """Some of the lost entries, verbatim and in order.

    Attributes:
        gap: The hash of the last lost entry.
        entries: The canonical text of each.
    """

    gap: Digest
    entries: tuple[str, ...]


@event("loss-acceptance-requested", 7, "nothing", claims=False, shown="{0.gap:.12}")
class LossAcceptanceRequested(EventBody, frozen=True):
    """Somebody asked to go on spending although lost entries were not found.

    Attributes:
        gap: The hash of the last lost entry.
        reason: Why nothing is understated, or why that is accepted.
    """

    gap: Digest
    reason: str


@event("gap-closed", 7, "decisions", claims=True, shown="{0.gap:.12}")
class GapClosed(EventBody, frozen=True):
    """Limits are as they were: all losses were found, or another person accepted.

    Attributes:
        gap: The hash of the last lost entry.
        accepted: Whether two people accepted that losses may be missing.
        reason: Why they did; empty if all were found.
    """

    gap: Digest
    accepted: bool
    reason: str


#: The events of lost entries.
GapBody: TypeAlias = (
    ResumeRequested
    | LedgerResumed
    | LostEntriesFound
    | LossAcceptanceRequested
    | GapClosed
)
