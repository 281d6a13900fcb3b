"""Public forms of requests, proposals and votes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import asdict

from modicum.api.local.governance.activation import Activation, ActivationPreview
from modicum.api.local.governance.approval_cases import VoteEntry
from modicum.api.local.governance.approvals import RecordedVote
from modicum.api.local.governance.proposals import PendingPolicy, Proposed
from modicum.api.local.governance.requests import PendingRequest, Requested
from modicum.api.local.views.ledger import problems_view
from modicum.api.local.views.policy_changes import conflict_view
from modicum.api.schema import approval as schema
from modicum.api.schema.ledger import Head
from modicum.api.schema.policy import PolicyName
from modicum.ledger.decision.approvals import ApprovalState
from modicum.ledger.state.pending import Proposal, Request


def approvals_view(
    states: Iterable[ApprovalState],
) -> tuple[schema.ApprovalStatus, ...]:
    """Return the state of approvals."""
    return tuple(
        schema.ApprovalStatus(
            need=one.approval.need,
            roles=tuple(one.approval.roles),
            requester_may_approve=one.approval.requester_may_approve,
            given=one.given,
            missing=one.missing,
            approved_by=tuple(one.agreed),
            rejected_by=tuple(one.refused),
            left=tuple(one.left),
            requesters=tuple(one.requesters),
        )
        for one in states
    )


def vote_view(one: VoteEntry, *, current: bool) -> schema.Vote:
    """Return a vote."""
    return schema.Vote(
        entry=one.seq,
        at=one.at,
        by=one.by,
        approves=one.approves,
        roles=tuple(one.roles),
        reason=one.reason,
        key=one.key or None,
        content=one.content,
        current=current,
    )


def receipt_view(vote: RecordedVote) -> schema.VoteReceipt:
    """Return a new vote, and the state of the approvals after it."""
    return schema.VoteReceipt(
        subject=vote.topic.subject,
        id=vote.topic.id,
        content=vote.topic.content,
        by=vote.by,
        approves=vote.approves,
        roles=tuple(vote.roles),
        key=vote.key or None,
        entry=vote.seq,
        repeated=vote.repeated,
        corrected_in=vote.corrected_in or None,
        approvals=approvals_view(vote.approval_states),
    )


def withdrawn_view(request: Request) -> schema.WithdrawnRequest:
    """Return a request, without its status."""
    return schema.WithdrawnRequest(
        release=request.release,
        content=request.content,
        policy=request.policy,
        by=request.by,
        at=request.at,
        entry=request.seq,
    )


def request_view(found: Requested) -> schema.Request:
    """Return a request that was made just now."""
    return schema.Request(
        **asdict(withdrawn_view(found.request)),
        repeated=found.repeated,
        approvals=approvals_view(found.approval_states),
    )


def correction_view(release: str, found: Requested | None) -> schema.Correction:
    """Return a correction of a past release that was requested just now."""
    return schema.Correction(
        release=release,
        request=None if found is None else request_view(found),
        over_limit=() if found is None else tuple(found.decision.over_limit),
    )


def pending_view(one: PendingRequest) -> schema.PendingRequest:
    """Return a request that waits."""
    return schema.PendingRequest(
        **asdict(withdrawn_view(one.request)),
        reason=one.reason,
        current=one.current,
        corrects=one.corrects,
        complete=one.complete,
        approvals=approvals_view(one.approval_states),
    )


def _proposed(one: Proposal) -> dict[str, Any]:
    return {
        "digest": one.digest,
        "name": one.name,
        "by": one.by,
        "at": one.at,
        "entry": one.seq,
    }


def proposal_view(found: Proposed) -> schema.Proposal:
    """Return a policy that was proposed just now."""
    return schema.Proposal(
        **_proposed(found.proposal),
        repeated=found.repeated,
        approvals=approvals_view(found.approval_states),
    )


def pending_policy_view(one: PendingPolicy) -> schema.PendingProposal:
    """Return a policy that is proposed and waits."""
    return schema.PendingProposal(
        **_proposed(one.proposal),
        reason=one.reason,
        complete=one.complete,
        approvals=approvals_view(one.approval_states),
        text=one.text,
    )


def conflicts_view(preview: ActivationPreview) -> tuple[schema.ActivationConflict, ...]:
    """Return the rules that history exceeds under a policy."""
    return tuple(
        schema.ActivationConflict(
            **asdict(conflict_view(one)),
            made=one.rule.id in preview.made,
            accepted=one.rule.id in preview.accepted,
        )
        for one in preview.conflicts
    )


def activation_view(
    preview: ActivationPreview, done: Activation | None = None
) -> schema.Activation:
    """Return the effect of activating a policy, before or after activation."""
    new, old = preview.successor.policy, preview.replaced.policy
    changed = done is not None and done.changed
    return schema.Activation(
        policy=schema.CountedPolicy(
            name=new.name, digest=new.digest, rules=len(preview.successor.rules)
        ),
        replaced=PolicyName(name=old.name, digest=old.digest),
        changed=changed,
        ledger=Head(seq=done.seq, head=done.head) if done and changed else None,
        conflicts=conflicts_view(preview),
        accepted=tuple(preview.accepted),
        problems=problems_view(preview.problems),
        approvals=approvals_view(preview.approval_states),
    )
