"""Releases, looked at: one with its story, and page by page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from modicum.ledger import Standing
from modicum.ledger.state.life import ReleaseStatus
from modicum.server.service.data_sets import must_read_some
from modicum.server.service.sight import Told, may_see, seen
from modicum.server.service.threads import Threads
from modicum.workspace.ledger_view import LedgerView
from modicum.workspace.permissions.actions import Action
from modicum.workspace.permissions.identity import Identity
from modicum.workspace.release_story import story_of

#: So many releases are looked at for one page, whether they are shown or not.
LOOKED_AT = 5_000


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of releases.

    Attributes:
        releases: Where each stands, oldest first.
        after: The number of the entry to go on after; None at the end.
        seq: The number of the last entry of the ledger.
        head: Its hash.
    """

    releases: tuple[Standing, ...]
    after: int | None
    seq: int
    head: str


class ReleaseReading:
    """What can be learned of releases that came in.

    Args:
        threads: Where the ledger is looked at.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def one(self, who: Identity, release: str) -> Told:
        """Return a release with its story.

        Args:
            who: Who asks.
            release: The id.

        Raises:
            InputError: If there is no such release, as far as they may know.
        """

        def look(view: LedgerView) -> Told:
            told = seen(view, who, release)
            _, read, _ = view.look()
            story = story_of(release, read(max(told.standing.seq - 1, 0)))
            return replace(told, story=story)

        return await self._threads.look(look)

    async def page(
        self,
        who: Identity,
        statuses: Iterable[ReleaseStatus],
        after: int,
        limit: int,
    ) -> Listed:
        """Return releases that somebody may see, oldest first.

        Args:
            who: Who asks.
            statuses: Only those that stand so; all if there are none.
            after: Only those that came in after this entry.
            limit: How many at most.

        Raises:
            AccessError: If they may see none.
        """
        wanted = frozenset(statuses)
        must_read_some(who)

        def look(view: LedgerView) -> Listed:
            book, _, now = view.look()
            state = book.state
            found: list[Standing] = []
            looked, last = 0, after
            for identifier in state.releases.after(after):
                if len(found) == limit or looked == LOOKED_AT:
                    return Listed(tuple(found), last, state.seq, state.head)
                one = book.standing_at(identifier, now)
                assert one is not None
                looked, last = looked + 1, one.seq
                if (not wanted or one.status in wanted) and _visible(view, who, one):
                    found.append(one)
            return Listed(tuple(found), None, state.seq, state.head)

        return await self._threads.look(look)


def _visible(view: LedgerView, who: Identity, standing: Standing) -> bool:
    # Who reads all need not have each release read from the log.
    return who.may(Action.READ_RELEASES) or may_see(who, view.release_of(standing))
