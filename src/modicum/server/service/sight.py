"""What somebody may know of: releases and requests of their data sets, and no others.

Ids are one name space, so that one is taken is told to everybody. Nothing else of a
release is told to those whom it is not for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from modicum.api.schema.shape import Shape, plain
from modicum.core.errors import Code, ConflictError, InputError, Mark, Problem
from modicum.ledger import RecordedRelease, Standing
from modicum.ledger.state.life import unknown_release
from modicum.release import Vocabulary
from modicum.server.service.data_sets import data_sets_recorded, may
from modicum.server.service.threads import Threads
from modicum.workspace.governing.requesting import requested_in
from modicum.workspace.ledger_view import LedgerView
from modicum.workspace.permissions.actions import Action
from modicum.workspace.permissions.identity import Identity
from modicum.workspace.release_story import Happened

T = TypeVar("T")

#: Stands for a release of data sets that are not for whoever asks.
OTHERS: Final = "(another data set)"
#: Where documents name releases that spent something.
_SPENDERS: Final = ("spenders", "contributors")
#: Conflicts that tell of what stands, or is asked for, under an id.
OF_ANOTHER: Final = frozenset({Code.RELEASE_CONFLICT, Code.RELEASE_STATE})


@dataclass(frozen=True, slots=True)
class Told:
    """A release, as somebody may see it.

    Attributes:
        standing: Where it stands.
        release: What it is and costs.
        vocabulary: The units of the active policy.
        story: Who did what, oldest first.
    """

    standing: Standing
    release: RecordedRelease
    vocabulary: Vocabulary
    story: tuple[Happened, ...] = ()


# --- one release --------------------------------------------------------------------


def may_see(who: Identity, release: RecordedRelease) -> bool:
    """Return whether somebody may know of a release.

    Args:
        who: Who.
        release: The release.
    """
    return may(who, Action.READ_RELEASES, data_sets_recorded(release))


def found(view: LedgerView, who: Identity, release: str) -> Told | None:
    """Return a release that somebody may know of; None if there is none.

    Args:
        view: The ledger.
        who: Who asks.
        release: The id.
    """
    book, _, now = view.look()
    standing = book.standing_at(release, now)
    if standing is None:
        return None
    vocabulary = view.policy().policy.vocabulary
    told = Told(standing, view.release_of(standing), vocabulary)
    return told if may_see(who, told.release) else None


def seen(view: LedgerView, who: Identity, release: str) -> Told:
    """Return a release that somebody may know of.

    Args:
        view: The ledger.
        who: Who asks.
        release: The id.

    Raises:
        InputError: If there is none. That one is hidden is told to nobody.
    """
    told = found(view, who, release)
    if told is None:
        raise unknown_release(release)
    return told


def is_known_to(view: LedgerView, who: Identity, release: str) -> bool:
    """Return whether somebody may know what has an id: what stands, or is asked for.

    Args:
        view: The ledger.
        who: Who asks.
        release: The id.

    Raises:
        InputError: If neither stands nor is asked for.
    """
    book, read, now = view.look()
    if book.standing_at(release, now) is not None:
        return found(view, who, release) is not None
    asked = book.state.waiting.requests.get(release)
    if asked is None:
        raise unknown_release(release)
    return may_see(who, requested_in(asked, read).release)


# --- conflicts ----------------------------------------------------------------------


class Sight:
    """Keeps what is hidden from somebody out of what they are told.

    Args:
        threads: Where the ledger is looked at.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def guard(
        self, who: Identity, named: Callable[[], str | None], work: Awaitable[T]
    ) -> T:
        """Return what some work returns; a conflict tells of nothing that is hidden.

        It is looked at once the conflict is there: whoever came in meanwhile is
        hidden, too.

        Args:
            who: Who asks.
            named: Returns the id that they gave; None if it is not known.
            work: The work.

        Raises:
            ConflictError: As the work does, or that the id cannot be used.
        """
        try:
            return await work
        except ConflictError as conflict:
            if conflict.code not in OF_ANOTHER or who.may(Action.READ_RELEASES):
                raise
            release = await self._threads.compute(named)
            if await self._knows(who, release):
                raise
            mark = conflict.problems[0].mark
        raise id_unusable(release, mark)

    async def _knows(self, who: Identity, release: str | None) -> bool:
        """Return whether somebody may know what has an id; if in doubt, they may not.

        It is looked at as a long look is: who provokes conflicts holds up no check.
        """
        if release is None:
            return False
        try:
            return await self._threads.look(lambda v: is_known_to(v, who, release))
        except InputError:
            return False

    # --- names ---

    async def hidden(self, who: Identity, named: frozenset[str]) -> frozenset[str]:
        """Return which releases somebody may not know of.

        Args:
            who: Who asks.
            named: The ids of releases.
        """
        if not named or who.may(Action.READ_RELEASES):
            return frozenset()

        def look(view: LedgerView) -> frozenset[str]:
            return frozenset(one for one in named if found(view, who, one) is None)

        return await self._threads.look(look)

    async def masked(self, who: Identity, shown: Shape) -> Any:
        """Return a balance without the names of what somebody may not know of.

        What was spent is theirs to know; which release of other data sets spent it is
        not.

        Args:
            who: Who asks.
            shown: What names `spenders` or `contributors`.

        Returns:
            Plain data.
        """
        told = plain(shown)
        named = frozenset(str(one["release"]) for one in _spenders(told))
        hidden = await self.hidden(who, named)
        for one in _spenders(told):
            if one["release"] in hidden:
                one["release"] = OTHERS
        return told


def id_unusable(release: str | None, mark: Mark | None = None) -> ConflictError:
    """Return the error for an id that is taken by what is hidden.

    Args:
        release: The id; None if it is not known.
        mark: Where it was given.
    """
    called = "this id" if release is None else f"the id `{release[:200]}`"
    return ConflictError(
        Problem(
            Code.RELEASE_CONFLICT,
            f"{called} cannot be used",
            mark,
            help="give the release an id of its own",
        )
    )


def _spenders(told: object) -> Iterable[dict[str, object]]:
    """Yield what a document says about releases that spent something."""
    if isinstance(told, dict):
        for key, value in told.items():
            if key in _SPENDERS and isinstance(value, list):
                yield from value
            else:
                yield from _spenders(value)
    elif isinstance(told, list):
        for each in told:
            yield from _spenders(each)
