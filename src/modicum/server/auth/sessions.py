"""Sessions of people in browsers: a cookie, and a second proof for what has effects."""

from __future__ import annotations

from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from modicum.api.permissions.identity import Identity
from modicum.api.permissions.sessions import Session
from modicum.api.permissions.tokens import secret_digest
from modicum.server.auth.authentication import LISTENING
from modicum.server.auth.cookies import CookieJar
from modicum.server.auth.credentials import credentials_of, one_cookie
from modicum.server.auth.ports import Clock, SessionBook
from modicum.server.auth.problems import forbidden, not_accepted
from modicum.server.settings.model import SessionTimes

#: The header that shows that a page of this server sent the request.
CSRF_HEADER: Final = "X-CSRF-Token"
#: Methods that have no effects.
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})

_PROLONG_EVERY_S: Final = 60  # Writing at each request would cost more than it tells.


class Sessions:
    """Makes sessions, recognizes people by them, and ends them.

    A session ends when nobody used it for a while, and at the latest some hours after
    it began.

    Args:
        book: Where sessions are kept.
        clock: The time.
        times: How long they last.
        jar: Their cookies, and the origin of the pages that may use them.
        via: How people signed in. Sessions of those who did otherwise do not hold:
            another provider may call somebody else by the same name, and what the
            settings grant no more must end with the next start.
    """

    def __init__(
        self,
        book: SessionBook,
        clock: Clock,
        times: SessionTimes,
        jar: CookieJar,
        via: str,
    ) -> None:
        self._book = book
        self._clock = clock
        self._idle_s = times.idle_minutes * 60
        self._absolute_s = times.absolute_hours * 3600
        self._jar = jar
        self.via = via

    # --- recognizing ---------------------------------------------------------

    async def identify(self, request: Request) -> Identity | None:
        """Return whose session the request belongs to; None if to none.

        Raises:
            AccessError: If the session is over, or the request has effects and no
                page of this server sent it.
        """
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
        return session.identity

    def _refuse_forged(self, request: Request, session: Session) -> None:
        sent = request.headers.getlist(CSRF_HEADER)
        if len(sent) != 1 or not session.comes_from_a_page(sent[0]):
            raise forbidden(
                f"a request with effects needs the header {CSRF_HEADER}",
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
        """Begin a session for somebody who just signed in.

        Its secret is always new, and the session that the browser had is over: one
        that was planted there is good for nothing.

        Args:
            request: What the browser sent.
            identity: Who signed in.
            response: What the cookies go out with.
        """
        await self._forget(request)
        first = min(self._idle_s, self._absolute_s)
        opened = await run_in_threadpool(
            self._book.add_session, identity, seconds=first
        )
        self._jar.set_session(response, opened.secret, opened.csrf, self._absolute_s)

    async def end(self, request: Request, response: Response) -> None:
        """End the session of a request that was recognized by it.

        Args:
            request: The request.
            response: What takes the cookies back.
        """
        await self._forget(request)
        self._jar.clear_session(response)

    async def _forget(self, request: Request) -> None:
        secret = one_cookie(request, self._jar.session)
        if secret is not None:
            await run_in_threadpool(self._book.end_session, secret_digest(secret))


def refuse_other_sites(request: Request, origin: str) -> None:
    """Refuse what a page of another site sent.

    Args:
        request: The request.
        origin: The origin of this server's own pages.

    Raises:
        AccessError: If the browser says that it comes from elsewhere.
    """
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
