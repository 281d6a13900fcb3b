"""Errors as responses: `application/problem+json` (RFC 9457), with modicum's codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.responses import Response

from modicum.api.local.views.problem_details import kind_of, problem_view, status_of
from modicum.api.schema.problem import Kind
from modicum.api.schema.shape import encode
from modicum.core.errors import ModicumError, Problem

MEDIA_TYPE: Final = "application/problem+json"
#: Retry delay of a temporary refusal, in seconds.
RETRY_SECONDS: Final = 1


def problem_response(
    error: ModicumError, *, trace: str = "", headers: Mapping[str, str] | None = None
) -> Response:
    """Return the answer to a request that was a mistake."""
    status = status_of(error)
    return problems_response(
        status, error.problems, kind=kind_of(error), trace=trace, headers=headers
    )


def problems_response(
    status: int,
    problems: tuple[Problem, ...],
    *,
    kind: Kind | None = None,
    trace: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a response with errors."""
    own = dict(headers or {})
    if status in (429, 503):
        own.setdefault("Retry-After", str(RETRY_SECONDS))
    if status == 401:
        own.setdefault("WWW-Authenticate", "Bearer")
    kind = kind or _kind_by(status)
    body = problem_view(status, problems, kind=kind, trace=trace)
    return Response(encode(body), status, own, MEDIA_TYPE)


def _kind_by(status: int) -> Kind:
    """Return the kind of error of a status, where there is no exception."""
    if status in (429, 503):
        return "unavailable"
    return "input" if status < 500 else "internal"
