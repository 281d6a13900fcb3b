"""`/ledger/checkpoint` and `/releases/{id}/receipt`: signed, to be held elsewhere."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from modicum.api import operations
from modicum.ledger.proof.claims import Signed, signed_bytes
from modicum.server.auth.authentication import Who
from modicum.server.components import Verbs
from modicum.server.responses import Answer
from modicum.server.routes.openapi_parts import ReleaseId, serve
from modicum.server.routes.path_ids import LiteralEnd

router = APIRouter(tags=["ledger"], route_class=LiteralEnd)


@serve(router, operations.CHECKPOINT)
async def checkpoint(who: Who, verbs: Verbs) -> Response:
    """Return a signed checkpoint of the head, after checking all of the log.

    It is the file that `modicum ledger checkpoint` writes, byte by byte: hold it where
    the ledger's keeper cannot change it.
    """
    return _response(await verbs.signed.checkpoint(who))


@serve(router, operations.RECEIPT)
async def receipt(release: ReleaseId, who: Who, verbs: Verbs) -> Response:
    """Return a signed receipt for the latest answer to a release.

    It is the file that `modicum ledger receipt` writes, byte by byte. Nothing is signed
    before the log was checked up to there.
    """
    return _response(await verbs.signed.receipt(who, release))


def _response(signed: Signed) -> Response:
    return Answer(signed_bytes(signed)).response()
