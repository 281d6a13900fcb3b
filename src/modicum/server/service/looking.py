"""Governance for those who only look: they add nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from modicum.api.local.balances import Book, Entry, Reader
from modicum.api.local.ledger_view import LedgerView
from modicum.core.errors import Code, InvariantError, Problem

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Looking:
    """A ledger for those who only look at what waits."""

    view: LedgerView

    def turn(self, work: Callable[[Entry], T], *, deciding: bool = False) -> T:
        """Refuse: who looks adds nothing.

        Raises:
            InvariantError: Always.
        """
        raise InvariantError(
            Problem(Code.INTERNAL, "who looks at what waits adds nothing")
        )

    def look(self) -> tuple[Book, Reader, str]:
        """Return the book, its reader, and the time."""
        return self.view.look()
