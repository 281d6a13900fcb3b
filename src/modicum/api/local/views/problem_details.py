"""Errors as documents in the form of RFC 9457, with modicum's codes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from modicum.api.local.views.ledger import problems_view
from modicum.api.schema.problem import Kind, ProblemDetails
from modicum.core import errors
from modicum.core.errors import Code, ModicumError, Problem

#: The page of a server that lists the codes.
PAGE: Final = "/docs/errors"
#: The documentation of each code.
TYPE: Final = PAGE + "#{code}"

#: The status of an error by its code, where its kind does not determine it.
_BY_CODE: Final[Mapping[Code, int]] = {
    Code.FILE_UNREADABLE: 400,
    Code.NOT_TEXT: 400,
    Code.YAML_SYNTAX: 400,
    Code.EMPTY_DOCUMENT: 400,
    Code.TOO_LARGE: 413,
    Code.RELEASE_UNKNOWN: 404,
    Code.PLAN_UNKNOWN: 404,
    Code.CONTRACT_UNKNOWN: 404,
    Code.DATA_SET_UNKNOWN: 404,
    Code.NOT_RECOGNIZED: 401,
    Code.PRECONDITION_MISSING: 428,
    Code.PRECONDITION_FAILED: 412,
    Code.KEY_REUSED: 422,
    Code.TOO_MANY_REQUESTS: 429,
    Code.NOT_FOUND: 404,
    Code.NOT_ACCEPTED: 415,
    Code.BAD_REQUEST: 400,
    Code.JOB_ELSEWHERE: 421,
    Code.ROUND_MISSING: 409,
    Code.PLAN_STALE: 412,
    Code.LEDGER_UNWRITABLE: 503,
}
#: Else by its kind; the first that fits.
_BY_KIND: Final[tuple[tuple[type[ModicumError], int], ...]] = (
    (errors.InputError, 422),
    (errors.ConflictError, 409),
    (errors.AccessError, 403),
    (errors.ApprovalError, 403),
    (errors.StaleError, 412),
    (errors.UsageError, 409),
    (errors.UnavailableError, 503),
    (errors.VerificationError, 503),
)
#: The kind of an error, as a word; clients raise the same exception again.
_KINDS: Final[tuple[tuple[type[ModicumError], Kind], ...]] = (
    (errors.InputError, "input"),
    (errors.ConflictError, "conflict"),
    (errors.AccessError, "access"),
    (errors.ApprovalError, "approval"),
    (errors.StaleError, "stale"),
    (errors.UsageError, "usage"),
    (errors.UnavailableError, "unavailable"),
    (errors.VerificationError, "verification"),
)
#: The title of a response, by status.
TITLES: Final[Mapping[int, str]] = {
    400: "the request cannot be read",
    401: "not authenticated",
    403: "not permitted",
    404: "not found",
    405: "no such method",
    406: "unsupported type",
    408: "the request ended early",
    409: "conflict",
    412: "precondition failed",
    413: "too large",
    415: "unsupported media type",
    421: "misdirected request",
    422: "not valid",
    428: "a header is missing",
    429: "too many requests",
    500: "internal error",
    503: "not available now",
}


def status_of(error: ModicumError) -> int:
    """Return the HTTP status of a mistake."""
    known = _BY_CODE.get(error.code)
    if known is not None:
        return known
    return next((status for kind, status in _BY_KIND if isinstance(error, kind)), 500)


def kind_of(error: ModicumError) -> Kind:
    """Return the kind of an error, as a word."""
    return next((name for kind, name in _KINDS if isinstance(error, kind)), "internal")


def problem_view(
    status: int, problems: tuple[Problem, ...], *, kind: Kind, trace: str = ""
) -> ProblemDetails:
    """Return errors in the form of RFC 9457, with modicum's extensions.

    They are sent to people elsewhere, who need not know where the ledger is.
    """
    problems = tuple(map(_without_places, problems))
    first = problems[0]
    return ProblemDetails(
        type=TYPE.format(code=first.code.value),
        title=TITLES.get(status, "a mistake"),
        status=status,
        detail=first.message,
        code=first.code.value,
        kind=kind,
        line=first.mark.line if first.mark else None,
        column=first.mark.column if first.mark else None,
        help=first.help,
        problems=problems_view(problems),
        trace_id=trace,
    )


def details_of(error: ModicumError, trace: str = "") -> ProblemDetails:
    """Return a mistake in that form."""
    kind = kind_of(error)
    return problem_view(status_of(error), error.problems, kind=kind, trace=trace)


def _without_places(problem: Problem) -> Problem:
    """Return a problem that does not show where the ledger is.

    A remedy that names its files is for those who run the server.
    """
    if not problem.places:
        return problem
    texts = (problem.message, problem.label, *problem.notes, problem.help)
    message, label, *notes, remedy = (_plain(one, problem.places) for one in texts)
    if remedy != problem.help:
        remedy = "those who run the server can see where it is, and what to do"
    return replace(
        problem,
        message=message,
        label=label,
        notes=tuple(notes),
        help=remedy,
        places=(),
    )


def _plain(text: str, places: tuple[str, ...]) -> str:
    """Return a text with `the ledger` in the places; without those that explain it."""
    for place in places:
        text = text.removesuffix(f": {place}")
        text = re.sub(
            rf"( at )?(the (ledger|file|witness) )?(?<!\w){re.escape(place)}(?!\w)",
            _without_place,
            text,
        )
    return text


def _without_place(found: re.Match[str]) -> str:
    if found[1]:
        return ""
    return "the witness" if found[3] == "witness" else "the ledger"
