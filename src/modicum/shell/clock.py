"""The time of day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

_FORM = "%Y-%m-%dT%H:%M:%S.%fZ"


class SystemClock:
    """The machine's clock, in UTC."""

    def now(self) -> str:
        """Return the time, as `YYYY-MM-DDTHH:MM:SS.ffffffZ`."""
        return datetime.now(UTC).strftime(_FORM)

    def after(self, now: str, seconds: int) -> str:
        """Return the time that many seconds after `now`."""
        return add_seconds(now, seconds)


class FixedClock:
    """A clock that stands still, for demos and tests.

    Args:
        now: The time it shows.
    """

    def __init__(self, now: str) -> None:
        self.time = now

    def now(self) -> str:
        """Return the time it shows."""
        return self.time

    def after(self, now: str, seconds: int) -> str:
        """Return the time that many seconds after `now`."""
        return add_seconds(now, seconds)


@lru_cache(maxsize=16)  # All that happens in one turn happens at one time.
def add_seconds(now: str, seconds: int) -> str:
    """Return a time later by so many seconds, in the same form."""
    at = datetime.strptime(now, _FORM).replace(tzinfo=UTC)
    return (at + timedelta(seconds=seconds)).strftime(_FORM)
