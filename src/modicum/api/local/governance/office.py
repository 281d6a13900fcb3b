"""What those who govern work on: a ledger, in the name of somebody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from modicum.api.local.balances import Book, Entry, Reader

T = TypeVar("T")


class Ledger(Protocol):
    """What governing needs of a workspace."""

    def turn(self, work: Callable[[Entry], T], *, deciding: bool = False) -> T:
        """Do some work in the turn of a ledger that exists; it is durable then.

        Args:
            work: Adds events.
            deciding: Whether it decides about releases.
        """
        ...

    def look(self) -> tuple[Book, Reader, str]:
        """Return the book of a ledger that exists, its reader, and the time."""
        ...


class Office:
    """What somebody may do who governs a ledger; each verb is an entry of its log.

    Args:
        ledger: The ledger.
        actor: Who acts.
    """

    def __init__(self, ledger: Ledger, actor: str) -> None:
        self._ledger = ledger
        self._actor = actor
