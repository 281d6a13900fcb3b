"""`/escrow/risk`: for which epsilon owners of data may agree to a query of it."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from modicum.api import operations
from modicum.api.permissions.actions import Action
from modicum.api.schema.escrow_input import RiskInput
from modicum.server.auth.authentication import Who
from modicum.server.components import Verbs
from modicum.server.inputs.body import input_of
from modicum.server.responses import json_response
from modicum.server.routes.openapi_parts import serve

router = APIRouter(tags=["escrow"])


@serve(router, operations.ESCROW_RISK)
async def risk(request: Request, who: Who, verbs: Verbs) -> Response:
    """Choose the epsilon of a query by risk, before a row is read. Writes nothing.

    The result does not depend on the vault, so analysts may see it.
    """
    body = await input_of(request, who, RiskInput, Action.READ_DATA)
    return json_response(await verbs.escrow_contracts.risk(who, body))
