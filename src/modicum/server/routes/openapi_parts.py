"""Common parts of routes: the forms of errors, of bodies, and of headers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar, get_args

from fastapi import APIRouter, Header, Path, Query
from starlette.responses import JSONResponse, Response

from modicum.api.local.handlers.pagination import PAGE_MAX
from modicum.api.local.views.problem_details import TITLES
from modicum.api.operations import LINES, Document, Operation
from modicum.api.schema.escrow_input import DatasetInput
from modicum.api.schema.job import JobItem
from modicum.api.schema.problem import ProblemDetails
from modicum.api.schema.shape import REFERENCE, Shape, reference
from modicum.core.errors import Code, InputError, Problem, StaleError

Limit = Annotated[
    int, Query(ge=1, le=PAGE_MAX, description="the maximum number of items")
]
Cursor = Annotated[
    str, Query(max_length=200, description="`next` of the page before; empty at first")
]
#: The id of a release; other text is refused as one that is not known.
ReleaseId = Annotated[str, Path(min_length=1, max_length=200)]

Responses = dict[int | str, dict[str, Any]]
F = TypeVar("F", bound=Callable[..., object])

_FORM: Final = ("application/json", "application/yaml")

_LOCATION: Final = {
    "Location": {"description": "the job", "schema": {"type": "string"}}
}


def serve(
    router: APIRouter,
    operation: Operation[Any],
    *,
    responses: Responses | None = None,
) -> Callable[[F], F]:
    """Return a decorator that registers the route of an operation."""
    found: Responses = {
        one: _answer(ProblemDetails, TITLES.get(one, "a mistake"))
        for one in operation.statuses
    }
    if operation.answer is not None:
        found[operation.status] = _answer(operation.answer)
        if operation.answer is JobItem and operation.status == 202:
            found[202] = {**_answer(JobItem, "it was started"), "headers": _LOCATION}
    if operation.lines:
        found[200]["content"][LINES] = {"schema": {"type": "string"}}
    for status, (kind, meaning) in operation.also.items():
        found[status] = _answer(kind, meaning)
    return router.api_route(
        operation.path,
        methods=[operation.method],
        status_code=operation.status,
        responses=found | (responses or {}),
        response_class=JSONResponse if operation.answer is not None else Response,
        openapi_extra=_body(operation.takes),
    )


def _answer(kind: type[Shape], meaning: str = "the answer") -> dict[str, Any]:
    schema = {"$ref": REFERENCE.format(name=kind.__name__)}
    return {
        "description": meaning,
        "content": {"application/json": {"schema": schema}},
    }


def _body(takes: Any) -> dict[str, Any] | None:
    """Return the description of a body that modicum reads itself."""
    if takes is None:
        return None
    if isinstance(takes, Document):
        about, schema = takes.about, dict(takes.schema)
    else:
        about, schema = _about(takes), reference(takes)
    is_json = takes.is_json if isinstance(takes, Document) else takes is DatasetInput
    kinds = _FORM[:1] if is_json else _FORM
    content: dict[str, Any] = {kind: {"schema": schema} for kind in kinds}
    for kind in takes.kinds if isinstance(takes, Document) else ():
        content[kind] = {"schema": {"type": "string"}}
    return {"requestBody": {"required": True, "description": about, "content": content}}


def _about(takes: Any) -> str:
    """Return the description of an input, or of several alternatives."""
    several = get_args(takes)
    kind = several[0].__base__ if several else takes
    return inspect.cleandoc(kind.__doc__).partition("\n\n")[0]


IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match", description="the ETag of the reviewed version", max_length=200
    ),
]


def tag_given(if_match: str | None, what: str) -> str:
    """Return the ETag in a request."""
    if not if_match:
        raise missing_header("If-Match", f"the ETag of {what} that you reviewed")
    tag = if_match.strip()
    if tag.startswith("W/") or not (len(tag) > 2 and tag[0] == tag[-1] == '"'):
        raise InputError(
            Problem(
                Code.BAD_REQUEST,
                "If-Match must be one strong ETag in quotes",
                help=f"send the ETag of {what} unchanged",
            )
        )
    return tag[1:-1]


def missing_header(name: str, help_: str) -> InputError:
    """Return the error for a missing header."""
    return InputError(
        Problem(
            Code.PRECONDITION_MISSING,
            f"the header {name} is missing",
            help=f"send {help_}",
        )
    )


def no_longer_so(what: str, tag: str) -> StaleError:
    """Return the error for an outdated ETag."""
    return StaleError(
        Problem(
            Code.PRECONDITION_FAILED,
            f"{what} has changed",
            notes=(f"it is {tag[:12]}",),
            help="read it again, and retry with its ETag",
        )
    )
