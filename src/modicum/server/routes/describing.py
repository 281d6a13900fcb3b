"""What routes share: the forms of mistakes, of bodies, and of headers."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Header, Path

from modicum.api.schema.problem import ProblemDetails
from modicum.api.schema.shape import REFERENCE, Shape
from modicum.core.errors import Code, InputError, Problem, StaleError
from modicum.server.problems import TITLES

#: The id of a release; other text is refused as one that is not known.
ReleaseId = Annotated[str, Path(min_length=1, max_length=200)]

Responses = dict[int | str, dict[str, Any]]

_PROBLEM: Final = {"$ref": REFERENCE.format(name=ProblemDetails.__name__)}


def mistakes(*statuses: int) -> Responses:
    """Return the description of mistakes that a route may answer with.

    Args:
        statuses: Their HTTP statuses, besides those that every route may answer with.
    """
    every = {400, 401, 403, 404, 408, 413, 422, 429, 503, *statuses}
    return {
        status: {
            "description": TITLES.get(status, "a mistake"),
            "content": {"application/json": {"schema": _PROBLEM}},
        }
        for status in sorted(every)
    }


def response_of(kind: type[Shape], description: str = "the answer") -> dict[str, Any]:
    """Return the description of an answer.

    Args:
        kind: Its shape.
        description: What it means.
    """
    schema = {"$ref": REFERENCE.format(name=kind.__name__)}
    return {
        "description": description,
        "content": {"application/json": {"schema": schema}},
    }


def answers(kind: type[Shape], *statuses: int, status: int = 200) -> Responses:
    """Return the description of the answers of a route.

    Args:
        kind: The shape of the one that is no mistake.
        statuses: As for `mistakes`.
        status: The HTTP status of the one that is no mistake.
    """
    return {status: response_of(kind), **mistakes(*statuses)}


def body_of(schema: dict[str, Any], description: str) -> dict[str, Any]:
    """Return the description of a body that modicum reads itself.

    Args:
        schema: Its JSON Schema.
        description: What it is.
    """
    content = {
        kind: {"schema": schema} for kind in ("application/json", "application/yaml")
    }
    return {
        "requestBody": {
            "required": True,
            "description": description,
            "content": content,
        }
    }


IfMatch = Annotated[
    str | None,
    Header(alias="If-Match", description="the ETag that this goes by", max_length=200),
]


def tag_given(if_match: str | None, what: str) -> str:
    """Return the tag that a request goes by.

    Args:
        if_match: The header `If-Match`.
        what: What the tag is of, in words.

    Raises:
        InputError: If there is none, or several.
    """
    if not if_match:
        raise missing_header("If-Match", f"the ETag of {what} that you looked at")
    tag = if_match.strip()
    if tag.startswith("W/") or not (len(tag) > 2 and tag[0] == tag[-1] == '"'):
        raise InputError(
            Problem(
                Code.BAD_REQUEST,
                "If-Match is to be one strong ETag in quotes",
                help=f"send the ETag of {what} as it came",
            )
        )
    return tag[1:-1]


def missing_header(name: str, help_: str) -> InputError:
    """Return the mistake of leaving out a header.

    Args:
        name: The header.
        help_: What to send in it.
    """
    return InputError(
        Problem(
            Code.PRECONDITION_MISSING,
            f"the header {name} is missing",
            help=f"send {help_}",
        )
    )


def no_longer_so(what: str, tag: str) -> StaleError:
    """Return the mistake of going by what is no longer so.

    Args:
        what: What has changed.
        tag: What it is now.
    """
    return StaleError(
        Problem(
            Code.PRECONDITION_FAILED,
            f"{what} is another one by now",
            notes=(f"it is {tag[:12]}",),
            help="look again, and ask again with its ETag",
        )
    )
