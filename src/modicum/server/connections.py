"""Connections: how long each may keep the server waiting, and how many there are."""

from __future__ import annotations

import asyncio
import resource
from dataclasses import dataclass
from enum import Enum
from functools import partial
from secrets import token_hex
from typing import Any, Final, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

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


class PatientProtocol(H11Protocol, asyncio.BufferedProtocol):
    """HTTP/1.1 with timeouts for slow clients.

    Uvicorn waits without limit for the first request, for the end of a head, and for a
    response to be received. Slow trickling gains nothing here: each phase has a
    deadline from its start.

    Args:
        own: All connections of the process.
        named: The arguments of uvicorn.
    """

    def __init__(self, own: Connections, **named: Any) -> None:
        super().__init__(**named)
        self._own = own
        self._phase: Phase | None = None
        self._timer: asyncio.TimerHandle | None = None

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

    def get_buffer(self, sizehint: int) -> bytearray:
        """Return where to read to."""
        return self._own.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Process the bytes read."""
        self.data_received(bytes(memoryview(self._own.buffer)[:nbytes]))

    def data_received(self, data: bytes) -> None:
        """Process received data, and no more until the application requests it."""
        super().data_received(data)
        cycle: RequestResponseCycle | None = self.cycle  # None before a request.
        if cycle is not None and len(cycle.body) >= READ_BYTES:
            self.flow.pause_reading()
        self._look(Phase.HEAD)

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of this one."""
        super().on_response_complete()
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
        """Refuse an unreadable request; after a response, just close."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        trace = token_hex(16)
        self.logger.warning("That was request %s.", trace)
        headers = {"X-Request-Id": trace, "Connection": "close"}
        answer = problems_response(400, (_UNREADABLE,), trace=trace, headers=headers)
        response = h11.Response(status_code=400, headers=answer.raw_headers)
        for event in (response, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    # --- waiting ---

    def _look(self, before_a_request: Phase) -> None:
        """Determine the present phase; the deadline of an unchanged one stays."""
        if self.flow.write_paused:
            return
        phase: Phase | None = None
        if self.transport.is_closing():
            phase = Phase.REST
        elif self.conn.their_state is h11.IDLE:
            phase = before_a_request
        elif self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY:
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


def patient(own: Connections) -> Any:
    """Return the protocol factory of connections, as uvicorn's `http`."""
    return cast("Any", partial(PatientProtocol, own))


def connections_max(most: int = CONNECTIONS) -> int:
    """Return how many connections a process can have with the files it may open."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return most
    return max(_CONNECTIONS_LEAST, min(most, files - _OTHER_FILES))
