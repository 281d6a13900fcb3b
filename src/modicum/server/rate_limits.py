"""Rate limits per identity, and a limit on concurrent requests."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from modicum.core.errors import Code, Problem, UnavailableError
from modicum.server.problems import problems_response

#: Maximum number of concurrent requests; further ones are refused temporarily.
UNDER_WAY: Final = 2_000
#: Maximum number of requests per minute and identity.
PER_MINUTE: Final = 6_000
#: Maximum number of identities tracked; the least recent is forgotten.
_REMEMBERED: Final = 10_000


class Rates:
    """The request rates of identities: token buckets.

    It is kept for each process: with several, each allows as much.

    Args:
        per_minute: The maximum rate per minute, and burst size.
        clock: Returns seconds, from any origin.
    """

    def __init__(
        self,
        per_minute: int = PER_MINUTE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = float(per_minute)
        self._per_second = per_minute / 60
        self._clock = clock
        self._guard = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def note(self, name: str, count: int = 1) -> None:
        """Count requests, all or none."""
        with self._guard:
            now = self._clock()
            left, at = self._left.pop(name, (self._most, now))
            left = min(self._most, left + (now - at) * self._per_second)
            enough = left >= count
            self._left[name] = (left - count if enough else left, now)
            if len(self._left) > _REMEMBERED:
                self._left.popitem(last=False)
        if not enough:
            raise UnavailableError(
                Problem(
                    Code.TOO_MANY_REQUESTS,
                    f"more than {round(self._most)} requests in a minute",
                    notes=("nothing was changed",),
                    help="wait as long as the header Retry-After states",
                )
            )


class LimitedCrowd:
    """Refuses requests while too many are in progress.

    Args:
        app: The application.
        most: The maximum number in progress.
    """

    def __init__(self, app: ASGIApp, most: int = UNDER_WAY) -> None:
        self._app = app
        self._most = most
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._under_way >= self._most:
            problem = Problem(
                Code.LEDGER_BUSY,
                f"{self._most} requests are already pending",
                notes=("nothing was changed",),
                help="wait as long as the header Retry-After states",
            )
            await problems_response(503, (problem,))(scope, receive, send)
            return
        self._under_way += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._under_way -= 1
