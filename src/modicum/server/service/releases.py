"""Decisions on releases: checks, submissions, backfills, and allowed variants."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from modicum.api.local import Decision
from modicum.api.local.evaluation import Description
from modicum.api.local.explanation.remedies import Explanation
from modicum.api.local.release_datasets import data_sets_of, id_of, must
from modicum.api.local.submit import RESERVATION_SECONDS
from modicum.api.local.visibility import OTHERS
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.core.errors import ModicumError
from modicum.policy.model import ReservationBound
from modicum.server.inputs.body import Body
from modicum.server.service.datasets import with_release
from modicum.server.service.release_steps import refuse_others
from modicum.server.service.threads import Threads
from modicum.server.service.visibility import Visibility
from modicum.server.settings.quotas import Quotas
from modicum.writer.idempotency import IdempotencyKey
from modicum.writer.preparation import SubmitOptions as QueueOptions
from modicum.writer.price_cache import BYTES_MAX
from modicum.writer.service import Decider

R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """The options of a submission.

    Attributes:
        publish: Whether it is already published.
        reserve_seconds: The lifetime of its reservation; 1 second to 90 days.
    """

    publish: bool = False
    reserve_seconds: int = RESERVATION_SECONDS


class Releases:
    """The operations that decide releases.

    Args:
        decider: The ledger.
        threads: Where they run.
        sight: Removes hidden data from responses.
        bound: The limit on one actor's reservations; None for no limit.
    """

    def __init__(
        self,
        decider: Decider,
        threads: Threads,
        sight: Visibility,
        bound: Quotas | None = None,
    ) -> None:
        self._decider = decider
        self._threads = threads
        self._sight = sight
        self._bound = bound

    # --- nothing is written ---

    async def check(self, who: Identity, body: Body) -> Decision:
        """Return the decision that submitting would make. Writes nothing."""

        def work(release: Description) -> Decision:
            return self._decider.check(
                release, actor=who.name, bound=self._bound_of(who, release)
            )

        return await self._with(
            who, Action.CHECK_RELEASE, body, work, self._threads.submit
        )

    async def consider(
        self, who: Identity, body: Body, considering: Callable[[Decision], T]
    ) -> T:
        """Return losses, reasons or variants for a decision."""

        def work(release: Description) -> T:
            bound = self._bound_of(who, release)
            return self._decider.study(
                lambda view: considering(view.check_by(release, who.name, bound))
            )

        return await self._with(
            who, Action.CHECK_RELEASE, body, work, self._threads.ponder
        )

    async def explained(
        self, who: Identity, body: Body
    ) -> tuple[Decision, Explanation | None]:
        """Return the decision that submitting would make, and its explanation."""
        decision, found = await self.consider(
            who, body, lambda one: (one, one.explanation())
        )
        if found is None:
            return decision, None
        hidden = await self._sight.hidden(who, found.named)
        return decision, found.hiding(hidden, OTHERS)

    # --- writing ---

    async def submit(
        self,
        who: Identity,
        body: Body,
        how: SubmitOptions,
        once: IdempotencyKey | None = None,
    ) -> Decision:
        """Decide a release and, if it is allowed, reserve its loss."""
        promise: asyncio.Future[Decision] | None = None

        def join(release: Description) -> asyncio.Future[Decision]:
            if how.publish:
                refuse_others(self._decider, who, release)
            options = self._options(who, how, release)
            waiting = requests.submission(release, who.name, once, **options)
            return requests.post([waiting], loop)[0]

        def join_at_once() -> asyncio.Future[Decision] | None:
            release = body.description()
            must(who, Action.SUBMIT_RELEASE, data_sets_of(release))
            options = self._options(who, how, release)
            waiting = requests.known(release, who.name, once, **options)
            return None if waiting is None else requests.post([waiting], loop)[0]

        async def run(joined: Callable[[], asyncio.Future[Decision]]) -> Decision:
            nonlocal promise
            found, promise = promise, None
            if found is None:
                found = await self._threads.submit(joined)
            return await self._threads.turn(found)

        requests, loop = self._decider.for_coroutines, asyncio.get_running_loop()
        if body.is_json and len(body.text) <= BYTES_MAX and not how.publish:
            # Handing it to a thread would cost more.
            try:
                promise = self._threads.at_once(join_at_once)
            except ModicumError:
                promise = None  # All refusals are left to a thread.
        return await self._with(who, Action.SUBMIT_RELEASE, body, join, run)

    async def backfill(
        self, who: Identity, body: Body, once: IdempotencyKey | None = None
    ) -> Decision:
        """Count a release that happened before. It cannot be denied."""

        def work(release: Description) -> Decision:
            refuse_others(self._decider, who, release)
            return self._decider.backfill(release, actor=who.name, once=once)

        return await self._with(
            who, Action.RECORD_PAST, body, work, self._threads.submit
        )

    # --- inside ---

    def _options(
        self, who: Identity, how: SubmitOptions, release: Description
    ) -> QueueOptions:
        """Return the options of a submission as the writer has them."""
        return {
            "publish": how.publish,
            "reserve_seconds": how.reserve_seconds,
            "bound": self._bound_of(who, release),
        }

    def _bound_of(self, who: Identity, release: Description) -> ReservationBound | None:
        """Return the limit on a caller's reservations; plan committers have none."""
        if self._bound is None:
            return None
        return self._bound.of(who, data_sets_of(release))

    async def _with(
        self,
        who: Identity,
        action: Action,
        body: Body,
        work: Callable[[Description], T],
        run: Callable[[Callable[[], T]], Awaitable[R]],
    ) -> R:
        """Do some work on a release; a conflict reveals nothing hidden."""
        done = with_release(who, action, body, work, self._threads, run)
        return await self._sight.guard(who, lambda: id_of(body.description()), done)
