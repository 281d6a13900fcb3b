"""What the log tells about one release: who asked, when, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from modicum.api.local.balances import LedgerBalances, Reader
from modicum.core.errors import Code, InputError, Problem
from modicum.ledger import Record, Standing, State, event_of
from modicum.ledger.decision.balances import ReservedRelease
from modicum.ledger.log.events import Event, ReleaseDenied
from modicum.ledger.replay.fold import loss_changes
from modicum.ledger.replay.part_migration import PartMigration
from modicum.ledger.state.lifecycle import unknown_release
from modicum.policy import CompiledPolicy


@dataclass(frozen=True, slots=True)
class ReleaseEntry:
    """An entry about a release.

    Attributes:
        seq: The number of the entry.
        event: When, by whom, and what.
    """

    seq: int
    event: Event


def history_of(release: str, records: Iterable[Record]) -> tuple[ReleaseEntry, ...]:
    """Return what a log tells about a release, oldest first.

    Args:
        release: Its id.
        records: The log, or the part of it that is asked.
    """
    return tuple(_story(release, records))


def _story(release: str, records: Iterable[Record]) -> Iterator[ReleaseEntry]:
    named = release.encode(errors="surrogatepass")  # Whatever a terminal hands over.
    for record in records:
        if named in record.payload:  # Few are; only those need be read.
            event = event_of(record, record.seq)
            if event.body.release_id == release:
                yield ReleaseEntry(record.seq, event)


def denied_release(release: str, records: Iterable[Record]) -> InputError:
    """Return the mistake of a release that does not stand: it was denied, or unknown.

    Args:
        release: Its id.
        records: The log, from its beginning.
    """
    denied = [
        one
        for one in history_of(release, records)
        if isinstance(one.event.body, ReleaseDenied)
    ]
    if not denied:
        return unknown_release(release)
    last = denied[-1]
    body = last.event.body
    assert isinstance(body, ReleaseDenied)
    times = f" {len(denied)} times, the last time" if len(denied) > 1 else ""
    return InputError(
        Problem(
            Code.RELEASE_UNKNOWN,
            f"release `{release}` was denied{times} with entry {last.seq}"
            f" ({last.event.at[:10]}, requested by {last.event.actor}); it has no"
            " reservation",
            notes=(f"denied by {', '.join(body.blocking)}",),
            help=f"see why with  modicum release check FILE --as-of {last.seq - 1}",
        )
    )


def standings_at(book: LedgerBalances, now: str) -> list[Standing]:
    """Return where every release stands that was let in, oldest first.

    Args:
        book: The book of the ledger.
        now: The time; reservations that have run out by then stand as expired.
    """
    found = (book.standing_at(one, now) for one in book.state.releases)
    return [one for one in found if one is not None]


class RekeyedHistory(Iterable[ReservedRelease]):
    """All that was ever brought into a log, in the words of one policy.

    It is read from the log each time: a history may be larger than memory.

    Args:
        state: The state at the head up to which it is read.
        read: Reads the log.
        now: The time; reservations that have run out by then count no more.
        compiled: The policy.
    """

    def __init__(
        self, state: State, read: Reader, now: str, compiled: CompiledPolicy
    ) -> None:
        self._state = state
        self._read = read
        self._due = frozenset(state.due(now))
        self._words = PartMigration(
            state.policies, compiled.policy.vocabulary.population, compiled.policy.text
        )

    def __iter__(self) -> Iterator[ReservedRelease]:
        standings = self._state.releases
        if not standings:
            return  # There may be no log yet.
        # Until the last of its corrections, a description does not count any more.
        left = {one: len(seqs) for one, seqs in self._state.redescribed.items()}
        for change in loss_changes(self._read(0), self._state):
            if not change.taken_back:
                known = standings[change.release.id]
                if change.instead_of is not None:
                    left[known.id] -= 1
                counts = (
                    known.status.counts
                    and known.id not in self._due
                    and not left.get(known.id)
                )
                told = self._words.release(change.release, change.seq)
                yield ReservedRelease(told, change.day, counts)
