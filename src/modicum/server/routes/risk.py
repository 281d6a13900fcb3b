"""`/risk/analyses`: how exposed the people of a table are, for its controller only."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from modicum.api import operations
from modicum.api.permissions.actions import Action
from modicum.server.auth.authentication import Who
from modicum.server.components import Verbs
from modicum.server.inputs.analysis import SCHEMA, read_analysis
from modicum.server.inputs.body import form_of
from modicum.server.routes.jobs import begun
from modicum.server.routes.openapi_parts import body_of, serve

router = APIRouter(tags=["risk"])

_ANALYSIS: dict[str, Any] = body_of(
    SCHEMA, "a data set, a query over its tables, and what is public of them"
)


@serve(router, operations.ANALYZE_RISK, _ANALYSIS)
async def analyze(request: Request, who: Who, verbs: Verbs) -> Response:
    """Begin to measure what a query tells about each person, for each epsilon.

    Only data stewards of the data set may, and only whoever began it sees what was
    found: it is computed from rows without noise. The job's `result` is what `modicum
    risk rdr --json` tells; with `groups`, what `modicum risk compare-groups` does.
    """
    sent = read_analysis(await form_of(request, who, Action.ANALYZE_RISK))
    return begun(verbs.risk.begin(who, sent.data_set, sent.asked))
