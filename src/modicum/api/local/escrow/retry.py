"""Retry a ledger turn until the store can be reached."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol, TypeVar

from modicum.api.local.balances import Entry, LedgerBalances, Reader
from modicum.api.local.queries.actions import Ledger as QueryLedger
from modicum.api.local.queries.actions import Planning
from modicum.api.ports.escrow import Equipment, Still, go_on
from modicum.core.errors import UnavailableError

T = TypeVar("T")


class EscrowReader(Planning, Protocol):
    """The read-only operations of the escrow."""

    def current(self) -> tuple[LedgerBalances, Reader, str]:
        """Return the book of a ledger that exists, its reader, and the time."""
        ...


class Ledger(EscrowReader, QueryLedger, Protocol):
    """The ledger operations that the escrow needs."""

    def turn(self, work: Callable[[Entry], T], *, deciding: bool = False) -> T:
        """Do some work in the turn of a ledger that exists; it is durable then."""
        ...


#: The retry delays for an unavailable ledger, in seconds.
_PAUSES: Final = (1.0, 4.0, 10.0, 15.0)


def retry(
    ledger: Ledger,
    equipment: Equipment,
    work: Callable[[Entry], T],
    still: Still = go_on,
) -> T:
    """Do some work once in a ledger turn, with retries while the ledger is unavailable.

    If it is unknown whether a store committed, the step is repeated: a recorded event
    is not recorded again. So no paid result is lost to a busy ledger.
    """
    tried: list[tuple[int, str, T]] = []

    def once(entry: Entry) -> T:
        for seq, head, found in tried:
            stored = entry.record(seq)
            if stored is not None and stored.hash == head:
                return found
        found, state = work(entry), entry.book.state
        if entry.added:
            tried.append((state.seq, state.head, found))
        return found

    def read() -> T:
        if not tried:
            still()
        return ledger.turn(once)

    return retry_reads(equipment, read)


def retry_reads(equipment: Equipment, read: Callable[[], T]) -> T:
    """Return the result of a read, with retries while the ledger is unavailable."""
    for seconds in _PAUSES:
        with suppress(UnavailableError):
            return read()
        equipment.pause(seconds)
    return read()
