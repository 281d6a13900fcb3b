"""Requests, proposals, and what people said to them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType, field

from modicum.api.schema.ledger import Head
from modicum.api.schema.policy import PolicyName
from modicum.api.schema.policy_change import DiffConflict
from modicum.api.schema.problem import Problem
from modicum.api.schema.release import Decision
from modicum.api.schema.shape import Digest, Input, Plain, Shape, Text
from modicum.api.schema.signature import PublicKey, Signature

#: The hash of an entry, or its beginning.
HeadShown = Annotated[str, Meta(pattern="^[0-9a-f]{12,64}$")]


class Agreement(Shape, frozen=True, kw_only=True):
    """Who agrees, who refuses, and who is missing.

    Attributes:
        need: How many people must agree.
        missing: How many more must agree.
        approved_by: Who agrees and counts.
        rejected_by: Who refuses: it blocks.
        left: Who could still agree.
    """

    need: int
    missing: int
    approved_by: tuple[str, ...]
    rejected_by: tuple[str, ...]
    left: tuple[str, ...]


class ApprovalStatus(Agreement, frozen=True, kw_only=True):
    """Where an approval stands.

    Attributes:
        roles: The roles that they may have.
        requester_may_approve: Whether who asks may be one of them.
        given: Whether enough people agree and nobody refuses.
        asking: Who could agree if they did not ask for it themselves.
    """

    roles: tuple[str, ...] = field(name="from")
    requester_may_approve: bool
    given: bool
    asking: tuple[str, ...]


class CastVote(Shape, frozen=True, kw_only=True):
    """A vote: somebody agreed to something, or refused it.

    Attributes:
        by: Who.
        approves: Whether they agree.
        key: The raw public key that it is signed with, in hexadecimal; None if it is
            not signed.
        entry: The number of the entry.
    """

    by: str
    approves: bool
    key: str | None
    entry: int


class OwnerVote(CastVote, frozen=True, kw_only=True):
    """The vote of an owner of data.

    Attributes:
        at: When, in UTC.
        reason: Why.
    """

    at: str
    reason: str


class Vote(OwnerVote, frozen=True, kw_only=True):
    """A vote on a release or a policy.

    Attributes:
        roles: The roles in which they voted.
        content: SHA-256 of what they voted on.
        current: Of a release: whether that is what is weighed here, and not another
            content of this id; of a policy: whether it was said since the active policy
            came.
    """

    roles: tuple[str, ...]
    content: Digest
    current: bool


class Asked(Shape, frozen=True, kw_only=True):
    """What somebody asks for.

    Attributes:
        by: Who asks.
        at: Since when, in UTC.
        entry: The number of the entry.
    """

    by: str
    at: str
    entry: int


class WithdrawnRequest(Asked, frozen=True, kw_only=True):
    """A request that was taken back.

    Attributes:
        release: The id of the release.
        content: SHA-256 of what is asked for.
        policy: The digest of the policy that was active.
    """

    release: str
    content: Digest
    policy: Digest


class Request(WithdrawnRequest, frozen=True, kw_only=True):
    """A release that was requested just now.

    Attributes:
        repeated: Whether it was asked for before, so that nothing was added.
        approvals: The approvals that are needed.
    """

    repeated: bool
    approvals: tuple[ApprovalStatus, ...]


class PendingRequest(WithdrawnRequest, frozen=True, kw_only=True):
    """A release that is asked for and waits.

    Attributes:
        reason: Why.
        current: Whether it was asked for under the active policy; if not, it must be
            asked for again.
        corrects: Whether it corrects a past release; then one more person must agree
            while it waits.
        complete: Whether nobody is missing, and nobody refuses.
        approvals: The approvals that are needed.
    """

    reason: str
    current: bool
    corrects: bool
    complete: bool
    approvals: tuple[ApprovalStatus, ...]


class ListedRequest(PendingRequest, frozen=True, kw_only=True):
    """A request; `body`, what is asked for as it is kept, is there if asked for.

    Attributes:
        body: Of `request show`: the release with what it costs, as the ledger keeps it.
    """

    body: Plain | UnsetType = UNSET


class RequestList(Shape, frozen=True, kw_only=True):
    """The requests that may be seen, oldest first.

    Attributes:
        requests: The requests.
    """

    requests: tuple[ListedRequest, ...]


class RequestDetails(PendingRequest, frozen=True, kw_only=True):
    """A request: what is asked for, what it would do, and what people said.

    Attributes:
        body: The release with what it costs, as the ledger keeps it.
        decision: What the rules say to it now; without `losses`.
        spoken: The votes on releases of its id, oldest first.
    """

    body: Plain
    decision: Decision
    spoken: tuple[Vote, ...]


class Correction(Shape, frozen=True, kw_only=True):
    """A correction of a past release that was requested just now.

    Attributes:
        release: The id of the release.
        request: The request; None if the release is described so already.
        over_limit: The rules that are over their limit with the correction.
    """

    release: str
    request: Request | None
    over_limit: tuple[str, ...]


class Approvals(Shape, frozen=True, kw_only=True):
    """Where approvals stand, and what people said.

    Attributes:
        approvals: The approvals that are needed; empty for a release that stands
            already, and for the active policy.
        spoken: What people said, oldest first.
    """

    approvals: tuple[ApprovalStatus, ...]
    spoken: tuple[Vote, ...]


class KnownApprovals(Approvals, frozen=True, kw_only=True):
    """Where approvals stand, of what may be known by its id only.

    Attributes:
        exact: Of a release: whether its contents are known; if not, all approvals of
            the policy are listed, and it may need fewer.
    """

    exact: bool


class Receipt(CastVote, frozen=True, kw_only=True):
    """A vote that was cast just now.

    Attributes:
        repeated: Whether they had voted so before, in that entry, so that nothing was
            added.
    """

    repeated: bool


class VoteReceipt(Receipt, frozen=True, kw_only=True):
    """A vote that was cast just now, and where approvals stand after it.

    Attributes:
        subject: What it is about.
        id: The release's id, or the policy's digest.
        content: SHA-256 of its contents; nothing else is agreed to.
        roles: The roles in which they voted.
        corrected_in: The number of the entry that corrects a past release, as nobody is
            missing any more; None if none does.
        approvals: The approvals that are needed; empty if somebody refuses what is
            known by its id only.
    """

    subject: Literal["release", "policy"]
    id: str
    content: Digest
    roles: tuple[str, ...]
    corrected_in: int | None
    approvals: tuple[ApprovalStatus, ...]


class CastVotes(Shape, frozen=True, kw_only=True):
    """Votes that were cast just now, one for each thing that they are about.

    Attributes:
        votes: The votes.
        conflicts: Of an approval of a policy, the rules that history exceeds under it;
            none of them is accepted.
        problems: Of an approval of a policy, why rules show less than was released.
    """

    votes: tuple[VoteReceipt, ...]
    conflicts: tuple[ActivationConflict, ...] | UnsetType = UNSET
    problems: tuple[Problem, ...] | UnsetType = UNSET


class Reason(Input, frozen=True, kw_only=True):
    """Why something is done.

    Attributes:
        reason: Why, for the record.
    """

    reason: Text


class VoteInput(Reason, frozen=True, kw_only=True):
    """A vote, and why; signed with a key of one's own, if the policy asks for that.

    Attributes:
        approves: Whether they agree.
        head: The hash of the last entry that they have looked at, or its beginning.
        key: The raw public key that signs it, in hexadecimal.
        signature: The signature of the statement, in hexadecimal.
    """

    needs: ClassVar = {"key": ("signature",), "signature": ("key", "head")}

    approves: bool
    head: HeadShown | UnsetType = UNSET
    key: PublicKey | UnsetType = UNSET
    signature: Signature | UnsetType = UNSET


class ActivationInput(Reason, frozen=True, kw_only=True):
    """Why a proposal is to be active, and which rules may stay exceeded.

    Attributes:
        accept: Rules that history exceeds and that may stay exceeded: their ids, or
            their scopes; and `attribute:NAME` of attributes that are gone.
    """

    accept: Annotated[tuple[str, ...], Meta(max_length=1000)] = ()


class Statement(Shape, frozen=True, kw_only=True):
    """What is signed, in UTF-8, by who speaks with a key of their own.

    Attributes:
        statement: What is signed.
        head: The hash of the last entry, which it names.
    """

    statement: str
    head: Digest


class ProposedPolicy(Asked, frozen=True, kw_only=True):
    """A policy that waits to be activated.

    Attributes:
        digest: The digest of the policy.
        name: Its name.
    """

    digest: Digest
    name: str


class Proposal(ProposedPolicy, frozen=True, kw_only=True):
    """A policy that was proposed just now.

    Attributes:
        repeated: Whether it was proposed before, so that nothing was added.
        approvals: The approval that is needed.
    """

    repeated: bool
    approvals: tuple[ApprovalStatus, ...]


class PendingProposal(ProposedPolicy, frozen=True, kw_only=True):
    """A policy that is proposed and waits.

    Attributes:
        reason: Why.
        complete: Whether nobody is missing, and nobody refuses.
        approvals: The approval that is needed.
        text: The policy's text.
    """

    reason: str
    complete: bool
    approvals: tuple[ApprovalStatus, ...]
    text: str


class ProposalList(Shape, frozen=True, kw_only=True):
    """The policies that wait, oldest first.

    Attributes:
        proposals: The policies.
    """

    proposals: tuple[PendingProposal, ...]


class CountedPolicy(PolicyName, frozen=True, kw_only=True):
    """A policy and its number of rules.

    Attributes:
        rules: How many rules over history it has.
    """

    rules: int


class ActivationConflict(DiffConflict, frozen=True, kw_only=True):
    """A conflict; `accepted` if people agreed to activate the policy all the same.

    Attributes:
        accepted: Whether it is accepted.
    """

    accepted: bool


class Activation(Shape, frozen=True, kw_only=True):
    """What it means to activate a policy, or that it was.

    Attributes:
        policy: The policy that is to hold.
        replaced: The policy that held.
        changed: Whether it was activated just now.
        ledger: The ledger after it; None if nothing changed.
        conflicts: The rules of the policy that history exceeds.
        accepted: What is accepted: rules, and `attribute:NAME` of attributes that are
            gone.
        problems: What else is in the way: units that are redefined under names that
            losses were recorded for, and dropped attributes that are not accepted as
            gone.
        approvals: The approvals that are needed.
    """

    policy: CountedPolicy
    replaced: PolicyName
    changed: bool
    ledger: Head | None
    conflicts: tuple[ActivationConflict, ...]
    accepted: tuple[str, ...]
    problems: tuple[Problem, ...]
    approvals: tuple[ApprovalStatus, ...]
