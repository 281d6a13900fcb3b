"""The log of a server, read entry by entry as it is stored.

Whoever may read it needs no other word of the server: it is folded here, and what does
not follow from the entry before is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NoReturn

import msgspec

from modicum.api import operations
from modicum.api.schema.ledger import Head, StoredEntry
from modicum.client.elsewhere import not_from_here
from modicum.client.problems import not_understood
from modicum.client.retry_connection import ATTEMPTS_MAX, Connection, Request
from modicum.core.errors import Code, InputError, UnavailableError
from modicum.ledger import Record

#: A longer line is no entry.
_LINE_BYTES_MAX: Final = 2**28


_entry = msgspec.json.Decoder(StoredEntry)


class RemoteLog:
    """Where the log lives, for whoever looks at it. Nothing can be added to it.

    Args:
        connection: The server.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def name(self) -> str:
        """What people call it: the address of the server."""
        return self._connection.url

    def head(self) -> Head:
        """Return how far the log goes."""
        return self._connection.call(Request(operations.HEAD))

    def exists(self) -> bool:
        """Return whether there is a ledger."""
        return self.head().seq > 0

    def read(self, after: int, limit: int | None = None) -> Iterable[Record]:
        """Return the records whose number exceeds `after`, in order.

        What is appended after the call is left out. If the connection breaks, they go
        on where it broke.

        Args:
            after: A number; 0 for all records.
            limit: How many records at most; None for all.

        Raises:
            AccessError: If whoever asks may not read the ledger.
            UnavailableError: If the server gives no answer.
        """
        last = self.head().seq
        if limit is not None:
            last = min(last, after + limit)
        return self._records(after, last)

    def record(self, seq: int) -> Record | None:
        """Return the record with a number, or None if there is none.

        Args:
            seq: The number.

        Raises:
            AccessError: If whoever asks may not read the ledger.
        """
        if seq < 1:
            return None
        try:
            told = self._connection.call(Request(operations.ENTRY, {"seq": seq}))
        except InputError as error:
            if error.code is not Code.NOT_FOUND:
                raise
            return None
        found = _record(told)
        if found.seq != seq:
            raise not_understood("it tells of another entry")
        return found

    def turn(self) -> NoReturn:
        """Refuse: what is added to the log, the server adds.

        Raises:
            UsageError: Always.
        """
        raise not_from_here("a turn of the ledger", "take the step that you mean")

    def close(self) -> None:
        """Do nothing: who opened the connection closes it."""

    def _records(self, after: int, last: int) -> Iterator[Record]:
        broken = 0
        while after < last:
            try:
                for record in self._lines(after):
                    yield record
                    after, broken = record.seq, 0
                    if after >= last:
                        return
            except UnavailableError:
                broken += 1
                if broken >= ATTEMPTS_MAX:
                    raise
            else:
                raise not_understood(f"its log ends after entry {after}, not {last}")

    def _lines(self, after: int) -> Iterator[Record]:
        request = Request(
            operations.ENTRIES, query={"after": after}, accept=operations.LINES
        )
        with self._connection.pieces(request) as pieces:
            rest = b""
            for piece in pieces:
                *lines, rest = (rest + piece).split(b"\n")
                if len(rest) > _LINE_BYTES_MAX:
                    raise not_understood("an entry has no end")
                yield from map(_read, lines)


def _read(line: bytes) -> Record:
    try:
        return _record(_entry.decode(line))
    except (msgspec.MsgspecError, ValueError):
        raise not_understood("a line of its log is no entry").alone() from None


def _record(one: StoredEntry) -> Record:
    return Record(one.seq, one.payload.encode(), one.hash)
