"""Slashes of ids: one that is written `%2F` belongs to the id, never to the route."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote_to_bytes

from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

_SLASH: Final = b"/"


class LiteralEnd(APIRoute):
    """A route with a literal slash before its end, such as `/receipt`.

    Servers pass the unescaped path: `/releases/study%2Freceipt`, the release
    `study/receipt`, would match the receipt of `study`. So the raw path is checked.
    Where a proxy unescaped it before, they cannot be distinguished, and the route
    matches.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether it matches a request."""
        if not self.ends_so(scope.get("raw_path")):
            return Match.NONE, {}
        return super().matches(scope)

    def ends_so(self, sent: bytes | None) -> bool:
        """Return whether a path, as it was sent, has the route's own end."""
        _, after_id, end = self.path_format.rpartition("}/")
        if not after_id or sent is None:
            return True
        # Other escapes have their usual meaning.
        return unquote_to_bytes(sent.rpartition(_SLASH)[2]) == end.encode()
