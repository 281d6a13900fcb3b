"""`/me`: the caller and their permissions."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter
from starlette.responses import Response

from modicum.api import operations
from modicum.api.permissions.actions import Action
from modicum.api.schema.account import Me
from modicum.server.auth.authentication import Who
from modicum.server.responses import json_response
from modicum.server.routes.openapi_parts import serve

router = APIRouter(tags=["identity"])

#: Actions refused to tokens; they may list and revoke their owner's.
_MAKES_TOKENS: Final = frozenset({Action.MANAGE_OWN_TOKENS, Action.MANAGE_TOKENS})


@serve(router, operations.ME)
async def me(who: Who) -> Response:
    """Return the caller, their roles, and the actions allowed for some data set.

    A token cannot create tokens: managing tokens is not listed then.
    """
    sets = {one for each in who.grants.values() for one in each}
    may = [
        one.value
        for one in Action
        if (any(who.may(one, each) for each in sets) or who.may(one))
        and not (who.by_token and one in _MAKES_TOKENS)
    ]
    return json_response(
        Me(
            name=who.name,
            is_service=who.is_service,
            via=who.via,
            roles={role.value: tuple(sorted(own)) for role, own in who.grants.items()},
            actions=tuple(may),
        )
    )


@serve(router, operations.PING)
async def ping(_: Who) -> Response:
    """Return nothing to authenticated callers: credentials and connection work."""
    return Response(status_code=204)
