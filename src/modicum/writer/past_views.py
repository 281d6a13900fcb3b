"""Looking at a ledger as it was: its log is replayed up to an earlier entry."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.past_ledger import EarlierClock, EarlierStore, PastPoint
from modicum.api.ports.storage import EventStore

T = TypeVar("T")

#: Maximum number of earlier entries that are kept in memory. Each takes as much as the
#: whole ledger did then.
KEPT: Final = 3


@dataclass(slots=True)
class _Past:
    """A ledger as it was at an entry.

    Attributes:
        view: The view.
        clock: Its clock, set before each read.
    """

    view: LedgerView
    clock: EarlierClock


class PastViews:
    """Serves reads of a ledger at earlier points; any thread may use it.

    One read runs at a time: a replay takes as long as a start without a snapshot.

    Args:
        store: The store of the log.
        kept: How many entries are kept for the next read.
    """

    def __init__(self, store: EventStore, kept: int = KEPT) -> None:
        self._store = store
        self._most = kept
        self._guard = threading.Lock()
        self._known: OrderedDict[int, _Past] = OrderedDict()

    def read_view(self, point: PastPoint, work: Callable[[LedgerView], T]) -> T:
        """Return the result of a read of the ledger as it was at a point."""
        with self._guard:
            past = self._known.pop(point.seq, None)
            if past is None:
                if len(self._known) >= self._most:
                    self._known.popitem(last=False)
                clock = EarlierClock(point.at)
                store = EarlierStore(self._store, point.seq)
                past = _Past(LedgerView(store, clock), clock)
            # Kept whatever comes of it: mistakes must not cost a replay each.
            self._known[point.seq] = past
            past.clock.at = point.at
            return work(past.view)
