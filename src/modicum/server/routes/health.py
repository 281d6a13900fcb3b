"""Liveness and readiness of the server. They are public."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from modicum.core.errors import Code, ModicumError, Problem, UnavailableError
from modicum.server.components import parts_of
from modicum.server.responses import json_response

router = APIRouter(include_in_schema=False)


@router.get("/")
async def home() -> Response:
    """Return a start page for browsers."""
    return PlainTextResponse(
        "This is modicum. Its API is described at /api/v1/openapi.json\n"
    )


@router.get("/healthz")
async def health() -> Response:
    """Return that the process is alive."""
    return json_response({"status": "ok"})


@router.get("/readyz")
async def ready(request: Request) -> Response:
    """Return whether requests are accepted, and the ledger is ready for decisions."""
    parts = parts_of(request)
    if parts.is_leaving:
        raise UnavailableError(
            Problem(
                Code.LEDGER_BUSY, "this server is shutting down", help="use another"
            )
        )
    try:
        await parts.service.threads.must_be_sound()
    except ModicumError as error:
        parts.watch.log.not_ready(error.code.value)
        # The cause is shown only to those who may read the ledger.
        raise UnavailableError(
            Problem(Code.LEDGER_BUSY, "the ledger cannot be read now")
        ) from error
    return json_response({"status": "ready"})
