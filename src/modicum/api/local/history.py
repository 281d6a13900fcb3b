"""The history of one release: requester, times and outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from modicum.api.local.balances import LedgerBalances, Reader
from modicum.core.errors import Code, InputError, Problem
from modicum.ledger import Record, RecordedRelease, Standing, State, event_of
from modicum.ledger.decision.balances import ReservedRelease
from modicum.ledger.log.events import Event, ReleaseDenied
from modicum.ledger.replay.fold import loss_changes
from modicum.ledger.replay.migration import Migration
from modicum.ledger.state.lifecycle import unknown_release
from modicum.ledger.state.state import LossChange
from modicum.policy import CompiledPolicy


@dataclass(frozen=True, slots=True)
class ReleaseEntry:
    """An entry about a release.

    Attributes:
        seq: The number of the entry.
        event: The time, actor and kind of event.
    """

    seq: int
    event: Event


def history_of(release: str, records: Iterable[Record]) -> tuple[ReleaseEntry, ...]:
    """Return the entries about a release, oldest first.

    Args:
        release: Its id.
        records: The log, or the relevant part of it.
    """
    return tuple(_story(release, records))


def _story(release: str, records: Iterable[Record]) -> Iterator[ReleaseEntry]:
    named = release.encode(errors="surrogatepass")  # A terminal may pass invalid UTF-8.
    for record in records:
        if named in record.payload:  # Few are; only those need be read.
            event = event_of(record, record.seq)
            if event.body.release_id == release:
                yield ReleaseEntry(record.seq, event)


def denied_release(release: str, records: Iterable[Record]) -> InputError:
    """Return the error for a release that was denied or is unknown.

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
            notes=(f"denied by {', '.join(body.causes)}",),
            help=f"see why with  modicum release check FILE --as-of {last.seq - 1}",
        )
    )


def standings_at(book: LedgerBalances, now: str) -> list[Standing]:
    """Return the status of every accepted release, oldest first.

    Args:
        book: The book of the ledger.
        now: The time; reservations due by then count as expired.
    """
    found = (book.standing_at(one, now) for one in book.state.releases)
    return [one for one in found if one is not None]


class RekeyedHistory(Iterable[ReservedRelease]):
    """All releases of a log, re-keyed to one policy.

    The log is read each time: a history may be larger than memory.

    Args:
        state: The state at the head up to which it is read.
        read: Reads the log.
        now: The time; reservations due by then no longer count.
        compiled: The policy.
        entails: Whether it charges what losses prove; by default, if it does or would.
    """

    def __init__(
        self,
        state: State,
        read: Reader,
        now: str,
        compiled: CompiledPolicy,
        *,
        entails: bool | None = None,
    ) -> None:
        self._state = state
        self._read = read
        self._now = now
        policy = compiled.policy
        self._migration = Migration(
            state.policies, policy.vocabulary, policy.text, entails=entails
        )

    def __iter__(self) -> Iterator[ReservedRelease]:
        for change, counts in _reserved(self._state, self._read, self._now):
            migrated = self._migration.release(change.release, change.seq)
            yield ReservedRelease(migrated, change.day, counts)


def counted_releases(
    state: State, read: Reader, now: str
) -> Iterator[tuple[RecordedRelease, int]]:
    """Yield the releases that count as spent, as recorded, each with its entry.

    Args:
        state: The state at the head up to which the log is read.
        read: Reads the log.
        now: The time; reservations due by then no longer count.
    """
    for change, counts in _reserved(state, read, now):
        if counts:
            yield change.release, change.seq


def _reserved(
    state: State, read: Reader, now: str
) -> Iterator[tuple[LossChange, bool]]:
    """Yield every accepted release as recorded, and whether its loss is spent."""
    standings = state.releases
    if not standings:
        return  # The log may not exist yet.
    due = frozenset(state.due(now))
    # Until the last of its corrections, a description does not count any more.
    left = {one: len(seqs) for one, seqs in state.redescribed.items()}
    for change in loss_changes(read(0), state):
        if not change.taken_back:
            known = standings[change.release.id]
            if change.instead_of is not None:
                left[known.id] -= 1
            yield (
                change,
                known.status.counts and known.id not in due and not left.get(known.id),
            )
