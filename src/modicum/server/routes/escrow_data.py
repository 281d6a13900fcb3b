"""`/escrow/data`: data sets that lie in the vault, and whose they are."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Path
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
from modicum.core.errors import Code, InputError, Problem
from modicum.ledger.log.contracts import Version
from modicum.server.auth.authentication import Who
from modicum.server.components import Verbs
from modicum.server.idempotency import OnlyOnce
from modicum.server.responses import Answer, answer_of, json_response
from modicum.server.routes.openapi_parts import IfMatch, serve, tag_given
from modicum.server.routes.votes import REASON, WORD, reason_of, word_of
from modicum.server.service.escrow_datasets import DatasetInput

router = APIRouter(tags=["escrow"])

DataName = Annotated[str, Path(min_length=1, max_length=200)]
Number = Annotated[int, Path(ge=1, le=2**31)]

_KEY = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_SENT: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "the rows in base64, a tables file that declares them, and, with"
        " the first version, whose they are",
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "table": {"type": "string", "minLength": 1},
                        "media": {"enum": ["csv", "parquet"], "default": "csv"},
                        "rows": {"type": "string", "contentEncoding": "base64"},
                        "owners": {
                            "type": "object",
                            "additionalProperties": {"type": "array", "items": _KEY},
                        },
                        "quorum": {"type": "integer", "minimum": 1},
                        "contracts": {"type": "integer", "minimum": 1, "default": 20},
                        "bits": {"type": "integer", "minimum": 0, "default": 0},
                    },
                    "required": ["table", "rows"],
                    "dependentRequired": {
                        "quorum": ["owners"],
                        "contracts": ["owners"],
                        "bits": ["owners"],
                    },
                    "additionalProperties": False,
                }
            }
        },
    }
}

_Count = Annotated[int, msgspec.Meta(ge=1, le=2**31)]


class _Sent(msgspec.Struct, forbid_unknown_fields=True):
    """A version of a data set, as it is sent."""

    table: str
    rows: bytes
    media: Literal["csv", "parquet"] = "csv"
    owners: (
        dict[str, list[Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]]] | None
    ) = None
    quorum: _Count | None = None
    contracts: _Count | None = None
    bits: Annotated[int, msgspec.Meta(ge=0, le=2**31)] | None = None


@serve(router, operations.DATA_SETS)
async def data_sets(who: Who, verbs: Verbs) -> Response:
    """Return the data sets that you may ask about, or own."""
    found = await verbs.escrow_data.all(who)
    listed = tuple(data_set_view(name, one) for name, one in found.items())
    return json_response(schema.DataSetList(data_sets=listed))


@serve(router, operations.REGISTER_DATA, _SENT)
async def register(
    request: Request, name: DataName, who: Who, verbs: Verbs, keyed: OnlyOnce
) -> Response:
    """Put a version of a data set into the vault, as an owner of it.

    The first version says for good whose it is, and its limits. A data set is called as
    its table is. A later one is used once enough owners agree to it.
    """
    who.must_some(Action.REGISTER_DATA)
    sent = await _sent(request)
    once = await keyed.once(_version, await verbs.escrow_data.secret(who, name))
    return _version(await verbs.escrow_data.register(who, name, sent, once)).response()


@serve(router, operations.APPROVE_DATA, WORD)
async def say(
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
    word = await word_of(request, content, who, Action.APPROVE_CONTRACT)
    once = await keyed.once(_said)
    found = await verbs.escrow_data.say(who, Version(name, n), word, once)
    return _said(found).response()


@serve(router, operations.SHRED_DATA, REASON)
async def shred(
    request: Request, name: DataName, n: Number, who: Who, verbs: Verbs
) -> Response:
    """Destroy a version, and all that was computed of it and is withheld, for good.

    If this fails, ask again: the ledger knows of it already.
    """
    version = Version(name, n)
    reason = await reason_of(request, who, Action.REGISTER_DATA)
    await verbs.escrow_data.shred(who, version, reason)
    return _version(version).response()


@serve(router, operations.DATA_SET)
async def one(name: DataName, who: Who, verbs: Verbs) -> Response:
    """Return a data set: whose it is, how its table is declared, and its versions."""
    return json_response(data_set_view(name, await verbs.escrow_data.one(who, name)))


def _said(said: RecordedVersionVote) -> Answer:
    return answer_of(version_receipt_view(said))


def _version(version: Version) -> Answer:
    return answer_of(version_view(version))


async def _sent(request: Request) -> DatasetInput:
    """Return what was sent; what is wrong with it never quotes a row."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in {"application/json", ""}:
        raise InputError(
            Problem(
                Code.NOT_ACCEPTED,
                f"a body of type `{kind[:60]}` is not read",
                help="send application/json",
            )
        )
    try:
        found = msgspec.json.decode(await request.body(), type=_Sent)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(
            Problem(
                Code.BAD_REQUEST,
                f"the request is not a version of a data set: {_told(error)}",
                help="see /api/v1/openapi.json",
            )
        ) from None
    return DatasetInput(found.rows, Declared(found.table, found.media), _owned(found))


def _told(error: Exception) -> str:
    """Return what is wrong, without what was sent."""
    said = str(error)
    # These two quote a value or a key, which may be a part of a row.
    if said.startswith("Invalid enum value"):
        return "`media` is `csv` or `parquet`"
    if said.startswith("Object contains unknown field"):
        return f"it has a key other than {', '.join(_Sent.__struct_fields__)}"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return said


def _owned(found: _Sent) -> Ownership | None:
    limits = (found.quorum, found.contracts, found.bits)
    if found.owners is None:
        if any(one is not None for one in limits):
            raise InputError(
                Problem(
                    Code.KEYS_CONFLICT,
                    "`quorum`, `contracts` and `bits` are said together with `owners`",
                    help="name the owners, or leave these out with a later version",
                )
            )
        return None
    return Ownership(
        {who: tuple(keys) for who, keys in found.owners.items()},
        len(found.owners) if found.quorum is None else found.quorum,
        contracts_max=20 if found.contracts is None else found.contracts,
        bits_max=found.bits or 0,
    )
