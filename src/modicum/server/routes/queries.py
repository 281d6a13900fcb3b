"""`/queries`: private queries as releases."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from modicum.api import operations
from modicum.api.permissions.actions import Action
from modicum.api.schema.release import QueryInput
from modicum.server.auth.authentication import Who
from modicum.server.components import Verbs
from modicum.server.inputs.body import input_of
from modicum.server.responses import json_response
from modicum.server.routes.openapi_parts import serve

router = APIRouter(tags=["queries"])


@serve(router, operations.PLAN_QUERY)
async def plan(request: Request, who: Who, verbs: Verbs) -> Response:
    """Compile a query to a release: return its cost and the decision. Writes nothing.

    No table is read.
    """
    sent = await input_of(request, who, QueryInput, Action.CHECK_RELEASE)
    return json_response(await verbs.queries.plan(who, sent))
