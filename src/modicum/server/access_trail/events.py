"""Events of requests: which request is an access worth noting, and how many are.

An event is derived from the route, the status and the identity: a path, a header or a
body of a client is in none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from modicum.api import operations
from modicum.api.operations import PREFIX
from modicum.core.errors import Code
from modicum.ledger.proof.access_trail import AccessEvent, AccessKind, bounded
from modicum.server.auth.local_link import LINK_PATH
from modicum.server.auth.sign_in import CALLBACK_PATH
from modicum.server.telemetry.log import Served

#: The routes that sign somebody in, and how.
_SIGN_IN: Final = {CALLBACK_PATH: "provider", LINK_PATH: "one-time link"}
#: The routes that answer with a large part of the log.
_EXPORTS: Final = frozenset(
    f"{PREFIX}{one.path}" for one in (operations.BUNDLE, operations.AUDIT_STATEMENT)
)
_ENTRIES: Final = f"{PREFIX}{operations.ENTRIES.path}"
_OK: Final = 200
_REDIRECT: Final = 303
_BAD: Final = 400
_UNKNOWN: Final = 401
_FORBIDDEN: Final = 403


def event_of(one: Served, now: Callable[[], str]) -> AccessEvent | None:
    """Return the event of a served request; None if it is not an access to note."""
    kind, refused = _kind_of(one)
    if kind is None:
        return None
    via = _SIGN_IN.get(one.route, one.via)
    return AccessEvent(
        now(),
        kind,
        "refused" if refused else "done",
        who=bounded(one.who),
        via=bounded(via),
        action="" if kind is AccessKind.SIGN_IN else f"{one.method} {one.route}",
        client="" if one.who and kind is not AccessKind.SIGN_IN else one.network,
        code=one.code if refused else "",
    )


def _kind_of(one: Served) -> tuple[AccessKind | None, bool]:
    """Return the kind of a request's event, and whether something was refused."""
    if one.route in _SIGN_IN:
        if one.status == _REDIRECT and one.who:
            return AccessKind.SIGN_IN, False
        # Too many attempts, and a provider that is away, are refusals, too.
        return (AccessKind.SIGN_IN, True) if one.status >= _BAD else (None, False)
    is_limited = one.code == Code.TOO_MANY_REQUESTS.value and not one.who
    if one.status == _UNKNOWN or is_limited:
        return AccessKind.CREDENTIAL, True
    # Of a batch, each release is answered by itself.
    if one.status == _FORBIDDEN or one.code == Code.FORBIDDEN.value:
        return AccessKind.RIGHT, True
    is_export = one.route in _EXPORTS or (one.route == _ENTRIES and one.is_lines)
    if is_export and one.status == _OK:
        return AccessKind.EXPORT, False
    return None, False


#: Stored refusals of one kind in a minute, in each process …
KIND_MAX: Final = 60
#: … and of those, of one identity or client.
SOURCE_MAX: Final = 10
#: The window of the bounds, in seconds.
WINDOW_SECONDS: Final = 60.0


class RefusalBounds:
    """Bounds how many refusals are stored, and counts the others.

    Done accesses are always stored. A client that is refused all the time takes neither
    the disk, nor the place of other clients.

    Args:
        clock: Returns seconds, from any origin.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = self._counted_at = clock()
        self._kinds: dict[AccessKind, int] = {}
        self._sources: dict[tuple[AccessKind, str], int] = {}
        self._left_out: dict[AccessKind, int] = {}

    def takes(self, event: AccessEvent) -> bool:
        """Return whether an event is to be stored; one that is not is counted."""
        if event.outcome != "refused":
            return True
        if self._clock() - self._since >= WINDOW_SECONDS:
            self._since = self._clock()
            self._kinds.clear()
            self._sources.clear()
        source = event.kind, event.who or event.client
        if (
            self._kinds.get(event.kind, 0) >= KIND_MAX
            or self._sources.get(source, 0) >= SOURCE_MAX
        ):
            self.leave_out(event.kind)
            return False
        self._kinds[event.kind] = self._kinds.get(event.kind, 0) + 1
        self._sources[source] = self._sources.get(source, 0) + 1
        return True

    def leave_out(self, kind: AccessKind) -> None:
        """Count an event that is not stored."""
        self._left_out[kind] = self._left_out.get(kind, 0) + 1

    def counted(self, at: str, *, at_end: bool = False) -> list[AccessEvent]:
        """Return the counts of what was left out since, at most once in a window."""
        now = self._clock()
        if not at_end and now - self._counted_at < WINDOW_SECONDS:
            return []
        self._counted_at = now
        found, self._left_out = self._left_out, {}
        return [
            AccessEvent(at, AccessKind.LEFT_OUT, count=count, of=kind.value)
            for kind, count in found.items()
        ]
