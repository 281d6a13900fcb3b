"""A long log, piece by piece: it never lies in memory as a whole, and has no gaps."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

from msgspec import Struct

from modicum.core.errors import Code, InvariantError, Problem, VerificationError
from modicum.ledger import Record

#: Maximum number of records, or bytes of contents, per page.
PAGE_RECORDS = 1000
PAGE_BYTES = 4 * 1024 * 1024


class Page(Struct, frozen=True):
    """Some records in order, and the length of the log when they were fetched.

    Attributes:
        records: The records; none if there are no more.
        last: The number of the last record of the whole log, 0 if there is none.
    """

    records: Sequence[Record]
    last: int


def paged(
    fetch: Callable[[int, int], Page], after: int, limit: int | None = None
) -> Iterator[Record]:
    """Return the records after a number, up to the end of the log as it is now."""
    left = limit
    until: int | None = None
    while left is None or left > 0:
        page = fetch(after, PAGE_RECORDS if left is None else min(left, PAGE_RECORDS))
        until = page.last if until is None else until
        for record in page.records:
            if record.seq > until:
                return
            yield record
        if not page.records or page.records[-1].seq >= until:
            return
        after = page.records[-1].seq
        left = None if left is None else left - len(page.records)


def prefetched(records: Iterator[Record]) -> Iterator[Record]:
    """Return the same records, the first page prefetched: errors occur immediately."""
    first = next(records, None)
    return iter(()) if first is None else itertools.chain((first,), records)


def refuse_gap(last: int, records: Sequence[Record]) -> None:
    """Raise unless the records are numbered on from the last one that is stored."""
    for expected, record in enumerate(records, start=last + 1):
        if record.seq != expected:
            _refuse_number(record.seq, expected)


def refuse_ended(*, ended: bool) -> None:
    """Raise if a turn is over: its connection may be in another one by now."""
    if ended:
        raise InvariantError(
            Problem(Code.INTERNAL, "a turn of the ledger was used after its end")
        )


def _refuse_number(seq: int, expected: int) -> NoReturn:
    raise VerificationError(
        Problem(
            Code.LEDGER_BROKEN,
            f"entry {seq} does not follow: the next number is {expected}",
            help="nothing was stored; the log changed outside its turn",
        )
    )
