"""Repeated denials: without a relevant change, they add no entry.

Otherwise resubmitting a denied release would fill the log. It is decided each time;
only a denial that the log already records is not recorded again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from modicum.ledger import Event, Record, event_of
from modicum.ledger.log.days import day_of
from modicum.ledger.log.events import ReleaseDenied

#: Maximum number of last entries searched for a denial.
LOOKED_BACK: Final = 1_000


class Denials:
    """The denials at the end of a log, after the last entry that could change them.

    They follow from the log alone: reading it from its beginning or from a snapshot
    gives the same ones.

    Args:
        from_start: Whether all entries will be followed, from the first one on.
    """

    def __init__(self, *, from_start: bool) -> None:
        self._is_complete = from_start
        self._known: dict[str, tuple[int, Event]] = {}

    def follow(self, seq: int, event: Event) -> None:
        """Process an entry.

        Args:
            seq: Its number.
            event: Its event.
        """
        if isinstance(event.body, ReleaseDenied):
            self._known.pop(event.body.release.id, None)
            self._known[event.body.release.id] = seq, event
        elif event.body.moves != "nothing":
            self._known.clear()
            self._is_complete = True
        while self._known:
            name, (oldest, _) = next(iter(self._known.items()))
            if oldest > seq - LOOKED_BACK:
                break
            del self._known[name]

    def same(
        self, denial: Event, head: int, read: Callable[[int], Iterable[Record]]
    ) -> int | None:
        """Return the entry that records the same denial; None if none does.

        It is by the same actor, of the same day, of the same release at the same
        price, by the same rules of the same policy; and the last one of its id.

        Args:
            denial: The denial, as it would be added.
            head: The number of the last entry.
            read: Reads the log; called only once after a start from a snapshot.
        """
        assert isinstance(denial.body, ReleaseDenied)
        if not self._is_complete:
            self._look_back(head, read)
        seq, known = self._known.get(denial.body.release.id, (0, None))
        if known is None or known.actor != denial.actor or known.body != denial.body:
            return None
        return seq if day_of(known.at) == day_of(denial.at) else None

    def _look_back(self, head: int, read: Callable[[int], Iterable[Record]]) -> None:
        """Read the end of the log, which was not followed so far."""
        self._known.clear()
        for record in read(max(head - LOOKED_BACK, 0)):
            self.follow(record.seq, event_of(record, record.seq))
        self._is_complete = True
