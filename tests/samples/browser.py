"""A browser in which several people use the console of a server, each for themselves.

Whatever a page does that it should not is noticed and fails the test: errors in the
console and in scripts, violations of the content security policy, requests to others.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fastapi import APIRouter

from modicum.ops.demo import make_demo
from modicum.ops.demo_people import SETTINGS, add_people
from modicum.server.auth.setup import PublicAddress
from modicum.server.factory import Opened, make_parts
from modicum.server.settings.reader import load_settings
from modicum.system.clock import FixedClock
from samples.served import free_socket, running
from samples.small import NOON

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page, Request

#: No page may take longer, in milliseconds: a wait that ends so has failed.
PATIENCE_MS = 15_000
#: A name that leads to another machine is not found.
_HERE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"

Serious: TypeAlias = Literal["serious", "critical"]


# --- the browser ---------------------------------------------------------------------


def missing() -> str:
    """Return what a browser needs and this machine has not; empty if all is there."""
    if shutil.which("chromium") is None:
        return "there is no chromium; .ci/run installs it"
    for name in ("playwright", "axe_playwright_python"):
        if find_spec(name) is None:
            return f"{name} is not installed; the extra `test` has it"
    return ""


class Chromium:
    """A browser whose event loop is this thread's only while somebody uses it.

    The library runs an event loop in this thread, which would stop other tests of the
    process from running theirs.

    Args:
        browser: The browser.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._loop = asyncio.events._get_running_loop()

    @contextmanager
    def used(self) -> Iterator[Browser]:
        """Yield the browser."""
        asyncio.events._set_running_loop(self._loop)
        try:
            yield self._browser
        finally:
            asyncio.events._set_running_loop(None)


@contextmanager
def launched() -> Iterator[Chromium]:
    """Run a browser; without its sandbox, since tests may run as root."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu", _HERE]
        )
        found = Chromium(browser)
        asyncio.events._set_running_loop(None)
        try:
            yield found
        finally:
            asyncio.events._set_running_loop(found._loop)
            browser.close()


# --- the server ----------------------------------------------------------------------


@dataclass
class Site:
    """A server of the example organization, and a browser for its people.

    Attributes:
        url: Its address.
        clock: Its time.
        folder: The files of the example.
    """

    url: str
    clock: FixedClock
    folder: Path
    _links: dict[str, str] = field(repr=False)
    _browser: Browser = field(repr=False)
    _cookies: dict[str, Any] = field(default_factory=dict, repr=False)

    @contextmanager
    def as_(self, who: str, **options: Any) -> Iterator[Visit]:
        """Yield a visit of somebody who is signed in; noticed mistakes fail the test.

        A refused request is noticed, too: a test `expect`s the status that it is for.

        Args:
            who: The person; empty for somebody who is not signed in.
            options: What else playwright's `new_context` takes.
        """
        with self._browser.new_context(base_url=self.url, **options) as context:
            context.set_default_timeout(PATIENCE_MS)
            if who:
                self._sign_in(who, context)
            visit = Visit(who, context.new_page(), self.url)
            yield visit
            context.close()
        assert visit.noticed == [], visit.noticed

    def _sign_in(self, who: str, context: BrowserContext) -> None:
        """Use the link of somebody, which is good once, or the session that it gave."""
        if who in self._links:
            answer = context.request.get(self._links.pop(who), max_redirects=0)
            assert answer.status == 303
            self._cookies[who] = context.cookies()
        context.add_cookies(self._cookies[who])


def make_site(folder: Path) -> Path:
    """Write the example organization with its people, at noon."""
    make_demo("acme-health", folder, clock=FixedClock(NOON))
    add_people(folder, clock=FixedClock(NOON))
    return folder


@contextmanager
def served_site(
    made: Path, folder: Path, browser: Browser, *more: APIRouter
) -> Iterator[Site]:
    """Serve a copy of the example as `modicum serve` does.

    Args:
        made: The example, as `make_site` leaves it.
        folder: A new folder for the copy.
        browser: The browser.
        more: Further routes.
    """
    shutil.copytree(made, folder)
    clock, opened = FixedClock(NOON), list[Opened]()
    settings = load_settings(folder / SETTINGS)
    telemetry = replace(settings.telemetry, log_level="error")
    with free_socket() as own:
        door = PublicAddress("127.0.0.1", own.getsockname()[1], "nobody")
        parts = make_parts(
            replace(settings, telemetry=telemetry), door, opened.append, clock
        )
        assert parts.entrance is not None
        routers = (*parts.entrance.routers, *more)
        parts.entrance = replace(parts.entrance, routers=routers)
        try:
            with running(parts, own=own) as url:
                yield Site(url, clock, folder, dict(opened[0].links), browser)
        finally:
            parts.service.jobs.close()
            parts.decider.close()
            for one in parts.closing:
                one()


# --- a visit -------------------------------------------------------------------------


class Visit:
    """Somebody's visit, with all that was noticed of their pages.

    Args:
        who: The person.
        page: Their page.
        url: The address of the server; a page may ask no other.
    """

    def __init__(self, who: str, page: Page, url: str) -> None:
        self.who = who
        self.page = page
        self.noticed: list[str] = []
        self._url = url
        context = page.context
        context.on("console", self._hear)
        context.on("weberror", lambda one: self._note(f"script: {one.error}"))
        context.on("request", self._see)

    def expect(self, pattern: str, *, patience_ms: int = PATIENCE_MS) -> None:
        """Wait for something that is meant to be noticed, and take it away."""
        for _ in range(0, patience_ms, 20):
            for one in self.noticed:
                if re.search(pattern, one):
                    self.noticed.remove(one)
                    return
            self.page.wait_for_timeout(20)  # Only meanwhile anything is noticed.
        raise AssertionError(f"no {pattern!r} in {self.noticed}")

    def tab_to(
        self, role: Any, name: str, *, at_most: int = 60, back: bool = False
    ) -> Locator:
        """Move the focus to an element by the Tab key alone; return the element.

        Args:
            role: Its role.
            name: Its accessible name.
            at_most: How often to press the key.
            back: Whether to move backward.
        """
        wanted = self.page.get_by_role(role, name=name, exact=True)
        passed: list[str] = []
        for _ in range(at_most):
            self.page.keyboard.press("Shift+Tab" if back else "Tab")
            if wanted.evaluate_all("all => all.some(one => one.matches(':focus'))"):
                return wanted.and_(self.page.locator(":focus"))
            passed.append(self.page.evaluate(_FOCUSED))
        raise AssertionError(f"Tab reached no {role} {name!r}, but {passed}")

    def _note(self, what: str) -> None:
        self.noticed.append(what)

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self._note(f"console: {message.text} ({message.location.get('url', '')})")

    def _see(self, request: Request) -> None:
        if not request.url.startswith((f"{self._url}/", "data:", "blob:")):
            self._note(f"request to another host: {request.url}")


_FOCUSED = "document.activeElement.outerHTML.slice(0, 60)"


@cache
def _axe() -> Any:
    from axe_playwright_python.sync_playwright import (  # type: ignore[import-untyped]
        Axe,
    )

    return Axe()


def axe(
    page: Page,
    impacts: Sequence[Serious] = ("serious", "critical"),
    rules: Sequence[str] = (),
) -> list[str]:
    """Return what axe finds wrong with a page, and where; by some rules, or all."""
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = list(rules)
    found = _axe().run(page, options=options).response["violations"]
    return [
        f"{one['id']} ({one['impact']}): {node['target']} {node['html'][:100]}"
        for one in found
        if one["impact"] in impacts
        for node in one["nodes"]
    ]
