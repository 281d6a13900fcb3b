"""Policies that are to hold: proposed, approved, activated."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from modicum.api import operations
from modicum.api.local.governance.activation import Activation
from modicum.api.local.governance.approvals import Ballot, RecordedVote
from modicum.api.local.governance.proposals import Proposed
from modicum.api.local.views.approvals import (
    activation_view,
    approvals_view,
    pending_policy_view,
    proposal_view,
    receipt_view,
    vote_view,
)
from modicum.api.local.visibility import masked
from modicum.api.permissions.actions import Action
from modicum.api.schema import approval as schema
from modicum.server.auth.authentication import Who
from modicum.server.components import Verbs
from modicum.server.idempotency import OnlyOnce
from modicum.server.inputs.body import body_of, input_of
from modicum.server.responses import Answer, answer_of, json_response
from modicum.server.routes.openapi_parts import IfMatch, serve, tag_given
from modicum.server.routes.votes import ballot_of
from modicum.server.service.proposals import Change
from modicum.server.service.votes import TAKEN_BACK

router = APIRouter(tags=["policies"])

Digest = Annotated[str, Path(pattern="^[0-9a-f]{64}$")]
Reason = Annotated[str, Query(min_length=1, max_length=2000, description="why")]
Accept = Annotated[
    list[str],
    Query(max_length=1000, description="rules that may stay over their limit"),
]

_ACTIVE = "the active policy"


@serve(router, operations.PROPOSE_POLICY)
async def propose(
    request: Request, who: Who, verbs: Verbs, keyed: OnlyOnce, reason: Reason
) -> Response:
    """Propose a policy; its text is stored in the ledger."""
    policy = await body_of(request, who, Action.PROPOSE_POLICY)
    once = await keyed.once(_proposed)
    found = await verbs.proposals.propose(who, policy, reason, once)
    return _proposed(found).response()


@serve(router, operations.PROPOSALS)
async def proposals(who: Who, verbs: Verbs) -> Response:
    """Return the policies that are proposed and wait."""
    found = await verbs.proposals.pending(who)
    return json_response(
        schema.ProposalList(proposals=tuple(map(pending_policy_view, found)))
    )


@serve(router, operations.PROPOSAL)
async def proposal(digest: Digest, who: Who, verbs: Verbs) -> Response:
    """Return a policy that is proposed, with its text."""
    found, _ = await verbs.proposals.one(who, digest)
    return json_response(pending_policy_view(found), etag=digest)


@serve(router, operations.PROPOSAL_APPROVALS)
async def approvals(digest: Digest, who: Who, verbs: Verbs) -> Response:
    """Return the approval of a proposal, and the votes."""
    found, votes = await verbs.proposals.one(who, digest)
    since = found.proposal.seq
    return json_response(
        schema.Approvals(
            approvals=approvals_view(found.approval_states),
            votes=tuple(vote_view(one, current=one.seq > since) for one in votes),
        ),
        etag=digest,
    )


@serve(router, operations.APPROVE_POLICY)
async def cast_vote(
    request: Request, digest: Digest, who: Who, verbs: Verbs, keyed: OnlyOnce
) -> Response:
    """Approve or refuse a proposal. Its digest identifies what was reviewed."""
    ballot = await ballot_of(request, digest, who, Action.APPROVE_POLICY)
    once = await keyed.once(_receipt)
    return _receipt(await verbs.proposals.vote(who, digest, ballot, once)).response()


@serve(router, operations.UNAPPROVE_POLICY)
async def take_back(
    digest: Digest, who: Who, verbs: Verbs, keyed: OnlyOnce
) -> Response:
    """Take one's approval back: it blocks, until one agrees again."""
    ballot = Ballot(approves=False, reason=TAKEN_BACK, content=digest)
    once = await keyed.once(_receipt)
    return _receipt(await verbs.proposals.vote(who, digest, ballot, once)).response()


@serve(router, operations.PREVIEW_ACTIVATION)
async def preview_activation(
    request: Request,
    who: Who,
    verbs: Verbs,
    accept: Accept = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Return the effect of activating a policy now. Writes nothing.

    This requires permission to read all releases.
    """
    policy = await body_of(request, who, Action.COMPILE_POLICY)
    preview = activation_view(
        await verbs.proposals.preview_activation(who, policy, accept)
    )
    return json_response(
        await verbs.threads.read_view(lambda view: masked(view, who, preview))
    )


@serve(router, operations.ACTIVATE_POLICY)
async def activate_text(
    request: Request,
    who: Who,
    verbs: Verbs,
    keyed: OnlyOnce,
    reason: Reason,
    accept: Accept = [],  # noqa: B006 - FastAPI copies it
    if_match: IfMatch = None,
) -> Response:
    """Put a policy in the place of the active one, whose ETag is `If-Match`."""
    change = Change(reason, tag_given(if_match, _ACTIVE), accept)
    policy = await body_of(request, who, Action.ACTIVATE_POLICY)
    once = await keyed.once(_activated)
    return _activated(
        await verbs.proposals.activate(who, policy, change, once)
    ).response()


@serve(router, operations.ACTIVATE_PROPOSAL)
async def activate(
    request: Request,
    digest: Digest,
    who: Who,
    verbs: Verbs,
    keyed: OnlyOnce,
    if_match: IfMatch = None,
) -> Response:
    """Put a proposal in the place of the active policy, whose ETag is `If-Match`."""
    replaces = tag_given(if_match, _ACTIVE)
    sent = await input_of(request, who, schema.ActivationInput, Action.ACTIVATE_POLICY)
    once = await keyed.once(_activated)
    change = Change(sent.reason, replaces, sent.accept)
    return _activated(
        await verbs.proposals.activate(who, digest, change, once)
    ).response()


def _proposed(found: Proposed) -> Answer:
    return answer_of(proposal_view(found))


def _receipt(vote: RecordedVote) -> Answer:
    return answer_of(receipt_view(vote))


def _activated(done: Activation) -> Answer:
    return answer_of(
        activation_view(done.preview, done), etag=done.preview.successor.policy.digest
    )
