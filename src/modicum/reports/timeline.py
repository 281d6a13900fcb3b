"""The history of a log, for a reader. A pure fold of its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from modicum.api.local.backfill import NO_PERIODS
from modicum.ledger import Event, Record, RecordedRelease, event_of
from modicum.ledger.log.events import (
    Annotated,
    DisclosureRecorded,
    PastRecorded,
    PastRedescribed,
    PolicyActivated,
    ReleaseExpired,
    ReleasePosted,
    ReleaseRequested,
    ReleaseReserved,
    ReleaseStarted,
    ReleaseVoided,
)
from modicum.ledger.state.lifecycle import STATUS_AFTER
from modicum.reports.approval_cases import Cases
from modicum.reports.escrow_timeline import EscrowTimeline
from modicum.reports.log_position import Placed


@dataclass(slots=True)
class ReleaseTimeline:
    """A release that was allowed, or recorded as past.

    Attributes:
        id: Its id.
        recorded: The entry that recorded it.
        status: Its status.
        mechanisms: Each of its mechanisms, in brief.
        attributes: The attributes that it reads, sorted.
        metadata: Its open text.
        policy: Digest of the policy that it was decided by.
        approved_by: Approvals to it.
        assumptions: The assumptions about a past release.
        changed_at: When its status last changed.
        reason: The reason of a cancellation; empty otherwise.
        described_in: The entry that describes it: the one that recorded it, or the last
            correction.
    """

    id: str
    recorded: Placed
    status: str
    mechanisms: tuple[str, ...]
    attributes: tuple[str, ...]
    metadata: dict[str, str]
    policy: str
    approved_by: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    changed_at: str = ""
    reason: str = ""
    described_in: int = 0


@dataclass(frozen=True, slots=True)
class Correction:
    """A correction of a past release.

    Attributes:
        requested: The entry that requested it, and the requester.
        why: The requester's reason.
        entry: The entry that made it, and the last approver.
        body: The correction.
    """

    requested: Placed
    why: str
    entry: Placed
    body: PastRedescribed

    @property
    def approved_by(self) -> tuple[str, ...]:
        """Approvers: those that the policy requires, and the actor."""
        return tuple(dict.fromkeys((*self.body.approved_by, self.entry.actor)))


@dataclass
class Timeline:
    """The contents of a statement other than the status of rules.

    Attributes:
        activations: Every activation, oldest first.
        releases: Every release that was allowed or recorded, by id, oldest first.
        approval_cases: The requests for approval, and the votes.
        escrow: Data sets, contracts, and their flows.
        disclosures: The disclosures outside differential privacy, oldest first.
        corrections: Corrections of past releases, oldest first.
        remarks: Remarks, oldest first.
        kinds: How many events there are of each kind.
        last: The last entry; None for an empty log.
    """

    activations: list[tuple[Placed, PolicyActivated]] = field(default_factory=list)
    releases: dict[str, ReleaseTimeline] = field(default_factory=dict)
    approval_cases: Cases = field(default_factory=Cases)
    escrow: EscrowTimeline = field(default_factory=EscrowTimeline)
    disclosures: list[tuple[Placed, DisclosureRecorded]] = field(default_factory=list)
    corrections: list[Correction] = field(default_factory=list)
    remarks: list[tuple[Placed, Annotated]] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    last: Placed | None = None
    _requested: dict[str, tuple[Placed, str]] = field(default_factory=dict)

    @property
    def denials(self) -> int:
        """The number of denials."""
        return self.kinds["release-denied"]

    def passing(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield the records unchanged, and process each after the consumer has it."""
        for record in records:
            yield record  # An audit has checked it by the time it requests the next.
            self.add(record.seq, event_of(record, record.seq))

    def add(self, seq: int, event: Event) -> None:
        """Add one event."""
        entry = Placed(seq, event.at, event.actor, event.version)
        self.last = entry
        self.kinds[event.body.kind] += 1
        self.approval_cases.add(entry, event.body)
        self.escrow.add(entry, event.body)
        match event.body:
            case PolicyActivated() as body:
                self.activations.append((entry, body))
            case DisclosureRecorded() as body:
                self.disclosures.append((entry, body))
            case Annotated() as body:
                self.remarks.append((entry, body))
            case ReleaseReserved() | PastRecorded() as body:
                self._record(entry, body)
            case ReleaseRequested(release=release, reason=reason):
                self._requested[release.id] = entry, reason
            case PastRedescribed() as body:
                story = self.releases[body.release.id]
                story.described_in = seq
                if all(one.part.periods for one in body.release.mechanisms):
                    story.assumptions = tuple(
                        one for one in story.assumptions if NO_PERIODS not in one
                    )
                requested = self._requested[body.release.id]
                self.corrections.append(Correction(*requested, entry, body))
            case (
                ReleaseStarted() | ReleasePosted() | ReleaseVoided() | ReleaseExpired()
            ) as body:
                self._move(entry, body)
            case _:  # Denials are counted; rounds, groups and plans too.
                pass

    def _record(self, entry: Placed, body: ReleaseReserved | PastRecorded) -> None:
        release = body.release
        self.releases[release.id] = ReleaseTimeline(
            id=release.id,
            recorded=entry,
            status="recorded" if isinstance(body, PastRecorded) else "reserved",
            mechanisms=tuple(_mechanisms(release)),
            attributes=tuple(
                sorted({name for one in release.mechanisms for name in one.attributes})
            ),
            metadata=dict(release.metadata),
            policy=body.policy,
            approved_by=getattr(body, "approved_by", ()),
            assumptions=getattr(body, "assumptions", ()),
            changed_at=entry.at,
            described_in=entry.seq,
        )

    def _move(
        self,
        entry: Placed,
        body: ReleaseStarted | ReleasePosted | ReleaseVoided | ReleaseExpired,
    ) -> None:
        release = self.releases[body.release]
        release.status = STATUS_AFTER[type(body)].value
        release.changed_at = entry.at
        if isinstance(body, ReleaseVoided):
            release.reason = body.reason


def _mechanisms(release: RecordedRelease) -> Iterator[str]:
    for one in release.mechanisms:
        name = one.description.get("name", "?")
        yield f"{name}: {one.description.get('kind', '?')}"
