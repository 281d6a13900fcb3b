"""Browser sessions: a cookie, and a CSRF token for changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from modicum.api.permissions.identity import Identity
from modicum.api.permissions.tokens import Session, secret_digest
from modicum.server.auth.authentication import LISTENING
from modicum.server.auth.credentials import credentials_of, one_cookie
from modicum.server.auth.ports import Clock, SessionStore
from modicum.server.auth.problems import forbidden, not_accepted
from modicum.server.settings.model import SessionTimes


@dataclass(frozen=True, slots=True)
class CookieJar:
    """Names and attributes of cookies for one origin.

    With https, the prefix `__Host-` makes browsers refuse cookies of these names set by
    another host, a path or plain http. With http, browsers do not support that prefix,
    nor `Secure` everywhere, so on this machine the names contain the port instead: two
    servers do not share cookies.

    All are `Lax`, not `Strict`: a browser redirected from the provider comes from
    another site, and would not send a strict cookie to the landing page. Changes do not
    rely on it.

    Attributes:
        origin: The origin of the server's pages.
    """

    origin: str

    @property
    def is_secure(self) -> bool:
        """Whether cookies travel over https only."""
        return self.origin.startswith("https://")

    @property
    def session(self) -> str:
        """The name of the session's cookie."""
        return self._named("modicum")

    @property
    def csrf(self) -> str:
        """The name of the cookie whose value pages send as a header."""
        return self._named("modicum-csrf")

    @property
    def login(self) -> str:
        """The name of the cookie of a pending sign-in."""
        return self._named("modicum-login")

    def _named(self, name: str) -> str:
        if self.is_secure:
            return f"__Host-{name}"
        return f"{name}-{urlsplit(self.origin).port or 80}"

    def set_session(
        self, response: Response, secret: str, csrf: str, seconds: int
    ) -> None:
        """Send the cookies of a session."""
        self._set(response, self.session, secret, seconds)
        self._set(response, self.csrf, csrf, seconds, is_read_by_pages=True)

    def clear_session(self, response: Response) -> None:
        """Take the cookies of a session back."""
        self._set(response, self.session, "", 0)
        self._set(response, self.csrf, "", 0, is_read_by_pages=True)

    def set_login(self, response: Response, sealed: str, seconds: int) -> None:
        """Set the cookie of a pending sign-in."""
        self._set(response, self.login, sealed, seconds)

    def clear_login(self, response: Response) -> None:
        """Take that cookie back."""
        self._set(response, self.login, "", 0)

    def _set(
        self,
        response: Response,
        name: str,
        value: str,
        seconds: int,
        *,
        is_read_by_pages: bool = False,
    ) -> None:
        response.set_cookie(
            name,
            value,
            max_age=seconds,
            path="/",
            secure=self.is_secure,
            httponly=not is_read_by_pages,
            samesite="lax",
        )


#: The header that shows that a page of this server sent the request.
CSRF_HEADER: Final = "X-CSRF-Token"
#: Methods that have no effects.
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})

_PROLONG_EVERY_S: Final = 60  # Writing on each request would be too expensive.


class Sessions:
    """Opens, authenticates and ends sessions.

    A session ends after a period without use, and at the latest some hours after it
    started.

    Args:
        book: The store of sessions.
        clock: The time.
        times: How long they last.
        jar: Their cookies, and the origin of the pages that may use them.
        via: The present sign-in method. Sessions of another method are invalid: another
            provider may use the same name for another person.
        current: Returns who signed in with their grants of now; None for those of the
            sign-in.
    """

    def __init__(
        self,
        book: SessionStore,
        clock: Clock,
        times: SessionTimes,
        jar: CookieJar,
        via: str,
        current: Callable[[Identity], Identity] | None = None,
    ) -> None:
        self._book = book
        self._clock = clock
        self._idle_s = times.idle_minutes * 60
        self._absolute_s = times.absolute_hours * 3600
        self._jar = jar
        self.via = via
        self._current = current

    # --- recognizing ---------------------------------------------------------

    async def identify(self, request: Request) -> Identity | None:
        """Return whose session the request belongs to; None if to none."""
        session = await self.session_of(request)
        if session is None or self._current is None:
            return None if session is None else session.identity
        return self._current(session.identity)

    async def session_of(self, request: Request) -> Session | None:
        """Return the session of a request, also of somebody without grants."""
        secret = credentials_of(request, self._jar.session).session
        if secret is None:
            return None
        digest = secret_digest(secret)
        session = await run_in_threadpool(self._book.session_by_digest, digest)
        if session is None or session.identity.via != self.via:
            raise not_accepted()
        if request.method not in SAFE_METHODS:
            self._refuse_forged(request, session)
        if not getattr(request.state, LISTENING, False):
            await self._prolong(session)
        return session

    def _refuse_forged(self, request: Request, session: Session) -> None:
        sent = request.headers.getlist(CSRF_HEADER)
        if len(sent) != 1 or not session.comes_from_a_page(sent[0]):
            raise forbidden(
                f"a request with side effects needs the header {CSRF_HEADER}",
                f"send the value of the cookie `{self._jar.csrf}`",
            )
        refuse_other_sites(request, self._jar.origin)

    async def _prolong(self, session: Session) -> None:
        """Put off the end of a session that is in use, if that is worth writing."""
        after = self._clock.after
        until = min(
            after(self._clock.now(), self._idle_s),
            after(session.created_at, self._absolute_s),
        )
        if until > after(session.expires_at, _PROLONG_EVERY_S):
            await run_in_threadpool(self._book.prolong_session, session.digest, until)

    # --- beginning and ending ------------------------------------------------

    async def begin(
        self, request: Request, identity: Identity, response: Response
    ) -> None:
        """Open a session after a sign-in.

        Its secret is always new, and the session that the browser had is over: one
        that was planted there is good for nothing.
        """
        await self._forget(request)
        first = min(self._idle_s, self._absolute_s)
        opened = await run_in_threadpool(
            self._book.add_session, identity, seconds=first
        )
        request.state.who = identity.name
        self._jar.set_session(response, opened.secret, opened.csrf, self._absolute_s)

    async def end(self, request: Request, response: Response) -> None:
        """End the session of a request that was recognized by it."""
        await self._forget(request)
        self._jar.clear_session(response)

    async def _forget(self, request: Request) -> None:
        secret = one_cookie(request, self._jar.session)
        if secret is not None:
            await run_in_threadpool(self._book.end_session, secret_digest(secret))


def refuse_other_sites(request: Request, origin: str) -> None:
    """Refuse a request from a page of another site."""
    origins = request.headers.getlist("origin")
    sites = request.headers.getlist("sec-fetch-site")
    foreign = any(one != origin for one in origins) or any(
        one not in ("same-origin", "none") for one in sites
    )
    if foreign:
        raise forbidden(
            "a page of another site sent the request",
            "open this server's own pages, at the address in `public_url`",
        )
