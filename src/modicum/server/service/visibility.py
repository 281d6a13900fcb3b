"""Visibility: releases and requests of permitted data sets only.

Ids are one name space, so that an id is in use is visible to everybody. Nothing else
about a hidden release is revealed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from modicum.api.local.balances import Entry, LedgerBalances, Reader
from modicum.api.local.evaluation import ConfusableIdError
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.submit import HeldTooMuchError
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

#: Conflicts that reveal the release or request of an id.
OF_ANOTHER: Final = frozenset({Code.RELEASE_CONFLICT, Code.RELEASE_STATE})


# --- conflicts ----------------------------------------------------------------------


class Visibility:
    """Removes hidden data from responses.

    Args:
        threads: The thread pools.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def guard(
        self, who: Identity, named: Callable[[], str | None], work: Awaitable[T]
    ) -> T:
        """Return the result of some work; a conflict reveals nothing hidden.

        Visibility is checked after the conflict, so that concurrent additions are
        hidden, too.
        """
        try:
            return await work
        except ConflictError as conflict:
            shown = await self.concealed(who, named, conflict)
            if shown is conflict:
                raise
        raise shown

    async def concealed(
        self, who: Identity, named: Callable[[], str | None], conflict: ConflictError
    ) -> ConflictError:
        """Return a conflict as a caller may see it: it reveals nothing hidden."""
        if isinstance(conflict, HeldTooMuchError):
            return conflict.without(await self.hidden(who, frozenset(conflict.held)))
        if conflict.code not in OF_ANOTHER or who.may(Action.READ_RELEASES):
            return conflict
        release = await self._threads.compute(named)
        owner = release
        if isinstance(conflict, ConfusableIdError):
            owner = conflict.existing
        if await self._knows(who, owner):
            return conflict
        return id_unusable(release, conflict.problems[0].mark)

    async def _knows(self, who: Identity, release: str | None) -> bool:
        """Return whether a caller may see the owner of an id; if in doubt, not.

        It runs as a slow read: provoking conflicts does not delay checks.
        """
        if release is None:
            return False
        try:
            return await self._threads.read_view(lambda v: is_known_to(v, who, release))
        except InputError:
            return False

    # --- names ---

    async def hidden(self, who: Identity, named: frozenset[str]) -> frozenset[str]:
        """Return the releases that are hidden from a caller."""
        if not named or who.may(Action.READ_RELEASES):
            return frozenset()

        def read_view(view: LedgerView) -> frozenset[str]:
            return frozenset(one for one in named if found(view, who, one) is None)

        return await self._threads.read_view(read_view)


def id_unusable(release: str | None, mark: Mark | None = None) -> ConflictError:
    """Return the error for an id in use by a hidden release."""
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
    """A read-only ledger for pending requests."""

    view: LedgerView

    def turn(self, work: Callable[[Entry], T], *, deciding: bool = False) -> T:
        """Refuse: who looks adds nothing."""
        raise InvariantError(Problem(Code.INTERNAL, "readers of the queue add nothing"))

    def current(self) -> tuple[LedgerBalances, Reader, str]:
        """Return the book, its reader, and the time."""
        return self.view.current()
