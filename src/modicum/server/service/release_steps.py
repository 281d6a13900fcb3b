"""Transitions of releases, with permission checks: start, publish, cancel."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from modicum.api.local.evaluation import Description
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.release_datasets import data_sets_recorded, id_of, may, must
from modicum.api.local.visibility import VisibleRelease, seen
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.core.errors import AccessError, Code, InputError, Problem
from modicum.ledger import Standing, event_of
from modicum.ledger.state.lifecycle import ReleaseStatus
from modicum.server.service.threads import Threads
from modicum.writer.idempotency import IdempotencyKey
from modicum.writer.service import Decider

T = TypeVar("T")


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
        return await self._threads.submit(
            self._carry_out,
            who,
            release,
            lambda d: d.start(release, actor=who.name, once=once),
        )

    async def publish(
        self, who: Identity, release: str, once: IdempotencyKey | None = None
    ) -> Standing:
        """Mark a started release as published."""
        return await self._threads.submit(
            self._carry_out,
            who,
            release,
            lambda d: d.publish(release, actor=who.name, once=once),
        )

    async def cancel(
        self,
        who: Identity,
        release: str,
        reason: str,
        once: IdempotencyKey | None = None,
    ) -> Standing:
        """Cancel a reservation that was not started: one's own, or any."""

        def work() -> Standing:
            must_carry_out(self._decider, who, release, cancels=True)
            return self._decider.cancel(
                release, reason=reason, actor=who.name, once=once
            )

        return await self._threads.submit(work)

    def _carry_out(
        self, who: Identity, release: str, step: Callable[[Decider], T]
    ) -> T:
        """Make a transition, if the release is visible and the caller's own, or any."""
        must_carry_out(self._decider, who, release)
        return step(self._decider)


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
