"""`/tokens`: API tokens of one's own, and of programs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from msgspec import UNSET
from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response

from modicum.api import operations
from modicum.api.permissions.actions import Action, Role
from modicum.api.permissions.identity import Identity
from modicum.api.permissions.tokens import DAY_SECONDS, TokenTerms
from modicum.api.schema.account import IssuedToken, TokenInput, TokenList
from modicum.server.auth.authentication import Who
from modicum.server.auth.names import program_actor
from modicum.server.components import Verbs
from modicum.server.inputs.body import input_of
from modicum.server.responses import json_response
from modicum.server.routes.openapi_parts import serve
from modicum.system.clock import SystemClock

router = APIRouter(tags=["identity"])


@serve(router, operations.TOKENS)
async def tokens(who: Who, verbs: Verbs) -> Response:
    """Return your tokens; and those of others that you manage."""
    now = SystemClock().now()
    found = await verbs.tokens.listed(who)
    return json_response(TokenList(tokens=tuple(one.view(now) for one in found)))


@serve(router, operations.ISSUE_TOKEN)
async def make(request: Request, who: Who, verbs: Verbs) -> Response:
    """Create a token. It is shown once: store it where nobody else can read it."""
    sent = await input_of(request, who, TokenInput, Action.MANAGE_OWN_TOKENS)
    issued = await verbs.tokens.make(who, _terms(sent, who))
    shown = asdict(issued.token.view(SystemClock().now()))
    return json_response(IssuedToken(**shown, token=issued.text), 201)


@serve(router, operations.REVOKE_TOKEN)
async def revoke(
    token: Annotated[str, Path(max_length=60)], who: Who, verbs: Verbs
) -> Response:
    """Revoke a token; again, it changes nothing."""
    found = await verbs.tokens.revoke(who, token)
    return json_response(found.view(SystemClock().now()))


def _terms(sent: TokenInput, who: Identity) -> TokenTerms:
    """Return the terms of a token."""
    actor = sent.actor or who.name
    grants = {Role(role): frozenset(sets) for role, sets in (sent.grants or {}).items()}
    return TokenTerms(
        program_actor(actor) if sent.service and sent.actor else actor,
        who.grants if sent.grants is UNSET else grants,
        is_service=sent.service,
        name=sent.name,
        seconds=sent.expires_in_days * DAY_SECONDS,
    )
