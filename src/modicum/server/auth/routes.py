"""`/login` and `/logout`: sign-in and sign-out with a browser."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from modicum.core.errors import AccessError
from modicum.server.auth.credentials import one_cookie
from modicum.server.auth.grants import CurrentGrants
from modicum.server.auth.local_link import LINK_PATH, OneTimeLinks
from modicum.server.auth.ports import Names
from modicum.server.auth.problems import not_accepted
from modicum.server.auth.safe_redirect import FIRST_PAGE
from modicum.server.auth.sessions import CookieJar, Sessions
from modicum.server.auth.sign_in import CALLBACK_PATH, LOGIN_PATH, LOGIN_SECONDS, SignIn
from modicum.server.lookalikes import KNOWN, lookalike_problem


def leaving(sessions: Sessions) -> APIRouter:
    """Return the route that ends a session."""
    router = APIRouter(include_in_schema=False)

    @router.post("/logout")
    async def logout(request: Request) -> Response:
        """End the session, which only its own pages can."""
        if await sessions.session_of(request) is None:
            raise not_accepted()
        response = Response(status_code=204)
        await sessions.end(request, response)
        return response

    return router


def with_provider(
    sign_in: SignIn,
    grants: CurrentGrants,
    sessions: Sessions,
    jar: CookieJar,
    names: Names,
) -> APIRouter:
    """Return the routes by which people sign in with a provider.

    A new name that looks like a known one is refused.
    """
    router = APIRouter(include_in_schema=False)

    @router.get(LOGIN_PATH)
    async def login(request: Request) -> Response:
        """Redirect to the provider."""
        started = await sign_in.start(request.query_params.get("next", FIRST_PAGE))
        response = RedirectResponse(started.url, 303)
        jar.set_login(response, started.sealed, LOGIN_SECONDS)
        return response

    @router.get(CALLBACK_PATH)
    async def callback(request: Request) -> Response:
        """Open a session after the redirect from the provider."""
        query = request.scope["query_string"].decode("latin-1")
        somebody, wanted = await sign_in.finish(query, one_cookie(request, jar.login))
        table = grants.table
        identity = table.person(somebody.name, somebody.groups, sessions.via)
        other = await run_in_threadpool(names.lookalike_of, somebody.name, table.names)
        if other is not None:
            request.state.who = somebody.name
            raise AccessError(lookalike_problem(somebody.name, other, KNOWN))
        response = RedirectResponse(wanted, 303)
        jar.clear_login(response)
        await sessions.begin(request, identity, response)
        return response

    return router


def with_links(links: OneTimeLinks, sessions: Sessions) -> APIRouter:
    """Return the sign-in route of a local server."""
    router = APIRouter(include_in_schema=False)

    @router.get(LINK_PATH)
    async def local(request: Request) -> Response:
        """Open a session for the owner of the link."""
        user = links.use(request.query_params.get("key", ""))
        response = RedirectResponse(FIRST_PAGE, 303)
        await sessions.begin(request, user, response)
        return response

    return router
