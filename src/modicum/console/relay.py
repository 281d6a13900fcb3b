"""Calls of the service's operations from a page, as its visitor.

A call goes through the routes of the REST API in the same process, with the headers of
the page's own request: the visitor is authenticated, limited and answered as any other
client is. So the console can show and do nothing that the API would not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from urllib.parse import parse_qsl, unquote, urlencode

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message

from modicum.api.local import handlers
from modicum.api.operations import ME, PREFIX, Operation
from modicum.api.schema.problem import ProblemDetails
from modicum.api.schema.shape import convert, encode
from modicum.core.errors import Code, InputError, InvariantError, Problem

A = TypeVar("A")

#: The query parameter of pages, and of operations, that selects a past state.
AS_OF: Final = "as_of"
#: The hidden fields of forms that become headers of the call.
_AS_HEADERS: Final = {
    "csrf": "x-csrf-token",
    "key": "idempotency-key",
    "tag": "if-match",
}
#: Headers of a page's request that are not those of its calls.
_OWN: Final = frozenset(
    {*_AS_HEADERS.values(), "accept", "content-length", "content-type"}
)
#: What routing adds to a request, beside what a server receives.
_ROUTED: Final = (
    *("route", "router", "endpoint", "path_params", "fastapi"),
    "modicum.credentials",  # Those of a call are read anew, with its own address.
)

#: The most fields of a form.
FIELDS_MAX: Final = 1_000

YAML: Final = "application/yaml"

#: The operations that answer for a past state as well.
_OF_THE_PAST: Final = frozenset(one.operation for one in handlers.all_reads())


class RefusedError(Exception):
    """An operation refused a call.

    Args:
        problem: Its answer.
    """

    def __init__(self, problem: ProblemDetails) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        self.status = problem.status


@dataclass(frozen=True, slots=True)
class Reply(Generic[A]):
    """The answer to a call.

    Attributes:
        value: Its document.
        status: Its HTTP status.
        tag: Its ETag, as `If-Match` takes it; empty if it has none.
    """

    value: A
    status: int
    tag: str


class Relay:
    """Calls operations on behalf of the visitor of a page.

    Args:
        request: The page's request.
        fields: The fields of its form, if one was sent.
    """

    def __init__(
        self, request: Request, fields: Mapping[str, str] | None = None
    ) -> None:
        self.request = request
        self.fields = fields or {}
        self.query: Mapping[str, str] = request.query_params
        self.as_of = request.query_params.get(AS_OF, "")
        #: Whether an operation was called that answers for the present only.
        self.is_present = False
        self._may_write = fields is not None

    def named(self, name: str) -> str:
        """Return a part of the page's own path."""
        return str(self.request.path_params[name])

    async def get(self, operation: Operation[A], **given: Any) -> A:
        """Return the answer of an operation that reads; see `call`."""
        return (await self.call(operation, **given)).value

    async def try_get(self, operation: Operation[A], **given: Any) -> A | None:
        """Return the same, or None if the visitor may not have it."""
        try:
            return await self.get(operation, **given)
        except RefusedError as refused:
            if refused.status in (403, 404):
                return None
            raise

    async def call(
        self, operation: Operation[A], body: Any = None, **given: Any
    ) -> Reply[A]:
        """Call an operation.

        Args:
            operation: The operation.
            body: What it takes: a text is sent as YAML, everything else as JSON.
            given: The parts of its path, and its query parameters; None for one that
                is left out.

        Raises:
            RefusedError: If it refuses.
        """
        if operation.method != "GET" and not self._may_write:
            raise InvariantError(
                Problem(Code.INTERNAL, "a page that is read calls reads only")
            )
        ids = {name: given.pop(name) for name in operation.holes}
        query = {name: one for name, one in given.items() if one not in (None, "")}
        if self.as_of and operation in _OF_THE_PAST:
            query[AS_OF] = self.as_of
        elif operation is not ME:
            self.is_present = True
        headers: dict[str, str] = {}
        for field, header in _AS_HEADERS.items():
            if self._may_write and self.fields.get(field):
                headers[header] = self.fields[field]
        if isinstance(body, str):
            headers["content-type"], sent = YAML, body.encode()
        else:
            headers["content-type"] = "application/json"
            sent = b"" if body is None else encode(body)
        status, found, sent_back = await self.send(
            operation.method, PREFIX + operation.address(**ids), query, headers, sent
        )
        if status >= 400:
            raise RefusedError(problem_of(found))
        document = json.loads(found) if found else None
        kind = operation.answer if status == operation.status else None
        for other, (shape, _) in operation.also.items():
            kind = shape if status == other else kind  # type: ignore[assignment]
        value: Any = document if kind is None else convert(document, kind)
        return Reply(value, status, sent_back.get("etag", ""))

    async def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        headers: Mapping[str, str],
        body: bytes,
    ) -> tuple[int, bytes, Headers]:
        """Send a request to this server's own routes.

        Args:
            method: The HTTP method.
            path: The path, quoted.
            query: The query parameters.
            headers: Further headers, with lower-case names.
            body: The body.

        Returns:
            The status, the body and the headers of the answer.
        """
        outer = self.request.scope
        scope = {name: one for name, one in outer.items() if name not in _ROUTED}
        scope |= {
            "method": method,
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": urlencode(query, doseq=True).encode(),
            "headers": [
                *(pair for pair in outer["headers"] if pair[0].decode() not in _OWN),
                *((name.encode(), one.encode()) for name, one in headers.items()),
                (b"content-length", str(len(body)).encode()),
            ],
        }
        unread = [body]
        status, sent_back = 500, Headers()
        parts: list[bytes] = []

        async def receive() -> Message:
            if unread:
                return {"type": "http.request", "body": unread.pop()}
            return await self.request.receive()

        async def answer(message: Message) -> None:
            nonlocal status, sent_back
            if message["type"] == "http.response.start":
                status = message["status"]
                sent_back = Headers(raw=message.get("headers", []))
            parts.append(message.get("body", b""))

        await self.request.app.inner(scope, receive, answer)
        if "route" not in scope:  # No operation has such an address, nor any page.
            raise HTTPException(status)
        return status, b"".join(parts), sent_back


def problem_of(answer: bytes) -> ProblemDetails:
    """Return why an operation refused a call."""
    return convert(json.loads(answer), ProblemDetails)


async def fields_of(request: Request) -> dict[str, str]:
    """Return the fields of a form; one with several values has them in lines."""
    found: dict[str, str] = {}
    text = (await request.body()).decode("utf-8", "replace")
    if text.count("&") >= FIELDS_MAX:
        problem = f"a form has at most {FIELDS_MAX} fields"
        raise InputError(Problem(Code.TOO_LARGE, problem, help="send less at once"))
    for name, value in parse_qsl(text, keep_blank_values=True):
        plain = value.replace("\r\n", "\n")
        found[name] = f"{found[name]}\n{plain}" if name in found else plain
    return found
