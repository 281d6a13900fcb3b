"""Idempotent requests: `Idempotency-Key`, and the stored response.

The whole response is stored, so that a repeated request gets the same one.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec
from fastapi import Depends, Header
from starlette.requests import Request
from starlette.responses import Response

from modicum.core.errors import Code, InputError, ModicumError, Problem
from modicum.server.responses import Answer
from modicum.writer.idempotency import IdempotencyKey, Replayed

#: Marks a repeated response.
REPLAYED: Final = "Idempotency-Replayed"

_encoder = msgspec.json.Encoder()


class StoredResponse(msgspec.Struct):
    """A stored response.

    Attributes:
        status: Its HTTP status.
        etag: Its ETag; empty for none.
        body: The JSON text.
    """

    status: int
    etag: str
    body: msgspec.Raw


class Keyed:
    """A request with an idempotency key.

    Args:
        request: The request; its body is read on execution, if its route takes one.
        key: The key.
    """

    def __init__(self, request: Request, key: str) -> None:
        self._request = request
        self._key = key
        self._stored: dict[int, tuple[Any, Answer]] = {}

    def stored(self, found: Any) -> Answer | None:
        """Return the answer that was stored about a result; None if none was."""
        about, answer = self._stored.get(id(found), (None, None))
        return answer if about is found else None

    async def once(
        self, rendered: Callable[[Any], Answer], secret: bytes = b""
    ) -> IdempotencyKey:
        """Return the idempotency key of the request."""
        path, query = _path_and_query(self._request)
        kind = self._request.headers.get("content-type", "")
        head = "\0".join((self._request.method, path, query, kind, ""))
        sent = head.encode("utf-8", "surrogateescape")
        # Without a body, nothing is read; permissions are checked later.
        if (self._request.scope["route"].openapi_extra or {}).get("requestBody"):
            sent += await self._request.body()
        digest = hashlib.sha256(sent).hexdigest()
        if secret:
            digest = hmac.new(secret, sent, hashlib.sha256).hexdigest()

        def render(found: Any) -> bytes:
            answer = rendered(found)
            self._stored[id(found)] = found, answer
            body = msgspec.Raw(answer.body)
            return _encoder.encode(StoredResponse(answer.status, answer.etag, body))

        return IdempotencyKey(self._key, digest, render)


def _path_and_query(request: Request) -> tuple[str, str]:
    """Return the path and the query of a request, as its URL has them."""
    scope = request.scope
    sent: bytes = scope.get("raw_path") or b"%"
    if b"%" in sent or b"#" in sent or b"#" in scope["query_string"]:
        return request.url.path, request.url.query
    return scope["path"], scope["query_string"].decode()


def stored_response(replayed: Replayed) -> StoredResponse:
    """Return what was stored."""
    return msgspec.json.decode(replayed.answer, type=StoredResponse)


def replayed_response(replayed: Replayed) -> Response:
    """Return the stored response."""
    stored = stored_response(replayed)
    answer = Answer(bytes(stored.body), stored.status, stored.etag)
    return answer.response({REPLAYED: "true"})


async def keyed(
    request: Request,
    key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            description="unique to this request, and reused only to repeat it",
            max_length=255,
        ),
    ] = None,
) -> Keyed:
    """Return a request with its key."""
    if key is None:
        raise _missing()
    return Keyed(request, key)


def _missing() -> ModicumError:
    return InputError(
        Problem(
            Code.PRECONDITION_MISSING,
            "the header Idempotency-Key is missing",
            notes=("without it, the request cannot be repeated safely",),
            help="send a unique key, such as a UUID",
        )
    )


#: An idempotent request, as an argument of a route.
OnlyOnce = Annotated[Keyed, Depends(keyed)]
