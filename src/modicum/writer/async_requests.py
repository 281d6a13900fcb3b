"""Requests of coroutines: they are prepared in a thread, and answered in a loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack

from modicum.api.local.evaluation import Description
from modicum.api.local.submit import step
from modicum.ledger.log.events import ReleasePosted, ReleaseStarted, ReleaseVoided
from modicum.writer.group_commit import GroupCommit
from modicum.writer.idempotency import IdempotencyKey
from modicum.writer.preparation import Preparation, SubmitOptions
from modicum.writer.queue import QueuedRequest
from modicum.writer.read_side import ReadSide


class AsyncRequests:
    """Prepares and enqueues requests; no thread waits for their results.

    Args:
        desk: The queue.
        clerk: Prepares requests.
        checker: Knows whether there is a ledger.
    """

    def __init__(
        self, desk: GroupCommit, clerk: Preparation, checker: ReadSide
    ) -> None:
        self._desk = desk
        self._clerk = clerk
        self._checker = checker

    def submission(
        self,
        release: Description,
        actor: str,
        once: IdempotencyKey | None,
        **how: Unpack[SubmitOptions],
    ) -> QueuedRequest:
        """Return a release to be decided; the writer may find mistakes in it."""
        waiting = self._clerk.queued(release, actor, **how)
        waiting.once = once
        return waiting

    def known(
        self,
        release: Description,
        actor: str,
        once: IdempotencyKey | None,
        **how: Unpack[SubmitOptions],
    ) -> QueuedRequest | None:
        """Return the same, if that takes no time; else None."""
        waiting = self._clerk.known(release, actor, **how)
        if waiting is not None:
            waiting.once = once
        return waiting

    def prepared(
        self,
        release: Description,
        actor: str,
        once: IdempotencyKey | None,
        **how: Unpack[SubmitOptions],
    ) -> QueuedRequest:
        """Return a release to be decided, read and priced.

        Raises:
            InputError: If the release is malformed.
        """
        waiting = self._clerk.submission(release, actor, **how)
        waiting.once = once
        return waiting

    def step(
        self,
        body: ReleaseStarted | ReleasePosted | ReleaseVoided,
        actor: str,
        once: IdempotencyKey | None,
    ) -> QueuedRequest:
        """Return a transition of a release."""
        self._desk.open_only()
        self._checker.must_exist()
        return QueuedRequest(partial(step, body), self._clerk.signed(actor), once=once)

    def post(
        self, ones: Sequence[QueuedRequest], loop: asyncio.AbstractEventLoop
    ) -> list[asyncio.Future[Any]]:
        """Enqueue requests, all or none, and return the future of each.

        Args:
            ones: The requests; they are executed in this order.
            loop: The event loop of the futures.

        Raises:
            UnavailableError: If too many wait.
        """
        return self._desk.post(ones, loop)
