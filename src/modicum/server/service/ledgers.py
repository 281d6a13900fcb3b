"""The log itself: its head, its entries, and the proof of them."""

from __future__ import annotations

from dataclasses import dataclass

from modicum.api.local.ledger_view import LedgerView
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.ledger import Event, Record, event_of
from modicum.server.service.threads import Threads


@dataclass(frozen=True, slots=True)
class Entries:
    """A page of entries.

    Attributes:
        entries: Each in stored form, with its event.
        after: The number to go on after; None at the end.
        seq: The number of the last entry of the ledger.
        head: Its hash.
    """

    entries: tuple[tuple[Record, Event], ...]
    after: int | None
    seq: int
    head: str


class Ledgers:
    """Read operations on the log.

    Args:
        threads: The thread pools.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def entries(self, who: Identity, after: int, limit: int) -> Entries:
        """Return entries, oldest first; a page never changes once it is full."""
        who.must(Action.READ_LEDGER)

        def read_view(view: LedgerView) -> Entries:
            book, read, _ = view.current()
            state = book.state
            records: list[Record] = []
            for record in read(after):
                if record.seq > state.seq or len(records) == limit:
                    break
                records.append(record)
            last = records[-1].seq if records else after
            more = last if last < state.seq else None
            events = tuple((one, event_of(one, one.seq)) for one in records)
            return Entries(events, more, state.seq, state.head)

        return await self._threads.read_view(read_view)
