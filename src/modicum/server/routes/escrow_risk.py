"""`/escrow/risk`: for which epsilon owners of data may agree to a query of it."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from modicum.api import operations
from modicum.api.permissions.actions import Action
from modicum.server.auth.authentication import Who
from modicum.server.components import Verbs
from modicum.server.inputs.body import form_of
from modicum.server.inputs.escrow_risk import SCHEMA, read_risk
from modicum.server.responses import json_response
from modicum.server.routes.openapi_parts import body_of, serve

router = APIRouter(tags=["escrow"])

_ASKED = body_of(
    SCHEMA, "a query of a contract, or a query file, and how alike people are to be"
)


@serve(router, operations.ESCROW_RISK, _ASKED)
async def risk(request: Request, who: Who, verbs: Verbs) -> Response:
    """Choose by risk the epsilon for a query, before a row is read. Writes nothing.

    It is the same whatever the vault holds, so that analysts may know it.
    """
    asked = read_risk(await form_of(request, who, Action.READ_DATA))
    return json_response(await verbs.escrow_contracts.risk(who, asked))
