"""Sessions: what is stored of somebody who signed in with a browser."""

from __future__ import annotations

from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Final

from modicum.api.permissions.identity import Identity
from modicum.api.permissions.tokens import DAY_SECONDS, secret_digest

#: A session lasts so long at most.
SESSION_SECONDS_MAX: Final = 30 * DAY_SECONDS


@dataclass(frozen=True, slots=True)
class Session:
    """What is stored of a session.

    Attributes:
        digest: The digest of its secret, which the browser has in a cookie.
        identity: Who signed in, and what they may do.
        csrf: The digest of what a page must send back to change something.
        created_at: When they signed in, in UTC, as events write it.
        expires_at: When it ends.
    """

    digest: str = field(repr=False)
    identity: Identity
    csrf: str = field(repr=False)
    created_at: str
    expires_at: str

    def is_over(self, now: str) -> bool:
        """Return whether it has ended.

        Args:
            now: The time.
        """
        return self.expires_at <= now

    def comes_from_a_page(self, sent: str) -> bool:
        """Return whether a request holds what only the service's own pages know.

        Args:
            sent: What it holds.
        """
        return compare_digest(self.csrf, secret_digest(sent))
