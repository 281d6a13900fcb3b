"""All ways of being recognized, tried one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request

from modicum.api.permissions.identity import Identity
from modicum.server.auth.authentication import Authenticator
from modicum.server.auth.credentials import Credentials, credentials_of
from modicum.server.auth.problems import not_accepted


class Chain:
    """Recognizes whoever asks by any kind of credential, and by one only.

    Args:
        authenticators: The kinds that this server knows.
        cookie: The name of the session's cookie.
    """

    def __init__(self, authenticators: Sequence[Authenticator], cookie: str) -> None:
        self._authenticators = tuple(authenticators)
        self._cookie = cookie

    async def identify(self, request: Request) -> Identity | None:
        """Return who asks; None if the request brings nothing to be known by.

        Raises:
            AccessError: If it brings something that does not hold, or two things.
        """
        brought = credentials_of(request, self._cookie)
        if brought == Credentials():
            return None
        for one in self._authenticators:
            identity = await one.identify(request)
            if identity is not None:
                return identity
        raise not_accepted()
