"""Threads for what takes long: those who look never hold up those who ask."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, ParamSpec, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter

from modicum.api.local.ledger_view import LedgerView
from modicum.core.document import Node, from_python
from modicum.core.errors import Code, InputError, Problem, UnavailableError
from modicum.server.inputs.body import Body
from modicum.writer.service import Decider

P = ParamSpec("P")
T = TypeVar("T")

#: So many requests are read, priced and decided at once.
ASKING: Final = 24
#: So many look at a glance, such as whether the ledger can be read.
GLANCING: Final = 2
#: So many are under way that look at the ledger; one looks at a time.
LOOKING: Final = 8
#: So many are under way that study it, or compile policies; one studies at a time.
STUDYING: Final = 4
#: So many documents are read with their places at once: Python reads them, and each
#: that is read takes turns with all that is decided.
READING: Final = 1
#: So many policies that one identity sent are compiled or wait for that.
COMPILING_EACH: Final = 8


@dataclass(slots=True)
class _Line:
    """Those of one identity who wait for their turn.

    Attributes:
        turn: Held by whoever has it.
        length: How many there are.
    """

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    length: int = 0


@asynccontextmanager
async def _turn(lines: dict[str, _Line], name: str) -> AsyncIterator[None]:
    """Wait for one's turn among those of the same identity."""
    line = lines.setdefault(name, _Line())
    line.length += 1
    try:
        async with line.turn:
            yield
    finally:
        line.length -= 1
        if not line.length:
            del lines[name]


class Threads:
    """Sets of threads: who takes longer never waits in the way of who is quick.

    Args:
        decider: The ledger.
    """

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        self._asking = CapacityLimiter(ASKING)
        self._looking = CapacityLimiter(LOOKING)
        self._glancing = CapacityLimiter(GLANCING)
        self._studying = CapacityLimiter(STUDYING)
        self._reading = CapacityLimiter(READING)
        self._compiling: dict[str, _Line] = {}
        self._sent: dict[str, _Line] = {}

    async def ask(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Return what some work returns that asks the decider for something."""
        return await anyio.to_thread.run_sync(
            partial(work, *args, **named), limiter=self._asking
        )

    async def turn(self, promise: asyncio.Future[T]) -> T:
        """Return what the writer answers to somebody who stands in line."""
        return await promise

    async def compute(self, work: Callable[[], T]) -> T:
        """Return what some work returns that may take long, and asks nobody."""
        return await anyio.to_thread.run_sync(work, limiter=self._looking)

    async def look(self, looking: Callable[[LedgerView], T]) -> T:
        """Return what somebody finds who looks at the ledger; see `Decider.look`."""
        return await self.compute(partial(self._decider.look, looking))

    async def ponder(self, work: Callable[[], T]) -> T:
        """Return what some work returns that may take very long, and asks nobody."""
        return await anyio.to_thread.run_sync(work, limiter=self._studying)

    async def compile(self, name: str, work: Callable[[], T]) -> T:
        """Return what some work returns that compiles a policy which was sent.

        The policies of one identity are compiled one after the other: large ones take
        seconds and much memory, and all who study share a few threads.
        """
        line = self._compiling.get(name)
        if line is not None and line.length >= COMPILING_EACH:
            raise UnavailableError(
                Problem(
                    Code.TOO_MANY_REQUESTS,
                    f"{line.length} of your policies are already being compiled",
                    help="wait for a response, then retry",
                )
            )
        async with _turn(self._compiling, name):
            return await self.ponder(work)

    async def read(self, name: str, work: Callable[[], T]) -> T:
        """Return what some work returns that reads a document which was sent.

        Those of one identity are read one after the other, so that whoever sends many
        does not delay what others send.
        """
        async with _turn(self._sent, name):
            return await anyio.to_thread.run_sync(work, limiter=self._reading)

    async def form(self, name: str, body: Body) -> Node:
        """Return what was sent as a tree; one that came as JSON knows no places."""
        if body.is_json:
            try:
                return from_python(await self.compute(body.description))
            except InputError:
                pass  # The tree tells what is wrong, or that it is too large for one.
        return await self.read(name, body.tree)

    async def study(self, looking: Callable[[LedgerView], T]) -> T:
        """Return what somebody finds who studies the ledger; see `Decider.study`."""
        return await self.ponder(partial(self._decider.study, looking))

    async def glance(self, looking: Callable[[LedgerView], T]) -> T:
        """Return what somebody finds at a glance; see `Decider.glance`."""
        return await anyio.to_thread.run_sync(
            partial(self._decider.glance, looking), limiter=self._glancing
        )

    async def must_be_sound(self) -> None:
        """Refuse a ledger that cannot be decided on; see `Decider.must_be_sound`."""
        await anyio.to_thread.run_sync(
            self._decider.must_be_sound, limiter=self._glancing
        )
