"""The application: routes, and mistakes."""

from __future__ import annotations

import re
from typing import Final

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.telemetry import TelemetryConfig
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Lifespan

from modicum.api.local import handlers
from modicum.api.local.views.problem_details import problem_view, status_of
from modicum.api.operations import PREFIX
from modicum.core.errors import Code, ModicumError, Problem, UnavailableError
from modicum.server.auth.anonymous_limits import AnonymousLimits
from modicum.server.auth.middleware import AuthMiddleware
from modicum.server.body_limits import BODY_BYTES, LimitedBodies
from modicum.server.components import Parts, parts_of
from modicum.server.dispatch import Application
from modicum.server.idempotency import replayed_response
from modicum.server.inputs.body import malformed
from modicum.server.openapi import description_of
from modicum.server.problems import problem_response, problems_response
from modicum.server.rate_limits import LimitedCrowd
from modicum.server.responses import json_response
from modicum.server.routes import (
    audits,
    doctor,
    error_codes,
    escrow_contracts,
    escrow_data,
    escrow_risk,
    health,
    jobs,
    ledgers,
    me,
    metrics,
    policies,
    policy_analysis,
    proposals,
    queries,
    receipts,
    releases,
    requests,
    risk,
    rounds,
    tokens,
)
from modicum.server.routes.reads import routes_of
from modicum.server.telemetry.middleware import TelemetryMiddleware, note_code
from modicum.writer.idempotency import Replayed

_CODES: Final = {
    404: Code.NOT_FOUND,
    405: Code.NOT_ACCEPTED,
    406: Code.NOT_ACCEPTED,
    415: Code.NOT_ACCEPTED,
}

#: Paths for sending data and programs into an escrow.
_DATA_PATHS: Final = re.compile(f"{PREFIX}/escrow/(?:data/[^/]+/versions|contracts)")

#: Modules of read operations, and their OpenAPI tags.
_READS: Final = (
    *((handlers.releases, "releases"), (handlers.policies, "policies")),
    *((handlers.log, "ledger"), (handlers.rounds, "rounds")),
)

_METHODS: Final = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")

#: FastAPI's own traces and logs contain paths, queries and messages: they stay off,
#: whatever the environment sets.
_NO_TELEMETRY: Final[TelemetryConfig] = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


def build(
    parts: Parts,
    living: Lifespan[FastAPI] | None = None,
    body_bytes: int = BODY_BYTES,
    data_bytes: int = 0,
    prefix: str = PREFIX,
) -> FastAPI:
    """Return the application of a ledger."""
    app = Application(
        title="modicum",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=living,
        telemetry=_NO_TELEMETRY,
    )
    app.state.parts = parts
    app.state.prefix = prefix
    # Not within separate routers: FastAPI would create nested ones twice.
    for routes in (
        receipts,  # First, since a release path matches anything.
        *(releases, requests, proposals, policies, ledgers, tokens, me),
        *(policy_analysis, queries, rounds, audits, risk, jobs, doctor),
        *(escrow_data, escrow_contracts, escrow_risk),
    ):
        app.include_router(routes.router, prefix=PREFIX)
    for module, tag in _READS:
        app.include_router(routes_of(module, tag), prefix=PREFIX)
    if parts.console is not None:
        app.include_router(parts.console.router())
    app.include_router(health.router)
    app.include_router(metrics.router)
    app.include_router(error_codes.router)
    app.add_api_route(f"{PREFIX}/openapi.json", _openapi, include_in_schema=False)
    app.add_exception_handler(ModicumError, _mistake)
    app.add_exception_handler(Replayed, _replayed)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _refused)
    larger = (_DATA_PATHS, data_bytes)
    app.add_middleware(LimitedBodies, most=body_bytes, larger=larger)
    app.add_middleware(LimitedCrowd)
    app.add_middleware(AnonymousLimits, rates=parts.anonymous_rates)
    app.add_middleware(health.HealthShell, parts=parts)
    if parts.entrance is not None:
        for router in parts.entrance.routers:
            app.include_router(router)
        app.add_middleware(
            AuthMiddleware, gate=parts.entrance.gate, refuse=problem_response
        )
    app.add_middleware(TelemetryMiddleware, watch=parts.watch)
    return app


def _trace(request: Request) -> str:
    return getattr(request.state, "trace", "")


# --- mistakes -----------------------------------------------------------------------


async def _mistake(request: Request, error: Exception) -> Response:
    assert isinstance(error, ModicumError)
    note_code(request, error.code)
    if status_of(error) >= 500 and not isinstance(error, UnavailableError):
        parts_of(request).watch.log.failed(_trace(request), error, error.code.value)
    return problem_response(error, trace=_trace(request))


async def _replayed(_: Request, found: Exception) -> Response:
    assert isinstance(found, Replayed)
    return replayed_response(found)


async def _malformed(request: Request, error: Exception) -> Response:
    """Answer a request whose parameters have the wrong form."""
    assert isinstance(error, RequestValidationError)
    note_code(request, Code.BAD_REQUEST)
    problems = tuple(map(malformed, error.errors()))
    return problems_response(400, problems, trace=_trace(request))


async def _refused(request: Request, error: Exception) -> Response:
    """Respond to a request without a matching route."""
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, Code.BAD_REQUEST)
    note_code(request, code)
    message = {
        404: "no such resource",
        405: f"{request.method[:20]} is not allowed here",
        408: "the request ended early",
    }.get(error.status_code, "the request was refused")
    problem = Problem(code, message, help="see /api/v1/openapi.json")
    pages = parts_of(request).console
    if pages is not None and pages.serves(request):
        view = problem_view(
            error.status_code, (problem,), kind="input", trace=_trace(request)
        )
        return await pages.refusal(request, view)
    headers = _allow(request) if error.status_code == 405 else error.headers
    return problems_response(
        error.status_code, (problem,), trace=_trace(request), headers=headers
    )


def _allow(request: Request) -> dict[str, str]:
    """Return the `Allow` header of a path.

    Several routes may share it; the one that refused knows only its own methods.
    """
    taken = [
        method
        for method in _METHODS
        if any(
            route.matches({**request.scope, "method": method})[0] == Match.FULL
            for route in request.app.routes
        )
    ]
    return {"Allow": ", ".join(taken)}


# --- the description ----------------------------------------------------------------


async def _openapi(request: Request) -> Response:
    """Return the OpenAPI description; it is public."""
    return json_response(description_of(request.app))
