"""The log itself: its entries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from modicum.api.local.handlers.pagination import LOOKED_AT
from modicum.api.local.ledger_view import LedgerView
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.core.canonical import encode
from modicum.core.errors import Code, InputError, Problem
from modicum.ledger import Event, Record, event_of
from modicum.ledger.log.events import KINDS
from modicum.server.service.threads import Threads

_KINDS: Final = tuple(sorted(one.kind for one in KINDS))
#: Number of records read at once.
_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class EntryQuery:
    """Which entries are listed, and in which order.

    Attributes:
        limit: The maximum number of entries.
        start: The number to go on from; 0 to begin.
        after: Only those after this one.
        newest: Whether the newest is first.
        kind: Only those of this kind; empty for all.
        actor: Only those of this actor; empty for all.
    """

    limit: int
    start: int = 0
    after: int = 0
    newest: bool = False
    kind: str = ""
    actor: str = ""

    def records(self, view: LedgerView, last: int) -> Iterator[Record]:
        """Yield the records to look at, in order.

        Args:
            view: The ledger.
            last: The number of its last entry.
        """
        low, high = self.after, last
        if self.newest:
            high = min(high, self.start - 1) if self.start else high
            for first in range(high, low, -_AT_ONCE):
                after = max(low, first - _AT_ONCE)
                yield from reversed(list(view.page(after, first - after)))
            return
        for after in range(max(low, self.start), high, _AT_ONCE):
            yield from view.page(after, min(_AT_ONCE, high - after))

    def event(self, record: Record) -> Event | None:
        """Return the event of a record; None if it is not listed."""
        # Few are; only those need be decoded.
        wanted = (f'"kind":"{self.kind}"'.encode(), encode(self.actor))
        given = (self.kind, self.actor)
        pairs = zip(given, wanted, strict=True)
        if any(one and text not in record.payload for one, text in pairs):
            return None
        event = event_of(record, record.seq)
        of_kind = not self.kind or event.body.kind == self.kind
        return event if of_kind and self.actor in ("", event.actor) else None


@dataclass(frozen=True, slots=True)
class Entries:
    """A page of entries.

    Attributes:
        entries: Each in stored form, with its event.
        more: The number to go on from; None at the end.
        seq: The number of the last entry of the ledger.
        head: Its hash.
    """

    entries: tuple[tuple[Record, Event], ...]
    more: int | None
    seq: int
    head: str


class Ledgers:
    """Read operations on the log.

    Args:
        threads: The thread pools.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def entries(self, who: Identity, query: EntryQuery) -> Entries:
        """Return entries; oldest first, a page never changes once it is full."""
        who.must(Action.READ_LEDGER)
        if query.kind and query.kind not in _KINDS:
            raise InputError(
                Problem(
                    Code.BAD_REQUEST,
                    f"there is no kind of entry `{query.kind}`",
                    help=f"kinds are {', '.join(_KINDS)}",
                )
            )

        def read_view(view: LedgerView) -> Entries:
            book, _, _ = view.current()
            state, found = book.state, list[tuple[Record, Event]]()
            last, more = 0, None
            for scanned, record in enumerate(query.records(view, state.seq)):
                if len(found) == query.limit or scanned == LOOKED_AT:
                    more = last
                    break
                last, event = record.seq, query.event(record)
                if event is not None:
                    found.append((record, event))
            return Entries(tuple(found), more, state.seq, state.head)

        return await self._threads.read_view(read_view)
