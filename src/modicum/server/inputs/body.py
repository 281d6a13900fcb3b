"""Strict reading of request bodies, as files are read, and with size limits.

Building a tree takes up to a tenth of a second per 64 KiB, during which all other
threads compete. So nothing is parsed for callers without permission; YAML must be
small; and one document is parsed at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar, get_origin

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import Request

from modicum.api.local.evaluation import Description
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.api.schema.shape import Input
from modicum.core.document import Node
from modicum.core.errors import Code, InputError, Problem
from modicum.core.yaml_reader import read_document
from modicum.ops.files.json_lines import plain_of
from modicum.ops.files.yaml_documents import Piece
from modicum.server.inputs.reader import read_input

Sent = TypeVar("Sent", bound=Input)

#: The name of the request body in messages.
BODY: Final = "request"

_JSON: Final = frozenset({"application/json", ""})
_YAML: Final = frozenset({"application/yaml", "application/x-yaml", "text/yaml"})
_KINDS: Final = _JSON | _YAML

#: Maximum size of a form, such as a reason, in bytes.
FORM_BYTES: Final = 2**17
#: Maximum size of parsed YAML, and of JSON with positions of mistakes, in bytes.
TREE_BYTES: Final = 2**16
#: Maximum number of values in them, including those repeated by aliases.
TREE_NODES: Final = 2**15


async def form_of(request: Request, who: Identity, *actions: Action) -> Node:
    """Return a form that was sent."""
    body = await body_of(request, who, *actions)
    if len(body.text) > FORM_BYTES:
        raise _too_large(FORM_BYTES)
    form: Node = await request.app.state.parts.service.threads.form(who.name, body)
    return form


async def input_of(
    request: Request, who: Identity, kind: type[Sent], *actions: Action
) -> Sent:
    """Return an input that was sent."""
    return read_input(await form_of(request, who, *actions), kind)


async def body_of(request: Request, who: Identity, *actions: Action) -> Body:
    """Return the body of a request; its size is limited earlier (see `limits`)."""
    who.must_some(*actions)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _KINDS:
        raise InputError(
            Problem(
                Code.NOT_ACCEPTED,
                f"a body of type `{kind[:60]}` is not supported",
                help="send application/json or application/yaml",
            )
        )
    body = Body(await request.body(), is_json=kind in _JSON)
    if not body.is_json and len(body.text) > TREE_BYTES:
        raise _too_large(TREE_BYTES)
    return body


class Body:
    """The body of a request.

    Args:
        text: Its bytes.
        is_json: Whether its content type is JSON; else it is YAML.
    """

    def __init__(self, text: bytes, *, is_json: bool) -> None:
        self.text = text
        self.is_json = is_json
        self._tree: Node | None = None

    def description(self) -> Description:
        """Return it as it was read, or as plain data, which is quick to have."""
        if self._tree is not None:
            return self._tree
        plain = plain_of(Piece(self.text, BODY)) if self.is_json else None
        if plain is None:
            raise _too_large(TREE_BYTES)
        return plain

    def tree(self, tick: Callable[[], None] = lambda: None) -> Node:
        """Return it as a tree that knows its places: within `Threads.read` only."""
        if not self.small().strip():
            raise InputError(
                Problem(
                    Code.EMPTY_DOCUMENT,
                    "the request has no body",
                    help="send JSON or YAML; see /api/v1/openapi.json",
                )
            )
        if self._tree is None:
            self._tree = read_document(self.text, BODY, TREE_NODES, tick)
        return self._tree

    def small(self) -> bytes:
        """Return its text, if that is little enough to be read as a tree."""
        if len(self.text) > TREE_BYTES:
            raise _too_large(TREE_BYTES)
        return self.text


def _too_large(most: int) -> InputError:
    return InputError(
        Problem(
            Code.TOO_LARGE,
            f"a body in this form may have up to {most} bytes",
            help="send it as JSON, without errors, or send less at once",
        )
    )


#: The name of a part of a request in a sentence.
_PARTS: Final[Mapping[str, str]] = {
    "query": "the parameter",
    "header": "the header",
    "path": "in the address,",
}
#: Messages for invalid values, by the error type of the validation library.
_WRONG: Final[Mapping[str, str]] = {
    "missing": "is missing",
    "int_parsing": "is not an integer",
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
    """Return the problem of a parameter that has the wrong form."""
    part, *names = map(str, found["loc"])
    wrong = _WRONG.get(found["type"], "is malformed")
    return Problem(
        Code.BAD_REQUEST,
        f"{_PARTS.get(part, part)} `{'.'.join(names)[:60]}`"
        f" {wrong.format_map(found.get('ctx') or {})}",
        help="see /api/v1/openapi.json",
    )


def refuse_unknown_parameters(request: Request) -> None:
    """Refuse a request with unknown or repeated query parameters.

    A misspelt, misplaced or repeated parameter would otherwise be ignored silently.
    """
    if not request.scope.get("query_string"):
        return
    named = request.query_params.keys()
    route = request.scope.get("route")
    if not named or not isinstance(route, APIRoute):
        return
    taken = dict(sorted(_taken(route.dependant)))
    for name in named:
        if name not in taken:
            raise _refused(
                f"the parameter `{name[:60]}` is not allowed here",
                f"allowed are {', '.join(taken)}" if taken else "leave it out",
            )
        if not taken[name] and len(request.query_params.getlist(name)) > 1:
            raise _refused(
                f"the parameter `{name}` is given more than once", "give it once"
            )


def _refused(message: str, remedy: str) -> InputError:
    return InputError(Problem(Code.BAD_REQUEST, message, help=remedy))


def _taken(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    """Yield the name of each parameter, and whether it takes several values."""
    for one in dependant.query_params:
        yield one.alias, get_origin(one.field_info.annotation) is list
    for inner in dependant.dependencies:
        yield from _taken(inner)
