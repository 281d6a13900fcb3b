"""Work on a release that was sent, for those who may do it with all its data sets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from modicum.api.local.evaluation import Description
from modicum.api.local.release_datasets import data_sets_of, must
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.core.errors import InputError
from modicum.server.inputs.body import TREE_BYTES, Body
from modicum.server.service.threads import Threads

R = TypeVar("R")
T = TypeVar("T")


async def with_release(
    who: Identity,
    action: Action,
    body: Body,
    work: Callable[[Description], T],
    threads: Threads,
    run: Callable[[Callable[[], T]], Awaitable[R]],
) -> R:
    """Return the result of some work on the release in a request.

    JSON is passed as plain data, which is many times faster; if it has a mistake, once
    more as a tree, for positions. The mistake may be found by the work, or by what is
    run after it.
    """

    def permitted() -> T:
        release = body.description()
        must(who, action, data_sets_of(release))
        return work(release)

    if body.is_json:
        try:
            return await run(permitted)
        except InputError:
            if len(body.text) > TREE_BYTES:
                raise
    await threads.read(who.name, body.tree)
    return await run(permitted)
