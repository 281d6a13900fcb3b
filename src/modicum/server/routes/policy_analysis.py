"""`/policies:compile`, `:diff`, `:simulate`, and single rules."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response

from modicum.api import operations
from modicum.api.local.handlers.pagination import after_of, cursor_of
from modicum.api.local.views.compiled_rules import compiled_rule_view, compiled_view
from modicum.api.local.views.ledger import problems_view
from modicum.api.local.views.policy_changes import conflict_view, differences_view
from modicum.api.local.visibility import masked
from modicum.api.permissions.actions import Action
from modicum.api.schema.policy import CompiledPage
from modicum.api.schema.policy_change import DiffConflict, Differences
from modicum.server.auth.authentication import Who
from modicum.server.components import Verbs
from modicum.server.inputs.body import body_of
from modicum.server.responses import json_response
from modicum.server.routes.jobs import job_response
from modicum.server.routes.openapi_parts import Cursor, Limit, serve

router = APIRouter(tags=["policies"])


@serve(router, operations.COMPILE_POLICY)
async def compile_policy(
    request: Request, who: Who, verbs: Verbs, limit: Limit = 100, cursor: Cursor = ""
) -> Response:
    """Return the compiled rules of a policy, page by page. Writes nothing.

    Send the same policy with each cursor: the rules are those of the request.
    """
    after = after_of("compiled", cursor)
    body = await body_of(request, who, Action.COMPILE_POLICY)
    found = await verbs.policy_work.compile(who, body, after, limit)
    shown = await verbs.threads.compute(lambda: compiled_view(found.compiled))
    return json_response(
        CompiledPage(
            **asdict(shown),
            list=tuple(map(compiled_rule_view, found.rules)),
            next=cursor_of("compiled", found.after),
        )
    )


@serve(router, operations.DIFF_POLICY)
async def diff(
    request: Request,
    who: Who,
    verbs: Verbs,
    against: Annotated[
        str, Query(max_length=64, description="a digest, or `active`")
    ] = "active",
) -> Response:
    """Return what a policy tightens and loosens, and where history exceeds it.

    Writes nothing. Conflicts with history are shown only to those who may read all
    releases.
    """
    body = await body_of(request, who, Action.COMPILE_POLICY)
    found = await verbs.policy_work.compare(who, body, against)
    preview = found.preview
    conflicts = problems = None
    if preview is not None:
        conflicts = tuple(
            DiffConflict(**asdict(conflict_view(one)), made=one.rule.id in preview.made)
            for one in preview.conflicts
        )
        problems = problems_view(preview.problems)
    shown = Differences(
        **asdict(differences_view(found.old, found.new, found.found)),
        conflicts=conflicts,
        problems=problems,
    )
    return json_response(
        await verbs.threads.read_view(lambda view: masked(view, who, shown))
    )


@serve(router, operations.SIMULATE_POLICY)
async def simulate(request: Request, who: Who, verbs: Verbs) -> Response:
    """Start a simulation of a policy's decisions, release by release."""
    body = await body_of(request, who, Action.SIMULATE_POLICY)
    return job_response(await verbs.policy_work.simulate(who, body))
