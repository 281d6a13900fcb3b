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
from modicum.server.routes.jobs import job_response
from modicum.server.routes.openapi_parts import serve

router = APIRouter(tags=["risk"])


@serve(router, operations.ANALYZE_RISK)
async def analyze(request: Request, who: Who, verbs: Verbs) -> Response:
    """Start a measurement of what a query reveals about each person, by epsilon.

    This requires a data steward of the data set, and only the caller sees the result:
    it is computed from rows without noise. The job's `result` has the form of `modicum
    risk rdr --json`; with `groups`, of `modicum risk compare-groups`.
    """
    sent = await input_of(request, who, AnalysisInput, Action.ANALYZE_RISK)
    return job_response(verbs.risk.begin(who, sent.dataset, sent))
