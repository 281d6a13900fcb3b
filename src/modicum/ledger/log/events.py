"""What the ledger remembers. This page is a storage format: see ADR 0003.

Each kind of event is declared here, once: its name, its fields, and what readers of the
log must know of it. A field's type decides how it is stored and checked (`codec`).

An event carries all that replay needs: a priced release holds every unit's integer
loss, and its encoding names the grid. Decisions and balances go by these integers and
price nothing; an audit prices descriptions again, to compare
(`ledger.proof.repricing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

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

#: Version of the event schema. Older events are read for good; newer ones are refused.
EVENT_VERSION = 5

#: What people speak about.
Subject: TypeAlias = Literal["release", "policy", "plan", "contract", "data"]
#: A remark is cut to so many characters in a list.
_SHOWN = 60


@event("release-requested", 3, "nothing", claims=True)
class ReleaseRequested(EventBody, frozen=True):
    """Somebody asks for a release that people must agree to first.

    Attributes:
        release: The release, priced under the policy.
        policy: Digest of the policy that was active.
        reason: Why it is asked for.
    """

    release: RecordedRelease
    policy: Digest
    reason: str


@event("request-withdrawn", 3, "nothing", claims=False)
class RequestWithdrawn(EventBody, frozen=True):
    """Who asked for a release does not ask for it any more.

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
    """Somebody asks for another policy.

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
    """A policy holds from here on.

    Attributes:
        reason: Why it replaces the one before; empty for the first.
        accepted: Ids of rules that history exceeds, accepted all the same, in the
            policy's order; what falls under them stays denied. After them, since
            version 5, `attribute:NAME` of attributes that releases read and that are
            gone: none of those that are new is one of them.
    """

    reason: str = ""
    accepted: tuple[str, ...] = ()


@event("release-reserved", 1, "balances", claims=True, later={"approved_by": 2})
class ReleaseReserved(EventBody, frozen=True):
    """A release was allowed; its loss counts from here on.

    Attributes:
        release: The release.
        policy: Digest of the policy that it was decided by.
        expires_at: When the reservation runs out.
        approved_by: Who agreed to it, where the policy asks for that; sorted.
    """

    release: RecordedRelease
    policy: Digest
    expires_at: Time
    approved_by: tuple[str, ...] = ()


@event("release-started", 1, "nothing", claims=False)
class ReleaseStarted(EventBody, frozen=True):
    """Rows may be read from here on; whatever happens now, it is spent."""

    release: str


@event("release-posted", 1, "nothing", claims=False)
class ReleasePosted(EventBody, frozen=True):
    """The release is out."""

    release: str


@event("release-voided", 1, "balances", claims=False)
class ReleaseVoided(EventBody, frozen=True):
    """The release was given up before it started; its loss is taken back."""

    release: str
    reason: str


@event("release-expired", 1, "balances", claims=False)
class ReleaseExpired(EventBody, frozen=True):
    """The reservation ran out before it started; its loss is taken back."""

    release: str


@event("release-denied", 1, "decisions", claims=True)
class ReleaseDenied(EventBody, frozen=True):
    """A release was denied. It spends nothing, and its id may be tried again."""

    release: RecordedRelease
    policy: Digest
    blocking: tuple[str, ...]


@event("past-recorded", 1, "balances", claims=False, later={"assumptions": 2})
class PastRecorded(EventBody, frozen=True):
    """A release that happened before; it is counted and cannot be denied.

    Attributes:
        release: The release.
        policy: Digest of the policy whose words describe it.
        assumptions: What was assumed because nobody knows it any more, in words.
    """

    release: RecordedRelease
    policy: Digest
    assumptions: tuple[str, ...] = ()


@event("past-redescribed", 5, "balances", claims=True)
class PastRedescribed(EventBody, frozen=True):
    """What was recorded of a past release is corrected: the periods that it reads.

    From here on it is charged as it is described now, in the words of the policy that
    it was recorded under. Whoever acts agrees; somebody else asked for it. See ADR
    0041.

    Attributes:
        release: The release as it is described now.
        before: The release as it was described until now.
        policy: Digest of the policy that was active: it says who must agree.
        reason: Why whoever acts agrees.
        approved_by: Who agreed to it, where the policy asks for that; sorted.
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
    """Somebody agreed to something, or refused to.

    Attributes:
        subject: What kind of thing it is about.
        id: Its id: of a release, a plan, a contract or a data set; of a policy, its
            digest.
        content: SHA-256 of what was agreed to; other contents are not approved.
        approves: Whether the actor of the event agrees.
        roles: The roles in which they do, as the policy of the day gives them.
        reason: Why.
        head: The hash of the entry up to which the ledger was looked at; empty where
            versions before 3 did not say.
        key: The raw Ed25519 public key of who signed it, in hexadecimal; empty if
            nobody did.
        signature: The signature of its statement (see `approval_statement`), in
            hexadecimal; empty if nobody signed.

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
        """What was agreed to, or refused."""
        named = self.id[:12] if self.subject == "policy" else self.id
        return f"{self.subject} {named}: {'approved' if self.approves else 'rejected'}"

    @property
    def release_id(self) -> str:
        """The release that it is about; empty if it is about something else."""
        return self.id if self.subject == "release" else ""


@event("annotated", 2, "nothing", claims=False)
class Annotated(EventBody, frozen=True):
    """A remark for whoever reads the log later; it changes nothing.

    Attributes:
        about: The id of a release, or empty for the ledger as a whole.
        text: The remark.
    """

    about: str
    text: str

    @property
    def summary(self) -> str:
        """What the remark is about, and its beginning."""
        said = self.text if len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]}…"
        return f"{self.about}: {said}" if self.about else said

    @property
    def release_id(self) -> str:
        """What the remark is about; empty for the ledger as a whole."""
        return self.about


@event("disclosure-recorded", 2, "decisions", claims=False, shown="{0.id}")
class DisclosureRecorded(EventBody, frozen=True):
    """Something was disclosed outside differential privacy.

    No rule can count it; it qualifies every claim about the ledger from here on.

    Attributes:
        id: What the disclosure is called.
        what: What was disclosed, in words.
        attributes: The attributes of the data that it tells about.
        part: The part of the data that it tells about.
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
    """A round of planning begins.

    Attributes:
        id: What it is called.
        unlocked: By privacy unit, the share of every budget that may be spent from
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
    """A plan for many releases was taken; each is reserved by an event of its own.

    Attributes:
        id: What it is called.
        round: The round it belongs to.
        content: SHA-256 of the plan.
        releases: The ids of the releases that it takes.
    """

    id: str
    round: str
    content: Digest
    releases: tuple[str, ...]


#: What happens to a release, and counts.
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
#: What people say, ask for and decide.
GovernanceBody: TypeAlias = (
    PolicyActivated
    | ApprovalGiven
    | Annotated
    | DisclosureRecorded
    | ReleaseRequested
    | RequestWithdrawn
    | PolicyProposed
)
#: What happens to rounds, user groups and plans.
PlanBody: TypeAlias = RoundOpened | GroupActivated | GroupRetired | PlanCommitted
#: What moves balances.
ChargeBody: TypeAlias = (
    ReleaseReserved | ReleaseVoided | ReleaseExpired | PastRecorded | PastRedescribed
)
#: The type checker names the places that forget a kind.
Body: TypeAlias = ReleaseBody | GovernanceBody | PlanBody | EscrowBody


class Event(Struct, frozen=True):
    """One entry of the log, before it is chained.

    Attributes:
        at: When, in UTC, as `YYYY-MM-DDTHH:MM:SS.ffffffZ`.
        actor: Who asked.
        body: What happened.
        version: Version of the schema that it was written in.
    """

    at: str
    actor: str
    body: Body
    version: int = EVENT_VERSION


#: Every kind of event.
KINDS: tuple[type[Body], ...] = get_args(Body)


def day_of_release(body: ReleaseReserved | PastRecorded, at: str) -> int:
    """Return the day that a release counts as made on.

    That is the day of its event; for a past release, the day it says it was released
    on, if it says one in a form that can be read.
    """
    if isinstance(body, PastRecorded):
        released_on = body.release.metadata.get("released_on", "")
        try:
            return day_named(released_on)
        except ValueError:
            pass
    return day_of(at)
