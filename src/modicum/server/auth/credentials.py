"""Which credentials a request carries: at most one, where it belongs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote_plus

from starlette.requests import Request

from modicum.server.auth.problems import unusable

#: The prefix of API tokens, recognizable by secret scanners.
TOKEN_PREFIX: Final = "mdc_"  # noqa: S105 - the prefix of tokens, and none itself
#: Longer ones are not looked at.
BEARER_CHARACTERS_MAX: Final = 16 * 1024

_BEARER: Final = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/-]+=*)")
_IN_QUERY: Final = re.compile(r"(?:^|&)(?:access_token|token|id_token|api_key)=", re.I)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of a request.

    Attributes:
        bearer: The token after `Bearer`.
        session: The secret of the session's cookie.
    """

    bearer: str | None = field(default=None, repr=False)
    session: str | None = field(default=None, repr=False)


def credentials_of(request: Request, cookie: str) -> Credentials:
    """Return the credentials of a request."""
    known: dict[str, Credentials] = request.scope.setdefault("modicum.credentials", {})
    if cookie not in known:
        known[cookie] = _read(request, cookie)
    return known[cookie]


def _read(request: Request, cookie: str) -> Credentials:
    query = request.scope.get("query_string", b"").decode("latin-1")
    if query and (_IN_QUERY.search(query) or TOKEN_PREFIX in unquote_plus(query)):
        raise unusable(
            "a token in the URL is kept in logs and histories",
            "send it as  Authorization: Bearer …, and revoke this one",
        )
    bearer = _bearer(request)
    session = one_cookie(request, cookie)
    if bearer is not None and session is not None:
        raise unusable(
            "the request has a token and a session, maybe of two people",
            "send one of them",
        )
    return Credentials(bearer, session)


def _bearer(request: Request) -> str | None:
    given = request.headers.getlist("authorization")
    if not given:
        return None
    if len(given) > 1:
        raise unusable("the request has two Authorization headers", "send one")
    found = _BEARER.fullmatch(given[0].strip(" "))
    if found is None or len(given[0]) > BEARER_CHARACTERS_MAX:
        raise unusable(
            "the Authorization header has no bearer token",
            "send  Authorization: Bearer TOKEN",
        )
    return found.group(1)


def one_cookie(request: Request, name: str) -> str | None:
    """Return the value of a cookie; None if there is none."""
    values = [
        value.strip()
        for header in request.headers.getlist("cookie")
        for key, _, value in (pair.partition("=") for pair in header.split(";"))
        if key.strip() == name
    ]
    if len(values) > 1:
        raise unusable(
            "the request has the same cookie twice", "remove this site's cookies"
        )
    return values[0] if values else None
