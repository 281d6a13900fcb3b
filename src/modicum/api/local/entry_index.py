"""Which entries of a log are about a release: an index that follows the log."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator

import msgspec
import numpy as np

from modicum.api.local.balances import Reader
from modicum.api.local.history import ReleaseEntry, history_of
from modicum.ledger import Record, State, event_of


class _Named(msgspec.Struct):
    """A release in the body of an event."""

    id: str = ""


class _Body(msgspec.Struct):
    """What in the body of an event may name a release."""

    release: str | _Named = ""
    about: str = ""
    id: str = ""


class _Event(msgspec.Struct):
    body: _Body


class _Payload(msgspec.Struct):
    event: _Event


_payload = msgspec.json.Decoder(_Payload)


def named_in(record: Record) -> str:
    """Return the id that an entry may be about; empty if it is about no release."""
    try:
        body = _payload.decode(record.payload).event.body
    except msgspec.MsgspecError:
        return event_of(record, record.seq).body.release_id
    release = body.release if isinstance(body.release, str) else body.release.id
    return release or body.about or body.id


class EntryIndex:
    """The entries about each release, found without reading the log again.

    Eight bytes for each entry are kept: a hash of the id. Entries are read before they
    count, so that equal hashes do no harm.
    """

    def __init__(self) -> None:
        self._hashes = array("q")

    def story(
        self,
        release: str,
        since: int,
        state: State,
        read: Reader,
        record: Callable[[int], Record | None],
    ) -> tuple[ReleaseEntry, ...]:
        """Return the entries about a release, oldest first; see `history_of`.

        Args:
            release: Its id.
            since: The number of the first entry to look at.
            state: The state at the head.
            read: Reads the log after an entry; called for what is new.
            record: Reads one record.
        """
        for one in read(len(self._hashes)):
            if one.seq > state.seq:
                break
            self._hashes.append(hash(named_in(one)))
        hashes = np.frombuffer(self._hashes, dtype=np.int64)[since - 1 : state.seq]
        places = np.flatnonzero(hashes == hash(release))

        def records() -> Iterator[Record]:
            for place in places.tolist():
                found = record(since + place)
                if found is not None:
                    yield found

        return history_of(release, records())
