"""The cookies of this server, and why they are as they are."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.responses import Response


@dataclass(frozen=True, slots=True)
class CookieJar:
    """Names and attributes of cookies for one origin.

    With https, the prefix `__Host-` has browsers refuse cookies of these names that
    another host, a path or plain http set. Browsers grant that prefix on http to
    nobody, and `Secure` not everywhere, so on this machine the names hold the port
    instead: two servers do not take each other's cookies.

    All are `Lax`, and not `Strict`: a browser that comes back from the provider was
    sent by another site, and would not show a strict cookie to the page where it
    lands. What has effects does not rely on it.

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
        """The name of the cookie of somebody who is about to sign in."""
        return self._named("modicum-login")

    def _named(self, name: str) -> str:
        if self.is_secure:
            return f"__Host-{name}"
        return f"{name}-{urlsplit(self.origin).port or 80}"

    def set_session(
        self, response: Response, secret: str, csrf: str, seconds: int
    ) -> None:
        """Send the cookies of a session.

        Args:
            response: What they go out with.
            secret: The session's secret, which no script of a page can read.
            csrf: What pages send back; other sites can neither read nor set it.
            seconds: How long browsers keep them.
        """
        self._set(response, self.session, secret, seconds)
        self._set(response, self.csrf, csrf, seconds, is_read_by_pages=True)

    def clear_session(self, response: Response) -> None:
        """Take the cookies of a session back."""
        self._set(response, self.session, "", 0)
        self._set(response, self.csrf, "", 0, is_read_by_pages=True)

    def set_login(self, response: Response, sealed: str, seconds: int) -> None:
        """Send the cookie of somebody who is about to sign in."""
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
