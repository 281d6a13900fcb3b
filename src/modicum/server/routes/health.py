"""Liveness and readiness of the server. They are public."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from modicum.core.errors import Code, Problem
from modicum.server.body_limits import has_body
from modicum.server.components import Parts, parts_of
from modicum.server.problems import problems_response
from modicum.server.responses import json_response

router = APIRouter(include_in_schema=False)


@router.get("/")
async def home() -> Response:
    """Return a start page for browsers."""
    return PlainTextResponse(
        "This is modicum. Its API is described at /api/v1/openapi.json\n"
    )


@router.get("/healthz")
async def health(request: Request) -> Response:
    """Return that the process is alive."""
    return _alive(parts_of(request), request.scope)


@router.get("/readyz")
async def ready(request: Request) -> Response:
    """Return whether requests are accepted, and the ledger is ready for decisions."""
    return _ready(parts_of(request), request.scope)


def _alive(_: Parts, __: Scope) -> Response:
    return json_response({"status": "ok"})


def _ready(parts: Parts, scope: Scope) -> Response:
    if parts.is_leaving:
        message, remedy = "this server is shutting down", "use another"
        problems = [Problem(Code.LEDGER_BUSY, message, help=remedy)]
    else:
        # The causes are shown only to those who may read the ledger.
        problems = [Problem(one, "nothing can be decided now") for one in parts.codes()]
    if not problems:
        return json_response({"status": "ready"})
    state = scope.setdefault("state", {})
    state["code"] = problems[0].code.value
    trace = state.get("trace", "")
    return problems_response(503, tuple(problems), trace=trace)


_ANSWERS: Final[Mapping[str, Callable[[Parts, Scope], Response]]] = MappingProxyType(
    {"/healthz": _alive, "/readyz": _ready}
)


class HealthShell:
    """Answers `/healthz` and `/readyz` before all that requests wait for.

    No limit counts them, and they use no lock, store or thread of a pool.

    Args:
        app: The application, for everything else.
        parts: The parts of the server.
    """

    def __init__(self, app: ASGIApp, parts: Parts) -> None:
        self._app = app
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        answer = _ANSWERS.get(scope["path"]) if scope["type"] == "http" else None
        if answer is None or scope["method"] != "GET" or has_body(scope):
            await self._app(scope, receive, send)
            return
        scope["route"] = _ROUTES[scope["path"]]
        await answer(self._parts, scope)(scope, receive, send)


#: The route of each, by which its requests are counted.
_ROUTES: Final = MappingProxyType(
    {
        route.path: route
        for route in router.routes
        if isinstance(route, APIRoute) and route.path in _ANSWERS
    }
)
