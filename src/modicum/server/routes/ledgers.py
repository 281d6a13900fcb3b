"""`/ledger`: the head of the log, its entries, remarks and disclosures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from modicum.api import operations
from modicum.api.local.handlers.log import stored_entry
from modicum.api.local.handlers.pagination import after_of, cursor_of
from modicum.api.local.views.ledger import entry_view
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.api.schema.ledger import Disclosure, EntryPage, Head, Remark, RemarkInput
from modicum.ledger.log.events import DisclosureRecorded
from modicum.server.auth.authentication import Standing, Who
from modicum.server.components import Parts, Service, Verbs, parts_of
from modicum.server.idempotency import OnlyOnce
from modicum.server.inputs.body import form_of, input_of
from modicum.server.responses import Answer, answer_of, json_response
from modicum.server.routes.openapi_parts import Cursor, Limit, serve
from modicum.server.service.ledgers import Entries

router = APIRouter(tags=["ledger"])

#: Number of lines per read.
_AT_ONCE = 500
_encoder = msgspec.json.Encoder()


@serve(router, operations.ENTRIES)
async def entries(
    request: Request,
    who: Who,
    parts: Annotated[Parts, Depends(parts_of)],
    limit: Limit = 100,
    cursor: Cursor = "",
    after: Annotated[
        int, Query(ge=0, le=2**53, description="only those after this one")
    ] = 0,
) -> Response:
    """Return entries of the log, oldest first; a full page never changes.

    With `Accept: application/x-ndjson`, all of them up to the current head are sent,
    one per line and as stored; `ETag` is the hash of the last one. The connection
    closes if the caller is no longer authenticated.
    """
    verbs, after = parts.service, max(after, after_of("entries", cursor))
    if _wants_lines(request):
        first = await verbs.ledgers.entries(who, after, _AT_ONCE)
        lines = _lines(verbs, Standing(request, who), who, first)
        answer = parts.streams.response(who.name, lines, operations.LINES)
        answer.headers["ETag"] = f'"{first.head}"'
        return answer
    found = await verbs.ledgers.entries(who, after, limit)
    return json_response(
        EntryPage(
            entries=tuple(entry_view(*one) for one in found.entries),
            next=cursor_of("entries", found.after),
            ledger=Head(seq=found.seq, head=found.head),
        ),
        etag=found.head,
    )


@serve(router, operations.ANNOTATE)
async def annotate(
    request: Request, who: Who, verbs: Verbs, keyed: OnlyOnce
) -> Response:
    """Add a remark for those who read the log later. It changes nothing."""
    sent = await input_of(request, who, RemarkInput, Action.REMARK)

    def reply(entry: int) -> Answer:
        return answer_of(Remark(entry=entry, about=sent.about or None))

    once = await keyed.once(reply)
    entry = await verbs.remarks.annotate(who, sent.remark, sent.about, once)
    return reply(entry).response()


@serve(router, operations.DISCLOSE)
async def disclose(
    request: Request, who: Who, verbs: Verbs, keyed: OnlyOnce
) -> Response:
    """Record a disclosure outside differential privacy: no rule counts it."""
    form = await form_of(request, who, Action.REMARK)
    once = await keyed.once(_disclosed)
    return _disclosed(await verbs.remarks.disclose(who, form, once)).response()


# --- inside ---------------------------------------------------------------------------


def _wants_lines(request: Request) -> bool:
    accepted = request.headers.get("accept", "").lower().split(",")
    return any(one.partition(";")[0].strip() == operations.LINES for one in accepted)


async def _lines(
    verbs: Service, standing: Standing, who: Identity, first: Entries
) -> AsyncIterator[bytes]:
    """Yield lines, page by page; a slow client does not block others."""
    page, last = first, first.seq
    while True:
        lines = [_encoder.encode(stored_entry(*one)) for one in page.entries]
        if lines:
            yield b"\n".join(lines) + b"\n"
        if page.after is None or page.after >= last:
            return
        await standing.must_hold()
        most = min(_AT_ONCE, last - page.after)
        page = await verbs.ledgers.entries(who, page.after, most)


def _disclosed(found: tuple[DisclosureRecorded, int]) -> Answer:
    body, entry = found
    return answer_of(
        Disclosure(disclosure=body.id, entry=entry, attributes=tuple(body.attributes))
    )
