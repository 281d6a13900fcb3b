"""Finding and calling routes: FastAPI's rules, worked out once instead of each time.

A route whose parameters are plain is called here; FastAPI serves all others, and every
request that no route takes. What refuses a request is the same in both cases: the
dependencies of the route, and FastAPI's own messages about parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, cast, get_origin, get_type_hints

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from fastapi.routing import APIRoute, RouteContext, iter_route_contexts
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from modicum.server.routes.path_ids import LiteralEnd

#: The types of parameters that are read here; `str | None` and such as well.
_PLAIN: Final = (str, int, bool, *(one | None for one in (str, int, bool)))
#: The parts of a dependant that are not known here, and so left to FastAPI.
_OTHERS: Final = (
    *("cookie_params", "body_params", "websocket_param_name", "concurrency"),
    *("http_connection_param_name", "response_param_name", "own_oauth_scopes"),
    *("background_tasks_param_name", "security_scopes_param_name"),
)


class Application(FastAPI):
    """FastAPI with fewer layers, and with `Dispatch` before its router.

    Errors that nothing handles end in the telemetry, which is the outermost layer.

    Attributes:
        inner: The routes, without the layers that a request passes once.
    """

    inner: ASGIApp

    def build_middleware_stack(self) -> ASGIApp:
        """Return all layers, the outermost first."""
        app: ASGIApp = Dispatch(self.routes, AsyncExitStackMiddleware(self.router))
        app = ExceptionMiddleware(app, handlers=cast(Any, self.exception_handlers))
        self.inner = app
        for layer, args, named in reversed(self.user_middleware):
            app = layer(app, *args, **named)
        return app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        scope["app"] = self
        if self.middleware_stack is None:
            self.middleware_stack = self.build_middleware_stack()
        await self.middleware_stack(scope, receive, send)


class Dispatch:
    """Calls the first route that takes a request.

    Args:
        routes: The routes, in order.
        otherwise: Serves requests that no route takes, or not one of these here.
    """

    def __init__(self, routes: Sequence[BaseRoute], otherwise: ASGIApp) -> None:
        self._otherwise = otherwise
        self._by_method: dict[str, list[_Candidate]] = {}
        every = [_Candidate(one) for one in iter_route_contexts(routes)]
        for one in every:
            for method in one.methods:
                self._by_method.setdefault(method, []).append(one)
        # Found in the same way, once.
        self._known = {
            (method, one.path): self._search(method, one.path, one.path.encode())
            for one in every
            for method in one.methods
            if "{" not in one.path
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        found = self._find(scope) if scope["type"] == "http" else None
        endpoint = None if found is None else found.candidate.endpoint
        if found is None or endpoint is None:
            await self._otherwise(scope, receive, send)
            return
        context = found.candidate.context
        scope["route"] = context.original_route
        scope["fastapi"] = {"effective_route_context": context}
        scope["path_params"] = found.params
        request = Request(scope, receive, send)
        values, errors = await endpoint.solved(request, {})
        if errors:
            raise RequestValidationError(errors)
        response: Response = await endpoint.call(**values)
        await response(scope, receive, send)

    def _find(self, scope: Scope) -> _Found | None:
        method, path = scope["method"], scope["path"]
        raw = scope.get("raw_path")
        if raw is None or scope.get("root_path"):
            return None
        if b"%" not in raw:
            known = self._known.get((method, path))
            if known is not None:
                return known
        return self._search(method, path, raw)

    def _search(self, method: str, path: str, raw: bytes) -> _Found | None:
        for one in self._by_method.get(method, ()):
            params = one.match(path, raw)
            if params is not None:
                return _Found(one, params)
        return None


class _Candidate:
    """A route that may take a request.

    Args:
        context: The route, and what it was included with.
    """

    def __init__(self, context: RouteContext) -> None:
        route = context.original_route
        self.context = context
        self.path = context.path or ""
        self.methods = context.methods or ()
        self.endpoint: _Call | None = None
        self._pattern = context.path_regex
        self._convertors = context.param_convertors
        self._literal = route if isinstance(route, LiteralEnd) else None
        if type(route) in (APIRoute, LiteralEnd) and context.body_field is None:
            self.endpoint = _call_of(context.dependant)
        if self.endpoint is not None and not _returns_response(self.endpoint.call):
            self.endpoint = None

    def match(self, path: str, raw: bytes) -> dict[str, Any] | None:
        """Return the parameters in a path; None if the route does not take it."""
        found = self._pattern.match(path)
        if found is None:
            return None
        if self._literal is not None and not self._literal.ends_so(raw):
            return None
        return {
            name: self._convertors[name].convert(value)
            for name, value in found.groupdict().items()
        }


class _Found(NamedTuple):
    """A route that takes a request, and the parameters in its path."""

    candidate: _Candidate
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Parameters:
    """Parameters of one kind.

    Attributes:
        kind: Where they are.
        fields: As FastAPI has them.
        plain: The name, the alias and the default of each, if they are read here.
        defaults: The values where none is given; None if one is required.
    """

    kind: Literal["path", "query", "header"]
    fields: Sequence[Any]
    plain: bool
    defaults: Mapping[str, Any] | None

    def taken(self, request: Request) -> tuple[Mapping[str, Any], list[Any]]:
        """Return the values in a request, and what is wrong with them."""
        given: Mapping[str, Any]
        if self.kind == "path":
            given = request.path_params
        elif self.kind == "header":
            given = request.headers
        elif not request.scope["query_string"] and self.defaults is not None:
            return self.defaults, []
        else:
            given = request.query_params
        values = self._values(given) if self.plain else None
        if values is None:
            return request_params_to_args(self.fields, given)
        return values, []

    def _values(self, given: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the values; None if something is wrong with one."""
        found: dict[str, Any] = {}
        for one in self.fields:
            sent = given.get(one.alias)
            if sent is None:
                if one.field_info.is_required():
                    return None
                found[one.name] = one.default
                continue
            value, errors = one.validate(sent, found, loc=(self.kind, one.alias))
            if errors:
                return None
            found[one.name] = value
        return found


@dataclass(frozen=True, slots=True)
class _Call:
    """A route or a dependency, with what it is called with.

    Attributes:
        call: The function.
        needs: Its dependencies, by the names of arguments.
        request: The name of the argument for the request.
        parameters: Its parameters.
    """

    call: Callable[..., Any]
    needs: Sequence[tuple[str | None, _Call]]
    request: str | None
    parameters: Sequence[_Parameters] = field(default_factory=tuple)

    async def solved(
        self, request: Request, known: dict[Callable[..., Any], Any]
    ) -> tuple[dict[str, Any], list[Any]]:
        """Return the arguments for a request, and what is wrong with it.

        Args:
            request: The request.
            known: The results of dependencies so far: each is called once.
        """
        values: dict[str, Any] = {}
        errors: list[Any] = []
        for name, need in self.needs:
            if need.call not in known:
                if need.needs:
                    own, mistakes = await need.solved(request, known)
                else:
                    own, mistakes = need.given(request)
                if mistakes:
                    errors += mistakes
                    continue
                known[need.call] = await need.call(**own)
            if name is not None:
                values[name] = known[need.call]
        own, mistakes = self.given(request)
        return values | own, errors + mistakes

    def given(self, request: Request) -> tuple[dict[str, Any], list[Any]]:
        """Return its own arguments in a request, and what is wrong with them."""
        values: dict[str, Any] = {}
        errors: list[Any] = []
        for one in self.parameters:
            found, mistakes = one.taken(request)
            values.update(found)
            errors += mistakes
        if self.request is not None:
            values[self.request] = request
        return values, errors


def _call_of(dependant: Dependant) -> _Call | None:
    """Return how to call a dependant; None if that is left to FastAPI."""
    call = dependant.call
    is_known = dependant.use_cache and not any(getattr(dependant, n) for n in _OTHERS)
    if not is_known or not inspect.iscoroutinefunction(call):
        return None
    needs = []
    for inner in dependant.dependencies:
        need = _call_of(inner)
        if need is None:
            return None
        needs.append((inner.name, need))
    groups = (
        _parameters("path", dependant.path_params),
        _parameters("query", dependant.query_params),
        _parameters("header", dependant.header_params),
    )
    own = tuple(one for one in groups if one.fields)
    return _Call(call, needs, dependant.request_param_name, own)


def _parameters(
    kind: Literal["path", "query", "header"], fields: Sequence[Any]
) -> _Parameters:
    plain = all(_is_plain(kind, one) for one in fields)
    defaults = None
    if plain and not any(one.field_info.is_required() for one in fields):
        defaults = {one.name: one.default for one in fields}
    return _Parameters(kind, fields, plain, defaults)


def _is_plain(kind: str, one: Any) -> bool:
    """Return whether a parameter has one name, and one value or its default."""
    about = one.field_info
    is_named = kind != "header" or about.alias is not None
    kinds = about.annotation in _PLAIN or get_origin(about.annotation) is Literal
    return (
        is_named
        and kinds
        and not about.validate_default
        and about.default_factory is None
        and about.validation_alias in (None, one.alias)
    )


def _returns_response(call: Callable[..., Any]) -> bool:
    """Return whether a route makes its response itself."""
    made = getattr(call, "__annotations__", {}).get("return")
    if isinstance(made, str):
        made = get_type_hints(call).get("return")
    return inspect.isclass(made) and issubclass(made, Response)
