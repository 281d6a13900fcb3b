"""Several ledgers in one server, each with an application of its own.

A ledger beside the first one is found below `/api/v1/ledgers/NAME`, or by the host of
its own public URL. Its application sees the paths of a server that serves it alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from modicum.api.operations import PREFIX, ledger_prefix

_BELOW: Final = re.compile(ledger_prefix(r"([a-z0-9-]+)") + "(/.*)")
#: What a ledger answers beside the operations.
_OWN: Final = frozenset({"/healthz", "/readyz", "/metrics"})


class LedgerPaths:
    """Passes each request to the application of its ledger.

    Args:
        first: The application of the first ledger.
        others: Those of the others, by name.
        hosts: The names of ledgers by the host of their public URL.
    """

    def __init__(
        self, first: ASGIApp, others: Mapping[str, ASGIApp], hosts: Mapping[str, str]
    ) -> None:
        self._first = first
        self._others = others
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._first(scope, receive, send)
            return
        # What is escaped in the path is no part of a name, nor of the prefix.
        found = _BELOW.fullmatch(scope["raw_path"].decode("latin-1"))
        if found is None or found[1] not in self._others:
            await self._by_host(scope)(scope, receive, send)
            return
        name, rest = found[1], found[2]
        before = len(ledger_prefix(name))
        under = "" if rest in _OWN else PREFIX
        inner = {
            **scope,
            "path": under + scope["path"][before:],
            "raw_path": under.encode() + scope["raw_path"][before:],
        }

        async def send_located(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                place = headers.get("location", "")
                if place.startswith(f"{PREFIX}/"):
                    headers["location"] = place.replace(PREFIX, ledger_prefix(name), 1)
            await send(message)

        await self._others[name](inner, receive, send_located)

    def _by_host(self, scope: Scope) -> ASGIApp:
        for key, value in scope["headers"]:
            if key == b"host":
                name = self._hosts.get(value.decode("latin-1").lower(), "")
                return self._others.get(name, self._first)
        return self._first
