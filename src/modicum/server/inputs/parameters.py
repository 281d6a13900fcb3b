"""Parameters that a route does not take, or not in that form: what is said of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, get_origin

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import Request

from modicum.core.errors import Code, InputError, Problem

#: What a part of a request is called in a sentence.
_PARTS: Final[Mapping[str, str]] = {
    "query": "the parameter",
    "header": "the header",
    "path": "in the address,",
}
#: What is wrong with a value, by what the library that read it calls that.
_WRONG: Final[Mapping[str, str]] = {
    "missing": "is missing",
    "int_parsing": "is no whole number",
    "int_parsing_size": "is too large a number",
    "bool_parsing": "is neither true nor false",
    "greater_than_equal": "is less than {ge}",
    "less_than_equal": "is more than {le}",
    "literal_error": "is not {expected}",
    "enum": "is not {expected}",
    "string_too_short": "has less than {min_length} characters",
    "string_too_long": "has more than {max_length} characters",
}


def malformed(found: Mapping[str, Any]) -> Problem:
    """Return the problem of a parameter that has the wrong form.

    Args:
        found: What the library that read it says: its place as `loc`, what is wrong
            with it as `type`, and the limits that it goes by as `ctx`.
    """
    part, *names = map(str, found["loc"])
    wrong = _WRONG.get(found["type"], "has another form than is taken here")
    return Problem(
        Code.BAD_REQUEST,
        f"{_PARTS.get(part, part)} `{'.'.join(names)[:60]}`"
        f" {wrong.format_map(found.get('ctx') or {})}",
        help="see /api/v1/openapi.json",
    )


def refuse_unknown_parameters(request: Request) -> None:
    """Refuse a request whose query names what its route does not take, or takes once.

    Whoever misspells a parameter, takes it for one of this route, or names it twice
    would otherwise hear the answer to another question.

    Args:
        request: A request that came to a route.

    Raises:
        InputError: If it does.
    """
    named = request.query_params.keys()
    route = request.scope.get("route")
    if not named or not isinstance(route, APIRoute):
        return
    taken = dict(sorted(_taken(route.dependant)))
    for name in named:
        if name not in taken:
            raise _refused(
                f"the parameter `{name[:60]}` is not taken here",
                f"it takes {', '.join(taken)}" if taken else "leave it out",
            )
        if not taken[name] and len(request.query_params.getlist(name)) > 1:
            raise _refused(
                f"the parameter `{name}` stands there more than once", "give it once"
            )


def _refused(message: str, remedy: str) -> InputError:
    return InputError(Problem(Code.BAD_REQUEST, message, help=remedy))


def _taken(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    """Yield the name of each parameter, and whether it takes several values."""
    for one in dependant.query_params:
        yield one.alias, get_origin(one.field_info.annotation) is list
    for inner in dependant.dependencies:
        yield from _taken(inner)
