"""Thread pools for long operations: slow work never delays fast work."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from typing import Final, ParamSpec, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter

from modicum.api.local.ledger_view import LedgerView
from modicum.core.document import Node, from_python
from modicum.core.errors import InputError
from modicum.server.inputs.body import TREE_BYTES, Body
from modicum.server.service.parses import Lines, Parses, Tick
from modicum.writer.service import Decider

P = ParamSpec("P")
T = TypeVar("T")

#: Maximum number of requests read, priced and decided at once.
ASKING: Final = 24
#: Maximum number of fast reads, such as of a release.
GLANCING: Final = 2
#: Maximum number of waiting reads of the ledger; one runs at a time.
LOOKING: Final = 8
#: Maximum number of waiting slow reads or compilations; one runs at a time.
STUDYING: Final = 4
#: Maximum number of waiting reads of the past per identity, the running one included.
RECALLING_EACH: Final = 4
#: Maximum number of compilations per identity, waiting or running.
COMPILING_EACH: Final = 8


class Threads:
    """Thread pools: slow work never delays fast work.

    Args:
        decider: The ledger.
    """

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        self._submitting = CapacityLimiter(ASKING)
        self._looking = CapacityLimiter(LOOKING)
        self._glancing = CapacityLimiter(GLANCING)
        self._studying = CapacityLimiter(STUDYING)
        self._parses = Parses()
        compiled = "policies are already being compiled"
        self._compiling = Lines(compiled, COMPILING_EACH, sys.maxsize)
        self._recalling = CapacityLimiter(1)
        recalled = "reads of the past are already under way"
        self._recalled = Lines(recalled, RECALLING_EACH, sys.maxsize)

    async def submit(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Return the result of some work that uses the decider."""
        return await anyio.to_thread.run_sync(
            partial(work, *args, **named), limiter=self._submitting
        )

    def at_once(self, work: Callable[[], T]) -> T:
        """Return the result of work that takes no time, and waits for nothing."""
        return work()

    async def turn(self, promise: asyncio.Future[T]) -> T:
        """Return the writer's result of a queued request."""
        return await promise

    async def compute(self, work: Callable[[], T]) -> T:
        """Return the result of slow work without the decider."""
        return await anyio.to_thread.run_sync(work, limiter=self._looking)

    async def read_view(self, work: Callable[[LedgerView], T]) -> T:
        """Return the result of a read of the ledger; see `Decider.read_view`."""
        return await self.compute(partial(self._decider.read_view, work))

    async def ponder(self, work: Callable[[], T]) -> T:
        """Return the result of very slow work without the decider."""
        return await anyio.to_thread.run_sync(work, limiter=self._studying)

    async def compile(self, name: str, work: Callable[[], T]) -> T:
        """Return the result of compiling a policy in a request.

        The policies of one identity are compiled one after the other: large ones take
        seconds and much memory, and all who study share a few threads.
        """
        async with self._compiling.turn(name):
            return await self.ponder(work)

    async def read(self, name: str, work: Callable[[Tick], T]) -> T:
        """Return the result of parsing a document in a request; see `Parses`."""
        return await self._parses.run(name, work)

    async def form(self, name: str, body: Body) -> Node:
        """Return the body of a request as a tree; JSON has no positions."""
        if body.is_json:
            try:
                return from_python(await self.compute(body.description))
            except InputError:
                pass  # The tree reports the mistake, or that it is too large for one.
        return await self.read(name, body.tree)

    async def policy(self, name: str, body: Body) -> Node:
        """Return a policy that was sent as a tree; without positions if it is large."""
        if len(body.text) <= TREE_BYTES:
            return await self.read(name, body.tree)
        return await self.compute(lambda: from_python(body.description()))

    async def study(self, work: Callable[[LedgerView], T]) -> T:
        """Return the result of a slow read of the ledger; see `Decider.study`."""
        return await self.ponder(partial(self._decider.study, work))

    async def recall(
        self, name: str, point: int | str, work: Callable[[LedgerView], T]
    ) -> T:
        """Return the result of a read of the ledger as it was; see `Decider.recall`.

        A replay may take minutes: it has a thread to itself, which each identity waits
        for once. So slow reads of the present do not wait for it.
        """
        async with self._recalled.turn(name):
            return await anyio.to_thread.run_sync(
                partial(self._decider.recall, point, work), limiter=self._recalling
            )

    async def glance(self, work: Callable[[LedgerView], T]) -> T:
        """Return the result of a fast read; see `Decider.glance`."""
        return await anyio.to_thread.run_sync(
            partial(self._decider.glance, work), limiter=self._glancing
        )
