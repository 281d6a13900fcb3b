"""Transitions of releases, with permission checks: start, publish, cancel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from modicum.api.local.evaluation import Description
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.release_datasets import id_of, may, must
from modicum.api.local.submit import giving_up
from modicum.api.local.visibility import VisibleRelease, seen
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.core.errors import AccessError, Code, InputError, Problem
from modicum.ledger import Standing, event_of
from modicum.ledger.log.data_sets import data_sets_recorded
from modicum.ledger.log.events import ReleasePosted, ReleaseStarted, ReleaseVoided
from modicum.ledger.state.lifecycle import ReleaseStatus
from modicum.server.service.threads import Threads
from modicum.writer.idempotency import IdempotencyKey
from modicum.writer.service import Decider


class ReleaseSteps:
    """The transitions of reserved releases.

    Args:
        decider: The ledger.
        threads: Where they run.
    """

    def __init__(self, decider: Decider, threads: Threads) -> None:
        self._decider = decider
        self._threads = threads

    async def start(
        self, who: Identity, release: str, once: IdempotencyKey | None = None
    ) -> Standing:
        """Note, durably, that rows are about to be read."""
        return await self._carry_out(who, ReleaseStarted, release, once)

    async def publish(
        self, who: Identity, release: str, once: IdempotencyKey | None = None
    ) -> Standing:
        """Mark a started release as published."""
        return await self._carry_out(who, ReleasePosted, release, once)

    async def cancel(
        self,
        who: Identity,
        release: str,
        reason: str,
        once: IdempotencyKey | None = None,
    ) -> Standing:
        """Cancel a reservation that was not started: one's own, or any."""

        def step(release: str) -> ReleaseVoided:
            return giving_up(release, reason)

        return await self._carry_out(who, step, release, once, cancels=True)

    async def _carry_out(
        self,
        who: Identity,
        step: Callable[[str], ReleaseStarted | ReleasePosted | ReleaseVoided],
        release: str,
        once: IdempotencyKey | None,
        *,
        cancels: bool = False,
    ) -> Standing:
        """Make a transition, if the release is visible and the caller's own, or any."""

        def join() -> asyncio.Future[Standing]:
            must_carry_out(self._decider, who, release, cancels=cancels)
            requests = self._decider.for_coroutines
            waiting = requests.step(step(release), who.name, once)
            return requests.post([waiting], loop)[0]

        loop = asyncio.get_running_loop()
        return await self._threads.turn(await self._threads.submit(join))


def must_carry_out(
    decider: Decider, who: Identity, release: str, *, cancels: bool = False
) -> None:
    """Refuse a transition of a release that is hidden or another actor's."""

    def read_view(view: LedgerView) -> tuple[VisibleRelease, str]:
        visible = seen(view, who, release)
        record = view.record(visible.standing.seq)
        assert record is not None
        return visible, event_of(record, record.seq).actor

    # A fast read: one waiting for a slow read would block a thread for requests.
    visible, asked_by = decider.glance(read_view)
    sets = data_sets_recorded(visible.release)
    is_own = asked_by == who.name
    if is_own or not cancels:
        must(who, Action.CARRY_OUT_RELEASE, sets)
    if not is_own and not may(who, Action.CARRY_OUT_ANY, sets):
        raise AccessError(
            Problem(
                Code.FORBIDDEN,
                f"release `{release}` was reserved by somebody else",
                help="only its requester or a data steward may start and publish"
                " it; a privacy officer may cancel it",
            )
        )


def refuse_others(decider: Decider, who: Identity, release: Description) -> None:
    """Refuse to publish directly a release that another actor reserved."""
    name = id_of(release)
    if name is None or not decider.glance(partial(_is_under_way, name)):
        return
    with suppress(InputError):  # It may be hidden: only the conflict is reported.
        must_carry_out(decider, who, name)


def _is_under_way(release: str, view: LedgerView) -> bool:
    """Return whether a release is reserved or started."""
    book, _, now = view.current()
    standing = book.standing_at(release, now)
    open_ones = (ReleaseStatus.RESERVED, ReleaseStatus.STARTED)
    return standing is not None and standing.status in open_ones
