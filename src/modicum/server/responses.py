"""Successful responses: JSON, with the head of the ledger as their ETag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.responses import Response

from modicum.api.schema.shape import encode


@dataclass(frozen=True, slots=True)
class Answer:
    """A response.

    Attributes:
        body: The JSON text.
        status: The HTTP status.
        etag: Its ETag, such as a head or a digest; empty for none.
    """

    body: bytes
    status: int = 200
    etag: str = ""

    def response(self, headers: Mapping[str, str] | None = None) -> Response:
        """Return it as it is sent."""
        own = dict(headers or {})
        if self.etag:
            own["ETag"] = f'"{self.etag}"'
        return Response(self.body, self.status, own, "application/json")


def answer_of(document: object, status: int = 200, *, etag: str = "") -> Answer:
    """Return a document as an answer."""
    return Answer(encode(document), status, etag)


def json_response(document: object, status: int = 200, *, etag: str = "") -> Response:
    """Return a document as it is sent."""
    return answer_of(document, status, etag=etag).response()
