"""What the escrow needs of a workspace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from modicum.api.local.balances import Book, Entry, Reader
from modicum.api.local.queries.actions import Ledger as QueryLedger
from modicum.api.local.queries.actions import Planning

T = TypeVar("T")


class Onlooker(Planning, Protocol):
    """What those need who only look at the escrow."""

    def look(self) -> tuple[Book, Reader, str]:
        """Return the book of a ledger that exists, its reader, and the time."""
        ...


class Ledger(Onlooker, QueryLedger, Protocol):
    """What the escrow needs of a workspace."""

    def turn(self, work: Callable[[Entry], T], *, deciding: bool = False) -> T:
        """Do some work in the turn of a ledger that exists; it is durable then.

        Args:
            work: Adds events.
            deciding: Whether it decides about releases.
        """
        ...
