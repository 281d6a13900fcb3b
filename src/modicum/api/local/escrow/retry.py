"""Asking a ledger that may be away for a while, where much hangs on its answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from modicum.api.local.balances import Entry
from modicum.api.local.escrow.ledger import Ledger
from modicum.api.ports.escrow import Equipment, Still, go_on
from modicum.core.errors import UnavailableError

T = TypeVar("T")

#: How long a ledger that cannot be reached is waited for, in seconds: time and again.
_PAUSES: Final = (1.0, 4.0, 10.0, 15.0)


def surely(
    ledger: Ledger,
    equipment: Equipment,
    work: Callable[[Entry], T],
    still: Still = go_on,
) -> T:
    """Do some work in the turn of a ledger once, though it may be away for a while.

    A store that does not know whether it stored something is asked again: what stands
    is not done twice. So nothing that was paid for is lost to a ledger that is busy.

    Args:
        ledger: The ledger.
        equipment: What waits.
        work: Adds events.
        still: Raises if nobody wants it any more, before anything may be stored.

    Raises:
        UnavailableError: If it is away for long; nobody knows then.
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

    def ask() -> T:
        if not tried:
            still()
        return ledger.turn(once)

    return patiently(equipment, ask)


def patiently(equipment: Equipment, ask: Callable[[], T]) -> T:
    """Return what a ledger answers that may be away for a while.

    Args:
        equipment: What waits.
        ask: Asks it; to ask again does nothing twice.

    Raises:
        UnavailableError: If it is away for long.
    """
    for seconds in _PAUSES:
        with suppress(UnavailableError):
            return ask()
        equipment.pause(seconds)
    return ask()
