"""Requests, proposals and votes."""

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
    """The approvals, the refusals, and what is missing.

    Attributes:
        need: The number of people that must agree.
        missing: The number of further approvals needed.
        approved_by: Those whose approval counts.
        rejected_by: Those who refuse, which blocks.
        left: Those who may still approve.
    """

    need: int
    missing: int
    approved_by: tuple[str, ...]
    rejected_by: tuple[str, ...]
    left: tuple[str, ...]


class ApprovalStatus(Agreement, frozen=True, kw_only=True):
    """The state of one required approval.

    Attributes:
        roles: The roles that they may have.
        requester_may_approve: Whether the requester counts as an approver.
        given: Whether enough people have approved and none has refused.
        requesters: Those who could approve had they not made the request themselves.
    """

    roles: tuple[str, ...] = field(name="from")
    requester_may_approve: bool
    given: bool
    requesters: tuple[str, ...]


class CastVote(Shape, frozen=True, kw_only=True):
    """A vote for or against.

    Attributes:
        by: The actor.
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
        content: SHA-256 of the content voted on.
        current: For a release, whether the vote is on this content of the id; for a
            policy, whether it was cast since the active policy was activated.
    """

    roles: tuple[str, ...]
    content: Digest
    current: bool


class Asked(Shape, frozen=True, kw_only=True):
    """The common part of requests and contracts.

    Attributes:
        by: The requester.
        at: Since when, in UTC.
        entry: The number of the entry.
    """

    by: str
    at: str
    entry: int


class WithdrawnRequest(Asked, frozen=True, kw_only=True):
    """A withdrawn request.

    Attributes:
        release: The id of the release.
        content: SHA-256 of the requested content.
        policy: The digest of the policy that was active.
    """

    release: str
    content: Digest
    policy: Digest


class Request(WithdrawnRequest, frozen=True, kw_only=True):
    """A new request for a release.

    Attributes:
        repeated: Whether the request already existed, so that nothing was added.
        approvals: The approvals that are needed.
    """

    repeated: bool
    approvals: tuple[ApprovalStatus, ...]


class PendingRequest(WithdrawnRequest, frozen=True, kw_only=True):
    """A pending request for a release.

    Attributes:
        reason: Why.
        current: Whether it was made under the active policy; if not, it must be made
            again.
        corrects: Whether it corrects a past release; then one more person must agree
            while it waits.
        complete: Whether all approvals are present and no one has refused.
        approvals: The approvals that are needed.
    """

    reason: str
    current: bool
    corrects: bool
    complete: bool
    approvals: tuple[ApprovalStatus, ...]


class ListedRequest(PendingRequest, frozen=True, kw_only=True):
    """A request; `body`, the stored request, is present on demand.

    Attributes:
        body: For `request show`, the release with its loss, as stored in the ledger.
    """

    body: Plain | UnsetType = UNSET


class RequestList(Shape, frozen=True, kw_only=True):
    """The visible requests, oldest first.

    Attributes:
        requests: The requests.
    """

    requests: tuple[ListedRequest, ...]


class RequestDetails(PendingRequest, frozen=True, kw_only=True):
    """A request: its content, its effect, and its votes.

    Attributes:
        body: The release with its loss, as stored in the ledger.
        decision: The current decision; without `losses`.
        votes: The votes on releases of its id, oldest first.
    """

    body: Plain
    decision: Decision
    votes: tuple[Vote, ...]


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
    """The state of approvals, and the votes.

    Attributes:
        approvals: The approvals needed; empty for a release that is already accepted,
            and for the active policy.
        votes: The votes, oldest first.
    """

    approvals: tuple[ApprovalStatus, ...]
    votes: tuple[Vote, ...]


class KnownApprovals(Approvals, frozen=True, kw_only=True):
    """The state of approvals, for content that may be known only by its id.

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
    """A new vote, and the state of approvals after it.

    Attributes:
        subject: The subject of the vote.
        id: The release's id, or the policy's digest.
        content: SHA-256 of its contents; the vote is about nothing else.
        roles: The roles in which they voted.
        corrected_in: The number of the entry that corrects a past release once its
            approvals are complete; else None.
        approvals: The approvals needed; empty for a refusal of content that is known
            only by its id.
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
    """A vote and its reason, signed with the voter's key if the policy requires it.

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
            their scopes; `attribute:NAME` of attributes that are gone; `unit:NAME` of
            redefined units; `departed:SCOPE` of rules that past releases leave; and
            `filter:NAME` of a further filter.
    """

    accept: Annotated[tuple[str, ...], Meta(max_length=1000)] = ()


class Statement(Shape, frozen=True, kw_only=True):
    """The statement that voters sign with their own keys, in UTF-8.

    Attributes:
        statement: The text to sign.
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
    """A pending policy proposal.

    Attributes:
        reason: Why.
        complete: Whether all approvals are present and no one has refused.
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
        rules: The number of its rules over history.
    """

    rules: int


class ActivationConflict(DiffConflict, frozen=True, kw_only=True):
    """A conflict; `accepted` if people agreed to activate the policy all the same.

    Attributes:
        accepted: Whether it is accepted.
    """

    accepted: bool


class Activation(Shape, frozen=True, kw_only=True):
    """The effect of activating a policy, before or after activation.

    Attributes:
        policy: The policy that is to hold.
        replaced: The policy that held.
        changed: Whether it was activated just now.
        ledger: The ledger after it; None if nothing changed.
        conflicts: The rules of the policy that history exceeds.
        accepted: The accepted items: rules, `attribute:NAME` for removed attributes,
            `unit:NAME` for redefined units, `departed:SCOPE` for rules that past
            releases leave, and `filter:NAME` for a further filter.
        problems: Other obstacles that are not accepted: redefined units with recorded
            losses, dropped attributes, rules that past releases leave, and a further
            filter.
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
