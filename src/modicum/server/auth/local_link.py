"""The one-time link by which the only user of a local server is known."""

from __future__ import annotations

import hmac
import secrets
from hashlib import sha256
from typing import Final

from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import ALL, Grants
from modicum.server.auth.ports import Clock
from modicum.server.auth.problems import expired, not_accepted

#: Lifetime of the link.
LINK_SECONDS: Final = 600
#: Target of the link.
LINK_PATH: Final = "/login/local"

#: All roles that one person may have together, and a person alone needs.
LOCAL_GRANTS: Final[Grants] = {
    role: frozenset({ALL})
    for role in (
        Role.ANALYST,
        Role.DATA_STEWARD,
        Role.PRIVACY_OFFICER,
        Role.PLATFORM_ENGINEER,
    )
}


class OneTimeLink:
    """A key that is valid once, for a short time.

    Args:
        clock: The time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._digest = b""
        self._until = ""

    def make(self, origin: str) -> str:
        """Return a new link; one that was made before is good for nothing."""
        key = secrets.token_urlsafe(32)
        self._digest = sha256(key.encode()).digest()
        self._until = self._clock.after(self._clock.now(), LINK_SECONDS)
        return f"{origin}{LINK_PATH}?key={key}"

    def use(self, key: str) -> None:
        """Take the key of the link."""
        given = sha256(key.encode()).digest()
        if not hmac.compare_digest(given, self._digest):
            raise not_accepted()
        self._digest = b""  # First of all: no second request may succeed.
        if self._clock.now() >= self._until:
            raise expired("the link")
