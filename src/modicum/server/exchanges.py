"""One request over a connection, and its response, as ASGI has them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final

from starlette.types import ASGIApp, Message, Scope
from uvicorn.protocols.http.flow_control import FlowControl

_STATUS_LINES: Final = {
    one.value: f"HTTP/1.1 {one.value} {one.phrase}\r\n".encode() for one in HTTPStatus
}
#: Statuses of responses without a body.
_BODILESS: Final = frozenset({204, 304})
_LOGGER: Final = logging.getLogger("uvicorn.error")


class Exchange:
    """A request and its response.

    Args:
        scope: The request.
        transport: Where the response is written.
        flow: Stops reading and writing.
        defaults: Headers of every response.
        finished: Is called after the whole response.

    Attributes:
        scope: The request.
        body: What was received of its body, and not yet read.
        is_received: Whether the body was received.
        awaits: Whether the client waits for a sign to send the body.
        keeps_open: Whether another request may follow.
        is_begun: Whether the response was begun.
        is_over: Whether the response is whole.
        is_cut: Whether the client is gone.
    """

    def __init__(
        self,
        scope: Scope,
        transport: asyncio.Transport,
        flow: FlowControl,
        defaults: Sequence[tuple[bytes, bytes]],
        finished: Callable[[], None],
    ) -> None:
        self.scope = scope
        self.body = bytearray()
        self.is_received = False
        self.awaits = False
        self.keeps_open = True
        self.is_begun = False
        self.is_over = False
        self.is_cut = False
        self._transport = transport
        self._flow = flow
        self._defaults = defaults
        self._finished = finished
        self._news = asyncio.Event()
        self._unsent = b""
        self._left: int | None = None  # None if the response is sent in chunks.

    def wake(self) -> None:
        """Let the application receive what is new."""
        self._news.set()

    def cut(self) -> None:
        """Note that the client is gone."""
        self.is_cut = not self.is_over
        self._news.set()

    async def run(self, app: ASGIApp) -> None:
        """Have an application answer."""
        try:
            await app(self.scope, self.receive, self.send)
        except BaseException:
            _LOGGER.exception("Exception in ASGI application\n")
        else:
            if self.is_over or self.is_cut:
                return
            _LOGGER.error("ASGI callable returned without completing response.")
        if self.is_begun:
            self._transport.close()
        elif not self.is_cut:
            await self._fail()

    async def _fail(self) -> None:
        headers = [(b"content-length", b"0"), (b"connection", b"close")]
        start = {"type": "http.response.start", "status": 500, "headers": headers}
        await self.send(start)
        await self.send({"type": "http.response.body"})

    # --- ASGI ---

    async def receive(self) -> Message:
        """Receive some of the body, or that the client is gone."""
        if self.awaits and not self._transport.is_closing():
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.awaits = False
        if not self.is_cut and not self.is_over:
            self._flow.resume_reading()
            await self._news.wait()
            self._news.clear()
        if self.is_cut or self.is_over:
            return {"type": "http.disconnect"}
        part, self.body = bytes(self.body), bytearray()
        more = not self.is_received
        return {"type": "http.request", "body": part, "more_body": more}

    async def send(self, message: Message) -> None:
        """Send some of the response."""
        if self._flow.write_paused and not self.is_cut:
            await self._flow.drain()
        if self.is_cut:
            return
        expected = "http.response.body" if self.is_begun else "http.response.start"
        if self.is_over or message["type"] != expected:
            raise RuntimeError(f"unexpected {message['type']}")
        if not self.is_begun:
            self._begin(message["status"], message.get("headers", ()))
            return
        self._go_on(message.get("body", b""), is_last=not message.get("more_body"))

    # --- inside ---

    def _begin(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        self.is_begun, self.awaits = True, False
        lines, closes, is_chunked = [_STATUS_LINES[status]], False, False
        for name, value in (*self._defaults, *headers):
            lines.append(b"%s: %s\r\n" % (name, value))
            lower = name.lower()
            if lower == b"content-length":
                self._left = int(value)
            elif lower == b"connection":
                closes = b"close" in [one.strip() for one in value.lower().split(b",")]
        if closes:
            self.keeps_open = False
        elif not self.keeps_open:
            lines.append(b"connection: close\r\n")
        if self._has_no_body(status):
            self._left = 0
        elif self._left is None:
            is_chunked = True
            lines.append(b"transfer-encoding: chunked\r\n")
        head = b"".join(lines)
        if not head.count(b"\r") == head.count(b"\n") == len(lines) or b"\0" in head:
            raise RuntimeError("a header has a line break")
        self._unsent = head + b"\r\n"
        if is_chunked:  # Its parts may take a while.
            self._write(b"")

    def _has_no_body(self, status: int) -> bool:
        return self.scope["method"] == "HEAD" or status in _BODILESS

    def _go_on(self, body: bytes, *, is_last: bool) -> None:
        if self._left is None:
            part = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
            body = part + b"0\r\n\r\n" if is_last else part
        elif self.scope["method"] == "HEAD":
            body = b""
        else:
            self._left -= len(body)
            if self._left < 0 or (is_last and self._left):
                raise RuntimeError("a response has another length than it states")
        self._write(body)
        if not is_last:
            return
        self.is_over = True
        self._news.set()
        if not self.keeps_open:
            self._transport.close()
        self._finished()

    def _write(self, part: bytes) -> None:
        """Write bytes, after those that waited for them."""
        part, self._unsent = self._unsent + part, b""
        if part:
            self._transport.write(part)
