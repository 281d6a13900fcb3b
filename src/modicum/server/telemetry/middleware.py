"""Telemetry of requests: an id, a duration, counters, a trace, and a log line."""

from __future__ import annotations

import time
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from modicum.api.operations import LINES
from modicum.core.errors import Code, Problem
from modicum.server.auth.client_address import client_network
from modicum.server.problems import problems_response
from modicum.server.telemetry.context import TelemetryContext
from modicum.server.telemetry.log import Level, Served
from modicum.server.telemetry.tracebacks import kind_of
from modicum.server.telemetry.traces import trace_parent

#: The placeholder for a missing route.
NO_ROUTE: Final = "(none)"
#: The placeholder for an unknown HTTP method.
OTHER_METHOD: Final = "OTHER"
METHODS: Final = frozenset(
    {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"}
)
#: Polled constantly by machines.
QUIET: Final = frozenset({"/healthz", "/readyz", "/metrics"})
#: The request state key of a client that disconnected while sending.
_GONE: Final = "client_gone"
_LINES: Final = LINES.encode()


class TelemetryMiddleware:
    """Records telemetry of requests.

    Unexpected exceptions end here, too: their messages may contain rows, so they are
    neither sent nor passed on to be logged.

    Args:
        app: The application.
        watch: The telemetry.
    """

    def __init__(self, app: ASGIApp, watch: TelemetryContext) -> None:
        self._app = app
        self._watch = watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        traces = self._watch.traces
        with traces.request(trace_parent(scope["headers"])) as (trace, span):
            state = scope.setdefault("state", {})
            state["trace"] = trace
            exchange = _Exchange(trace, receive, send)
            try:
                await self._answer(scope, exchange)
            finally:
                one = exchange.summary(scope, time.perf_counter() - began)
                span.note(
                    {
                        "http.route": one.route,
                        "http.request.method": one.method,
                        "http.response.status_code": one.status,
                        "http.request.body.size": one.received,
                        "http.response.body.size": one.sent,
                    }
                )
                is_quiet = one.route in QUIET or _GONE in state
                self._record(one, Level.DEBUG if is_quiet else Level.INFO)

    async def _answer(self, scope: Scope, exchange: _Exchange) -> None:
        try:
            await self._app(scope, exchange.receive, exchange.send)
        except ClientDisconnect:
            # The client is gone, and nothing failed here.
            scope["state"][_GONE] = True
        except Exception as error:  # noqa: BLE001 - logged only here
            code = Code.INTERNAL
            scope["state"]["code"] = code.value
            self._watch.log.failed(exchange.trace, error, code.value)
            if exchange.status:
                return  # It was begun; the connection ends with it.
            problem = Problem(
                code,
                f"internal error ({kind_of(error)})",
                help="report it, with its trace id",
            )
            answer = problems_response(500, (problem,), trace=exchange.trace)
            await answer(scope, exchange.receive, exchange.send)

    def _record(self, one: Served, level: Level) -> None:
        watch = self._watch
        watch.counts.served(one.route, one.method, one.status, one.seconds)
        watch.log.served(one, level)
        if one.status == 401:
            watch.log.not_recognized(one)
        if watch.note_access is not None:
            watch.note_access(one)


class _Exchange:
    """A request and its response in progress.

    Args:
        trace: Its id, included in its response.
        receive: Receives its body.
        send: Sends the answer.
    """

    def __init__(self, trace: str, receive: Receive, send: Send) -> None:
        self.trace = trace
        self.status = 0
        self._received = 0
        self._sent = 0
        self._is_lines = False
        self._receive = receive
        self._send = send

    async def receive(self) -> Message:
        """Receive some of the body."""
        message = await self._receive()
        self._received += len(message.get("body", b""))
        return message

    async def send(self, message: Message) -> None:
        """Send some of the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._is_lines = (b"content-type", _LINES) in message["headers"]
            own = (b"x-request-id", self.trace.encode())
            message["headers"] = [*message["headers"], own]
        self._sent += len(message.get("body", b""))
        await self._send(message)

    def summary(self, scope: Scope, seconds: float) -> Served:
        """Return its log fields."""
        state = scope["state"]
        method = scope["method"]
        return Served(
            trace=self.trace,
            route=route_of(scope),
            method=method if method in METHODS else OTHER_METHOD,
            status=self.status,
            seconds=seconds,
            who=state.get("who", ""),
            received=self._received,
            sent=self._sent,
            code=state.get("code", ""),
            via=state.get("via", ""),
            network=client_network(scope.get("client")),
            is_lines=self._is_lines,
        )


def route_of(scope: Scope) -> str:
    """Return the route template of a request, as in OpenAPI.

    The path is not included: it contains client input.
    """
    # A route that was included keeps its own template; the whole one is beside it.
    context = scope.get("fastapi", {}).get("effective_route_context")
    found: Any = None
    if context is not None:
        plain = getattr(context, "starlette_route", None)
        found = getattr(plain, "path_format", None) or context.path_format
    return found or getattr(scope.get("route"), "path_format", None) or NO_ROUTE


def note_code(request: Request, code: Code) -> None:
    """Note the code of a mistake that a request is answered with."""
    request.state.code = code.value
