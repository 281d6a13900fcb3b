"""The parsing of what clients send: one document at a time, at a pace.

A parser competes with decisions for the interpreter. So it pauses as long as it worked:
all together it takes half a core at most. Who sent a document waits with the next one
until a fifth of the time was spent on theirs: meanwhile others have their turn.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter

from modicum.core.errors import Code, Problem, UnavailableError

T = TypeVar("T")

#: Maximum number of documents parsed at once.
PARSING: Final = 1
#: Maximum number of documents of one identity, waiting or parsed.
PARSING_EACH: Final = 64
#: Maximum number of documents of all.
PARSING_ALL: Final = 1024
#: A document that took a second is followed by the same identity's next one after so
#: many seconds from its beginning.
PERIOD_EACH: Final = 5

#: Called by a parser after each piece of work; it pauses.
Tick: TypeAlias = Callable[[], None]


@dataclass(slots=True)
class _Line:
    """The waiting requests of one identity.

    Attributes:
        turn: The lock of the running one.
        length: How many there are.
    """

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    length: int = 0


class Lines:
    """Requests that wait, each identity's one after the other.

    Args:
        what: What they are, for a refusal.
        each: The maximum number of each identity, waiting or running.
        total: The maximum number of all.
    """

    def __init__(self, what: str, each: int, total: int) -> None:
        self._what = what
        self._each = each
        self._total = total
        self._count = 0
        self._lines: dict[str, _Line] = {}

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Wait for one's turn among those of the same identity, if they are few."""
        line = self._lines.setdefault(name, _Line())
        if line.length >= self._each or self._count >= self._total:
            own = line.length >= self._each
            if not line.length:
                del self._lines[name]
            raise UnavailableError(
                Problem(
                    Code.TOO_MANY_REQUESTS,
                    f"{line.length} of your {self._what}"
                    if own
                    else f"too many {self._what}",
                    help="wait for a response, then retry",
                )
            )
        line.length += 1
        self._count += 1
        try:
            async with line.turn:
                yield
        finally:
            self._count -= 1
            line.length -= 1
            if not line.length:
                del self._lines[name]


class Pace:
    """Pauses of a parser, each as long as its work before.

    Attributes:
        until: The time before which the same identity's next document is not parsed.
    """

    def __init__(self) -> None:
        self.until = 0.0
        self._at = 0.0

    def begin(self) -> None:
        """Begin to measure, in the thread that parses."""
        self.until = time.monotonic()
        self._at = time.thread_time()

    def __call__(self) -> None:
        """Pause."""
        worked = time.thread_time() - self._at
        self.until += PERIOD_EACH * worked
        time.sleep(worked)
        self._at = time.thread_time()


class Parses:
    """The one queue in which documents are parsed."""

    def __init__(self) -> None:
        what = "documents are already being parsed"
        self._lines = Lines(what, PARSING_EACH, PARSING_ALL)
        self._slot = CapacityLimiter(PARSING)
        #: By identity, the time before which its next document is not parsed.
        self._rests: dict[str, float] = {}

    async def run(self, name: str, work: Callable[[Tick], T]) -> T:
        """Return the result of parsing something for an identity."""
        pace = Pace()

        def paced() -> T:
            pace.begin()
            try:
                return work(pace)
            finally:
                pace()

        async with self._lines.turn(name):
            await asyncio.sleep(self._rests.get(name, 0) - time.monotonic())
            try:
                return await anyio.to_thread.run_sync(paced, limiter=self._slot)
            finally:
                now = time.monotonic()
                rests = {**self._rests, name: pace.until}
                self._rests = {one: end for one, end in rests.items() if end > now}
