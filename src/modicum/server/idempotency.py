"""Requests that are done once: `Idempotency-Key`, and the answer that is kept for it.

What is kept is the whole answer, so that whoever asks again hears the same.
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

#: Says that an answer was given before.
REPLAYED: Final = "Idempotency-Replayed"

_encoder = msgspec.json.Encoder()


class StoredResponse(msgspec.Struct):
    """An answer, as it is kept.

    Attributes:
        status: Its HTTP status.
        etag: What it goes by; empty for nothing.
        body: The JSON text.
    """

    status: int
    etag: str
    body: msgspec.Raw


class Keyed:
    """A request with a key.

    Args:
        request: The request; its body is read when it is done, if its route takes one.
        key: The key.
    """

    def __init__(self, request: Request, key: str) -> None:
        self._request = request
        self._key = key

    async def once(
        self, told: Callable[[Any], Answer], secret: bytes = b""
    ) -> IdempotencyKey:
        """Return what makes the request one that is done once."""
        digest: Any = hashlib.sha256()
        if secret:
            digest = hmac.new(secret, digestmod=hashlib.sha256)
        url = self._request.url
        kind = self._request.headers.get("content-type", "")
        for part in (self._request.method, url.path, url.query, kind):
            digest.update(part.encode("utf-8", "surrogateescape") + b"\0")
        # What takes no body has none read: its rights are looked at later on.
        if (self._request.scope["route"].openapi_extra or {}).get("requestBody"):
            digest.update(await self._request.body())

        def render(found: Any) -> bytes:
            answer = told(found)
            body = msgspec.Raw(answer.body)
            return _encoder.encode(StoredResponse(answer.status, answer.etag, body))

        return IdempotencyKey(self._key, digest.hexdigest(), render)


def replayed_response(replayed: Replayed) -> Response:
    """Return the answer that was given before."""
    kept = msgspec.json.decode(replayed.answer, type=StoredResponse)
    answer = Answer(bytes(kept.body), kept.status, kept.etag)
    return answer.response({REPLAYED: "true"})


def keyed(
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


#: A request that is done once, as an argument of a route.
OnlyOnce = Annotated[Keyed, Depends(keyed)]
