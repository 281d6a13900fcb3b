"""Event streams: new entries of the log, and who sees them."""

from __future__ import annotations

from dataclasses import dataclass

from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.release_datasets import may
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.ledger import Event, State, event_of
from modicum.ledger.log.data_sets import data_sets_recorded
from modicum.ledger.log.events import ReleaseDenied
from modicum.server.service.threads import Threads

#: Number of entries per read.
_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class LogEvent:
    """An entry of the log, as visible to a caller.

    Attributes:
        seq: Its number.
        head: Its hash.
        kind: The kind of event.
        release: The release that it is about, where that is theirs; else empty.
    """

    seq: int
    head: str
    kind: str
    release: str = ""


@dataclass(frozen=True, slots=True)
class NewEntries:
    """New entries of the log.

    Attributes:
        entries: The visible events, oldest first.
        seen: The number of the last entry that was looked at.
        more: Whether there is more to look at.
    """

    entries: tuple[LogEvent, ...]
    seen: int
    more: bool


class Events:
    """Reads new entries of the log.

    Args:
        threads: The thread pools.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def head(self, who: Identity) -> int:
        """Return the number of the last entry."""
        who.must(Action.READ_RULES)
        return await self._threads.read_view(lambda view: view.state().seq)

    async def since(self, who: Identity, after: int) -> NewEntries:
        """Return the visible part of what was added after an entry.

        Those who may read the ledger see each entry; others only their own releases.
        """
        who.must(Action.READ_RULES)
        reads_all = who.may(Action.READ_LEDGER)

        def read_view(view: LedgerView) -> NewEntries:
            book, read, _ = view.current()
            state = book.state
            events: list[LogEvent] = []
            seen = after
            for record in read(after) if after < state.seq else ():
                if record.seq > state.seq or seen - after == _AT_ONCE:
                    break
                seen = record.seq
                event = event_of(record, record.seq)
                own = _own_release(view, state, event, who)
                if own or reads_all:
                    kind = event.body.kind
                    events.append(LogEvent(record.seq, record.hash, kind, own))
            return NewEntries(tuple(events), seen, seen < state.seq)

        return await self._threads.read_view(read_view)


def _own_release(view: LedgerView, state: State, event: Event, who: Identity) -> str:
    """Return the release of an event, if it is the caller's own; else empty.

    The owner is the holder of the reservation, or the submitter of a denied release.
    Present visibility is checked, too.
    """
    named = getattr(event.body, "release", None)
    if named is None:
        return ""
    identifier = named if isinstance(named, str) else named.id
    if isinstance(event.body, ReleaseDenied):
        sets = data_sets_recorded(event.body.release)
        own = event.actor == who.name
    else:
        standing = state.releases.get(identifier)
        record = None if standing is None else view.record(standing.seq)
        if standing is None or record is None:
            return ""
        sets = data_sets_recorded(view.release_of(standing))
        own = event_of(record, record.seq).actor == who.name
    return identifier if own and may(who, Action.READ_RELEASES, sets) else ""
