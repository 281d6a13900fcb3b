"""Authenticators, tried one after the other: API tokens, and tokens of a provider."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from modicum.api.permissions.identity import Identity
from modicum.api.permissions.tokens import Token, token_digest
from modicum.server.auth.authentication import Authenticator
from modicum.server.auth.credentials import TOKEN_PREFIX, credentials_of
from modicum.server.auth.grants import CurrentGrants, GrantTable
from modicum.server.auth.jwt import check_claims, read_token, seconds
from modicum.server.auth.names import program_name
from modicum.server.auth.ports import Clock, Tokens
from modicum.server.auth.problems import not_accepted
from modicum.server.auth.provider import Provider
from modicum.server.auth.registry import REMEMBERED_MAX
from modicum.server.settings.model import Programs

#: Accepted `typ` values of tokens. Other types have other purposes.
_TYPES: Final = frozenset({"", "jwt", "at+jwt", "application/at+jwt"})


class ProgramTokens:
    """Authenticates programs by `Authorization: Bearer` with a JWT.

    A person's access token is refused, though the same provider signed it for the same
    audience: nobody may act through what a program is allowed.

    Args:
        provider: The provider that issues the tokens.
        programs: How programs are identified.
        grants: The grants in force.
        clock: The time.
        leeway_s: By how many seconds clocks may differ.
        cookie: The name of the session's cookie, which must not be there as well.
    """

    def __init__(
        self,
        provider: Provider,
        programs: Programs,
        grants: CurrentGrants,
        clock: Clock,
        leeway_s: int,
        *,
        cookie: str,
    ) -> None:
        self._provider = provider
        self._programs = programs
        self._grants = grants
        self._clock = clock
        self._leeway_s = leeway_s
        self._cookie = cookie

    async def identify(self, request: Request) -> Identity | None:
        """Return the calling program; None if the request has no such token."""
        bearer = credentials_of(request, self._cookie).bearer
        if bearer is None or bearer.startswith(TOKEN_PREFIX):
            return None
        token = await read_token(self._provider, bearer)
        claims = token.claims
        check_claims(
            claims,
            issuer=self._provider.issuer,
            audience=self._programs.audience,
            now=seconds(self._clock.now()),
            leeway_s=self._leeway_s,
        )
        if token.type not in _TYPES or not self._is_of_a_program(claims):
            raise not_accepted()
        name = program_name(claims.get(self._programs.name))
        return self._grants.table.program(name, via=f"token of {self._provider.issuer}")

    def _is_of_a_program(self, claims: Mapping[str, Any]) -> bool:
        if "cnf" in claims or "nonce" in claims:
            return False  # Bound to a key that was not shown; or an ID token.
        told_by = self._programs.told_by
        if told_by is not None:
            return bool(claims.get(told_by[0]) == told_by[1])
        name = claims.get(self._programs.name)
        return isinstance(name, str) and name == claims.get("sub")


class ApiTokens:
    """Recognizes `Authorization: Bearer mdc_…`.

    Args:
        tokens: The store of tokens.
        cookie: The name of the session's cookie, which must not be there as well.
        grants: The grants in force.
    """

    def __init__(self, tokens: Tokens, cookie: str, grants: CurrentGrants) -> None:
        self._tokens = tokens
        self._cookie = cookie
        self._grants = grants
        self._reads = _Reads(tokens)
        self._known: dict[str, tuple[Token, GrantTable, Identity]] = {}

    async def identify(self, request: Request) -> Identity | None:
        """Return the owner of the request's token; None if it has none."""
        bearer = credentials_of(request, self._cookie).bearer
        if bearer is None or not bearer.startswith(TOKEN_PREFIX):
            return None
        digest = token_digest(bearer)
        if digest is None:
            raise not_accepted()
        token = self._tokens.cached_token(digest)
        if token is None:
            token = await self._reads.token(digest)
        if token is None:
            raise not_accepted()
        return self._identity(token)

    def _identity(self, token: Token) -> Identity:
        """Return whom a token stands for; under the same grants, it stays the same."""
        table = self._grants.table
        known = self._known.get(token.digest)
        if known is not None and known[0] is token and known[1] is table:
            return known[2]
        found = table.under(token.identity())
        if len(self._known) >= REMEMBERED_MAX:
            self._known.clear()
        self._known[token.digest] = token, table, found
        return found


class _Reads:
    """Reads the tokens that are wanted in one turn of an event loop together.

    Handing a read to a thread takes longer than the read. Nothing is kept here: each
    token is read after its request came.

    Args:
        tokens: The store of tokens.
    """

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._next: dict[asyncio.AbstractEventLoop, _Batch] = {}

    async def token(self, digest: str) -> Token | None:
        """Return the token with a digest; None if none is active."""
        loop = asyncio.get_running_loop()
        batch = self._next.get(loop)
        if batch is None:
            digests: set[str] = set()
            batch = digests, loop.create_task(self._read(loop, digests))
            self._next[loop] = batch
        batch[0].add(digest)
        found = await asyncio.shield(batch[1])  # Others wait for it as well.
        if digest in found:
            return found[digest]
        return await run_in_threadpool(self._tokens.token_by_digest, digest)

    async def _read(
        self, loop: asyncio.AbstractEventLoop, digests: set[str]
    ) -> Mapping[str, Token | None]:
        """Return some tokens; where that fails, none: each one has its own error."""
        del self._next[loop]
        with suppress(Exception):
            return await run_in_threadpool(self._tokens.tokens_by_digest, [*digests])
        return {}


#: The digests of tokens, and what reads them.
_Batch: TypeAlias = tuple[set[str], asyncio.Task[Mapping[str, Token | None]]]


class Authenticators:
    """Authenticates a caller by any kind of credential, but exactly one.

    Args:
        authenticators: The kinds that this server knows.
        cookie: The name of the session's cookie.
    """

    def __init__(self, authenticators: Sequence[Authenticator], cookie: str) -> None:
        self._authenticators = tuple(authenticators)
        self._cookie = cookie

    async def identify(self, request: Request) -> Identity | None:
        """Return the caller; None if the request has no credentials."""
        credentials = credentials_of(request, self._cookie)
        if credentials.bearer is None and credentials.session is None:
            return None
        for one in self._authenticators:
            identity = await one.identify(request)
            if identity is not None:
                return identity
        raise not_accepted()
