"""`/audit`, `/ledger/proof` and `/ledger:verify`: proofs, and statements."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import Annotated, Any, BinaryIO, Final

from fastapi import APIRouter, Header, Query
from starlette.responses import Response, StreamingResponse

from modicum.api import operations
from modicum.api.local.handlers.pagination import after_of
from modicum.reports.style import STYLE
from modicum.server.auth.authentication import Who
from modicum.server.components import Verbs
from modicum.server.responses import json_response
from modicum.server.routes.jobs import job_response
from modicum.server.routes.openapi_parts import Cursor, Limit, serve

router = APIRouter(tags=["ledger"])

#: Chunk size of a bundle, in bytes.
_PIECE = 2**18
_MEDIA_TYPE = "application/zip"
_BUNDLE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "the bundle",
        "content": {_MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    },
    304: {"description": "the bundle still matches `If-None-Match`"},
}

_PAGE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "the statement, as a page",
        "content": {"text/html": {"schema": {"type": "string"}}},
    },
    304: {"description": "the statement still matches `If-None-Match`"},
}
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
#: A statement has its style within it, so that it can be kept as one file.
_PAGE_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)

Hash = Annotated[
    str, Query(pattern="^([0-9a-f]{64})?$", description="64 hexadecimal digits")
]
IfNoneMatch = Annotated[
    str | None,
    Header(alias="If-None-Match", max_length=1000, description="ETags of bundles"),
]


@serve(router, operations.BUNDLE, responses=_BUNDLE)
async def bundle(who: Who, verbs: Verbs, if_none_match: IfNoneMatch = None) -> Response:
    """Return an audit bundle of the ledger as it is, to be verified anywhere."""
    tag = await verbs.audits.tag(who)
    if if_none_match is not None and _names(if_none_match, tag):
        return Response(status_code=304, headers={"ETag": f'"{tag}"'})
    made = await verbs.audits.bundle(who)
    return StreamingResponse(
        _pieces(made.file),
        media_type=_MEDIA_TYPE,
        headers={
            "Content-Length": str(made.size),
            "Content-Disposition": f'attachment; filename="audit-{made.entries}.zip"',
            "ETag": f'"{made.tag}"',
            "Cache-Control": "no-store",
        },
    )


@serve(router, operations.AUDIT_STATEMENT, responses=_PAGE)
async def statement(
    who: Who, verbs: Verbs, if_none_match: IfNoneMatch = None
) -> Response:
    """Return the privacy statement of the ledger as it is, after checking all of it.

    It is the page that `modicum audit report` writes: one HTML file that loads nothing.
    """
    tag = await verbs.audits.tag(who)
    if if_none_match is not None and _names(if_none_match, tag):
        return Response(status_code=304, headers={"ETag": f'"{tag}"'})
    made = await verbs.audits.statement(who)
    return Response(
        made.page,
        media_type="text/html",
        headers={
            "Content-Disposition": f'inline; filename="statement-{made.entries}.html"',
            "Content-Security-Policy": _PAGE_POLICY,
            "ETag": f'"{made.tag}"',
            "Cache-Control": "no-store",
        },
    )


@serve(router, operations.ACCESS_TRAIL)
async def trail(
    who: Who,
    verbs: Verbs,
    limit: Limit = 100,
    cursor: Cursor = "",
    after: Annotated[
        int, Query(ge=0, le=2**53, description="only those after this one")
    ] = 0,
) -> Response:
    """Return events of the access trail, oldest first: who came in, what was refused.

    They are a hash chain of their own. A full page never changes.
    """
    start = max(after, after_of("trail", cursor))
    return json_response(await verbs.audits.trail(who, start, limit))


@serve(router, operations.PROOF)
async def proof(
    who: Who,
    verbs: Verbs,
    seq: Annotated[
        int,
        Query(ge=0, le=2**53, description="the entry whose hash you noted; 0 for none"),
    ] = 0,
    head: Hash = "",
    limit: Limit = 100,
    cursor: Cursor = "",
) -> Response:
    """Return a proof that the current ledger extends a noted head.

    `stands` is whether the entry `seq` has the hash `head`. The links lead from there
    to the head, page by page; a page begins where the one before ended.
    """
    after = after_of("proof", cursor)
    found = await verbs.audits.proof(who, seq, head, limit, after)
    return json_response(found, etag=found.ledger.head)


@serve(router, operations.VERIFY_LEDGER)
async def verify(who: Who, verbs: Verbs, head: Hash = "") -> Response:
    """Start a verification of the whole ledger: chain, signatures and every decision.

    The result has the form of `modicum ledger verify`; `noted` is the number of the
    entry with the hash `head`.
    """
    return job_response(await verbs.audits.verify(who, head))


def _names(given: str, tag: str) -> bool:
    """Return whether a list of ETags names one; how weak they are does not matter."""
    named = (one.strip().removeprefix("W/") for one in given.split(","))
    return any(one in ("*", f'"{tag}"') for one in named)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while piece := file.read(_PIECE):
            yield piece
