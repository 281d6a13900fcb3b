"""Limits on request bodies: of each one, and of all held at a time.

A body is read when a route requests it, which is after authentication: for
unauthenticated callers, a server holds no more than one read from the connection.
"""

from __future__ import annotations

import asyncio
import re
import types
from collections import Counter
from collections.abc import Coroutine, Generator, Mapping, Sequence
from functools import partial
from typing import Any, Final, cast

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from modicum.core.errors import Code, InputError, Problem, UnavailableError
from modicum.server.problems import problems_response

#: Default maximum size of a request body: 1 MiB.
BODY_BYTES: Final = 2**20
#: Maximum total size of bodies held at a time, or four of the largest, if that is more.
HELD_BYTES: Final = 2**26
#: So long it may take to send one.
READ_SECONDS: Final = 30.0
#: Larger bodies have more time: this many mebibytes in the time of usual ones.
_SLOWNESS: Final = 16
#: A request has a body if one of these headers gives its length.
_BODY_HEADERS: Final = (b"content-length", b"transfer-encoding")
#: A part of all that is held is for one identity: one over this number.
_SHARES: Final = 4


class Held:
    """Counts the bytes of bodies that a process holds.

    No identity has more than a quarter of them, and all unauthenticated callers share
    one such quarter.

    Args:
        most: The maximum number of bytes held.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._each = most // _SHARES
        self._by_name: Counter[str] = Counter()
        self._bytes = 0  # Of all; adding them up takes longer than a decision.

    def take(self, name: str, size: int) -> None:
        """Count bytes of a body."""
        own = self._by_name[name]
        if own + size > self._each or self._bytes + size > self._most:
            raise UnavailableError(
                Problem(
                    Code.LEDGER_BUSY,
                    "pending requests use too much memory",
                    notes=("nothing was changed",),
                    help="wait as long as the header Retry-After states",
                )
            )
        self._by_name[name] += size
        self._bytes += size

    def give_back(self, name: str, size: int) -> None:
        """Count bytes as held no more."""
        self._by_name[name] -= size
        self._bytes -= size
        if self._by_name[name] <= 0:
            del self._by_name[name]

    @property
    def bytes(self) -> int:
        """The number of bytes held."""
        return self._bytes


class LimitedBodies:
    """Refuses a body that is too large, too slow, or exceeds the total.

    Args:
        app: The application.
        most: The maximum size of a body.
        buffered: Counts the bytes held; by default up to `HELD_BYTES`.
        larger: The paths with larger bodies, and their maximum size; they have more
            time, too.
    """

    def __init__(
        self,
        app: ASGIApp,
        most: int = BODY_BYTES,
        buffered: Held | None = None,
        larger: tuple[re.Pattern[str], int] | None = None,
    ) -> None:
        self._app = app
        self._most = most
        self._paths: re.Pattern[str] | None = None
        self._larger = 0
        if larger is not None:
            self._paths, self._larger = larger
        largest = max(most, self._larger)
        self._held = buffered or Held(max(HELD_BYTES, _SHARES * largest))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        framing = _framing(scope)
        lengths = [value for name, value in framing if name == b"content-length"]
        if lengths and len(lengths) < len(framing):
            # Two servers in a row could disagree where such a request ends.
            problem = Problem(Code.BAD_REQUEST, "the request has two lengths")
            close = {"Connection": "close"}
            await _refuse(400, problem, scope, close)(scope, receive, send)
            return
        most = self._most
        if self._paths is not None and self._paths.fullmatch(scope["path"]):
            most = max(most, self._larger)
        if any(int(value) > most for value in lengths):
            problem = _too_large(most).problems[0]
            close = {"Connection": "close"}  # Else all of it would be received.
            await _refuse(413, problem, scope, close)(scope, receive, send)
            return
        body = _Body(scope, receive, send, most, self._held)
        body.has_body = _is_any(framing)
        try:
            await self._app(scope, body.receive, body.send)
        finally:
            body.forget()


class _Body:
    """The body of a request, measured as it is read.

    Args:
        scope: The request.
        receive: Receives some of it.
        send: Sends the answer.
        most: Its maximum size.
        buffered: Counts the bytes held.
    """

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, most: int, buffered: Held
    ) -> None:
        self._state = scope.setdefault("state", {})
        self._receive = receive
        self._send = send
        self._most = most
        self._held = buffered
        self._whose = ""
        self._size = 0
        self._ends: float | None = None
        self.has_body = False
        self._is_whole = False
        self._is_refused = False
        self._is_answered = False

    async def receive(self) -> Message:
        """Receive some of it."""
        if self._is_whole:
            return await self._receive()
        try:
            if not self._is_refused:
                return await self._some()
        except (HTTPException, InputError, UnavailableError):
            self._is_refused = True
            if not self._is_answered:
                raise
        return {"type": "http.disconnect"}  # The client is gone.

    async def send(self, message: Message) -> None:
        """Send a part of the response.

        An unread rest of a body would block the next request.
        """
        is_left = self.has_body and not self._is_whole
        if message["type"] == "http.response.start" and is_left:
            headers = [*message.get("headers", ()), (b"connection", b"close")]
            message = {**message, "headers": headers}
        self._is_answered = True
        await self._send(message)

    def forget(self) -> None:
        """Hold it no more."""
        if self._size:
            self._held.give_back(self._whose, self._size)
            self._size = 0

    async def _some(self) -> Message:
        message = await self._in_time()
        size = len(message.get("body", b""))
        if size:
            if self._size + size > self._most:
                raise _too_large(self._most)
            self._whose = self._whose if self._size else self._state.get("who", "")
            self._held.take(self._whose, size)
            self._size += size
        self._is_whole = not message.get("more_body", False)
        return message

    async def _in_time(self) -> Message:
        receiving: Any = self._receive()
        try:
            pending = receiving.send(None)
        except StopIteration as received:  # As most are: no timer is needed.
            return cast(Message, received.value)
        if self._ends is None:
            seconds = READ_SECONDS * max(1.0, self._most / BODY_BYTES / _SLOWNESS)
            self._ends = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(self._ends):
                return await _rest(receiving, pending)
        except TimeoutError:
            raise HTTPException(408) from None


@types.coroutine
def _rest(
    receiving: Coroutine[Any, Any, Message], pending: Any
) -> Generator[Any, Any, Message]:
    """Go on with a coroutine that waits for something."""
    while True:
        try:
            step = partial(receiving.send, (yield pending))
        except BaseException as error:  # noqa: BLE001 - the coroutine handles it
            step = partial(receiving.throw, error)
        try:
            pending = step()
        except StopIteration as received:
            return cast(Message, received.value)


def has_body(scope: Scope) -> bool:
    """Return whether a request has a body."""
    return _is_any(_framing(scope))


def _framing(scope: Scope) -> list[tuple[bytes, bytes]]:
    """Return the headers of a request that give the length of its body."""
    return [one for one in scope["headers"] if one[0] in _BODY_HEADERS]


def _is_any(lengths: Sequence[tuple[bytes, bytes]]) -> bool:
    return any(value != b"0" for _, value in lengths)


def _too_large(most: int) -> InputError:
    return InputError(
        Problem(
            Code.TOO_LARGE,
            f"the request has more than {most} bytes",
            help="send less at once",
        )
    )


def _refuse(
    status: int,
    problem: Problem,
    scope: Scope,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return the answer to a request that is refused for how it is sent."""
    state = scope.setdefault("state", {})
    state["code"] = problem.code.value
    trace = state.get("trace", "")
    return problems_response(status, (problem,), trace=trace, headers=headers)
