"""The one-time links by which the people of a local server are known."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import ALL, Grants, Identity
from modicum.server.auth.ports import Clock
from modicum.server.auth.problems import expired, not_accepted

#: Lifetime of a link.
LINK_SECONDS: Final = 600
#: Target of a link.
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


@dataclass(frozen=True, slots=True)
class _Key:
    digest: bytes
    until: str
    user: Identity


class OneTimeLinks:
    """Keys that are each valid once, for a short time, and for one person.

    Args:
        clock: The time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._keys: dict[str, _Key] = {}

    def make(self, user: Identity, origin: str) -> str:
        """Return a new link; one that was made for them before is good for nothing."""
        key = secrets.token_urlsafe(32)
        until = self._clock.after(self._clock.now(), LINK_SECONDS)
        self._keys[user.name] = _Key(sha256(key.encode()).digest(), until, user)
        return f"{origin}{LINK_PATH}?key={key}"

    def use(self, key: str) -> Identity:
        """Take the key of a link; return whose it is."""
        given = sha256(key.encode()).digest()
        # All are compared, so that the time tells nothing about any.
        found = [
            one for one in self._keys.values() if hmac.compare_digest(given, one.digest)
        ]
        if not found:
            raise not_accepted()
        (own,) = found
        del self._keys[own.user.name]  # First of all: no second request may succeed.
        if self._clock.now() >= own.until:
            raise expired("the link")
        return own.user
