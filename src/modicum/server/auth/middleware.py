"""Checks of every request before all else, and headers of every response."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from modicum.core.errors import AccessError, Code, ModicumError, Problem
from modicum.server.auth.client_address import FORWARDING, ClientPath, client_path
from modicum.server.auth.problems import unusable
from modicum.server.settings.model import Network

_SECURITY: Final[tuple[tuple[str, str], ...]] = (
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
        " connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none';"
        " frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    # Other sites learn nothing. Without it for this one, browsers send forms of its own
    # pages with `Origin: null`, as from another site.
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
)
_HSTS: Final = ("strict-transport-security", "max-age=31536000")
_FORWARDING: Final = frozenset(one.encode() for one in FORWARDING)
#: Headers with credentials.
_SECRET: Final = (b"authorization", b"cookie")
_LOOKED_AT: Final = _FORWARDING | {b"host", *_SECRET}
_NO_STORE: Final = (b"cache-control", b"no-store")


@dataclass(frozen=True, slots=True)
class Gate:
    """The parameters of the checks.

    Attributes:
        hosts: The values of `Host` that are answered, in small letters.
        trusted: The networks of proxies that are believed.
        is_https: Whether the server is reached by https.
        is_local: Whether it serves people on this machine only, without proxies.
    """

    hosts: frozenset[str]
    trusted: Sequence[Network]
    is_https: bool
    is_local: bool = False


class AuthMiddleware:
    """Refuses requests that could deceive the server, and protects browsers.

    A page of another site may let its domain resolve to this machine (DNS rebinding):
    such a request has that domain as `Host`, and is refused.

    Args:
        app: The application.
        gate: The parameters.
        refuse: Turns a mistake into an answer.
    """

    def __init__(
        self, app: ASGIApp, gate: Gate, refuse: Callable[[ModicumError], ASGIApp]
    ) -> None:
        self._app = app
        self._gate = gate
        self._refuse = refuse
        security = [*_SECURITY, *([_HSTS] if gate.is_https else [])]
        self._says = [(name.encode(), value.encode()) for name, value in security]
        self._says.append(_NO_STORE)
        self._names = {name for name, _ in self._says}
        # Of peers that no proxy speaks for: there are few.
        self._direct = lru_cache(1024)(
            partial(client_path, headers=(), trusted=gate.trusted)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # There are no web sockets here.
            return
        send = self._saying(send)
        headers = [one for one in scope["headers"] if one[0].lower() in _LOOKED_AT]
        headers = [(name.lower(), value) for name, value in headers]
        forwarded = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in headers
            if name in _FORWARDING
        ]
        client = scope.get("client")
        peer = client[0] if client else None
        if forwarded:
            came = client_path(peer, forwarded, self._gate.trusted)
        else:
            came = self._direct(peer)
        try:
            self._check(headers, came)
        except ModicumError as error:
            await self._refuse(error)(scope, receive, send)
            return
        _note_client(scope, came)
        if forwarded:
            every = [(name.lower(), value) for name, value in scope["headers"]]
            scope["headers"] = [one for one in every if one[0] not in _FORWARDING]
        await self._app(scope, receive, send)

    def _check(self, headers: Sequence[tuple[bytes, bytes]], came: ClientPath) -> None:
        hosts = [
            value.decode("latin-1").strip().lower()
            for name, value in headers
            if name == b"host"
        ]
        if len(hosts) != 1 or hosts[0] not in self._gate.hosts:
            raise AccessError(
                Problem(
                    Code.BAD_REQUEST,
                    "the request is for another host",
                    help="use the address in `public_url`, or add this one to"
                    " `allowed_hosts`",
                )
            )
        secret = any(name in _SECRET for name, _ in headers)
        if secret and not came.is_safe:
            raise unusable(
                "credentials were sent over plain http, or by an unknown proxy",
                "use https; add the proxy to `trusted_proxies`, have it send"
                " X-Forwarded-Proto, and revoke the credentials",
            )
        if self._gate.is_local and not came.is_safe:
            raise unusable(
                "a server without sign-in serves this machine only",
                "configure sign-in to put it behind a proxy",
            )

    def _saying(self, send: Send) -> Send:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", []))
                extra = self._says
                names = {name.lower() for name, _ in given}
                if not names.isdisjoint(self._names):
                    extra = [pair for pair in self._says if pair[0] not in names]
                message = {**message, "headers": given + extra}
            await send(message)

        return with_headers


def _note_client(scope: Scope, came: ClientPath) -> None:
    """Set the path of a request.

    The request itself is changed: its route is recorded there, and logged by the outer
    middleware. A copy would hide it.
    """
    port = scope["client"][1] if scope.get("client") else 0
    scope["scheme"] = "https" if came.is_https else "http"
    scope["client"] = (came.text, port) if came.client is not None else None
