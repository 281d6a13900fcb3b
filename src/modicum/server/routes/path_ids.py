"""Slashes of ids: one that is written `%2F` belongs to the id, never to the route."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote_to_bytes

from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

_SLASH: Final = b"/"


class LiteralEnd(APIRoute):
    """A route whose end, such as `/receipt`, has a slash that is written as such.

    Servers hand on the path with its escapes resolved: `/releases/study%2Freceipt`,
    the release `study/receipt`, would be taken for the receipt of `study`. So the path
    is looked at as it was sent. Where a proxy resolved the escapes before, nobody can
    tell them apart, and the route is taken.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether it takes a request."""
        if not self._ends_so(scope):
            return Match.NONE, {}
        return super().matches(scope)

    def _ends_so(self, scope: Scope) -> bool:
        _, after_id, end = self.path_format.rpartition("}/")
        sent = scope.get("raw_path")
        if not after_id or sent is None:
            return True
        # Other escapes mean what they stand for, as everywhere.
        return unquote_to_bytes(sent.rpartition(_SLASH)[2]) == end.encode()
