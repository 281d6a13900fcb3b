"""API tokens: random texts, of which only a hash is kept."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from modicum.api.permissions.identity import Identity
from modicum.api.permissions.tokens import token_digest
from modicum.server.auth.credentials import TOKEN_PREFIX, credentials_of
from modicum.server.auth.ports import Tokens
from modicum.server.auth.problems import not_accepted
from modicum.server.auth.token_scope import Roof


class ApiTokens:
    """Recognizes `Authorization: Bearer mdc_…`.

    Args:
        tokens: Where tokens are kept.
        cookie: The name of the session's cookie, which must not be there as well.
        roof: The most that a token may do now.
    """

    def __init__(self, tokens: Tokens, cookie: str, roof: Roof) -> None:
        self._tokens = tokens
        self._cookie = cookie
        self._roof = roof

    async def identify(self, request: Request) -> Identity | None:
        """Return whose token the request brings; None if it brings none.

        Raises:
            AccessError: If the token does not hold, or its owner may do nothing of
                what it allowed any more.
        """
        bearer = credentials_of(request, self._cookie).bearer
        if bearer is None or not bearer.startswith(TOKEN_PREFIX):
            return None
        digest = token_digest(bearer)
        if digest is None:
            raise not_accepted()
        token = await run_in_threadpool(self._tokens.token_by_digest, digest)
        if token is None:
            raise not_accepted()
        return self._roof.under(token.identity())
