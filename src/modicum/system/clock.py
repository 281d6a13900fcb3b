"""The time of day."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from modicum.core.errors import Code, Problem, UnavailableError

#: Tolerance of the clock against elapsed time, and against other clocks, in seconds;
#: beyond it, it jumped.
JUMP_SECONDS = 300

#: The last second that is shown: that of the year 9999.
_LATEST = 253_402_300_799


def _elapsed() -> float:
    """Return seconds since the machine started, with those that it was suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def seconds() -> float:
    """Return the time of day, in seconds since 1970."""
    return time.time()


class SystemClock:
    """The machine's clock, in UTC.

    Args:
        wall: Returns the time of day, in seconds since 1970.
        elapsed: Returns elapsed seconds, from any origin; it cannot be set.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = _elapsed,
    ) -> None:
        self._wall = wall
        self._elapsed = elapsed
        self._looked = elapsed()
        self._origin = wall() - self._looked  # The time when `elapsed` was 0.

    def now(self) -> str:
        """Return the time, as `YYYY-MM-DDTHH:MM:SS.ffffffZ`."""
        seconds, micros = divmod(round(self._wall() * 1e6), 1_000_000)
        return f"{_second(seconds)}.{micros:06d}Z"

    def after(self, now: str, seconds: int) -> str:
        """Return the time that many seconds after `now`."""
        return add_seconds(now, seconds)

    def checked(self, now: str, at: str) -> str:
        """Return `now`; if the clock jumped, the last time plus the elapsed seconds."""
        elapsed = self._elapsed()
        looked, self._looked = self._looked, elapsed
        latest = self._wall() - elapsed - JUMP_SECONDS
        if latest > self._origin and at:
            # The entry may have been written as early as at the look before this one;
            # after a long time without a look, that would excuse a jump as long.
            written = datetime.fromisoformat(at).timestamp()
            looked = max(looked, elapsed - JUMP_SECONDS)
            self._origin = max(self._origin, written - looked)
        if latest <= self._origin:
            return now
        return _shown(datetime.fromtimestamp(self._origin + elapsed, UTC))


class FixedClock:
    """A fixed clock, for demos and tests.

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

    def checked(self, now: str, at: str) -> str:
        """Return `now`: it never jumps."""
        del at
        return now


@lru_cache(maxsize=16)  # All that happens in one turn happens at one time.
def add_seconds(now: str, seconds: int) -> str:
    """Return a time this many seconds later, in the same form; at most the last."""
    at = datetime.fromisoformat(now).replace(tzinfo=None)
    try:
        return _shown(at + timedelta(seconds=seconds))
    except OverflowError:
        return _shown(datetime.max.replace(tzinfo=UTC))


def refuse_skew(name: str, own: float, there: float) -> None:
    """Refuse clocks that are further apart than a jump.

    Args:
        name: The display name of what has the other clock.
        own: The time of this machine, in seconds since 1970.
        there: The time of the other clock at the same moment.

    Raises:
        UnavailableError: If they are.
    """
    if abs(own - there) <= JUMP_SECONDS:
        return
    here, other = (
        f"{datetime.fromtimestamp(min(max(one, 0), _LATEST), UTC):%Y-%m-%dT%H:%M:%SZ}"
        for one in (own, there)
    )
    raise UnavailableError(
        Problem(
            Code.CLOCK_JUMPED,
            f"the clock of this machine shows {here}, and that of {name} shows {other}",
            notes=("nothing was written, so that no reservation expires by mistake",),
            help="correct the wrong clock",
            places=(name,),
        )
    )


@lru_cache(maxsize=2)  # Each second is asked for thousands of times.
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:19]


def _shown(at: datetime) -> str:
    return f"{at.isoformat(timespec='microseconds')[:26]}Z"  # Without an offset.
