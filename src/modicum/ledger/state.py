"""The state: a pure fold of the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType

from modicum.core.canonical import Plain, digest, encode
from modicum.core.errors import Code, ConflictError, InputError, Mark, Problem
from modicum.ledger.chain import GENESIS
from modicum.ledger.events import (
    Body,
    Event,
    PastRecorded,
    PolicyActivated,
    RecordedRelease,
    ReleaseDenied,
    ReleaseExpired,
    ReleasePosted,
    ReleaseReserved,
    ReleaseStarted,
    ReleaseVoided,
    event_name,
)


class ReleaseStatus(Enum):
    """Where a release stands in its life."""

    RESERVED = "reserved"
    STARTED = "started"
    POSTED = "posted"
    VOIDED = "voided"
    EXPIRED = "expired"
    RECORDED = "recorded"

    @property
    def counts(self) -> bool:
        """Whether its loss is spent."""
        return self not in (ReleaseStatus.VOIDED, ReleaseStatus.EXPIRED)


@dataclass(frozen=True, slots=True)
class Standing:
    """A release that was once allowed, or recorded.

    Attributes:
        release: What it is and costs.
        status: Where it stands.
        expires_at: When its reservation runs out; empty for past releases.
        seq: The number of the event that brought it in.
    """

    release: RecordedRelease
    status: ReleaseStatus
    expires_at: str
    seq: int


@dataclass(frozen=True, slots=True)
class ActivePolicy:
    """The policy that holds, as it was activated."""

    digest: str
    name: str
    text: str
    seq: int


@dataclass
class State:
    """Everything that the log says, up to its head.

    The owner may mutate it by `apply`; a failed `apply` leaves it unchanged.

    Attributes:
        seq: Number of the last event; 0 for an empty log.
        head: Hash of the last record.
        policy: The active policy, if one was activated.
        releases: Releases that were allowed or recorded, by id, oldest first.
        denials: How many denials there are.
    """

    seq: int = 0
    head: str = GENESIS
    policy: ActivePolicy | None = None
    releases: dict[str, Standing] = field(default_factory=dict)
    denials: int = 0

    def apply(self, event: Event, record_hash: str) -> None:
        """Fold one event into the state.

        Raises:
            ConflictError: If the event contradicts what is already there.
        """
        self._apply(event.body, event.at, self.seq + 1)
        self.seq += 1
        self.head = record_hash

    def _apply(self, body: Body, at: str, seq: int) -> None:
        match body:
            case PolicyActivated():
                self.policy = ActivePolicy(body.digest, body.name, body.text, seq)
            case ReleaseReserved():
                self._bring_in(
                    Standing(body.release, ReleaseStatus.RESERVED, body.expires_at, seq)
                )
            case PastRecorded():
                self._bring_in(Standing(body.release, ReleaseStatus.RECORDED, "", seq))
            case ReleaseDenied():
                self.denials += 1
            case (
                ReleaseStarted() | ReleasePosted() | ReleaseVoided() | ReleaseExpired()
            ):
                standing = self.releases.get(body.release)
                if standing is None:
                    raise unknown_release(body.release)
                status = next_status(standing, body, at)
                self.releases[body.release] = replace(standing, status=status)

    def _bring_in(self, standing: Standing) -> None:
        if standing.release.id in self.releases:
            raise id_taken(self.releases[standing.release.id])
        self.releases[standing.release.id] = standing

    def counted(self) -> list[RecordedRelease]:
        """Return the releases whose loss is spent, in the order they came in."""
        return [one.release for one in self.releases.values() if one.status.counts]

    def due(self, now: str) -> list[str]:
        """Return the reservations that have run out at `now`, oldest first."""
        return [
            identifier
            for identifier, one in self.releases.items()
            if one.status is ReleaseStatus.RESERVED and one.expires_at <= now
        ]

    def digest(self) -> str:
        """Return a SHA-256 over the whole state; equal logs give equal digests."""
        releases: dict[str, Plain] = {
            identifier: [one.status.value, one.seq, one.release.content]
            for identifier, one in self.releases.items()
        }
        plain: Plain = {
            "seq": self.seq,
            "head": self.head,
            "policy": self.policy.digest if self.policy else None,
            "releases": releases,
            "denials": self.denials,
        }
        return digest(encode(plain))


_STEPS: Mapping[tuple[ReleaseStatus, type[Body]], ReleaseStatus] = MappingProxyType(
    {
        (ReleaseStatus.RESERVED, ReleaseStarted): ReleaseStatus.STARTED,
        (ReleaseStatus.RESERVED, ReleaseVoided): ReleaseStatus.VOIDED,
        (ReleaseStatus.RESERVED, ReleaseExpired): ReleaseStatus.EXPIRED,
        (ReleaseStatus.STARTED, ReleasePosted): ReleaseStatus.POSTED,
    }
)


def next_status(standing: Standing, body: Body, at: str) -> ReleaseStatus:
    """Return where an event takes a release.

    Args:
        standing: Where the release stands.
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
    step = event_name(body).removeprefix("release-")
    remedy = ""
    if standing.status in (ReleaseStatus.STARTED, ReleaseStatus.POSTED):
        remedy = "once started, a release stays spent: rows may have been read"
    if standing.status is ReleaseStatus.RESERVED:
        remedy = "start it first; starting is what makes reading rows accounted for"
    raise ConflictError(
        Problem(
            Code.RELEASE_STATE,
            f"release `{standing.release.id}` is {standing.status.value} and cannot be"
            f" {step}",
            help=remedy,
        )
    )


def unknown_release(identifier: str) -> InputError:
    """Return the error for a release id that the ledger does not know."""
    return InputError(
        Problem(
            Code.RELEASE_UNKNOWN,
            f"the ledger knows no release `{identifier[:200]}`",
            help="list them with  modicum ledger list",
        )
    )


def id_taken(standing: Standing, mark: Mark | None = None) -> ConflictError:
    """Return the error for an id that stands already; `mark` is where it was given."""
    return ConflictError(
        Problem(
            Code.RELEASE_CONFLICT,
            f"release `{standing.release.id}` stands already with other contents"
            f" ({standing.status.value}, entry {standing.seq})",
            mark,
            notes=("the same id with the same contents is one release",),
            help="give the new release an id of its own",
        )
    )
