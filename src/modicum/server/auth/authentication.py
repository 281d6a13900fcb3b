"""Who asks: authenticators look for credentials, and one of them must know some."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Final, Protocol

from fastapi import Depends
from starlette.requests import Request

from modicum.api.permissions.identity import Identity
from modicum.core.errors import AccessError, Code, ModicumError, Problem
from modicum.server.inputs.body import refuse_unknown_parameters

#: Whoever hears a stream is recognized anew after so many seconds.
STANDING_SECONDS: Final = 2.0
#: Stands in the state of a request that is looked at again while its stream is open.
LISTENING: Final = "is_listening"


class Authenticator(Protocol):
    """Recognizes people or programs by one kind of credentials."""

    async def identify(self, request: Request) -> Identity | None:
        """Return who asks; None if there are no credentials of this kind."""
        ...


class Recognizing:
    """Asks one authenticator after the other.

    Args:
        authenticators: They look for different kinds of credentials.
    """

    def __init__(self, authenticators: Sequence[Authenticator]) -> None:
        self._authenticators = tuple(authenticators)

    async def identify(self, request: Request) -> Identity:
        """Return who asks."""
        found = [
            one
            for authenticator in self._authenticators
            if (one := await authenticator.identify(request)) is not None
        ]
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
    """Return who asks, once for each request; their rate is limited."""
    parts = request.app.state.parts
    who: Identity = await parts.recognizing.identify(request)
    parts.rates.note(who.name)
    request.state.who = who.name
    refuse_unknown_parameters(request)
    return who


class Standing:
    """Tells whether somebody is still who they were, while they hear a stream.

    Args:
        request: What the stream answers.
        who: Who asked.
    """

    def __init__(self, request: Request, who: Identity) -> None:
        # A stream that stays open is no use of a session: it is not prolonged by it.
        state = {**request.scope["state"], LISTENING: True}
        self._request = Request({**request.scope, "state": state})
        self._who = who
        self._looked_at = time.monotonic()

    async def holds(self) -> bool:
        """Return whether they are recognized as before, with the same rights.

        It is looked at every `STANDING_SECONDS`; in between, what was found then holds.
        """
        now = time.monotonic()
        if now - self._looked_at < STANDING_SECONDS:
            return True
        self._looked_at = now
        recognizing: Recognizing = self._request.app.state.parts.recognizing
        try:
            return await recognizing.identify(self._request) == self._who
        except ModicumError:  # Also if it cannot be told now: they may come back.
            return False

    async def must_hold(self) -> None:
        """Refuse whoever is no longer who they were, with the same rights."""
        if not await self.holds():
            raise AccessError(
                Problem(
                    Code.NOT_RECOGNIZED,
                    "the permissions of the user have changed",
                    help="request the missing items again",
                )
            )


#: Who asks, as an argument of a route.
Who = Annotated[Identity, Depends(recognized)]
