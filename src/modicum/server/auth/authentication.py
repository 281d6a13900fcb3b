"""Authentication: authenticators look for credentials, and one of them must accept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Final, Protocol

from fastapi import Depends
from starlette.requests import Request

from modicum.api.permissions.identity import Identity
from modicum.core.errors import AccessError, Code, ModicumError, Problem
from modicum.server.inputs.body import refuse_unknown_parameters

#: Interval of renewed authentication during a stream, in seconds.
STANDING_SECONDS: Final = 2.0
#: The request state key of a renewed authentication during a stream.
LISTENING: Final = "is_listening"


class Authenticator(Protocol):
    """Recognizes people or programs by one kind of credentials."""

    async def identify(self, request: Request) -> Identity | None:
        """Return the caller; None if there are no credentials of this kind."""
        ...


class Recognizing:
    """Tries one authenticator after the other.

    Args:
        authenticators: They look for different kinds of credentials.
    """

    def __init__(self, authenticators: Sequence[Authenticator]) -> None:
        self._authenticators = tuple(authenticators)

    async def identify(self, request: Request) -> Identity:
        """Return the caller."""
        found: list[Identity] = []
        for authenticator in self._authenticators:
            one = await authenticator.identify(request)
            if one is not None:
                found.append(one)
        if len(found) == 1:
            return found[0]
        several = "several kinds of credentials were sent" if found else ""
        raise AccessError(
            Problem(
                Code.NOT_RECOGNIZED,
                several or "the request is not authenticated",
                help="send one of them" if several else "send  Authorization: Bearer …",
            )
        )


async def recognized(request: Request) -> Identity:
    """Return the caller, once per request, with rate limiting."""
    parts = request.app.state.parts
    who: Identity = await parts.recognizing.identify(request)
    parts.rates.note(who.name)
    request.scope.setdefault("state", {}).update(who=who.name, via=who.via)
    refuse_unknown_parameters(request)
    return who


class Standing:
    """Checks whether a caller is still authenticated during a stream.

    Args:
        request: The request of the stream.
        who: The caller.
    """

    def __init__(self, request: Request, who: Identity) -> None:
        # A stream that stays open is no use of a session: it is not prolonged by it.
        state = {**request.scope["state"], LISTENING: True}
        self._request = Request({**request.scope, "state": state})
        self._who = who
        self._looked_at = time.monotonic()

    async def holds(self) -> bool:
        """Return whether the caller is still authenticated, with the same rights.

        It is checked every `STANDING_SECONDS`; in between, the last result holds.
        """
        now = time.monotonic()
        if now - self._looked_at < STANDING_SECONDS:
            return True
        self._looked_at = now
        recognizing: Recognizing = self._request.app.state.parts.recognizing
        try:
            return await recognizing.identify(self._request) == self._who
        except ModicumError:  # Also if the check fails: they may reconnect.
            return False

    async def must_hold(self) -> None:
        """Refuse a caller who is no longer authenticated, with the same rights."""
        if not await self.holds():
            raise AccessError(
                Problem(
                    Code.NOT_RECOGNIZED,
                    "the permissions of the user have changed",
                    help="request the missing items again",
                )
            )


#: The caller, as an argument of a route.
Who = Annotated[Identity, Depends(recognized)]
