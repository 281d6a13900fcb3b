"""`/escrow/data`: data sets that lie in the vault, and whose they are."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Path
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from modicum.api import operations
from modicum.api.local.escrow.approvals import RecordedVersionVote
from modicum.api.local.escrow.datasets import Declared, Ownership
from modicum.api.local.views.contracts import (
    data_set_view,
    version_receipt_view,
    version_view,
)
from modicum.api.permissions.actions import Action
from modicum.api.schema import escrow as schema
from modicum.api.schema.escrow_input import DatasetInput
from modicum.core.errors import Code, InputError, Problem
from modicum.ledger.log.contracts import Version
from modicum.server.auth.authentication import Who
from modicum.server.components import Verbs
from modicum.server.idempotency import OnlyOnce
from modicum.server.responses import Answer, answer_of, json_response
from modicum.server.routes.openapi_parts import IfMatch, serve, tag_given
from modicum.server.routes.votes import ballot_of, reason_of
from modicum.server.service.escrow_datasets import SentDataset

router = APIRouter(tags=["escrow"])

DataName = Annotated[str, Path(min_length=1, max_length=200)]
Number = Annotated[int, Path(ge=1, le=2**31)]


@serve(router, operations.DATA_SETS)
async def data_sets(who: Who, verbs: Verbs) -> Response:
    """Return the data sets that you own or may query."""
    found = await verbs.escrow_data.all(who)
    listed = tuple(data_set_view(name, one) for name, one in found.items())
    return json_response(schema.DataSetList(data_sets=listed))


@serve(router, operations.REGISTER_DATA)
async def register(
    request: Request, name: DataName, who: Who, verbs: Verbs, keyed: OnlyOnce
) -> Response:
    """Store a version of a data set in the vault, as an owner of it.

    The first version fixes the owners and the limits. A data set has the name of its
    table. A later version is used once enough owners approve it.
    """
    who.must_some(Action.REGISTER_DATA)
    sent = await _sent(request)
    once = await keyed.once(_version, await verbs.escrow_data.secret(who, name))
    return _version(await verbs.escrow_data.register(who, name, sent, once)).response()


@serve(router, operations.APPROVE_DATA)
async def cast_vote(
    request: Request,
    name: DataName,
    n: Number,
    who: Who,
    verbs: Verbs,
    keyed: OnlyOnce,
    if_match: IfMatch = None,
) -> Response:
    """Agree to a version that replaces the rows of a data set, or refuse it.

    `If-Match` is the `digest` of the version that was looked at.
    """
    content = tag_given(if_match, "the version")
    ballot = await ballot_of(request, content, who, Action.APPROVE_CONTRACT)
    once = await keyed.once(_receipt)
    found = await verbs.escrow_data.vote(who, Version(name, n), ballot, once)
    return _receipt(found).response()


@serve(router, operations.SHRED_DATA)
async def shred(
    request: Request, name: DataName, n: Number, who: Who, verbs: Verbs
) -> Response:
    """Destroy a version, and all withheld results computed from it, permanently.

    If this fails, repeat it: the ledger has recorded it already.
    """
    version = Version(name, n)
    reason = await reason_of(request, who, Action.REGISTER_DATA)
    await verbs.escrow_data.shred(who, version, reason)
    return _version(version).response()


@serve(router, operations.DATA_SET)
async def one(name: DataName, who: Who, verbs: Verbs) -> Response:
    """Return a data set: whose it is, how its table is declared, and its versions."""
    return json_response(data_set_view(name, await verbs.escrow_data.one(who, name)))


def _receipt(vote: RecordedVersionVote) -> Answer:
    return answer_of(version_receipt_view(vote))


def _version(version: Version) -> Answer:
    return answer_of(version_view(version))


async def _sent(request: Request) -> SentDataset:
    """Return the request; its error messages never quote a row."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in {"application/json", ""}:
        raise InputError(
            Problem(
                Code.NOT_ACCEPTED,
                f"a body of type `{kind[:60]}` is not supported",
                help="send application/json",
            )
        )
    try:
        found = msgspec.json.decode(await request.body(), type=DatasetInput)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(
            Problem(
                Code.BAD_REQUEST,
                f"the request is not a version of a data set: {_message(error)}",
                help="see /api/v1/openapi.json",
            )
        ) from None
    return SentDataset(found.rows, Declared(found.table, found.media), _owned(found))


def _message(error: Exception) -> str:
    """Return the error message, without the input."""
    message = str(error)
    # These two quote a value or a key, which may be part of a row.
    if message.startswith("Invalid enum value"):
        return "`media` is `csv` or `parquet`"
    if message.startswith("Object contains unknown field"):
        return f"it has a key other than {', '.join(DatasetInput.__struct_fields__)}"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return message


def _owned(found: DatasetInput) -> Ownership | None:
    if not isinstance(found.owners, dict):
        return None
    return Ownership(
        found.owners,
        len(found.owners) if found.quorum is UNSET else found.quorum,
        contracts_max=found.contracts or 20,
        bits_max=found.bits or 0,
    )
