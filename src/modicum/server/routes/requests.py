"""`/requests`: releases that wait for approval, and votes."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from msgspec import UNSET
from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response

from modicum.api import operations
from modicum.api.local.governance.approvals import Ballot, RecordedVote
from modicum.api.local.governance.requests import PendingRequest, Requested
from modicum.api.local.views.approvals import (
    approvals_view,
    pending_view,
    receipt_view,
    request_view,
    vote_view,
    withdrawn_view,
)
from modicum.api.local.views.releases import decision_view
from modicum.api.permissions.actions import Action
from modicum.api.schema import approval as schema
from modicum.ledger.log.codec import release_to_plain
from modicum.server.auth.authentication import Who
from modicum.server.components import Verbs
from modicum.server.idempotency import OnlyOnce
from modicum.server.inputs.body import body_of
from modicum.server.responses import Answer, answer_of, json_response
from modicum.server.routes.openapi_parts import IfMatch, ReleaseId, serve, tag_given
from modicum.server.routes.path_ids import LiteralEnd
from modicum.server.routes.releases import WithText
from modicum.server.routes.votes import ballot_of, reason_of
from modicum.server.service.requests import VisibleRequest
from modicum.server.service.votes import TAKEN_BACK

router = APIRouter(tags=["requests"], route_class=LiteralEnd)

_CONTENT = "the request"


@serve(router, operations.REQUESTS)
async def requests(
    who: Who,
    verbs: Verbs,
    recorded: Annotated[bool, Query(description="include the exact request")] = False,
) -> Response:
    """Return the visible requests, oldest first."""
    found = await verbs.requests.pending(who)
    listed = tuple(_listed(one, recorded=recorded) for one in found)
    return json_response(schema.RequestList(requests=listed))


@serve(router, operations.REQUEST_RELEASE)
async def request_release(
    request: Request,
    who: Who,
    verbs: Verbs,
    keyed: OnlyOnce,
    reason: Annotated[
        str,
        Query(min_length=1, max_length=2000, description="the reason, for the record"),
    ],
) -> Response:
    """Request approval of a release; it is not submitted, and spends nothing."""
    body = await body_of(request, who, Action.SUBMIT_RELEASE)
    once = await keyed.once(_requested)
    return _requested(await verbs.requests.submit(who, body, reason, once)).response()


@serve(router, operations.REQUEST_APPROVALS)
async def approvals(release: ReleaseId, who: Who, verbs: Verbs) -> Response:
    """Return the state of each approval, and the votes."""
    request_found = await verbs.requests.one(who, release)
    return json_response(
        schema.Approvals(
            approvals=approvals_view(request_found.pending.approval_states),
            votes=_vote_views(request_found),
        ),
        etag=request_found.pending.request.content,
    )


@serve(router, operations.REQUEST_STATEMENT)
async def statement(
    release: ReleaseId,
    who: Who,
    verbs: Verbs,
    reason: Annotated[str, Query(min_length=1, max_length=2000)],
    key: Annotated[
        str, Query(pattern="^[0-9a-f]{64}$", description="your raw public key")
    ],
    approves: bool = True,
) -> Response:
    """Return the statement to be signed by a voter with their own key."""
    ballot = Ballot(approves, reason)
    text, head = await verbs.requests.statement(who, release, ballot, key)
    return json_response(schema.Statement(statement=text, head=head))


@serve(router, operations.APPROVE_RELEASE)
async def cast_vote(
    request: Request,
    release: ReleaseId,
    who: Who,
    verbs: Verbs,
    keyed: OnlyOnce,
    if_match: IfMatch = None,
) -> Response:
    """Agree to a request, or refuse it; it is decided again in the same turn.

    `If-Match` is the ETag of the request: the content that was looked at.
    """
    content = tag_given(if_match, _CONTENT)
    ballot = await ballot_of(request, content, who, Action.APPROVE_RELEASE)
    once = await keyed.once(_receipt)
    return _receipt(await verbs.requests.vote(who, release, ballot, once)).response()


@serve(router, operations.UNAPPROVE_RELEASE)
async def take_back(
    release: ReleaseId,
    who: Who,
    verbs: Verbs,
    keyed: OnlyOnce,
    if_match: IfMatch = None,
) -> Response:
    """Take one's approval back: it blocks, until one agrees again."""
    ballot = Ballot(
        approves=False, reason=TAKEN_BACK, content=tag_given(if_match, _CONTENT)
    )
    once = await keyed.once(_receipt)
    return _receipt(await verbs.requests.vote(who, release, ballot, once)).response()


@serve(router, operations.WITHDRAW_REQUEST)
async def withdraw(
    request: Request, release: ReleaseId, who: Who, verbs: Verbs, keyed: OnlyOnce
) -> Response:
    """Take back a request of one's own; or any to correct a past release."""
    reason = await reason_of(request, who, Action.SUBMIT_RELEASE, Action.RECORD_PAST)
    once = await keyed.once(lambda found: answer_of(withdrawn_view(found)))
    found = await verbs.requests.withdraw(who, release, reason, once)
    return json_response(withdrawn_view(found))


@serve(router, operations.REQUEST)
async def one(
    release: ReleaseId, who: Who, verbs: Verbs, text: WithText = False
) -> Response:
    """Return a request: its content, its effect, and its votes."""
    request_found = await verbs.requests.one(who, release)
    decision = await verbs.threads.compute(
        lambda: decision_view(request_found.decision, text=text, losses="none")
    )
    return json_response(
        schema.RequestDetails(
            **asdict(pending_view(request_found.pending)),
            body=release_to_plain(request_found.pending.release),
            decision=decision,
            votes=_vote_views(request_found),
        ),
        etag=request_found.pending.request.content,
    )


def _listed(one: PendingRequest, *, recorded: bool) -> schema.ListedRequest:
    body = release_to_plain(one.release) if recorded else UNSET
    return schema.ListedRequest(**asdict(pending_view(one)), body=body)


def _requested(found: Requested) -> Answer:
    return answer_of(request_view(found))


def _receipt(vote: RecordedVote) -> Answer:
    return answer_of(receipt_view(vote))


def _vote_views(request_found: VisibleRequest) -> tuple[schema.Vote, ...]:
    content = request_found.pending.request.content
    return tuple(
        vote_view(one, current=one.content == content) for one in request_found.votes
    )
