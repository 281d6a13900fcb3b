"""`/rounds` and `/plans`: planning which releases to make together."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from modicum.api import operations
from modicum.api.local.plans.commit import Committed
from modicum.api.local.plans.rounds import Round
from modicum.api.local.submit import RESERVATION_SECONDS, RESERVATION_SECONDS_MAX
from modicum.api.local.views.rounds import committed_view, round_view
from modicum.api.permissions.actions import Action
from modicum.api.schema.plan import RoundInput
from modicum.server.auth.authentication import Who
from modicum.server.components import Verbs
from modicum.server.idempotency import OnlyOnce
from modicum.server.inputs.body import body_of, input_of
from modicum.server.responses import Answer, answer_of
from modicum.server.routes.jobs import job_response
from modicum.server.routes.openapi_parts import IfMatch, serve, tag_given
from modicum.server.routes.path_ids import LiteralEnd
from modicum.server.service.rounds import RequestsSent

router = APIRouter(tags=["rounds"], route_class=LiteralEnd)


Identifier = Annotated[str, Path(min_length=1, max_length=200)]
Solver = Literal[
    "fcfs",
    "dpf",
    "dpf-weighted",
    "dpf-remaining",
    "dpf-weighted-remaining",
    "dpk",
    "guided",
    "ilp",
]


@serve(router, operations.OPEN_ROUND)
async def open_round(
    request: Request, who: Who, verbs: Verbs, keyed: OnlyOnce
) -> Response:
    """Open the next round: budgets are unlocked, and user groups take turns."""
    sent = await input_of(request, who, RoundInput, Action.PLAN_ROUND)
    once = await keyed.once(_opened)
    found = await verbs.rounds.open(who, sent.round or "", sent.unlocked, once)
    return _opened(found).response()


@serve(router, operations.PLAN_ROUND)
async def plan_round(
    request: Request,
    round_id: Identifier,
    who: Who,
    verbs: Verbs,
    solver: Annotated[Solver, Query(description="the solver")] = "dpk",
) -> Response:
    """Start a selection of requests of the open round to reserve together.

    Nothing is reserved: commit the plan in the job's result.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    by_line = kind == operations.LINES
    if by_line:
        who.must_some(Action.PLAN_ROUND)
        text = await request.body()
    else:
        text = (await body_of(request, who, Action.PLAN_ROUND)).small()
    sent = RequestsSent(text, by_line, solver)
    return job_response(await verbs.rounds.make_plan(who, round_id, sent))


@serve(router, operations.COMMIT_PLAN)
async def commit(
    request: Request,
    who: Who,
    verbs: Verbs,
    keyed: OnlyOnce,
    if_match: IfMatch = None,
    reserve_seconds: Annotated[
        int,
        Query(
            ge=1,
            le=RESERVATION_SECONDS_MAX,
            description="the lifetime of the reservation",
        ),
    ] = RESERVATION_SECONDS,
) -> Response:
    """Reserve everything that a plan accepts, or nothing.

    `If-Match` is the head of the ledger that the plan was made on.
    """
    tag = tag_given(if_match, "the ledger's head")
    body = await body_of(request, who, Action.COMMIT_PLAN)
    written = await verbs.threads.form(who.name, body)
    once = await keyed.once(_committed)
    done = await verbs.rounds.commit(who, written, tag, reserve_seconds, once)
    return _committed(done).response()


# --- inside ---------------------------------------------------------------------------


def _opened(found: Round) -> Answer:
    return answer_of(round_view(found))


def _committed(done: Committed) -> Answer:
    return answer_of(committed_view(done), etag=done.head)
