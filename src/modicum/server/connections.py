"""Connections: how long each may keep the server waiting, and how many there are."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from secrets import token_hex
from typing import Any, Final, cast

import httptools
from uvicorn.protocols.http.httptools_impl import (
    HttpToolsProtocol,
    RequestResponseCycle,
)

from modicum.core.errors import Code, Problem
from modicum.server.problems import problems_response

#: Maximum number of connections of a process.
CONNECTIONS: Final = 4_000
#: Bytes per read from a connection; the rest waits until it is requested.
READ_BYTES: Final = 2**14
#: Maximum size of a request's head, up to one read more.
HEAD_BYTES: Final = 2**15
#: Number of files reserved for purposes other than connections.
_OTHER_FILES: Final = 128
#: And this minimum number of connections, however few files it may open.
_CONNECTIONS_LEAST: Final = 64

#: Maximum number of requests of a connection that wait behind another one.
PIPELINE_MAX: Final = 16
#: The headers that say for which host a request is, and how long its body is.
_FRAMING: Final = frozenset({b"host", b"content-length", b"transfer-encoding"})
#: A path that nothing has.
_NOWHERE: Final = b"/-"

_UNREADABLE: Final = Problem(
    Code.BAD_REQUEST,
    f"this is not HTTP/1.1, or its head has more than {HEAD_BYTES // 1024} KiB",
    help="send less in the address and in headers",
)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts for clients, in seconds.

    Attributes:
        idle: Until it begins a request, the first or another one.
        head: From the first byte of a request to the end of its head.
        rest: For the rest of a request that was answered before it was whole, and for
            the last bytes of a connection that is about to close.
        taking: For receiving a part of a response.
    """

    idle: float = 30.0
    head: float = 10.0
    rest: float = 10.0
    taking: float = 60.0


class Phase(Enum):
    """The state in which a connection waits."""

    IDLE = "idle"
    HEAD = "head"
    REST = "rest"
    TAKING = "taking"


class Connections:
    """The connections of a process.

    Args:
        most: The maximum number. A further one replaces the one that has been waiting
            longest: active clients are served.
        waits: How long each may keep it waiting.
    """

    def __init__(self, most: int = CONNECTIONS, waits: Timeouts | None = None) -> None:
        self._most = most
        self._waits = waits or Timeouts()
        self._waiting: dict[PatientProtocol, None] = {}
        # One for all: it is emptied before another connection is read.
        self.buffer = bytearray(READ_BYTES)

    def seconds(self, phase: Phase) -> float:
        """Return the timeout of a phase."""
        return float(getattr(self._waits, phase.value))

    def waits(self, one: PatientProtocol) -> None:
        """Note that a connection keeps the server waiting from now on."""
        self._waiting.pop(one, None)
        self._waiting[one] = None

    def clear_wait(self, one: PatientProtocol) -> None:
        """Note that a connection does not keep the server waiting."""
        self._waiting.pop(one, None)

    def make_room(self, count: int) -> None:
        """Close the connection that waits longest, if there are too many."""
        if count > self._most and self._waiting:
            oldest = next(iter(self._waiting))
            self.clear_wait(oldest)
            oldest.transport.abort()


class PatientProtocol(HttpToolsProtocol, asyncio.BufferedProtocol):
    """HTTP/1.1 with timeouts for slow clients, and with one reading of each request.

    Uvicorn waits without limit for the first request, for the end of a head, and for a
    response to be received. Slow trickling gains nothing here: each phase has a
    deadline from its start. What its parser lets through, and a proxy may read in
    another way, is refused.

    Args:
        own: All connections of the process.
        named: The arguments of uvicorn.
    """

    def __init__(self, own: Connections, **named: Any) -> None:
        super().__init__(**named)
        self._own = own
        self._phase: Phase | None = None
        self._timer: asyncio.TimerHandle | None = None
        #: Received since the last head, part of a body, or end of a request.
        self._unread = 0
        self._is_in_head, self._is_whole = True, True
        self._is_refused = False  # What follows an unreadable request is not read.
        self._served: RequestResponseCycle | None = None
        self._response: _HeadFirst | None = None

    # --- events of a connection ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a request."""
        super().connection_made(cast(asyncio.Transport, transport))
        self._enter(Phase.IDLE)
        self._own.make_room(len(self.connections))

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._enter(None)
        super().connection_lost(exc)
        if self._served is not None:  # Others may have been read after it.
            self._served.disconnected = not self._served.response_complete
            self._served.message_event.set()

    def get_buffer(self, sizehint: int) -> bytearray:
        """Return where to read to."""
        return self._own.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Process the bytes read."""
        self.data_received(bytes(memoryview(self._own.buffer)[:nbytes]))

    def data_received(self, data: bytes) -> None:
        """Process received data, and no more until the application requests it."""
        if self._is_refused or self.transport.is_closing():
            return
        self._unread += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self.send_400_response("")
        if self._unread > HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("")
        cycle = self._last
        is_served = cycle is not None and not cycle.response_complete
        if cycle is not None and is_served and len(cycle.body) >= READ_BYTES:
            self.flow.pause_reading()
        self._look(Phase.HEAD)

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of this one."""
        if self._response is not None:
            self._response.flush()
        # As uvicorn does, but without its timer: a phase has its own.
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())
        self._look(Phase.IDLE)

    def pause_writing(self) -> None:
        """Wait until the client receives some of what was sent."""
        super().pause_writing()
        self._enter(Phase.TAKING)

    def resume_writing(self) -> None:
        """Go on."""
        super().resume_writing()
        self._look(Phase.IDLE)

    def send_400_response(self, msg: str) -> None:
        """Refuse an unreadable request; if another one is served, when that is over."""
        self._is_refused = True
        served, last = self._served, self._last
        if last is not None and not self._is_whole:  # Its body cannot be read.
            if last.response_complete:
                self.transport.close()
                return
            if last is not served or last.response_started:
                self.transport.abort()
                return
            last.disconnected = True
            last.message_event.set()
        elif last is not None and not last.response_complete:
            last.keep_alive = False
            return
        trace = token_hex(16)
        self.logger.warning("That was request %s.", trace)
        headers = {"X-Request-Id": trace, "Connection": "close"}
        answer = problems_response(400, (_UNREADABLE,), trace=trace, headers=headers)
        lines = [b"%s: %s\r\n" % one for one in answer.raw_headers]
        head = b"".join([b"HTTP/1.1 400 Bad Request\r\n", *lines, b"\r\n"])
        self.transport.write(head + bytes(answer.body))
        self.transport.close()

    # --- events of the parser ---

    def on_message_begin(self) -> None:
        """Begin to read a head."""
        super().on_message_begin()
        self._is_in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; fields after a body mean nothing here."""
        if self._is_in_head:
            super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        """Begin to serve a request that can be read in one way only."""
        _refuse_ambiguous(self.parser.get_http_version(), self.headers)
        if len(self.pipeline) >= PIPELINE_MAX:
            raise httptools.HttpParserError
        self._unread, self._is_in_head, self._is_whole = 0, False, False
        if self.parser.should_upgrade():
            return
        if not self.url.startswith(b"/") or self.url.startswith(b"//"):
            self.url = _NOWHERE  # A URL, which the parser would take apart.
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that a request is whole."""
        self._unread, self._is_whole = 0, True
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._served = cycle
        self._response = _HeadFirst(cycle.transport, self.loop)
        cycle.transport = cast(asyncio.Transport, self._response)
        super()._start_asgi_task(cycle, app)

    def _feed(self, data: bytes) -> None:
        """Parse data. A request for another protocol is read again without its wish.

        The parser leaves what follows the head, such as a body, to the other protocol.
        """
        while True:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                method = self.parser.get_method()
                if method == b"CONNECT":
                    raise httptools.HttpParserError from None
                version = self.parser.get_http_version().encode()
                lines = [b"%s %s HTTP/%s\r\n" % (method, self.url, version)]
                lines += [
                    b"%s: %s\r\n" % one for one in self.headers if one[0] != b"upgrade"
                ]
                data = b"".join([*lines, b"\r\n", data[upgrade.args[0] :]])
                self.parser = httptools.HttpRequestParser(self)
            else:
                return

    # --- waiting ---

    @property
    def _last(self) -> RequestResponseCycle | None:
        """The last request that was read; None before the first one."""
        return self.cycle

    def _look(self, before_a_request: Phase) -> None:
        """Determine the present phase; the deadline of an unchanged one stays."""
        if self.flow.write_paused or self.parser is None:  # None after its end.
            return
        phase, cycle = None, self._last
        if self.transport.is_closing():
            phase = Phase.REST
        elif cycle is None or (cycle.response_complete and self._is_whole):
            phase = before_a_request
        elif cycle.response_complete:
            phase = Phase.REST
        if phase is not self._phase:
            self._enter(phase)

    def _enter(self, phase: Phase | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._phase = phase
        if phase is None:
            self._own.clear_wait(self)
            return
        self._own.waits(self)
        seconds = self._own.seconds(phase)
        # Closed immediately: a client that receives nothing would keep unsent data
        # alive.
        self._timer = self.loop.call_later(seconds, self.transport.abort)


class _HeadFirst:
    """What a response is written to: its head is sent with its first part.

    Each write is a call of the system. A head that no part follows in the same turn of
    the event loop is sent alone.

    Args:
        transport: The connection.
        loop: Its event loop.
    """

    __slots__ = ("_head", "_later", "_loop", "_transport")

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""
        self._later: asyncio.Handle | None = None

    def write(self, data: bytes) -> None:
        """Write a head, or a part."""
        if self._later is None:
            self._head, self._later = data, self._loop.call_soon(self.flush)
        elif self._head:
            head, self._head = self._head, b""
            self._later.cancel()
            if len(data) > READ_BYTES:  # Copying it would cost more.
                self._transport.write(head)
                head = b""
            self._transport.write(head + data)
        else:
            self._transport.write(data)

    def flush(self) -> None:
        """Send a head alone, if it waits."""
        if self._head:
            self.write(b"")

    def close(self) -> None:
        """Send everything, and close the connection."""
        self.flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """Return whether the connection is closed, or about to be."""
        return self._transport.is_closing()


def _refuse_ambiguous(version: str, headers: Sequence[tuple[bytes, bytes]]) -> None:
    """Refuse a head that does not say for which host, or how long its body is."""
    framing = [one for one in headers if one[0] in _FRAMING]
    hosts = [value for name, value in framing if name == b"host"]
    lengths = [value for name, value in framing if name == b"content-length"]
    codings = [value for name, value in framing if name == b"transfer-encoding"]
    is_chunked = [one.lower() for one in codings] == [b"chunked"]
    if (
        version not in {"1.0", "1.1"}
        or len(hosts) > 1
        or (version == "1.1" and not hosts)
        or len(lengths) > 1
        or (codings and (lengths or not is_chunked or version == "1.0"))
    ):
        raise httptools.HttpParserError


def patient(own: Connections) -> Any:
    """Return the protocol factory of connections, as uvicorn's `http`."""
    return cast("Any", partial(PatientProtocol, own))


def connections_max(most: int = CONNECTIONS) -> int:
    """Return how many connections a process can have with the files it may open."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return most
    return max(_CONNECTIONS_LEAST, min(most, files - _OTHER_FILES))
