"""What the ledger remembers. This page is a storage format: see ADR 0003.

They came with version 4. None of them charges anything: what a flow costs is charged by
the release that it names.

They came with version 3. None of them spends anything or changes what is decided.

Each event has a closed set of fields, one canonical encoding (`event_format`), and
carries all that replay needs: a priced release holds every unit's integer loss, and
its encoding names the grid. Decisions and balances go by these integers and price
nothing; an audit prices descriptions again, to compare (`ledger.proof.repricing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from modicum.ledger.log.contracts import Contract
from modicum.ledger.log.days import day_named, day_of
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.release import Part


class DataRegistered(Struct, frozen=True):
    """A version of a data set lies in the vault. Its first version says whose it is.

    Attributes:
        id: The data set.
        version: The number of the version, from 1.
        sealed: SHA-256 of its encrypted bytes.
        media: How its rows are written.
        table: What its table is, as canonical text: columns, types, what is public.
        owners: Whose it is; by name the keys that their agreement must be signed with,
            none if it need not be signed.
        quorum: So many of them must agree.
        contracts_max: So many contracts may wait or hold for one analyst at a time.
        bits_max: So many bits may one person be told of it outside differential
            privacy, in all.
    """

    id: str
    version: int
    sealed: str
    media: Literal["csv", "parquet"]
    table: str
    owners: Mapping[str, tuple[str, ...]]
    quorum: int
    contracts_max: int
    bits_max: int


class DataShredded(Struct, frozen=True):
    """The key of a version was destroyed: nothing flows from it any more.

    Attributes:
        id: The data set.
        version: The number of the version.
        reason: Why.
    """

    id: str
    version: int
    reason: str


class ContractProposed(Struct, frozen=True):
    """Somebody asks for a flow of data.

    Attributes:
        contract: The contract.
        reason: Why.
    """

    contract: Contract
    reason: str


class ContractWithdrawn(Struct, frozen=True):
    """Who asked for a flow does not ask for it any more.

    Attributes:
        contract: The contract, by its digest.
        reason: Why.
    """

    contract: str
    reason: str


class FlowBegun(Struct, frozen=True):
    """Rows or withheld answers may be read from here on; the use is counted.

    Attributes:
        contract: The contract, by its digest.
        run: The number of the run, from 1.
    """

    contract: str
    run: int


class FlowWithheld(Struct, frozen=True):
    """A run has ended, and what it computed lies in the vault.

    Attributes:
        contract: The contract, by its digest.
        run: The number of the run.
        results: By name, the SHA-256 of the encrypted bytes.
    """

    contract: str
    run: int
    results: Mapping[str, str]


class FlowFailed(Struct, frozen=True):
    """A run has ended without a result. Why is not told: it may be a fact about rows.

    Attributes:
        contract: The contract, by its digest.
        run: The number of the run.
    """

    contract: str
    run: int


class FlowReleased(Struct, frozen=True):
    """Something that was withheld goes out from here on.

    Attributes:
        contract: The contract, by its digest.
        to: Who is given it.
    """

    contract: str
    to: str


class ReleaseRequested(Struct, frozen=True):
    """Somebody asks for a release that people must agree to first.

    Attributes:
        release: The release, priced under the policy.
        policy: Digest of the policy that was active.
        reason: Why it is asked for.
    """

    release: RecordedRelease
    policy: str
    reason: str


class RequestWithdrawn(Struct, frozen=True):
    """Who asked for a release does not ask for it any more.

    Attributes:
        release: Its id.
        reason: Why.
    """

    release: str
    reason: str


class PolicyProposed(Struct, frozen=True):
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


#: Version of the event schema. Older events are read for good; newer ones are refused.
EVENT_VERSION = 5


class PolicyActivated(Struct, frozen=True):
    """A policy holds from here on. Its text is kept verbatim.

    Attributes:
        digest: SHA-256 of its canonical text.
        name: Its name.
        text: The file's text.
        reason: Why it replaces the one before; empty for the first.
        accepted: Ids of rules that history exceeds, accepted all the same, in the
            policy's order; what falls under them stays denied. After them, since
            version 5, `attribute:NAME` of attributes that releases read and that are
            gone: none of those that are new is one of them.
    """

    digest: str
    name: str
    text: str
    reason: str = ""
    accepted: tuple[str, ...] = ()


class ReleaseReserved(Struct, frozen=True):
    """A release was allowed; its loss counts from here on.

    Attributes:
        release: The release.
        policy: Digest of the policy that it was decided by.
        expires_at: When the reservation runs out.
        approved_by: Who agreed to it, where the policy asks for that; sorted.
    """

    release: RecordedRelease
    policy: str
    expires_at: str
    approved_by: tuple[str, ...] = ()


class ReleaseStarted(Struct, frozen=True):
    """Rows may be read from here on; whatever happens now, it is spent."""

    release: str


class ReleasePosted(Struct, frozen=True):
    """The release is out."""

    release: str


class ReleaseVoided(Struct, frozen=True):
    """The release was given up before it started; its loss is taken back."""

    release: str
    reason: str


class ReleaseExpired(Struct, frozen=True):
    """The reservation ran out before it started; its loss is taken back."""

    release: str


class ReleaseDenied(Struct, frozen=True):
    """A release was denied. It spends nothing, and its id may be tried again."""

    release: RecordedRelease
    policy: str
    blocking: tuple[str, ...]


class PastRecorded(Struct, frozen=True):
    """A release that happened before; it is counted and cannot be denied.

    Attributes:
        release: The release.
        policy: Digest of the policy whose words describe it.
        assumptions: What was assumed because nobody knows it any more, in words.
    """

    release: RecordedRelease
    policy: str
    assumptions: tuple[str, ...] = ()


class PastRedescribed(Struct, frozen=True):
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
    policy: str
    reason: str
    approved_by: tuple[str, ...] = ()


class ApprovalGiven(Struct, frozen=True):
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

    subject: Literal["release", "policy", "plan", "contract", "data"]
    id: str
    content: str
    approves: bool
    roles: tuple[str, ...]
    reason: str
    head: str = ""
    key: str = ""
    signature: str = ""

    def __post_init__(self) -> None:
        if bool(self.key) != bool(self.signature) or (self.key and not self.head):
            message = "of the fields `head`, `key` and `signature` one is missing"
            raise ValueError(message)


class Annotated(Struct, frozen=True):
    """A remark for whoever reads the log later; it changes nothing.

    Attributes:
        about: The id of a release, or empty for the ledger as a whole.
        text: The remark.
    """

    about: str
    text: str


class DisclosureRecorded(Struct, frozen=True):
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


class RoundOpened(Struct, frozen=True):
    """A round of planning begins.

    Attributes:
        id: What it is called.
        unlocked: By privacy unit, the share of every budget that may be spent from
            here on, in millionths; it never falls.
    """

    id: str
    unlocked: Mapping[str, int]


class GroupActivated(Struct, frozen=True):
    """A user group may be read from here on.

    Attributes:
        group: Its number.
        round: The round it begins in.
    """

    group: int
    round: str


class GroupRetired(Struct, frozen=True):
    """A user group is read no more, and never again.

    Attributes:
        group: Its number.
        round: The round it ends in.
    """

    group: int
    round: str


class PlanCommitted(Struct, frozen=True):
    """A plan for many releases was taken; each is reserved by an event of its own.

    Attributes:
        id: What it is called.
        round: The round it belongs to.
        content: SHA-256 of the plan.
        releases: The ids of the releases that it takes.
    """

    id: str
    round: str
    content: str
    releases: tuple[str, ...]


Body: TypeAlias = (
    PolicyActivated
    | ReleaseReserved
    | ReleaseStarted
    | ReleasePosted
    | ReleaseVoided
    | ReleaseExpired
    | ReleaseDenied
    | PastRecorded
    | PastRedescribed
    | ApprovalGiven
    | Annotated
    | DisclosureRecorded
    | RoundOpened
    | GroupActivated
    | GroupRetired
    | PlanCommitted
    | ReleaseRequested
    | RequestWithdrawn
    | PolicyProposed
    | DataRegistered
    | DataShredded
    | ContractProposed
    | ContractWithdrawn
    | FlowBegun
    | FlowWithheld
    | FlowFailed
    | FlowReleased
)


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


#: The name of each kind of event, as it is stored.
NAMES: Mapping[type[Body], str] = {
    PolicyActivated: "policy-activated",
    ReleaseReserved: "release-reserved",
    ReleaseStarted: "release-started",
    ReleasePosted: "release-posted",
    ReleaseVoided: "release-voided",
    ReleaseExpired: "release-expired",
    ReleaseDenied: "release-denied",
    PastRecorded: "past-recorded",
    PastRedescribed: "past-redescribed",
    ApprovalGiven: "approval-given",
    Annotated: "annotated",
    DisclosureRecorded: "disclosure-recorded",
    RoundOpened: "round-opened",
    GroupActivated: "group-activated",
    GroupRetired: "group-retired",
    PlanCommitted: "plan-committed",
    ReleaseRequested: "release-requested",
    RequestWithdrawn: "request-withdrawn",
    PolicyProposed: "policy-proposed",
    DataRegistered: "data-registered",
    DataShredded: "data-shredded",
    ContractProposed: "contract-proposed",
    ContractWithdrawn: "contract-withdrawn",
    FlowBegun: "flow-begun",
    FlowWithheld: "flow-withheld",
    FlowFailed: "flow-failed",
    FlowReleased: "flow-released",
}


def event_name(body: Body) -> str:
    """Return the name of an event's kind, as it is stored."""
    return NAMES[type(body)]


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
