"""The ledger in one SQLite file, in WAL mode with full synchronization.

Beside `ledger.db` lie the files of its locks (see `sqlite_lock`) and
`ledger.db.snapshot`, a cache, with `ledger.db.snapshot.draft` while it is written.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modicum.api.ports.storage import StoredAnswer, TableVersions
from modicum.ledger import Record
from modicum.storage import sqlite_tables as tables
from modicum.storage.idle_work import Chore
from modicum.storage.log_pages import Page, paged, prefetched, refuse_ended
from modicum.storage.sqlite_connection import (
    Access,
    OneShot,
    PersistentAccess,
    leftovers_of,
    sync_folder,
)
from modicum.storage.sqlite_errors import SqliteTroubles
from modicum.storage.sqlite_lock import open_beside

if TYPE_CHECKING:
    from modicum.storage.service_tables import Query, Statement

#: Timeout for the turn.
WAIT_SECONDS = 30.0


class SqliteStore:
    """A log in a SQLite file.

    Args:
        path: The file. It is made at the first turn if it is not there.
        wait_seconds: How long to wait for other writers.
        keep_open: Whether to keep the file open between turns, as a server does;
            else it is left at rest, and a reader writes no byte.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        wait_seconds: float = WAIT_SECONDS,
        keep_open: bool = False,
    ) -> None:
        # SQLite follows links; the log and the lock must lie beside the same file.
        self._path = Path(path).resolve()
        self._shown = str(path)
        self._access: Access = (PersistentAccess if keep_open else OneShot)(
            self._path, wait_seconds
        )
        self._troubles = SqliteTroubles(self._path, wait_seconds)
        self._snapshot = Path(f"{self._path}.snapshot")

    @property
    def name(self) -> str:
        """The path of the file."""
        return self._shown

    def exists(self) -> bool:
        """Return whether the file is there and not empty."""
        try:
            found = self._access.file()
            if found is None:
                return False
            return found.st_size > 0 or bool(leftovers_of(self._path))
        except OSError as error:
            raise self._troubles.unreadable(error) from error

    def close(self) -> None:
        """Close what is kept open."""
        with self._troubles.translated(writing=True):
            self._access.close()

    # --- reading ---

    def read(self, after: int, limit: int | None = None) -> Iterator[Record]:
        """Return the records after a number, page by page."""
        return prefetched(self._stream(after, limit))

    def record(self, seq: int) -> Record | None:
        """Return the record with a number, or None if there is none."""
        found = next(self.read(seq - 1, 1), None)
        return found if found is not None and found.seq == seq else None

    def checkpoints(self) -> list[bytes]:
        """Return every checkpoint, in the order in which they were added."""

        def query(connection: sqlite3.Connection) -> list[bytes]:
            version = tables.version_of(connection, str(self._path))
            return tables.checkpoints_of(connection, version)

        with (
            self._troubles.translated(writing=False),
            self._access.reading() as run_query,
        ):
            return run_query(query)

    def table_versions(self) -> TableVersions:
        """Return the version of the tables, and that which a turn makes them."""

        def query(connection: sqlite3.Connection) -> int:
            return tables.version_of(connection, str(self._path))

        with (
            self._troubles.translated(writing=False),
            self._access.reading() as run_query,
        ):
            return TableVersions(run_query(query), tables.SCHEMA_VERSION)

    def _stream(self, after: int, limit: int | None) -> Iterator[Record]:
        def query(after: int, count: int, connection: sqlite3.Connection) -> Page:
            if not tables.version_of(connection, str(self._path)):
                return Page((), 0)
            if not after:
                tables.refuse_hidden(connection, str(self._path))
            return tables.page_of(connection, after, count)

        def fetch(after: int, count: int) -> Page:
            with self._troubles.translated(writing=False):
                return run_query(partial(query, after, count))

        with self._access.reading() as run_query:
            yield from paged(fetch, after, limit)

    # --- writing ---

    @contextmanager
    def turn(self) -> Iterator[SqliteTurn]:
        """Hold the exclusive turn; appended records are durable on exit."""
        with (
            self._troubles.translated(writing=True),
            self._access.writing() as connection,
        ):
            turn = SqliteTurn(connection)
            try:
                yield turn
                turn.confirm()
            finally:
                turn.ended = True

    def while_waiting(self, chore: Chore) -> None:
        """Let this thread do some work while it waits for a turn; see `Patient`."""
        self._access.while_waiting(chore)

    def add_checkpoint(self, data: bytes) -> None:
        """Store a checkpoint durably; storing it again changes nothing."""
        with (
            self._troubles.translated(writing=True),
            self._access.writing() as connection,
        ):
            tables.insert_checkpoint(connection, data)

    # --- service tables ---

    def rows_beside(self, statement: Statement) -> list[tuple[Any, ...]]:
        """Return the rows of a query on the service tables; see `ServiceTables`."""

        def query(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
            if not tables.has_service_tables(
                connection, str(self._path), since=statement.since
            ):
                return []
            return connection.execute(*_query_of(statement)).fetchall()

        with (
            self._troubles.translated(writing=False),
            self._access.reading() as run_query,
        ):
            return run_query(query)

    def change_beside(self, statements: Sequence[Statement]) -> list[int]:
        """Run statements beside the log in one turn; see `ServiceTables`."""
        return self.change_read(lambda _: statements)

    def change_read(self, change: Callable[[Query], Sequence[Statement]]) -> list[int]:
        """Run statements that follow from what is read; see `ServiceTables`."""
        with (
            self._troubles.translated(writing=True),
            self._access.writing() as connection,
        ):

            def query(statement: Statement) -> list[tuple[Any, ...]]:
                return connection.execute(*_query_of(statement)).fetchall()

            return [
                connection.execute(*_query_of(one)).rowcount for one in change(query)
            ]

    # --- the cache ---

    def load_snapshot(self) -> bytes | None:
        """Return the latest snapshot; None if there is none that can be read."""
        try:
            return self._snapshot.read_bytes()
        except OSError:
            return None

    def save_snapshot(self, data: bytes) -> None:
        """Keep a snapshot in place of the one before, if it can be kept."""
        with suppress(OSError):
            self._replace_snapshot(data)

    def _replace_snapshot(self, data: bytes) -> None:
        """Write a draft, and put it in place; one at a time.

        All write the same draft, so that one that was killed leaves it to the next.
        """
        draft = Path(f"{self._snapshot}.draft")
        descriptor = open_beside(draft, self._path, os.O_WRONLY | os.O_APPEND)
        with os.fdopen(descriptor, "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(file.fileno()), draft.stat()):
                return  # Another process has just created it.
            file.truncate(0)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            draft.replace(self._snapshot)
        sync_folder(self._snapshot.parent)


def _query_of(statement: Statement) -> tuple[str, Mapping[str, Any]]:
    """Return a statement in SQLite's syntax."""
    names = {name: f":{name}" for name in statement.values}
    return statement.text.format(s="main", **names), statement.values


class SqliteTurn:
    """Reads and appends within one transaction.

    Args:
        connection: A connection in that transaction.

    Attributes:
        ended: Whether it is over; it reads and appends nothing any more.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.ended = False
        self._connection = connection
        self._last: Record | None = None
        self._length: int | None = None  # The last number, once it was read.

    def read(self, after: int) -> Iterator[Record]:
        """Return the records after a number, page by page."""
        return paged(self._page, after)

    def _page(self, after: int, count: int) -> Page:
        refuse_ended(ended=self.ended)
        page = tables.page_of(self._connection, after, count)
        self._length = page.last
        return page

    def append(self, records: Sequence[Record]) -> None:
        """Store the records that follow the last one."""
        refuse_ended(ended=self.ended)
        if not records:
            return
        if self._length is None:
            self._length = tables.last_of(self._connection)
        tables.insert(self._connection, records, self._length)
        self._last = records[-1]
        self._length = self._last.seq

    def checkpoints(self) -> list[bytes]:
        """Return every checkpoint, those of this turn too, in order."""
        refuse_ended(ended=self.ended)
        return tables.checkpoints_of(self._connection, tables.SCHEMA_VERSION)

    def add_checkpoint(self, data: bytes) -> None:
        """Store a checkpoint with the turn; storing it again changes nothing."""
        refuse_ended(ended=self.ended)
        tables.insert_checkpoint(self._connection, data)

    def answered(self, keys: Collection[str]) -> Mapping[str, StoredAnswer]:
        """Return the stored responses for some keys, by key."""
        refuse_ended(ended=self.ended)
        from modicum.storage import sqlite_tables

        return sqlite_tables.kept_for(self._connection, keys)

    def keep(self, answers: Sequence[StoredAnswer], *, forget_before: str) -> None:
        """Store responses, and delete some of those older than a time."""
        refuse_ended(ended=self.ended)
        from modicum.storage import sqlite_tables as sqlite_answers

        sqlite_answers.keep(self._connection, answers, forget_before)

    def confirm(self) -> None:
        """Read back the last appended record, before it is acknowledged."""
        if self._last is not None:
            tables.confirm(self._connection, self._last)
