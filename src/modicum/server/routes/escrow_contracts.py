"""`/escrow/contracts`: contracts: proposals, votes, runs and disclosures."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from modicum.api import operations
from modicum.api.local.escrow.approvals import RecordedContractVote
from modicum.api.local.governance.approvals import Ballot
from modicum.api.local.views.contracts import (
    consents_view,
    contract_view,
    details_view,
    listed_view,
    receipt_view,
    votes_view,
)
from modicum.api.permissions.actions import Action
from modicum.api.schema.approval import Statement
from modicum.api.schema.escrow import (
    ContractList,
    ContractVotes,
)
from modicum.ledger.state.flow import Flow
from modicum.server.auth.authentication import Who
from modicum.server.components import Verbs
from modicum.server.idempotency import OnlyOnce
from modicum.server.inputs.body import body_of
from modicum.server.inputs.contract import read_contract
from modicum.server.responses import Answer, answer_of, json_response
from modicum.server.routes.jobs import job_response
from modicum.server.routes.openapi_parts import IfMatch, serve, tag_given
from modicum.server.routes.path_ids import LiteralEnd
from modicum.server.routes.votes import ballot_of, reason_of
from modicum.server.service.votes import TAKEN_BACK

router = APIRouter(tags=["escrow"], route_class=LiteralEnd)

ContractId = Annotated[str, Path(min_length=1, max_length=200)]
Recorded = Annotated[
    bool, Query(description="include the exact form stored in the ledger")
]

_CONTENT = "the contract"


@serve(router, operations.CONTRACTS)
async def contracts(who: Who, verbs: Verbs, recorded: Recorded = False) -> Response:
    """Return the contracts that you take part in, or may read, oldest first."""
    found = await verbs.escrow_contracts.all(who)
    listed = tuple(listed_view(one, recorded=recorded) for one in found)
    return json_response(ContractList(contracts=listed))


@serve(router, operations.PROPOSE_CONTRACT)
async def propose(
    request: Request, who: Who, verbs: Verbs, keyed: OnlyOnce
) -> Response:
    """Propose a contract. Nothing flows before the owners of the data approve it."""
    body = await body_of(request, who, Action.ASK_CONTRACT)
    sent = read_contract(await verbs.threads.form(who.name, body))
    once = await keyed.once(_flow)
    return _flow(await verbs.escrow_asking.propose(who, sent, once)).response()


@serve(router, operations.CONTRACT_STATEMENT)
async def statement(
    name: ContractId,
    who: Who,
    verbs: Verbs,
    reason: Annotated[str, Query(min_length=1, max_length=2000)],
    key: Annotated[
        str, Query(pattern="^[0-9a-f]{64}$", description="your raw public key")
    ],
    approves: bool = True,
) -> Response:
    """Return the statement to be signed by an owner who votes with their own key."""
    ballot = Ballot(approves, reason)
    text, head = await verbs.escrow_contracts.statement(who, name, ballot, key)
    return json_response(Statement(statement=text, head=head))


@serve(router, operations.CONTRACT_APPROVALS)
async def votes(name: ContractId, who: Who, verbs: Verbs) -> Response:
    """Return the consents of the owners, and their votes."""
    review, votes = await verbs.escrow_contracts.votes(who, name)
    return json_response(
        ContractVotes(consent=consents_view(review.consents), votes=votes_view(votes)),
        etag=review.flow.contract.digest,
    )


@serve(router, operations.APPROVE_CONTRACT)
async def cast_vote(
    request: Request,
    name: ContractId,
    who: Who,
    verbs: Verbs,
    keyed: OnlyOnce,
    if_match: IfMatch = None,
) -> Response:
    """Approve or refuse a contract, as an owner of its data.

    `If-Match` is the ETag of the contract: the digest of what was reviewed.
    """
    ballot = await ballot_of(
        request,
        tag_given(if_match, _CONTENT),
        who,
        Action.APPROVE_CONTRACT,
        Action.TAKE_PART,
    )
    once = await keyed.once(_receipt)
    found = await verbs.escrow_acts.vote(who, name, ballot, once)
    return _receipt(found).response()


@serve(router, operations.UNAPPROVE_CONTRACT)
async def take_back(
    name: ContractId,
    who: Who,
    verbs: Verbs,
    keyed: OnlyOnce,
    if_match: IfMatch = None,
) -> Response:
    """Take one's agreement back: it blocks, until one agrees again."""
    tag = tag_given(if_match, _CONTENT)
    ballot = Ballot(approves=False, reason=TAKEN_BACK, content=tag)
    once = await keyed.once(_receipt)
    found = await verbs.escrow_acts.vote(who, name, ballot, once)
    return _receipt(found).response()


@serve(router, operations.WITHDRAW_CONTRACT)
async def withdraw(
    request: Request, name: ContractId, who: Who, verbs: Verbs, keyed: OnlyOnce
) -> Response:
    """Withdraw a contract as its requester or one of its recipients."""
    reason = await reason_of(request, who, Action.TAKE_PART)
    once = await keyed.once(_flow)
    found = await verbs.escrow_acts.withdraw(who, name, reason, once)
    return _flow(found).response()


@serve(router, operations.RUN_CONTRACT)
async def run(name: ContractId, who: Who, verbs: Verbs) -> Response:
    """Start a run of a contract; its results are withheld.

    The job's `result` has the `contract`, and for a query that a rule denies the
    decision as `denied`. Once started, the run is counted and its charge is spent,
    whatever its outcome; cancelling the job does not end it.
    """
    return job_response(await verbs.escrow_acts.run(who, name))


@serve(router, operations.RECEIVE)
async def receive(name: ContractId, who: Who, verbs: Verbs) -> Response:
    """Return a contract's disclosure to one of its recipients. Each call is a use."""
    found = await verbs.escrow_acts.receive(who, name)
    answer = json_response(found.view)
    answer.headers["Cache-Control"] = "no-store"
    return answer


@serve(router, operations.CONTRACT)
async def one(
    name: ContractId, who: Who, verbs: Verbs, recorded: Recorded = False
) -> Response:
    """Return a contract as its owners read it before they agree."""
    shown = await verbs.escrow_contracts.one(who, name)
    document = await verbs.threads.compute(
        lambda: details_view(
            shown.found,
            shown.program,
            shown.inspection,
            deep=False,
            recorded=recorded,
        )
    )
    return json_response(document, etag=shown.found.review.flow.contract.digest)


# --- inside ---------------------------------------------------------------------------


def _flow(flow: Flow) -> Answer:
    return answer_of(contract_view(flow), etag=flow.contract.digest)


def _receipt(vote: RecordedContractVote) -> Answer:
    return answer_of(receipt_view(vote))
