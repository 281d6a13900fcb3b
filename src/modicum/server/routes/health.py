"""Whether the server lives, and whether it can be asked. Anybody may ask that."""

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
    """Say what this is, to whoever looks with a browser."""
    return PlainTextResponse(
        "This is modicum. Its API is described at /api/v1/openapi.json\n"
    )


@router.get("/healthz")
async def health() -> Response:
    """Say that the process answers."""
    return json_response({"status": "ok"})


@router.get("/readyz")
async def ready(request: Request) -> Response:
    """Say whether requests are taken on, and the ledger can be decided on."""
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
        # What is wrong with the ledger is for those who may look at it.
        raise UnavailableError(
            Problem(Code.LEDGER_BUSY, "the ledger cannot be read now")
        ) from error
    return json_response({"status": "ready"})
