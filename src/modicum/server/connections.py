"""Connections: how long each may keep the server waiting, and how many there are."""

from __future__ import annotations

import asyncio
import logging
import resource
from dataclasses import dataclass
from enum import Enum
from functools import partial
from secrets import token_hex
from typing import Any, Final, cast
from urllib.parse import unquote

from starlette.types import Scope
from uvicorn import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.utils import get_local_addr, get_remote_addr, is_ssl
from uvicorn.server import ServerState

from modicum.core.errors import InputError
from modicum.server.exchanges import Exchange
from modicum.server.problems import problem_response
from modicum.server.wire_format import BodyReader, Head, body_of, head_of, head_size

#: Maximum number of connections of a process.
CONNECTIONS: Final = 4_000
#: Bytes per read from a connection; the rest waits until it is requested.
READ_BYTES: Final = 2**14
#: Number of files reserved for purposes other than connections.
_OTHER_FILES: Final = 128
#: And this minimum number of connections, however few files it may open.
_CONNECTIONS_LEAST: Final = 64

_LOGGER: Final = logging.getLogger("uvicorn.error")


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


class PatientProtocol(asyncio.BufferedProtocol):
    """HTTP/1.1 with timeouts for slow clients.

    Slow trickling gains nothing here: each phase has a deadline from its start. One
    request is read at a time; what follows it waits unread.

    Args:
        own: All connections of the process.
        config: The configuration of uvicorn.
        server_state: What all connections share.
        app_state: What the application keeps.
        _loop: The event loop.

    Attributes:
        transport: The connection.
        exchange: The latest request; None before one.
    """

    transport: asyncio.Transport

    def __init__(
        self,
        own: Connections,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        if not config.loaded:
            config.load()
        self.exchange: Exchange | None = None
        self._own = own
        self._config = config
        self._state = server_state
        self._app_state = app_state
        self._loop = _loop or asyncio.get_running_loop()
        self._unread = bytearray()
        self._body: BodyReader | None = None  # None between requests.
        self._phase: Phase | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0

    # --- events of a connection ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a request."""
        self.transport = cast(asyncio.Transport, transport)
        self._flow = FlowControl(self.transport)
        self._server = get_local_addr(self.transport)
        self._client = get_remote_addr(self.transport)
        self._scheme = "https" if is_ssl(self.transport) else "http"
        self._state.connections.add(cast(Any, self))
        self._enter(Phase.IDLE)
        self._own.make_room(len(self._state.connections))

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._enter(None)
        if self._timer is not None:
            self._timer.cancel()
        self._state.connections.discard(cast(Any, self))
        if self.exchange is not None:
            self.exchange.cut()
        self._flow.resume_writing()
        if exc is None:
            self.transport.close()

    def get_buffer(self, sizehint: int) -> bytearray:
        """Return where to read to."""
        return self._own.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Process the bytes read, and no more until the application requests it."""
        self._unread += memoryview(self._own.buffer)[:nbytes]
        self._read()

    def pause_writing(self) -> None:
        """Wait until the client receives some of what was sent."""
        self._flow.pause_writing()
        self._enter(Phase.TAKING)

    def resume_writing(self) -> None:
        """Go on."""
        self._flow.resume_writing()
        self._look()

    def shutdown(self) -> None:
        """End with the present request, or now."""
        if self.exchange is None or self.exchange.is_over:
            self.transport.close()
        else:
            self.exchange.keeps_open = False

    # --- requests ---

    def _read(self) -> None:
        """Read what was received, up to the end of a request."""
        try:
            while self._unread and not self.transport.is_closing():
                if self._body is None and not self._next():
                    break
                self._go_on()
                if self._body is not None:
                    break
        except InputError as error:
            self._refuse(error)
        self._look()

    def _next(self) -> bool:
        """Begin with the next request, if its head is there, and it is its turn."""
        if self.exchange is not None and not self.exchange.is_over:
            self._flow.pause_reading()
            return False
        while self._unread.startswith(b"\r\n"):  # Some clients send one too many.
            del self._unread[:2]
        size = head_size(self._unread)
        if not size:
            return False
        head = head_of(bytes(self._unread[:size]))
        del self._unread[:size]
        self._body = body_of(head)
        self._begin(head)
        return True

    def _begin(self, head: Head) -> None:
        """Have the application answer a request."""
        path, _, query = head.target.partition(b"?")
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": head.version,
            "server": self._server,
            "client": self._client,
            "scheme": self._scheme,
            "method": head.method,
            "root_path": "",
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "query_string": query,
            "headers": head.headers,
            "state": self._app_state.copy(),
        }
        self.exchange = Exchange(
            scope,
            self.transport,
            self._flow,
            self._state.default_headers,
            self._answered,
        )
        self.exchange.keeps_open = not head.is_last
        self.exchange.awaits = head.awaits
        app = cast(Any, self._config.loaded_app)
        task = self._loop.create_task(self.exchange.run(app))
        task.add_done_callback(self._state.tasks.discard)
        self._state.tasks.add(task)

    def _go_on(self) -> None:
        """Receive a part of a body; it is dropped if it was answered already."""
        exchange, body = self.exchange, self._body
        assert exchange is not None
        assert body is not None
        part = body.take(self._unread)
        if body.is_whole:
            self._body = None
        if exchange.is_over:
            return
        exchange.body += part
        exchange.is_received = body.is_whole
        if part or body.is_whole:
            exchange.wake()
        if len(exchange.body) >= READ_BYTES:
            self._flow.pause_reading()

    def _answered(self) -> None:
        """Wait for the next request, or for the rest of this one."""
        self._state.total_requests += 1
        if not self.transport.is_closing():
            self._flow.resume_reading()
            self._read()
        self._look()

    def _refuse(self, error: InputError) -> None:
        """Refuse an unreadable request; after a response, just close."""
        one = self.exchange
        if one is not None and (one.is_begun if self._body else not one.is_over):
            self.transport.abort()
            return
        if one is not None:
            one.cut()
        trace = token_hex(16)
        _LOGGER.warning("Invalid HTTP request received.")
        _LOGGER.warning("That was request %s.", trace)
        headers = {"X-Request-Id": trace, "Connection": "close"}
        answer = problem_response(error, trace=trace, headers=headers)
        lines = [b"%s: %s\r\n" % one for one in answer.raw_headers]
        head = b"".join((b"HTTP/1.1 400 Bad Request\r\n", *lines, b"\r\n"))
        self.transport.write(head + bytes(answer.body))
        self.transport.close()

    # --- waiting ---

    def _look(self) -> None:
        """Determine the present phase; the deadline of an unchanged one stays."""
        if self._flow.write_paused:
            return
        phase: Phase | None = None
        is_answered = self.exchange is None or self.exchange.is_over
        if self.transport.is_closing() or (is_answered and self._body is not None):
            phase = Phase.REST
        elif is_answered:
            phase = Phase.HEAD if self._unread else Phase.IDLE
        if phase is not self._phase:
            self._enter(phase)

    def _enter(self, phase: Phase | None) -> None:
        self._phase = phase
        if phase is None:
            self._own.clear_wait(self)
            return
        self._own.waits(self)
        self._deadline = self._loop.time() + self._own.seconds(phase)
        # One that goes off too early looks again: most phases end long before.
        if self._timer is None or self._timer.when() > self._deadline:
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._deadline, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._phase is None:
            return
        if self._loop.time() < self._deadline:
            self._set_timer()
        else:
            # Immediately: a client that receives nothing would keep unsent data alive.
            self.transport.abort()


def patient(own: Connections) -> Any:
    """Return the protocol factory of connections, as uvicorn's `http`."""
    return cast("Any", partial(PatientProtocol, own))


def connections_max(most: int = CONNECTIONS) -> int:
    """Return how many connections a process can have with the files it may open."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return most
    return max(_CONNECTIONS_LEAST, min(most, files - _OTHER_FILES))
