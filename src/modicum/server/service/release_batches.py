"""Several releases in one request: each is decided by itself, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

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
        ready = await self._ready(who, bodies, how, once)
        found = [_outcome(one) for one in await self._results(ready)]
        if any(isinstance(one, InputError) for one in found):
            placed = await self._placed(who, bodies, found, how, once)
            found = [_outcome(one) for one in await self._results(placed)]
        return [
            await self._sight.concealed(who, _named(body), one)
            if isinstance(one, ConflictError)
            else one
            for body, one in zip(bodies, found, strict=True)
        ]

    async def _results(self, ready: Sequence[QueuedRequest | Outcome]) -> list[Any]:
        """Return the result of each; those that are queued are so together."""
        queued = [one for one in ready if isinstance(one, QueuedRequest)]
        loop = asyncio.get_running_loop()
        promises = self._decider.for_coroutines.post(queued, loop)
        results = iter(
            await self._threads.turn(asyncio.gather(*promises, return_exceptions=True))
        )
        return [
            next(results) if isinstance(one, QueuedRequest) else one for one in ready
        ]

    async def _ready(
        self,
        who: Identity,
        bodies: Sequence[Body],
        how: SubmitOptions,
        once: IdempotencyKey,
    ) -> list[QueuedRequest | Outcome]:
        """Return each release ready for the queue, or what is wrong with it."""
        requests = self._decider.for_coroutines

        def attempt(number: int, body: Body) -> QueuedRequest | ModicumError:
            try:
                release = body.description()
                must(who, Action.SUBMIT_RELEASE, data_sets_of(release))
                if how.publish:
                    refuse_others(self._decider, who, release)
                own = once.part(number)
                options = self._options(who, how, release)
                return requests.submission(release, who.name, own, **options)
            except _OWN as mistake:
                return mistake

        def attempt_all() -> list[QueuedRequest | Outcome]:
            return [attempt(number, body) for number, body in enumerate(bodies)]

        return await self._threads.submit(attempt_all)

    async def _placed(
        self,
        who: Identity,
        bodies: Sequence[Body],
        found: Sequence[Outcome],
        how: SubmitOptions,
        once: IdempotencyKey,
    ) -> list[QueuedRequest | Outcome]:
        """Return answers in which mistakes have positions.

        As much is read for positions as for a single release. What turns out to be no
        mistake, under a policy that is newer, is ready for the queue.
        """
        requests = self._decider.for_coroutines
        run, action, left = self._threads.submit, Action.SUBMIT_RELEASE, TREE_BYTES

        def prepared(number: int, release: Description) -> QueuedRequest:
            if how.publish:
                refuse_others(self._decider, who, release)
            own, options = once.part(number), self._options(who, how, release)
            return requests.prepared(release, who.name, own, **options)

        placed: list[QueuedRequest | Outcome] = [*found]
        for number, body in enumerate(bodies):
            if not isinstance(found[number], InputError) or len(body.text) > left:
                continue
            left -= len(body.text)
            work = partial(prepared, number)
            try:
                placed[number] = await with_release(
                    who, action, body, work, self._threads, run
                )
            except _OWN as mistake:
                placed[number] = mistake
        return placed


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
