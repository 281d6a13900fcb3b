"""Routes of operations that only read: made from the functions that answer them."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from types import ModuleType
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from msgspec import Meta
from starlette.responses import Response

from modicum.api.local.handlers import Read, all_reads
from modicum.api.permissions.identity import Identity
from modicum.server.auth.authentication import Who
from modicum.server.components import Verbs
from modicum.server.responses import json_response
from modicum.server.routes.openapi_parts import serve

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

    async def endpoint(who: Identity, verbs: Any, **given: Any) -> Response:
        read.must(who)
        run = verbs.threads.study if read.slow else verbs.threads.read_view
        found = await run(lambda view: read.answer(view, who, **given))
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
    endpoint.__signature__ = inspect.Signature([*parts, *parameters])  # type: ignore[attr-defined]
    endpoint.__doc__ = read.answer.__doc__
    return endpoint


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
