"""What the ledger says of itself, remembered for a while.

A scrape must not hold anybody up. Those who look at the ledger look one at a time, and
where it has many rules that takes a while: so it is looked at in the background, and
rarely enough that others have nearly all of the time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from modicum.core.errors import ModicumError, VerificationError
from modicum.server.telemetry.ledger_metrics import LedgerFacts

#: What was found is good for so many seconds at least.
KEEP_SECONDS: Final = 5.0
#: And for so many times as long as it took to find.
KEEP_TIMES: Final = 20
#: A scrape waits so long for news; then it is told what was found before.
PATIENCE_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class Found:
    """What was found by a look at the ledger.

    Attributes:
        facts: What the ledger says of itself; None if it could not be read.
        is_sound: Whether it contradicts itself nowhere that was looked at; None if it
            could not be read.
        at: When, on the clock of whoever remembers it.
    """

    facts: LedgerFacts | None
    is_sound: bool | None
    at: float


class Remembered:
    """Looks at the ledger when asked, but not too often; for one event loop.

    Args:
        look: Looks at the ledger.
        clock: Tells seconds, from any beginning.
        patience: How many seconds somebody waits for news.
    """

    def __init__(
        self,
        look: Callable[[], Awaitable[LedgerFacts]],
        clock: Callable[[], float] = time.monotonic,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._look = look
        self._clock = clock
        self._patience = patience
        self._found: Found | None = None
        self._good_until = 0.0
        self._looking: asyncio.Task[None] | None = None

    async def found(self) -> Found | None:
        """Return what was found last; None if nothing was found yet."""
        if self._found is None or self._clock() >= self._good_until:
            if self._looking is None:
                self._looking = asyncio.create_task(self._look_again())
            await asyncio.wait([self._looking], timeout=self._patience)
        return self._found

    def age(self, found: Found) -> float:
        """Return how many seconds ago something was found."""
        return max(0.0, self._clock() - found.at)

    async def _look_again(self) -> None:
        began = self._clock()
        facts: LedgerFacts | None = None
        is_sound: bool | None = None
        try:
            facts = await self._look()
            is_sound = True
        except VerificationError:
            is_sound = False
        except ModicumError:
            is_sound = None  # It cannot be read, and nobody knows.
        finally:
            ended = self._clock()
            self._found = Found(facts, is_sound, began)
            self._good_until = ended + max(KEEP_SECONDS, KEEP_TIMES * (ended - began))
            self._looking = None
