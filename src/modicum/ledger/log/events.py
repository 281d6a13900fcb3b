"""The events of the ledger. This page is a storage format: see ADR 0003.

Each kind of event is declared here, once: its name, its fields, and the properties that
readers of the log need. A field's type determines its encoding and its checks
(`codec`).

An event contains all that replay needs: a priced release has every unit's integer loss,
and its encoding names the grid. Decisions and balances use these integers and price
nothing; an audit prices descriptions again, to compare (`ledger.proof.repricing`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from modicum.core.errors import Code, ConflictError, Problem
from modicum.ledger.log.days import day_named, day_of
from modicum.ledger.log.escrow_events import EscrowBody
from modicum.ledger.log.event_kind import EventBody, event
from modicum.ledger.log.field_codec import (
    Digest,
    OptionalHash,
    OptionalSignature,
    Shares,
    Time,
)
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.release import Part

#: Version of the event schema. Older events stay readable; newer ones are refused.
EVENT_VERSION = 7

#: The subjects of votes.
Subject: TypeAlias = Literal["release", "policy", "plan", "contract", "data"]
#: Maximum length of a remark in a list, in characters.
_SHOWN = 60


@event("release-requested", 3, "nothing", claims=True)
class ReleaseRequested(EventBody, frozen=True):
    """A release that needs approval was requested.

    Attributes:
        release: The release, priced under the policy.
        policy: Digest of the policy that was active.
        reason: The requester's reason.
    """

    release: RecordedRelease
    policy: Digest
    reason: str


@event("request-withdrawn", 3, "nothing", claims=False)
class RequestWithdrawn(EventBody, frozen=True):
    """A requester withdrew a release.

    Attributes:
        release: Its id.
        reason: Why.
    """

    release: str
    reason: str


class PolicyText(Struct, frozen=True):
    """A policy, whose text is kept verbatim.

    Attributes:
        digest: SHA-256 of its canonical text.
        name: Its name.
        text: The file's text.
    """

    digest: Digest
    name: str
    text: str


@event("policy-proposed", 3, "nothing", claims=False, shown="{0.name} {0.digest:.12}")
class PolicyProposed(PolicyText, EventBody, frozen=True):
    """Another policy was proposed.

    Attributes:
        reason: Why it is to take the place of the active one.
    """

    reason: str


@event(
    "policy-activated",
    1,
    "decisions",
    claims=True,
    shown="{0.name} {0.digest:.12}",
    later={"reason": 2, "accepted": 2},
)
class PolicyActivated(PolicyText, EventBody, frozen=True):
    """A policy is active from here on.

    Attributes:
        reason: Why it replaces the one before; empty for the first.
        accepted: Ids of rules accepted although history exceeds them, in the policy's
            order; releases that match them stay denied. After them, since version 5,
            `attribute:NAME` of removed attributes that releases read: none of them is
            one of the new attributes. After these, since version 6, `unit:NAME` of
            redefined units, `departed:SCOPE` of rules that past releases leave, and
            `filter:NAME` of a filter that the policies before did not have.
    """

    reason: str = ""
    accepted: tuple[str, ...] = ()


@event("release-reserved", 1, "balances", claims=True, later={"approved_by": 2})
class ReleaseReserved(EventBody, frozen=True):
    """A release was allowed; its loss counts from here on.

    Attributes:
        release: The release.
        policy: Digest of the policy that it was decided by.
        expires_at: When the reservation expires.
        approved_by: The approvers, where the policy requires approval; sorted.
    """

    release: RecordedRelease
    policy: Digest
    expires_at: Time
    approved_by: tuple[str, ...] = ()


@event("release-started", 1, "nothing", claims=False, later={"lost_at": 7})
class ReleaseStarted(EventBody, frozen=True):
    """Rows may be read from here on; the loss is spent, whatever happens.

    Attributes:
        release: The id.
        lost_at: If it stands for a lost entry that was found, the time of that; else
            empty. Then nobody may read rows because of it.
    """

    release: str
    lost_at: str = ""


@event("release-posted", 1, "nothing", claims=False)
class ReleasePosted(EventBody, frozen=True):
    """The release was published."""

    release: str


@event("release-voided", 1, "balances", claims=False, later={"lost_at": 7})
class ReleaseVoided(EventBody, frozen=True):
    """The release was canceled before it started; its loss is released.

    Attributes:
        release: The id.
        reason: Why.
        lost_at: As of `ReleaseStarted`.
    """

    release: str
    reason: str
    lost_at: str = ""


@event("release-expired", 1, "balances", claims=False)
class ReleaseExpired(EventBody, frozen=True):
    """The reservation expired before the release started; its loss is released."""

    release: str


@event("release-denied", 1, "decisions", claims=True, later={"unmatched": 6})
class ReleaseDenied(EventBody, frozen=True):
    """A release was denied. It spends nothing, and its id may be submitted again.

    Attributes:
        release: The release.
        policy: Digest of the policy.
        blocking: The ids of the rules that deny it.
        unmatched: The names of the mechanisms that deny it, since no rule over history
            limits them. See ADR 0057.
    """

    release: RecordedRelease
    policy: Digest
    blocking: tuple[str, ...]
    unmatched: tuple[str, ...] = ()

    @property
    def causes(self) -> tuple[str, ...]:
        """What denied it, for people."""
        return causes(self.blocking, self.unmatched)


def causes(blocking: Iterable[str], unmatched: Iterable[str]) -> tuple[str, ...]:
    """Return what denies a release, for people: rules, then unmatched mechanisms."""
    return (*blocking, *(f"unmatched `{name}`" for name in unmatched))


@event(
    "past-recorded",
    1,
    "balances",
    claims=False,
    later={"assumptions": 2, "lost_at": 7, "lost_by": 7},
)
class PastRecorded(EventBody, frozen=True):
    """A past release; it is counted and cannot be denied.

    Attributes:
        release: The release.
        policy: Digest of the policy whose vocabulary describes it.
        assumptions: The assumptions about unknown properties, as text.
        lost_at: If it stands for a lost entry that was found, the time of that; else
            empty.
        lost_by: The actor of that entry, if it reserved the release; else empty.
    """

    release: RecordedRelease
    policy: Digest
    assumptions: tuple[str, ...] = ()
    lost_at: str = ""
    lost_by: str = ""


@event("past-redescribed", 5, "balances", claims=True)
class PastRedescribed(EventBody, frozen=True):
    """The record of a past release is corrected: the periods that it reads.

    From here on it is charged by its new description, in the vocabulary of the policy
    that it was recorded under. The actor approves it; another person requested it. See
    ADR 0041.

    Attributes:
        release: The release as it is described now.
        before: The release as it was described until now.
        policy: Digest of the active policy, which determines the approvers.
        reason: The reason of the approval.
        approved_by: The approvers, where the policy requires approval; sorted.
    """

    release: RecordedRelease
    before: RecordedRelease
    policy: Digest
    reason: str
    approved_by: tuple[str, ...] = ()


@event(
    "approval-given",
    2,
    "nothing",
    claims=True,
    later={"head": 3, "key": 3, "signature": 3},
)
class ApprovalGiven(EventBody, frozen=True):
    """A vote for or against something.

    Attributes:
        subject: The kind of subject.
        id: Its id: of a release, a plan, a contract or a data set; of a policy, its
            digest.
        content: SHA-256 of the content voted on; other contents are not approved.
        approves: Whether the actor of the event agrees.
        roles: The roles in which they do, as the policy of the day gives them.
        reason: Why.
        head: The hash of the last entry reviewed; empty in versions before 3.
        key: The raw Ed25519 public key of the signer, in hexadecimal; empty if
            unsigned.
        signature: The signature of its statement (see `approval_statement`), in
            hexadecimal; empty if unsigned.

    Raises:
        ValueError: If it has a key without a signature, or a signature without a key
            or without a head.
    """

    subject: Subject
    id: str
    content: Digest
    approves: bool
    roles: tuple[str, ...]
    reason: str
    head: OptionalHash = ""
    key: OptionalHash = ""
    signature: OptionalSignature = ""

    def __post_init__(self) -> None:
        if bool(self.key) != bool(self.signature) or (self.key and not self.head):
            message = "of the fields `head`, `key` and `signature` one is missing"
            raise ValueError(message)

    @property
    def summary(self) -> str:
        """The subject of the vote."""
        named = self.id[:12] if self.subject == "policy" else self.id
        return f"{self.subject} {named}: {'approved' if self.approves else 'rejected'}"

    @property
    def release_id(self) -> str:
        """The release that it is about; empty if it is about something else."""
        return self.id if self.subject == "release" else ""


@event("annotated", 2, "nothing", claims=False)
class Annotated(EventBody, frozen=True):
    """A remark for later readers of the log; it changes nothing.

    Attributes:
        about: The id of a release, or empty for the ledger as a whole.
        text: The remark.
    """

    about: str
    text: str

    @property
    def summary(self) -> str:
        """The subject of the remark, and its beginning."""
        text = self.text if len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]}…"
        return f"{self.about}: {text}" if self.about else text

    @property
    def release_id(self) -> str:
        """The subject of the remark; empty for the ledger as a whole."""
        return self.about


@event("disclosure-recorded", 2, "decisions", claims=False, shown="{0.id}")
class DisclosureRecorded(EventBody, frozen=True):
    """A disclosure outside differential privacy.

    No rule can count it; it qualifies every claim about the ledger from here on.

    Attributes:
        id: The id of the disclosure.
        what: A description of the disclosure.
        attributes: The disclosed attributes of the data.
        part: The disclosed part of the data.
        reason: Why it was disclosed.
        metadata: Open text: `released_on`, `evidence` …
    """

    id: str
    what: str
    attributes: tuple[str, ...]
    part: Part
    reason: str
    metadata: Mapping[str, str]


@event("round-opened", 2, "decisions", claims=True, shown="{0.id}")
class RoundOpened(EventBody, frozen=True):
    """A planning round was opened.

    Attributes:
        id: Its name.
        unlocked: By privacy unit, the fraction of every budget that may be spent from
            here on, in millionths; it never falls.
    """

    id: str
    unlocked: Shares


@event("group-activated", 2, "decisions", claims=True, shown="group {0.group}")
class GroupActivated(EventBody, frozen=True):
    """A user group may be read from here on.

    Attributes:
        group: Its number.
        round: The round it begins in.
    """

    group: int
    round: str


@event("group-retired", 2, "decisions", claims=True, shown="group {0.group}")
class GroupRetired(EventBody, frozen=True):
    """A user group is read no more, and never again.

    Attributes:
        group: Its number.
        round: The round it ends in.
    """

    group: int
    round: str


@event("plan-committed", 2, "decisions", claims=True, shown="{0.id}")
class PlanCommitted(EventBody, frozen=True):
    """A plan for many releases was committed; each is reserved by its own event.

    Attributes:
        id: Its id.
        round: The round it belongs to.
        content: SHA-256 of the plan.
        releases: The ids of the accepted releases.
    """

    id: str
    round: str
    content: Digest
    releases: tuple[str, ...]


# --- lost entries: nothing may be spent while a gap is open, see ADR 0080 ---

_LOST = "the entries up to {0.seq} {0.head:.12}"


class LostEntries(Struct, frozen=True):
    """The entries that a ledger has lost.

    Attributes:
        seq: The number of the last one that the witness knows of.
        head: Its hash.
    """

    seq: int
    head: Digest


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


#: Events of releases that count.
ReleaseBody: TypeAlias = (
    ReleaseReserved
    | ReleaseStarted
    | ReleasePosted
    | ReleaseVoided
    | ReleaseExpired
    | ReleaseDenied
    | PastRecorded
    | PastRedescribed
)
#: Events of votes, requests and policies.
GovernanceBody: TypeAlias = (
    PolicyActivated
    | ApprovalGiven
    | Annotated
    | DisclosureRecorded
    | ReleaseRequested
    | RequestWithdrawn
    | PolicyProposed
)
#: Events of rounds, user groups and plans.
PlanBody: TypeAlias = RoundOpened | GroupActivated | GroupRetired | PlanCommitted
#: Events that change balances.
ChargeBody: TypeAlias = (
    ReleaseReserved | ReleaseVoided | ReleaseExpired | PastRecorded | PastRedescribed
)
#: The type checker names the places that forget a kind.
Body: TypeAlias = ReleaseBody | GovernanceBody | PlanBody | EscrowBody | GapBody


class Event(Struct, frozen=True):
    """One entry of the log, before chaining.

    Attributes:
        at: When, in UTC, as `YYYY-MM-DDTHH:MM:SS.ffffffZ`.
        actor: The actor.
        body: The event's body.
        version: Version of the schema that it was written in.
    """

    at: str
    actor: str
    body: Body
    version: int = EVENT_VERSION


#: Every kind of event.
KINDS: tuple[type[Body], ...] = get_args(Body)


def day_of_release(body: ReleaseReserved | PastRecorded, at: str) -> int:
    """Return the day on which a release counts as made.

    That is the day of its event, or of the lost one that it stands for; for a release
    that was recorded as past, its stated release day, if there is a readable one.

    Raises:
        ConflictError: If the lost one has no readable time.
    """
    if isinstance(body, PastRecorded):
        at = body.lost_at or at
        if not body.lost_by:
            with suppress(ValueError):
                return day_named(body.release.metadata.get("released_on", ""))
    try:
        return day_of(at)
    except ValueError as error:
        message = f"the time of the lost entry about `{body.release.id}` is unreadable"
        raise ConflictError(Problem(Code.RELEASE_CONFLICT, message)) from error
