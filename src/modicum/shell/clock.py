"""The time of day."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache


def _elapsed() -> float:
    """Return seconds since the machine started, with those that it was suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class SystemClock:
    """The machine's clock, in UTC.

    Args:
        wall: Tells the time of day.
        elapsed: Tells how many seconds went by, from any beginning; nobody sets it.
    """

    def __init__(
        self,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
        elapsed: Callable[[], float] = _elapsed,
    ) -> None:
        self._wall = wall
        self._elapsed = elapsed
        #: A time that is believed, and what `elapsed` told then.
        self._since = self.now(), elapsed()

    def now(self) -> str:
        """Return the time, as `YYYY-MM-DDTHH:MM:SS.ffffffZ`."""
        return _shown(self._wall())

    def after(self, now: str, seconds: int) -> str:
        """Return the time that many seconds after `now`."""
        return add_seconds(now, seconds)

    def believed(self, at: str) -> str:
        """Return the time by the seconds that went by since a time that is believed.

        Args:
            at: The time of the ledger's last entry, which is believed, too; empty if
                it has none.
        """
        elapsed = self._elapsed()
        since, then = self._since
        now = _later(since, elapsed - then)
        if at <= now:
            return now
        self._since = at, elapsed
        return at


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

    def believed(self, at: str) -> str:
        """Return the time it shows: it is believed."""
        del at
        return self.time


@lru_cache(maxsize=16)  # All that happens in one turn happens at one time.
def add_seconds(now: str, seconds: int) -> str:
    """Return a time later by so many seconds, in the same form; at most the last."""
    return _later(now, seconds)


def _later(now: str, seconds: float) -> str:
    at = datetime.fromisoformat(now).replace(tzinfo=None)
    try:
        return _shown(at + timedelta(seconds=seconds))
    except OverflowError:
        return _shown(datetime.max.replace(tzinfo=UTC))


def _shown(at: datetime) -> str:
    return f"{at.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
