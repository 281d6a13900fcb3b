"""Rate limits for unauthenticated requests, per address."""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from modicum.core.errors import UnavailableError
from modicum.server.auth.client_address import client_network
from modicum.server.auth.sign_in import CALLBACK_PATH, LOGIN_PATH
from modicum.server.problems import problem_response
from modicum.server.rate_limits import Rates

#: Maximum number of unauthenticated requests per minute and address.
STRANGERS_PER_MINUTE: Final = 600


class AnonymousLimits:
    """Limits the rate of requests that fail authentication, per address.

    Authenticated requests are not counted, and are served whatever others at the same
    address do; one that is too large counts as unauthenticated. Sign-in is counted
    before it runs: it calls the provider.

    Args:
        app: The application.
        rates: Counts by address.
    """

    def __init__(self, app: ASGIApp, rates: Rates) -> None:
        self._app = app
        self._rates = rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] in (LOGIN_PATH, CALLBACK_PATH):
            if not await self._refused(scope, receive, send):
                await self._app(scope, receive, send)
            return
        is_refused = False

        async def unless_refused(message: Message) -> None:
            nonlocal is_refused
            if message["type"] == "http.response.start" and _is_strange(
                message["status"], scope
            ):
                is_refused = await self._refused(scope, receive, send)
            if not is_refused:
                await send(message)

        await self._app(scope, receive, unless_refused)

    async def _refused(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Count a request, and refuse it if there were too many."""
        try:
            self._rates.note(client_network(scope.get("client")))
        except UnavailableError as error:
            state = scope.setdefault("state", {})
            state["code"] = error.code.value
            answer = problem_response(error, trace=state.get("trace", ""))
            await answer(scope, receive, send)
            return True
        return False


def _is_strange(status: int, scope: Scope) -> bool:
    """Return whether authentication failed, or the body was too large before it."""
    return status == 401 or (status == 413 and "who" not in scope.get("state", {}))
