"""Event streams: their encoding, and their maximum number."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Final

import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from modicum.core.errors import AccessError, Code, Problem, UnavailableError

MEDIA_TYPE: Final = "text/event-stream"
#: Interval of comments while nothing happens, in seconds.
HEARTBEAT_SECONDS: Final = 15.0
#: Maximum number of open streams per identity, and in total, in a process.
STREAMS_EACH: Final = 4
STREAMS_MAX: Final = 200

#: Maximum duration of a stream in seconds; it ends earlier if the listener loses
#: rights.
STREAM_SECONDS: Final = 600.0

_encoder = msgspec.json.Encoder()

#: The heartbeat of a stream.
HEARTBEAT: Final = b": still here\n\n"


def event_text(kind: str, data: object, identifier: int | None = None) -> bytes:
    """Return an event as it is sent."""
    head = "" if identifier is None else f"id: {identifier}\n"
    return f"{head}event: {kind}\ndata: ".encode() + _encoder.encode(data) + b"\n\n"


class Streams:
    """Counts open streams."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    def response(
        self, name: str, events: AsyncIterator[bytes], kind: str = MEDIA_TYPE
    ) -> Response:
        """Return the answer that streams events; it counts until it is sent."""
        if self._open[name] >= STREAMS_EACH or self._open.total() >= STREAMS_MAX:
            raise UnavailableError(
                Problem(
                    Code.TOO_MANY_REQUESTS,
                    f"{self._open[name]} of your streams are already open",
                    help="close one of them",
                )
            )
        self._open[name] += 1
        return _Counted(events, kind, partial(self._close, name))

    def _close(self, name: str) -> None:
        self._open[name] -= 1
        if not self._open[name]:
            del self._open[name]


class _Counted(StreamingResponse):
    """A stream that reports its end, however it ends."""

    def __init__(
        self, events: AsyncIterator[bytes], kind: str, over: Callable[[], None]
    ) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(events, headers=headers, media_type=kind)
        self._over = over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except AccessError as error:
            # The last chunk is never sent, so the connection is closed.
            scope["state"]["code"] = error.code.value
        finally:
            self._over()
