"""Several releases in one request: each is decided by itself, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from modicum.api.local import Decision
from modicum.api.local.batch import OWN_MISTAKES
from modicum.api.local.evaluation import Description
from modicum.api.local.release_datasets import data_sets_of, id_of, must
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.core.errors import (
    AccessError,
    Code,
    ConflictError,
    InputError,
    ModicumError,
)
from modicum.server.inputs.body import TREE_BYTES, Body
from modicum.server.inputs.release_list import releases_in
from modicum.server.service.datasets import with_release
from modicum.server.service.release_steps import refuse_others
from modicum.server.service.releases import Releases, SubmitOptions
from modicum.writer.idempotency import IdempotencyKey, Replayed
from modicum.writer.queue import QueuedRequest

#: The answer about one release; an error is what submitting it alone would raise.
Outcome: TypeAlias = Decision | Replayed | ModicumError

#: Errors of one release, without consequences for the others.
_OWN = (*OWN_MISTAKES, AccessError)


class ReleaseBatches(Releases):
    """The submission of several releases at once."""

    async def read(self, who: Identity, body: Body) -> list[Body]:
        """Return the releases of a batch, not yet read themselves."""
        who.must_some(Action.SUBMIT_RELEASE)
        return await self._threads.submit(releases_in, body.text)

    async def submit_all(
        self,
        who: Identity,
        bodies: Sequence[Body],
        how: SubmitOptions,
        once: IdempotencyKey,
    ) -> list[Outcome]:
        """Decide releases in order; return the answer about each.

        They are enqueued together, or none of them is. If the outcome of some is
        unknown, so is that of the batch: repeated under its key, it is completed.
        """
        ready = await self._prepared(who, bodies, how, once)
        queued = [one for one in ready if isinstance(one, QueuedRequest)]
        loop = asyncio.get_running_loop()
        promises = self._decider.for_coroutines.post(queued, loop)
        results = iter(
            await self._threads.turn(asyncio.gather(*promises, return_exceptions=True))
        )
        found = [
            _outcome(next(results) if isinstance(one, QueuedRequest) else one)
            for one in ready
        ]
        return [
            await self._sight.concealed(who, _named(body), one)
            if isinstance(one, ConflictError)
            else one
            for body, one in zip(bodies, found, strict=True)
        ]

    async def _prepared(
        self,
        who: Identity,
        bodies: Sequence[Body],
        how: SubmitOptions,
        once: IdempotencyKey,
    ) -> list[QueuedRequest | ModicumError]:
        """Return each release ready for the queue, or what is wrong with it."""

        def prepared(number: int, release: Description) -> QueuedRequest:
            if how.publish:
                refuse_others(self._decider, who, release)
            return self._decider.for_coroutines.prepared(
                release,
                who.name,
                once.part(number),
                publish=how.publish,
                reserve_seconds=how.reserve_seconds,
                bound=self._bound_of(who, release),
            )

        def attempt(number: int, body: Body) -> QueuedRequest | ModicumError:
            try:
                release = body.description()
                must(who, Action.SUBMIT_RELEASE, data_sets_of(release))
                return prepared(number, release)
            except _OWN as mistake:
                return mistake

        def attempt_all() -> list[QueuedRequest | ModicumError]:
            return [attempt(number, body) for number, body in enumerate(bodies)]

        ready, left = await self._threads.submit(attempt_all), TREE_BYTES
        for number, body in enumerate(bodies):
            # As much is read for positions as for a single release.
            if isinstance(ready[number], InputError) and len(body.text) <= left:
                left -= len(body.text)
                ready[number] = await self._placed(who, body, partial(prepared, number))
        return ready

    async def _placed(
        self, who: Identity, body: Body, work: Callable[[Description], QueuedRequest]
    ) -> QueuedRequest | ModicumError:
        """Return a release ready for the queue; a mistake in it has a position."""
        run, action = self._threads.submit, Action.SUBMIT_RELEASE
        try:
            return await with_release(who, action, body, work, self._threads, run)
        except _OWN as mistake:
            return mistake


def _outcome(found: Decision | BaseException) -> Outcome:
    """Return the answer about one release; raise what concerns the whole request."""
    if isinstance(found, InputError) and found.code is Code.KEY_REUSED:
        raise found
    if isinstance(found, (Decision, Replayed, *_OWN)):
        return found
    raise found


def _named(body: Body) -> Callable[[], str | None]:
    """Return what looks up the id of a release."""
    return lambda: id_of(body.description())
