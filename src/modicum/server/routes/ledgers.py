"""`/ledger`: the head of the log, its entries, remarks and disclosures."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Annotated, Final, Literal

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
from modicum.core.errors import Code, InputError, Problem
from modicum.ledger.log.events import DisclosureRecorded
from modicum.server.auth.authentication import Standing, Who
from modicum.server.components import Parts, Service, Verbs, parts_of
from modicum.server.idempotency import OnlyOnce
from modicum.server.inputs.body import form_of, input_of
from modicum.server.responses import Answer, answer_of, json_response
from modicum.server.routes.openapi_parts import Cursor, Limit, serve
from modicum.server.service.ledgers import Entries, EntryQuery

router = APIRouter(tags=["ledger"])

#: Number of lines per read.
_AT_ONCE = 500
_encoder = msgspec.json.Encoder()

_Order = Literal["oldest", "newest"]
#: The names of the lists that cursors belong to.
_LISTS: Final[Mapping[_Order, str]] = {"oldest": "entries", "newest": "entries-newest"}


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
    order: Annotated[_Order, Query(description="by number")] = "oldest",
    kind: Annotated[str, Query(max_length=40, description="only of this kind")] = "",
    actor: Annotated[
        str, Query(max_length=200, description="only of exactly this actor")
    ] = "",
) -> Response:
    """Return entries of the log; oldest first, a full page never changes.

    A page may end early: go on until `next` is null.

    With `Accept: application/x-ndjson`, all of them up to the current head are sent,
    oldest first, one per line and as stored; `ETag` is the hash of the last one. The
    connection closes if the caller is no longer authenticated.
    """
    verbs, newest = parts.service, order == "newest"
    start = after_of(_LISTS[order], cursor)
    query = EntryQuery(limit, start, after, newest, kind, actor)
    if _wants_lines(request):
        if newest or kind or actor:
            raise InputError(
                Problem(
                    Code.BAD_REQUEST,
                    "all entries are sent as lines, oldest first",
                    help="leave out `order`, `kind` and `actor`, or ask for JSON",
                )
            )
        first = await verbs.ledgers.entries(who, replace(query, limit=_AT_ONCE))
        lines = _lines(verbs, Standing(request, who), who, first)
        answer = parts.streams.response(who.name, lines, operations.LINES)
        answer.headers["ETag"] = f'"{first.head}"'
        return answer
    found = await verbs.ledgers.entries(who, query)
    return json_response(
        EntryPage(
            entries=tuple(entry_view(*one) for one in found.entries),
            next=cursor_of(_LISTS[order], found.more),
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
        if page.more is None or page.more >= last:
            return
        await standing.must_hold()
        most = min(_AT_ONCE, last - page.more)
        page = await verbs.ledgers.entries(who, EntryQuery(most, page.more))


def _disclosed(found: tuple[DisclosureRecorded, int]) -> Answer:
    body, entry = found
    return answer_of(
        Disclosure(disclosure=body.id, entry=entry, attributes=tuple(body.attributes))
    )
