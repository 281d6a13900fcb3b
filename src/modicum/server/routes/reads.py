"""Routes of operations that only read: made from the functions that answer them."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable
from types import ModuleType
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query
from msgspec import Meta
from starlette.responses import Response

from modicum.api.local.handlers import Read, all_reads
from modicum.api.local.ledger_view import LedgerView
from modicum.api.permissions.identity import Identity
from modicum.core.errors import Code, InputError, Problem, UsageError
from modicum.server.auth.authentication import Who
from modicum.server.components import Verbs
from modicum.server.responses import json_response
from modicum.server.routes.openapi_parts import serve
from modicum.server.service.threads import Threads

_AsOf = Annotated[
    str,
    Query(
        max_length=40,
        description="the ledger as it was at this entry, by its number, or at this"
        " time in UTC: slow, and with the rights of today",
    ),
]
_NUMBER: Final = re.compile(r"[0-9]{1,16}", re.ASCII)
_LIMITS = ("ge", "le", "min_length", "max_length", "pattern", "description")


def routes_of(module: ModuleType, tag: str) -> APIRouter:
    """Return the routes of a module of `modicum.api.local.handlers`."""
    router = APIRouter(tags=[tag])
    for one in all_reads():
        if one.answer.__module__ == module.__name__:
            serve(router, one.operation)(_endpoint(one))
    return router


def _endpoint(read: Read[Any]) -> Callable[..., Any]:
    """Return a route: FastAPI reads its signature, and its docstring."""

    async def endpoint(who: Identity, verbs: Any, as_of: str, **given: Any) -> Response:
        read.must(who)  # Rights are those of today, whatever the point.

        def work(view: LedgerView) -> Any:
            return read.answer(view, who, **given)

        if as_of:
            found = await _recalled(verbs.threads, who, as_of, work)
        else:
            run = verbs.threads.study if read.slow else verbs.threads.read_view
            found = await run(work)
        return json_response(found, etag=read.tag(found))

    hints = typing.get_type_hints(read.answer, include_extras=True)
    _, _, *own = inspect.signature(read.answer).parameters.values()
    holes = read.operation.holes
    parameters = []
    for one in own:
        kind = Path if one.name in holes else Query
        parameters.append(
            one.replace(
                annotation=_annotated(hints[one.name], kind),
                kind=inspect.Parameter.KEYWORD_ONLY,
            )
        )
    parts = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind)
        for name, kind in (("who", Who), ("verbs", Verbs))
    ]
    past = inspect.Parameter(
        "as_of", inspect.Parameter.KEYWORD_ONLY, annotation=_AsOf, default=""
    )
    endpoint.__signature__ = inspect.Signature([*parts, *parameters, past])  # type: ignore[attr-defined]
    endpoint.__doc__ = read.answer.__doc__
    return endpoint


async def _recalled(
    threads: Threads, who: Identity, as_of: str, work: Callable[[LedgerView], Any]
) -> Any:
    """Return the result of a read of the ledger as it was."""
    point = int(as_of) if _NUMBER.fullmatch(as_of) else as_of
    try:
        return await threads.recall(who.name, point, work)
    except UsageError as mistake:
        if mistake.code is not Code.OUT_OF_RANGE:
            raise
        raise InputError(
            Problem(
                Code.BAD_REQUEST,
                f"`as_of`: {mistake.problems[0].message}",
                help="give the number of an entry, or a time in UTC such as"
                " 2026-05-01 or 2026-05-01T12:00Z",
            )
        ) from None


def _annotated(hint: Any, kind: Callable[..., Any]) -> Any:
    """Return a type with the limits that msgspec has of it, as FastAPI has them."""
    base, *metas = typing.get_args(hint) if _has_limits(hint) else (hint,)
    limits = {
        name: value
        for meta in metas
        for name in _LIMITS
        if (value := getattr(meta, name)) is not None
    }
    return Annotated[base, kind(**limits)]


def _has_limits(hint: Any) -> bool:
    return typing.get_origin(hint) is Annotated and any(
        isinstance(one, Meta) for one in hint.__metadata__
    )
