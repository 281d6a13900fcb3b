"""The time of day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache


class SystemClock:
    """The machine's clock, in UTC."""

    def now(self) -> str:
        """Return the time, as `YYYY-MM-DDTHH:MM:SS.ffffffZ`."""
        return _shown(datetime.now(UTC))

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
    """Return a time later by so many seconds, in the same form; at most the last."""
    at = datetime.fromisoformat(now).replace(tzinfo=None)
    try:
        return _shown(at + timedelta(seconds=seconds))
    except OverflowError:
        return _shown(datetime.max.replace(tzinfo=UTC))


def _shown(at: datetime) -> str:
    return f"{at.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
