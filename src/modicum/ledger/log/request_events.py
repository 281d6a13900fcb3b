"""What waits for people, as events. This page is a storage format: see ADR 0003.

They came with version 3. None of them spends anything or changes what is decided.
"""

from __future__ import annotations

from modicum.core.record import dataclass
from modicum.ledger.log.recorded_release import RecordedRelease


@dataclass(frozen=True, slots=True)
class ReleaseRequested:
    """Somebody asks for a release that people must agree to first.

    Attributes:
        release: The release, priced under the policy.
        policy: Digest of the policy that was active.
        reason: Why it is asked for.
    """

    release: RecordedRelease
    policy: str
    reason: str


@dataclass(frozen=True, slots=True)
class RequestWithdrawn:
    """Who asked for a release does not ask for it any more.

    Attributes:
        release: Its id.
        reason: Why.
    """

    release: str
    reason: str


@dataclass(frozen=True, slots=True)
class PolicyProposed:
    """Somebody asks for another policy. Its text is kept verbatim, to be read.

    Attributes:
        digest: SHA-256 of its canonical text.
        name: Its name.
        text: The file's text.
        reason: Why it is to take the place of the active one.
    """

    digest: str
    name: str
    text: str
    reason: str
