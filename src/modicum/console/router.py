"""The routes of the console: pages, their forms, and what browsers load with them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from modicum.api import operations
from modicum.api.local.views.problem_details import details_of
from modicum.api.schema.problem import ProblemDetails
from modicum.console.html import asset, environment, static_file
from modicum.console.pages import load_pages
from modicum.console.registry import DONE, FORMS, PAGES, SECTIONS, Form, Page
from modicum.console.relay import AS_OF, RefusedError, Relay, fields_of, problem_of
from modicum.core.errors import InputError

_KINDS: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "json": "application/json",
}
#: What pages show around their contents if the visitor may not see even that.
_BARE: Final[dict[str, Any]] = {"me": None, "section": "", "done": None, AS_OF: ""}
#: The cookie that names what was done, for the next page.
_DONE: Final = "modicum-done"
#: Addresses of files name their contents, so browsers keep them.
_KEPT: Final = {"Cache-Control": "public, max-age=31536000, immutable"}


class Console:
    """The console of a server.

    Args:
        login: The path that starts a sign-in; empty if people have one-time links.
        csrf_cookie: The name of the cookie whose value forms send; empty in tests
            without sessions.
    """

    def __init__(self, login: str = "", csrf_cookie: str = "") -> None:
        load_pages()
        self._login = login
        self._csrf_cookie = csrf_cookie
        self._templates = environment()

    def router(self) -> APIRouter:
        """Return its routes."""
        router = APIRouter(include_in_schema=False)
        router.add_api_route("/static/{digest}/{name:path}", _static, methods=["GET"])
        router.add_api_route("/sign-out", self._sign_out, methods=["POST"])
        # Specific paths before those with parameters that match anything.
        for form in sorted(FORMS.values(), key=lambda one: _order(one.path)):
            shown = next(one for one in PAGES.values() if one.view is form.page)
            route = self._route(shown, form)
            router.add_api_route(form.path, route, methods=["POST"])
        for page in sorted(PAGES.values(), key=lambda one: _order(one.path)):
            router.add_api_route(page.path, self._route(page), methods=["GET"])
        return router

    # --- pages -----------------------------------------------------------------------

    def _route(
        self, page: Page, form: Form | None = None
    ) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return await self._answer(page, request, form)

        return answer

    async def _answer(
        self, page: Page, request: Request, form: Form | None = None
    ) -> Response:
        """Return a page, after its form has done what it requests."""
        relay, problem = Relay(request), None
        contents, template = dict(_BARE), page.template
        try:
            # Nothing of a form is read or done for people who are not signed in.
            contents |= await self._frame(relay, page)
            outcome: str | dict[str, Any] = {}
            if form is not None:
                try:
                    relay = Relay(request, await fields_of(request))
                    contents["fields"] = defaultdict(str, relay.fields)
                    outcome = await form.act(relay)
                except RefusedError as refused:
                    problem = refused.problem
                except InputError as error:
                    problem = details_of(error)
            if isinstance(outcome, str):
                return _redirect(request, outcome)
            contents |= await page.view(relay)
            contents |= outcome
        except RefusedError as refused:
            if refused.status == 401:
                return self._sign_in(relay)
            problem, template = problem or refused.problem, "error.html"
        contents |= {"problem": problem, "present": relay.is_present}
        render = self._templates.get_template(template).render
        # Large pages take milliseconds, in which nobody else would be answered.
        text = await run_in_threadpool(render, contents)
        status = problem.status if problem else 200
        response = HTMLResponse(text, status, {"Cache-Control": "no-store"})
        if _DONE in request.cookies:
            response.delete_cookie(_DONE)
        return response

    async def _frame(self, relay: Relay, page: Page) -> dict[str, Any]:
        """Return what every page shows around its own contents."""
        me = await relay.get(operations.ME)
        policies = await relay.try_get(operations.POLICIES)
        head = await relay.try_get(operations.HEAD)
        return {
            "me": me,
            "may": frozenset(me.actions).__contains__,
            "active": policies.policies[-1] if policies and policies.policies else None,
            "head": head,
            "section": page.section,
            "sections": SECTIONS,
            "here": _address(page.path, relay.request.path_params),
            "done": DONE.get(relay.request.cookies.get(_DONE, "")),
            "query": defaultdict(str, relay.query),
            "next_query": lambda cursor: {**relay.query, "cursor": cursor},
            "fields": defaultdict(str, relay.fields),
            "csrf": relay.request.cookies.get(self._csrf_cookie, ""),
            "new_key": lambda: str(uuid4()),
            AS_OF: relay.as_of,
        }

    def serves(self, request: Request) -> bool:
        """Return whether a request is a browser's for a page."""
        is_page = not request.url.path.startswith(operations.PREFIX)
        return is_page and "text/html" in request.headers.get("accept", "")

    async def refusal(self, request: Request, problem: ProblemDetails) -> Response:
        """Return the page for an address at which there is none."""

        async def refuse(_: Relay) -> dict[str, Any]:
            raise RefusedError(problem)

        # Links of the page lead to the same address, and to no other host.
        path = "/" + quote(request.url.path.lstrip("/\\"))
        here = Page(path, "error.html", refuse, "")
        return await self._answer(here, request)

    # --- sign-in ---------------------------------------------------------------------

    def _sign_in(self, relay: Relay) -> Response:
        """Return the way to sign in; the page is shown afterward."""
        if self._login and relay.request.method == "GET":
            url = relay.request.url
            wanted = f"{url.path}?{url.query}" if url.query else url.path
            address = relay.request.url.replace(path=self._login, query="")
            address = address.include_query_params(next=wanted)
            return RedirectResponse(f"{address.path}?{address.query}", 303)
        return HTMLResponse(self._outside(), 401)

    async def _sign_out(self, request: Request) -> Response:
        fields = await fields_of(request)
        relay = Relay(request, fields)
        headers = {"x-csrf-token": fields.get("csrf", "")}
        status, found, sent = await relay.send("POST", "/logout", {}, headers, b"")
        if status not in (204, 401):  # They are still signed in, maybe as another one.
            return await self.refusal(request, problem_of(found))
        response = HTMLResponse(self._outside(), 200 if status == 204 else status)
        for cookie in sent.getlist("set-cookie"):
            response.headers.append("set-cookie", cookie)
        return response

    def _outside(self) -> str:
        """Return the page of people who are not signed in."""
        template = self._templates.get_template("sign-in.html")
        return template.render({**_BARE, "problem": None, "login": self._login})


def _redirect(request: Request, address: str) -> Response:
    """Return the redirect after a form.

    What the page then says is in a cookie: a link of another site could not set it, to
    make people believe that something was done.
    """
    page, _, done = address.partition("?done=")
    response = RedirectResponse(page, 303)
    if done:
        secure = request.url.scheme == "https"
        response.set_cookie(
            _DONE, done, max_age=60, secure=secure, httponly=True, samesite="strict"
        )
    return response


async def _static(digest: str, name: str) -> Response:
    """Return a file that browsers load; it is public."""
    contents = static_file(name)
    kind = _KINDS.get(name.rpartition(".")[2])
    # Another digest is that of another version, which caches would keep under it.
    if contents is None or kind is None or asset(name).split("/")[2] != digest:
        return Response("there is no such file", 404, media_type="text/plain")
    return Response(contents, headers=_KEPT, media_type=kind)


def _address(path: str, parts: Mapping[str, Any]) -> str:
    """Return the address of a page with its parts in its path, quoted."""
    return re.sub(r"{(\w+)(?::\w+)?}", lambda one: quote(parts[one[1]], safe=""), path)


def _order(path: str) -> tuple[int, str]:
    """Return the place of a path: fewer parameters first, and longer ones first."""
    return (len(re.findall("{", path)), f"{1000 - len(path):04}{path}")
