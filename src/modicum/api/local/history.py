"""What the log tells about one release: who asked, when, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from modicum.api.local.balances import Book
from modicum.core.errors import Code, InputError, Problem
from modicum.ledger import Record, Standing, event_of
from modicum.ledger.log.events import (
    Annotated,
    ApprovalGiven,
    Body,
    Event,
    PastRecorded,
    PastRedescribed,
    ReleaseDenied,
    ReleaseExpired,
    ReleasePosted,
    ReleaseReserved,
    ReleaseStarted,
    ReleaseVoided,
)
from modicum.ledger.log.request_events import ReleaseRequested, RequestWithdrawn
from modicum.ledger.state.lifecycle import unknown_release


@dataclass(frozen=True, slots=True)
class Happened:
    """An entry about a release.

    Attributes:
        seq: The number of the entry.
        event: When, by whom, and what.
    """

    seq: int
    event: Event


def story_of(release: str, records: Iterable[Record]) -> tuple[Happened, ...]:
    """Return what a log tells about a release, oldest first.

    Args:
        release: Its id.
        records: The log, or the part of it that is asked.
    """
    return tuple(_story(release, records))


def _story(release: str, records: Iterable[Record]) -> Iterator[Happened]:
    named = release.encode(errors="surrogatepass")  # Whatever a terminal hands over.
    for record in records:
        if named in record.payload:  # Few are; only those need be read.
            event = event_of(record, record.seq)
            if release_named(event.body) == release:
                yield Happened(record.seq, event)


def release_named(body: Body) -> str:
    """Return the id of the release that an event is about; empty if it is of none.

    Args:
        body: The event.
    """
    match body:
        case (
            ReleaseReserved()
            | ReleaseDenied()
            | PastRecorded()
            | PastRedescribed()
            | ReleaseRequested()
        ):
            return body.release.id
        case (
            ReleaseStarted()
            | ReleasePosted()
            | ReleaseVoided()
            | ReleaseExpired()
            | RequestWithdrawn()
        ):
            return body.release
        case ApprovalGiven(subject="release"):
            return body.id
        case Annotated():
            return body.about
        case _:
            return ""


def denied_release(release: str, records: Iterable[Record]) -> InputError:
    """Return the mistake of a release that does not stand: it was denied, or unknown.

    Args:
        release: Its id.
        records: The log, from its beginning.
    """
    denied = [
        one
        for one in story_of(release, records)
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
            f" ({last.event.at[:10]}, asked by {last.event.actor}); it does not stand",
            notes=(f"denied by {', '.join(body.blocking)}",),
            help=f"see why with  modicum release check FILE --as-of {last.seq - 1}",
        )
    )


def standings_at(book: Book, now: str) -> list[Standing]:
    """Return where every release stands that was let in, oldest first.

    Args:
        book: The book of the ledger.
        now: The time; reservations that have run out by then stand as expired.
    """
    found = (book.standing_at(one, now) for one in book.state.releases)
    return [one for one in found if one is not None]
