"""The log of a server, followed locally and verified independently.

A reader of the log needs no other data of the server: it is folded here, and anything
that does not follow from the previous entry is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NoReturn, TypeVar

import msgspec

from modicum.api import operations
from modicum.api.local.balances import Entry, LedgerBalances, Reader
from modicum.api.local.ledger_view import LedgerView
from modicum.api.schema.ledger import Head, StoredEntry
from modicum.client.problems import not_understood
from modicum.client.retry_connection import ATTEMPTS_MAX, Connection, Request
from modicum.client.session import Session, unsupported
from modicum.core.errors import Code, InputError, UnavailableError
from modicum.ledger import AuditReport, Record, State
from modicum.system.clock import SystemClock

#: A longer line is no entry.
_LINE_BYTES_MAX: Final = 2**28


_entry = msgspec.json.Decoder(StoredEntry)


class RemoteLog:
    """The store of a server's log. It is read-only.

    Args:
        connection: The server.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def name(self) -> str:
        """Return its display name: the address of the server."""
        return self._connection.url

    def head(self) -> Head:
        """Return the head of the log."""
        return self._connection.call(Request(operations.HEAD))

    def exists(self) -> bool:
        """Return whether there is a ledger."""
        return self.head().seq > 0

    def read(self, after: int, limit: int | None = None) -> Iterable[Record]:
        """Return the records with numbers above `after`, in order.

        Records appended after the call are left out. After a disconnection, reading
        resumes where it stopped.
        """
        last = self.head().seq
        if limit is not None:
            last = min(last, after + limit)
        return self._records(after, last)

    def record(self, seq: int) -> Record | None:
        """Return the record with a number, or None if there is none."""
        if seq < 1:
            return None
        try:
            reply = self._connection.call(Request(operations.ENTRY, {"seq": seq}))
        except InputError as error:
            if error.code is not Code.NOT_FOUND:
                raise
            return None
        found = _record(reply)
        if found.seq != seq:
            raise not_understood("it is about another entry")
        return found

    def turn(self) -> NoReturn:
        """Refuse: only the server adds to the log."""
        raise unsupported("a turn of the ledger", "call the operation itself")

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
                raise not_understood(f"its log ends at entry {after}, not {last}")

    def _lines(self, after: int) -> Iterator[Record]:
        request = Request(
            operations.ENTRIES, query={"after": after}, accept=operations.LINES
        )
        with self._connection.pieces(request) as pieces:
            rest = b""
            for piece in pieces:
                *lines, rest = (rest + piece).split(b"\n")
                if len(rest) > _LINE_BYTES_MAX:
                    raise not_understood("an entry is incomplete")
                yield from map(_read, lines)


def _read(line: bytes) -> Record:
    try:
        return _record(_entry.decode(line))
    except (msgspec.MsgspecError, ValueError):
        raise not_understood("a line of its log is not an entry").alone() from None


def _record(one: StoredEntry) -> Record:
    return Record(one.seq, one.payload.encode(), one.hash)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReadOnlyView:
    """A ledger that is only looked at, for verbs that would take its turn, too.

    Attributes:
        view: The ledger.
    """

    view: LedgerView

    def turn(self, work: Callable[[Entry], T], *, deciding: bool = False) -> T:
        """Refuse: only the server adds to the ledger."""
        raise unsupported("a turn of the ledger", "call the operation itself")

    def current(self, *, deciding: bool = False) -> tuple[LedgerBalances, Reader, str]:
        """Return the book, a reader of its log, and the time."""
        return self.view.current(deciding=deciding)


class LogView(Session):
    """The log of a server's ledger, for those who may read it.

    It is fetched once, cached for the lifetime of this object, and followed from there;
    for one thread at a time.
    """

    def head(self) -> Head:
        """Return the head of the ledger. Writes nothing."""
        return self._log.head()

    def exists(self) -> bool:
        """Return whether there is a ledger. Writes nothing."""
        return self._log.exists()

    def record(self, seq: int) -> Record | None:
        """Return the record with a number, or None if there is none. Writes nothing."""
        return self._log.record(seq)

    def records(self) -> Iterable[Record]:
        """Return the stored records, oldest first, unchecked. Writes nothing."""
        return self._log.read(0)

    def state(self) -> State:
        """Return the state at the head of the log, folded here. Writes nothing."""
        return self.followed.state()

    def verify(
        self,
        on_entry: Callable[[int], None] | None = None,
        *,
        noted_hash: str | None = None,
    ) -> AuditReport:
        """Read the log from the beginning and check all of it, here. Writes nothing."""
        return self.followed.verify(on_entry, noted_hash=noted_hash)

    def as_of(self, point: int | str) -> LedgerView:
        """Return a view of the ledger at an earlier point. Writes nothing.

        It is computed locally, from the log, and equals that of a local ledger.
        """
        return self.followed.as_of(point)

    def current(self, *, deciding: bool = False) -> tuple[LedgerBalances, Reader, str]:
        """Return the book of the ledger, a reader of its log, and the time."""
        return self.followed.current(deciding=deciding)

    # --- for verbs that go by the log ---

    @cached_property
    def followed(self) -> LedgerView:
        """The ledger, followed here by its log; for those who may read it."""
        return LedgerView(self._log, SystemClock())

    @property
    def read_only(self) -> ReadOnlyView:
        """The same, for verbs of a workspace that write nothing."""
        return ReadOnlyView(self.followed)

    @property
    def _log(self) -> RemoteLog:
        return RemoteLog(self._connection)
