"""`/metrics`: for Prometheus."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from modicum.api.permissions.actions import Action
from modicum.server.auth.authentication import Who
from modicum.server.components import parts_of
from modicum.server.telemetry.prometheus import MEDIA_TYPE, Page

router = APIRouter(include_in_schema=False)


@router.get("/metrics")
async def metrics(request: Request, who: Who) -> Response:
    """Return the metrics of the ledger, and of the processes that serve it."""
    who.must(Action.READ_METRICS)
    parts = parts_of(request)
    found = await parts.remembered.found()
    age = 0.0 if found is None else parts.remembered.age(found)
    if found is not None and parts.decider.is_broken:
        found = replace(found, is_sound=False)  # Seen since the last look.
    counted, line = parts.watch.counts.collect(), parts.decider.waiting
    ready = parts.decider.readiness.outcome()
    trail = None if parts.access is None else parts.access.state()
    page = Page(counted, found, age, line, ready, trail)
    return Response(page.text(), media_type=MEDIA_TYPE)
