"""Events for the tests of the ledger's state."""

from __future__ import annotations

from modicum.core.document import from_python
from modicum.ledger.log.events import (
    Body,
    ReleaseExpired,
    ReleasePosted,
    ReleaseReserved,
    ReleaseStarted,
    ReleaseVoided,
)
from modicum.ledger.log.recorded_release import RecordedRelease, record_release
from modicum.release import parse_release, price
from samples.small import NOON, compiled, counts

LATER = "2026-05-02T12:00:00.000000Z"
SOONER = "2026-05-02T11:59:59.999999Z"
__all__ = ["LATER", "NOON", "SOONER", "body_for", "recorded"]


def recorded(identifier: str = "r-1") -> RecordedRelease:
    """Return a small priced release."""
    vocabulary = compiled().policy.vocabulary
    node = from_python(counts(identifier))
    return record_release(price(parse_release(node, vocabulary), vocabulary))


def body_for(step: str, *, expires_at: str = LATER) -> Body:
    """Return the event that takes the release `r-1` one step."""
    match step:
        case "reserved":
            return ReleaseReserved(recorded(), "d" * 64, expires_at)
        case "started":
            return ReleaseStarted("r-1")
        case "published":
            return ReleasePosted("r-1")
        case "canceled":
            return ReleaseVoided("r-1", "why")
        case _:
            return ReleaseExpired("r-1")
