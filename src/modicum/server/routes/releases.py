"""`/releases`: submitting, starting, publishing and reading releases."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query
from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response

from modicum.api import operations
from modicum.api.local import Decision
from modicum.api.local.decision import LossesShown
from modicum.api.local.governance.requests import Requested
from modicum.api.local.submit import RESERVATION_SECONDS, RESERVATION_SECONDS_MAX
from modicum.api.local.views.approvals import request_view
from modicum.api.local.views.problem_details import details_of
from modicum.api.local.views.releases import decision_view, listed_view, options_view
from modicum.api.permissions.actions import Action
from modicum.api.schema import release as schema
from modicum.core.errors import AccessError, ApprovalError, Code, InputError, Problem
from modicum.ledger import Standing
from modicum.policy.json_schema.release import release_schema
from modicum.server.auth.authentication import Who
from modicum.server.components import Service, Verbs, parts_of
from modicum.server.idempotency import Keyed, OnlyOnce, stored_response
from modicum.server.inputs.body import body_of
from modicum.server.responses import Answer, answer_of, json_response
from modicum.server.routes.openapi_parts import ReleaseId, serve
from modicum.server.routes.votes import reason_of
from modicum.server.service.release_batches import Outcome
from modicum.server.service.releases import SubmitOptions
from modicum.server.telemetry.middleware import note_code
from modicum.writer.idempotency import Replayed

router = APIRouter(tags=["releases"])

Published = Annotated[bool, Query(description="it is already published")]
ReserveSeconds = Annotated[
    int,
    Query(
        ge=1, le=RESERVATION_SECONDS_MAX, description="the lifetime of the reservation"
    ),
]
WithText = Annotated[bool, Query(description="include an explanation as text lines")]


def release_component() -> dict[str, Any]:
    """Return the JSON Schema of one release, for the OpenAPI description."""
    return dict(release_schema())


# --- deciding -----------------------------------------------------------------------


@serve(router, operations.CHECK_RELEASE)
async def check(
    request: Request,
    who: Who,
    verbs: Verbs,
    losses: Annotated[
        LossesShown,
        Query(description="the rules to include; more of them take longer"),
    ] = "none",
    explain: Annotated[
        bool, Query(description="include the releases that filled the cells")
    ] = False,
    text: WithText = False,
) -> Response:
    """Dry run: return the decision. Writes nothing."""
    body = await body_of(request, who, Action.CHECK_RELEASE)
    if explain:
        decision, found = await verbs.releases.explained(who, body)
        view = await verbs.threads.compute(
            lambda: decision_view(decision, found, text=text, losses=losses)
        )
        return json_response(view, etag=decision.head)
    decision = await verbs.releases.check(who, body)
    if losses == "none" and not text:
        return _brief(decision).response()
    view = await verbs.threads.compute(
        lambda: decision_view(decision, text=text, losses=losses)
    )
    return json_response(view, etag=decision.head)


@serve(router, operations.FIT_RELEASE)
async def fit(
    request: Request,
    who: Who,
    verbs: Verbs,
    vary: Annotated[str, Query(max_length=40, description="what may vary")] = "noise",
    mechanism: Annotated[
        str | None, Query(max_length=200, description="the only one that may change")
    ] = None,
) -> Response:
    """Return the closest variant of a release that would pass now. Writes nothing."""
    body = await body_of(request, who, Action.CHECK_RELEASE)
    return json_response(
        await verbs.releases.consider(
            who, body, lambda one: one.largest_fit(vary, mechanism).view
        )
    )


@serve(router, operations.RELEASE_OPTIONS)
async def options(request: Request, who: Who, verbs: Verbs) -> Response:
    """Return single changes after which a release would pass. Writes nothing."""
    body = await body_of(request, who, Action.CHECK_RELEASE)
    return json_response(
        await verbs.releases.consider(
            who, body, lambda one: options_view(one, one.options())
        )
    )


@serve(router, operations.SUBMIT_RELEASE)
async def submit(
    request: Request,
    who: Who,
    verbs: Verbs,
    keyed: OnlyOnce,
    publish: Published = False,
    reserve_seconds: ReserveSeconds = RESERVATION_SECONDS,
    reason: Annotated[
        str,
        Query(
            max_length=2000, description="the reason; approval is requested, if needed"
        ),
    ] = "",
    text: WithText = False,
) -> Response:
    """Decide a release and, if it is allowed, reserve its loss. A denial is a 200.

    If approval is needed and there is a `reason`, it is requested: a 202. Submit the
    release again once it is approved.
    """
    body = await body_of(request, who, Action.SUBMIT_RELEASE)
    how = SubmitOptions(publish=publish, reserve_seconds=reserve_seconds)
    try:
        once = await keyed.once(_brief)
        found = await verbs.releases.submit(who, body, how, once)
        stored = keyed.stored(found)
        if stored is not None and not text:
            return stored.response()
        return await _decided(found, verbs, text=text)
    except ApprovalError:
        if not reason:
            raise
    # Nothing was written, so the key is still free.
    once = await keyed.once(_requested)
    return _requested(await verbs.requests.submit(who, body, reason, once)).response()


def _requested(found: Requested) -> Answer:
    return answer_of(request_view(found), 202)


@serve(router, operations.SUBMIT_BATCH)
async def submit_batch(
    request: Request,
    who: Who,
    verbs: Verbs,
    keyed: OnlyOnce,
    publish: Published = False,
    reserve_seconds: ReserveSeconds = RESERVATION_SECONDS,
    text: WithText = False,
) -> Response:
    """Decide releases in order, each by itself, as submitting it alone would.

    The answers are in the same order: a decision or a problem for each release. They
    are enqueued together or, if the server is too busy, none of them is. Repeated under
    its key, a batch is completed: what was decided before is answered as before.
    """
    body = await body_of(request, who, Action.SUBMIT_RELEASE)
    if not body.is_json:
        raise InputError(
            Problem(Code.NOT_ACCEPTED, "a batch is JSON", help="send application/json")
        )
    bodies = await verbs.releases.read(who, body)
    parts_of(request).rates.note(who.name, len(bodies) - 1)  # Besides the request.
    how = SubmitOptions(publish=publish, reserve_seconds=reserve_seconds)
    once = await keyed.once(_brief)
    found = await verbs.releases.submit_all(who, bodies, how, once)
    if any(isinstance(one, AccessError) for one in found):  # Its status is 200.
        note_code(request, Code.FORBIDDEN)
    trace = getattr(request.state, "trace", "")

    def batch() -> schema.Batch:
        return schema.Batch(
            answers=tuple(_item(one, keyed, trace, text) for one in found)
        )

    return json_response(await verbs.threads.compute(batch) if text else batch())


def _item(found: Outcome, keyed: Keyed, trace: str, text: bool) -> schema.BatchItem:
    stored = keyed.stored(found)
    if stored is not None and not text:
        raw: Any = msgspec.Raw(stored.body)
        return schema.BatchItem(decision=raw)
    if isinstance(found, Decision):
        return schema.BatchItem(decision=decision_view(found, text=text, losses="none"))
    if isinstance(found, Replayed):
        raw = stored_response(found).body
        return schema.BatchItem(decision=raw, replayed=True)
    return schema.BatchItem(problem=details_of(found, trace))


@serve(router, operations.BACKFILL)
async def backfill(
    request: Request,
    who: Who,
    verbs: Verbs,
    keyed: OnlyOnce,
    text: WithText = False,
) -> Response:
    """Count a release that happened before. It cannot be denied."""
    body = await body_of(request, who, Action.RECORD_PAST)
    once = await keyed.once(_brief)
    found = await verbs.releases.backfill(who, body, once)
    return await _decided(found, verbs, text=text)


# --- the life of a release ----------------------------------------------------------


@serve(router, operations.START_RELEASE)
async def start(
    release: ReleaseId, who: Who, verbs: Verbs, keyed: OnlyOnce
) -> Response:
    """Note, durably, that rows are about to be read; from here on it is spent."""
    return _stands(
        await verbs.carrying_out.start(who, release, await keyed.once(_standing))
    )


@serve(router, operations.PUBLISH_RELEASE)
async def publish(
    release: ReleaseId, who: Who, verbs: Verbs, keyed: OnlyOnce
) -> Response:
    """Mark a started release as published."""
    return _stands(
        await verbs.carrying_out.publish(who, release, await keyed.once(_standing))
    )


@serve(router, operations.CANCEL_RELEASE)
async def cancel(
    request: Request,
    release: ReleaseId,
    who: Who,
    verbs: Verbs,
    keyed: OnlyOnce,
) -> Response:
    """Cancel a reservation that was not started; its loss is released."""
    reason = await reason_of(
        request, who, Action.CARRY_OUT_RELEASE, Action.CARRY_OUT_ANY
    )
    return _stands(
        await verbs.carrying_out.cancel(
            who, release, reason, await keyed.once(_standing)
        )
    )


# --- looking ------------------------------------------------------------------------


# --- inside -------------------------------------------------------------------------


def _brief(decision: Decision) -> Answer:
    # Losses are converted by the caller's thread: the writer, which stores this, would
    # be blocked.
    return answer_of(decision.view(losses="none"), etag=decision.head)


async def _decided(decision: Decision, verbs: Service, *, text: bool) -> Response:
    if not text:
        return _brief(decision).response()
    view = await verbs.threads.compute(lambda: decision_view(decision, text=True))
    return json_response(view, etag=decision.head)


def _standing(standing: Standing) -> Answer:
    listed = asdict(listed_view(standing))
    return answer_of(schema.ReleaseState(**listed, content=standing.content))


def _stands(standing: Standing) -> Response:
    return _standing(standing).response()
