"""Requests, proposals, and what people said to them."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from modicum.api.schema.common import Approval, Head, Problem
from modicum.api.schema.policy import DiffConflict, PolicyName
from modicum.api.schema.release import Decision
from modicum.api.schema.shape import Digest, Plain, Shape


class ApprovalStatus(Approval, frozen=True, kw_only=True):
    """Where an approval stands."""

    given: bool
    missing: int
    approved_by: tuple[str, ...]
    rejected_by: tuple[str, ...]
    left: tuple[str, ...]
    asking: tuple[str, ...]


class Vote(Shape, frozen=True, kw_only=True):
    """What somebody said once."""

    entry: int
    at: str
    by: str
    approves: bool
    roles: tuple[str, ...]
    reason: str
    key: str | None
    content: Digest
    current: bool


class WithdrawnRequest(Shape, frozen=True, kw_only=True):
    """A request that was taken back."""

    release: str
    content: Digest
    policy: Digest
    by: str
    at: str
    entry: int


class Request(WithdrawnRequest, frozen=True, kw_only=True):
    """A release that was requested just now."""

    repeated: bool
    approvals: tuple[ApprovalStatus, ...]


class PendingRequest(WithdrawnRequest, frozen=True, kw_only=True):
    """A release that is asked for and waits."""

    reason: str
    current: bool
    corrects: bool
    complete: bool
    approvals: tuple[ApprovalStatus, ...]


class ListedRequest(PendingRequest, frozen=True, kw_only=True):
    """A request; `body`, what is asked for as it is kept, is there if asked for."""

    body: Plain | UnsetType = UNSET


class RequestList(Shape, frozen=True, kw_only=True):
    """The requests that may be seen, oldest first."""

    requests: tuple[ListedRequest, ...]


class RequestDetails(PendingRequest, frozen=True, kw_only=True):
    """A request: what is asked for, what it would do, and what people said."""

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
    """Where approvals stand, and what people said."""

    approvals: tuple[ApprovalStatus, ...]
    spoken: tuple[Vote, ...]


class VoteReceipt(Shape, frozen=True, kw_only=True):
    """What somebody said just now, and where approvals stand after it."""

    subject: Literal["release", "policy"]
    id: str
    content: Digest
    by: str
    approves: bool
    roles: tuple[str, ...]
    key: str | None
    entry: int
    repeated: bool
    corrected_in: int | None
    approvals: tuple[ApprovalStatus, ...]


class Statement(Shape, frozen=True, kw_only=True):
    """What is signed, in UTF-8, by who speaks with a key of their own."""

    statement: str
    head: Digest


class ProposedPolicy(Shape, frozen=True, kw_only=True):
    """A policy that waits to be activated."""

    digest: Digest
    name: str
    by: str
    at: str
    entry: int


class Proposal(ProposedPolicy, frozen=True, kw_only=True):
    """A policy that was proposed just now."""

    repeated: bool
    approvals: tuple[ApprovalStatus, ...]


class PendingProposal(ProposedPolicy, frozen=True, kw_only=True):
    """A policy that is proposed and waits."""

    reason: str
    complete: bool
    approvals: tuple[ApprovalStatus, ...]
    text: str


class ProposalList(Shape, frozen=True, kw_only=True):
    """The policies that wait, oldest first."""

    proposals: tuple[PendingProposal, ...]


class CountedPolicy(PolicyName, frozen=True, kw_only=True):
    """A policy and its number of rules."""

    rules: int


class ActivationConflict(DiffConflict, frozen=True, kw_only=True):
    """A conflict; `accepted` if people agreed to activate the policy all the same."""

    accepted: bool


class Activation(Shape, frozen=True, kw_only=True):
    """What it means to activate a policy, or that it was."""

    policy: CountedPolicy
    replaced: PolicyName
    changed: bool
    ledger: Head | None
    conflicts: tuple[ActivationConflict, ...]
    accepted: tuple[str, ...]
    problems: tuple[Problem, ...]
    approvals: tuple[ApprovalStatus, ...]
