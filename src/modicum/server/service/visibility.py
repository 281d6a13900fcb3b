"""What somebody may know of: releases and requests of their data sets, and no others.

Ids are one name space, so that one is taken is told to everybody. Nothing else of a
release is told to those whom it is not for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from modicum.api.local.balances import Entry, LedgerBalances, Reader
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.visibility import found, is_known_to
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.core.errors import (
    Code,
    ConflictError,
    InputError,
    InvariantError,
    Mark,
    Problem,
)
from modicum.server.service.threads import Threads

T = TypeVar("T")

#: Conflicts that tell of what stands, or is asked for, under an id.
OF_ANOTHER: Final = frozenset({Code.RELEASE_CONFLICT, Code.RELEASE_STATE})


# --- conflicts ----------------------------------------------------------------------


class Visibility:
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
        """Return which releases somebody may not know of."""
        if not named or who.may(Action.READ_RELEASES):
            return frozenset()

        def look(view: LedgerView) -> frozenset[str]:
            return frozenset(one for one in named if found(view, who, one) is None)

        return await self._threads.look(look)


def id_unusable(release: str | None, mark: Mark | None = None) -> ConflictError:
    """Return the error for an id that is taken by what is hidden."""
    called = "this id" if release is None else f"the id `{release[:200]}`"
    return ConflictError(
        Problem(
            Code.RELEASE_CONFLICT,
            f"{called} cannot be used",
            mark,
            help="give the release a different id",
        )
    )


@dataclass(frozen=True, slots=True)
class ReadOnlyGovernance:
    """A ledger for those who only look at what waits."""

    view: LedgerView

    def turn(self, work: Callable[[Entry], T], *, deciding: bool = False) -> T:
        """Refuse: who looks adds nothing."""
        raise InvariantError(Problem(Code.INTERNAL, "readers of the queue add nothing"))

    def look(self) -> tuple[LedgerBalances, Reader, str]:
        """Return the book, its reader, and the time."""
        return self.view.look()
