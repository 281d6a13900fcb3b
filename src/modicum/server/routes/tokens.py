"""`/tokens`: API tokens of one's own, and of programs."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path
from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response

from modicum.api import operations
from modicum.api.permissions.actions import Action, Role
from modicum.api.permissions.identity import Grants, Identity
from modicum.api.permissions.tokens import (
    DAY_SECONDS,
    TOKEN_DAYS,
    TOKEN_DAYS_MAX,
    TokenTerms,
)
from modicum.api.schema.account import IssuedToken, TokenList
from modicum.core.document import Node
from modicum.core.errors import Code
from modicum.core.fields import Fields
from modicum.core.reader import boolean, choice, count, items, text
from modicum.server.auth.authentication import Who
from modicum.server.auth.names import program_actor
from modicum.server.components import Verbs
from modicum.server.inputs.body import form_of
from modicum.server.responses import json_response
from modicum.server.routes import openapi_parts
from modicum.server.routes.openapi_parts import serve
from modicum.system.clock import SystemClock

router = APIRouter(tags=["identity"])

_ROLES: Final = [role.value for role in Role]
_TERMS: Final[dict[str, Any]] = openapi_parts.body_of(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 200},
            "actor": {"type": "string", "minLength": 1, "maxLength": 200},
            "service": {"type": "boolean"},
            "expires_in_days": {
                "type": "integer",
                "minimum": 1,
                "maximum": TOKEN_DAYS_MAX,
            },
            "grants": {
                "type": "object",
                "propertyNames": {"enum": _ROLES},
                "additionalProperties": {
                    "type": "array",
                    "items": {"type": "string", "minLength": 1, "maxLength": 200},
                    "minItems": 1,
                },
            },
        },
        "additionalProperties": False,
    },
    "what it is for; without `grants`, all that you may",
)


@serve(router, operations.TOKENS)
async def tokens(who: Who, verbs: Verbs) -> Response:
    """Return your tokens; and those of others that you manage."""
    now = SystemClock().now()
    found = await verbs.tokens.listed(who)
    return json_response(TokenList(tokens=tuple(one.view(now) for one in found)))


@serve(router, operations.ISSUE_TOKEN, _TERMS)
async def make(request: Request, who: Who, verbs: Verbs) -> Response:
    """Make a token. It is shown once: keep it where nobody else reads it."""
    terms = _terms(await form_of(request, who, Action.MANAGE_OWN_TOKENS), who)
    issued = await verbs.tokens.make(who, terms)
    shown = asdict(issued.token.view(SystemClock().now()))
    return json_response(IssuedToken(**shown, token=issued.text), 201)


@serve(router, operations.REVOKE_TOKEN)
async def revoke(
    token: Annotated[str, Path(max_length=60)], who: Who, verbs: Verbs
) -> Response:
    """Revoke a token; again, it changes nothing."""
    found = await verbs.tokens.revoke(who, token)
    return json_response(found.view(SystemClock().now()))


def _terms(node: Node, who: Identity) -> TokenTerms:
    """Return what a token is to be."""
    fields = Fields(node, "the token")
    name, actor = fields.take_optional("name"), fields.take_optional("actor")
    service, days = (
        fields.take_optional("service"),
        fields.take_optional("expires_in_days"),
    )
    grants = fields.take_optional("grants")
    fields.finish()
    length = (
        TOKEN_DAYS
        if days is None
        else count(days, "`expires_in_days`", at_least=1, at_most=TOKEN_DAYS_MAX)
    )
    is_service = service is not None and boolean(service, "`service`")
    called = who.name if actor is None else text(actor, "`actor`")
    return TokenTerms(
        program_actor(called) if is_service and actor is not None else called,
        who.grants if grants is None else _grants(grants),
        is_service=is_service,
        name="" if name is None else text(name, "`name`"),
        seconds=length * DAY_SECONDS,
    )


def _grants(node: Node) -> Grants:
    found: dict[Role, frozenset[str]] = {}
    for key, value in Fields(node, "`grants`").rest():
        role = Role(choice(key, "a role", _ROLES, Code.UNKNOWN_CHOICE))
        found[role] = frozenset(
            text(one, "a data set") for one in items(value, f"`{role.value}`")
        )
    return found
