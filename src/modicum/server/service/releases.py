"""Releases, decided: checked, submitted, recorded, and what would pass instead."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from modicum.core.errors import InputError
from modicum.server.bodies import TREE_BYTES, Body
from modicum.server.service.carrying_out import refuse_others
from modicum.server.service.data_sets import described, id_of
from modicum.server.service.sight import OTHERS, Sight
from modicum.server.service.threads import Threads
from modicum.shell.serving.decider import Decider
from modicum.shell.serving.once import Once
from modicum.workspace import Decision
from modicum.workspace.answers import Description
from modicum.workspace.bringing_in import RESERVATION_SECONDS
from modicum.workspace.explaining.fits import Explanation
from modicum.workspace.permissions.actions import Action
from modicum.workspace.permissions.identity import Identity

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class How:
    """How a release is submitted.

    Attributes:
        post: Whether it is out already.
        reserve_seconds: How long its reservation stands; 1 second to 90 days.
    """

    post: bool = False
    reserve_seconds: int = RESERVATION_SECONDS


class Releases:
    """What can be decided about releases.

    Args:
        decider: The ledger.
        threads: Where it is asked.
        sight: Keeps what is hidden out of answers.
    """

    def __init__(self, decider: Decider, threads: Threads, sight: Sight) -> None:
        self._decider = decider
        self._threads = threads
        self._sight = sight

    # --- nothing is written ---

    async def check(self, who: Identity, body: Body) -> Decision:
        """Return what submitting would answer now. Writes nothing.

        Args:
            who: Who asks.
            body: The release.

        Raises:
            AccessError: If they may not, for one of its data sets.
            ConflictError: If the id stands with other contents, or was given up.
            InputError: If it is malformed.
        """

        def work() -> Decision:
            release = described(who, Action.CHECK_RELEASE, body)
            return _read(
                body, release, lambda one: self._decider.check(one, actor=who.name)
            )

        return await self._guarded(who, body, self._threads.ask(work))

    async def consider(
        self, who: Identity, body: Body, considering: Callable[[Decision], T]
    ) -> T:
        """Return what somebody finds who asks for losses, reasons or variants.

        Args:
            who: Who asks.
            body: The release.
            considering: Asks the decision, and keeps nothing of it.

        Raises:
            AccessError: As for `check`.
            ConflictError: As for `check`.
            InputError: As for `check`.
        """

        def work() -> T:
            release = described(who, Action.CHECK_RELEASE, body)
            return _read(
                body,
                release,
                lambda one: self._decider.study(lambda v: considering(v.check(one))),
            )

        return await self._guarded(who, body, self._threads.ponder(work))

    async def explained(
        self, who: Identity, body: Body
    ) -> tuple[Decision, Explanation | None]:
        """Return what submitting would answer now, and what the log tells about it.

        Args:
            who: Who asks.
            body: The release.

        Raises:
            AccessError: As for `check`.
            ConflictError: As for `check`.
            InputError: As for `check`.
        """
        decision, found = await self.consider(
            who, body, lambda one: (one, one.explanation())
        )
        if found is None:
            return decision, None
        hidden = await self._sight.hidden(who, found.named)
        return decision, found.hiding(hidden, OTHERS)

    # --- what is allowed is written ---

    async def submit(
        self,
        who: Identity,
        body: Body,
        how: How,
        once: Once | None = None,
    ) -> Decision:
        """Decide a release and, if it is allowed, reserve its loss.

        Args:
            who: Who asks.
            body: The release.
            how: What else is said about it.
            once: What makes it a request that is done once.

        Raises:
            AccessError: If they may not, for one of its data sets.
            ApprovalError: If people must agree first; nothing is written.
            ConflictError: If the id stands with other contents, or was given up.
            InputError: If it is malformed.
            UnavailableError: If too many wait, or nobody knows what became of it.
        """

        def join() -> asyncio.Future[Decision]:
            release = described(who, Action.SUBMIT_RELEASE, body)
            if how.post:
                refuse_others(self._decider, who, release)
            promise = _read(
                body,
                release,
                lambda one: self._decider.submit_soon(
                    one,
                    post=how.post,
                    reserve_seconds=how.reserve_seconds,
                    actor=who.name,
                    once=once,
                ),
            )
            return asyncio.wrap_future(promise, loop=loop)

        async def decided() -> Decision:
            return await self._threads.turn(await self._threads.ask(join))

        loop = asyncio.get_running_loop()
        return await self._guarded(who, body, decided())

    async def record_past(
        self, who: Identity, body: Body, once: Once | None = None
    ) -> Decision:
        """Count a release that happened before. It cannot be denied.

        Args:
            who: Who asks.
            body: The release.
            once: As for `submit`.

        Raises:
            AccessError: If they may not, for one of its data sets.
            ConflictError: If the id stands with other contents.
            InputError: If it is malformed.
            UnavailableError: As for `submit`.
        """

        def work() -> Decision:
            release = described(who, Action.RECORD_PAST, body)
            refuse_others(self._decider, who, release)
            return _read(
                body,
                release,
                lambda one: self._decider.record_past(one, actor=who.name, once=once),
            )

        return await self._guarded(who, body, self._threads.ask(work))

    # --- inside ---

    async def _guarded(self, who: Identity, body: Body, work: Awaitable[T]) -> T:
        """Return what some work returns; a conflict tells of nothing that is hidden."""
        return await self._sight.guard(who, lambda: id_of(body.description()), work)


def _read(body: Body, release: Description, work: Callable[[Description], T]) -> T:
    """Do something with a release; a mistake in it is told with its place."""
    try:
        return work(release)
    except InputError:
        if not isinstance(release, dict) or len(body.text) > TREE_BYTES:
            raise
    return work(body.tree())
