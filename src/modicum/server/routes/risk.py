"""`/risk/analyses`: how exposed the people of a table are, for its controller only."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from modicum.api import operations
from modicum.api.permissions.actions import Action
from modicum.api.schema.risk import AnalysisInput
from modicum.server.auth.authentication import Who
from modicum.server.components import Verbs
from modicum.server.inputs.body import input_of
from modicum.server.routes.jobs import begun
from modicum.server.routes.openapi_parts import serve

router = APIRouter(tags=["risk"])


@serve(router, operations.ANALYZE_RISK)
async def analyze(request: Request, who: Who, verbs: Verbs) -> Response:
    """Begin to measure what a query tells about each person, for each epsilon.

    Only data stewards of the data set may, and only whoever began it sees what was
    found: it is computed from rows without noise. The job's `result` is what `modicum
    risk rdr --json` tells; with `groups`, what `modicum risk compare-groups` does.
    """
    sent = await input_of(request, who, AnalysisInput, Action.ANALYZE_RISK)
    return begun(verbs.risk.begin(who, sent.dataset, sent))
