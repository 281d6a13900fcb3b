"""`/policies` and `/rules`: active and proposed policies, and the status of rules."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.convertors import (  # codespell:ignore convertors
    StringConvertor,
    register_url_convertor,
)
from starlette.requests import Request
from starlette.responses import Response

from modicum.api import operations
from modicum.api.local.views.ledger import problems_view
from modicum.api.permissions.actions import Action
from modicum.api.schema.policy import Lint
from modicum.server.auth.authentication import Who
from modicum.server.components import Verbs
from modicum.server.inputs.body import body_of
from modicum.server.responses import json_response
from modicum.server.routes.openapi_parts import serve


class _Digest(StringConvertor):
    """A segment without an action: `/policies/{digest}:activate` is another path."""

    regex = "[^/]+(?<!:activate)"


register_url_convertor("digest", _Digest())

router = APIRouter(tags=["policies"])

#: Maximum number of spenders of a cell listed.
SPENDERS_MAX = 100


@serve(router, operations.LINT_POLICY)
async def lint(request: Request, who: Who, verbs: Verbs) -> Response:
    """Check a policy; mistakes have positions. Writes nothing."""
    body = await body_of(request, who, Action.COMPILE_POLICY)
    compiled = await verbs.policies.compile(who, body)
    return json_response(
        Lint(
            ok=True,
            name=compiled.policy.name,
            digest=compiled.policy.digest,
            rules=len(compiled.rules),
            release_rules=len(compiled.release_rules),
            warnings=problems_view(compiled.warnings),
        )
    )
