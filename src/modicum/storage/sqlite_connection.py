"""Two ways to access a ledger's file: for one command, and for a server.

A command opens the file for each turn and leaves it at rest, with no write-ahead log
beside it. When it only reads, it writes no byte: it reads the resting file as
immutable; or, if a killed writer left a write-ahead log behind, a private copy, so
that recovery happens to the copy; or, while a server has the file open, the file as
SQLite shares it.

A server keeps one connection for its turns and one for reading between turns, and marks
this with a lock, until it closes them.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    suppress,
)
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import quote

from modicum.storage.idle_work import Chore
from modicum.storage.sqlite_errors import linked, replaced
from modicum.storage.sqlite_lock import SqliteLock, create_private
from modicum.storage.sqlite_tables import (
    SCHEMA_VERSION,
    bring_up_to_date,
    changes_of,
    refuse_other_tables,
    schema_state,
    stored_version,
    version_of,
)

T = TypeVar("T")
Query = Callable[[sqlite3.Connection], T]


class QueryRunner(Protocol):
    """Runs queries, one after the other, on one ledger."""

    def __call__(self, query: Query[T]) -> T:
        """Return the query's answer."""
        ...


class Access(Protocol):
    """A way to access the file; passes exceptions of SQLite and files through."""

    def reading(self) -> AbstractContextManager[QueryRunner]:
        """Yield a runner of queries without a turn."""
        ...

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """Hold the turn, in a transaction that is committed durably on exit."""
        ...

    def close(self) -> None:
        """Close what is kept open."""
        ...

    def file(self) -> os.stat_result | None:
        """Return the status of the file; None if there is none."""
        ...

    def while_waiting(self, chore: Chore) -> None:
        """Let this thread do some work while it waits for the turn."""
        ...


class OneShot:
    """Opens the file when it is needed, and leaves it at rest.

    Args:
        path: The file, links resolved.
        wait_seconds: How long to wait for other writers.
    """

    def __init__(self, path: Path, wait_seconds: float) -> None:
        self._path = path
        self._wait_seconds = wait_seconds
        self._turns = SqliteLock(path, wait_seconds)

    @contextmanager
    def reading(self) -> Iterator[QueryRunner]:
        """Yield a runner of queries without a turn, and without writing a byte."""
        with ExitStack() as kept:
            connection: sqlite3.Connection | None = None

            def run(query: Query[T]) -> T:
                nonlocal connection
                if connection is not None:
                    return query(connection)
                with self._turns.reading() as is_live:
                    leftovers = leftovers_of(self._path)
                    if not leftovers:  # There is no writer while readers share it.
                        with closing(self._connect("?mode=ro&immutable=1")) as resting:
                            return query(resting)
                    connection = kept.enter_context(
                        closing(self._connect("?mode=ro"))
                        if is_live and Path(f"{self._path}-shm").exists()
                        else self._copied(leftovers)
                    )
                    return query(connection)

            yield run

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Hold the turn, in a transaction that is committed durably on exit."""
        with self._turns.writing():
            refuse_links(self._path, self.file())
            with closing(connect(self._path, self._wait_seconds)) as connection:
                created = prepare(connection, self._path)
                yield connection
                connection.execute("COMMIT")
            if created:
                sync_folder(self._path.parent)

    def close(self) -> None:
        """Do nothing: nothing is kept open."""

    def file(self) -> os.stat_result | None:
        """Return the status of the file; None if there is none."""
        return _file(self._path)

    def while_waiting(self, chore: Chore) -> None:
        """Do nothing: a read meanwhile would queue behind this thread itself."""

    def _connect(self, how: str) -> sqlite3.Connection:
        return _open(f"file:{quote(str(self._path))}{how}")

    @contextmanager
    def _copied(self, leftovers: tuple[str, ...]) -> Iterator[sqlite3.Connection]:
        """Yield a private copy, in which SQLite may recover leftover files."""
        with tempfile.TemporaryDirectory(prefix="modicum-") as folder:
            copy = Path(folder, "ledger.db")
            for suffix in ("", *leftovers):
                shutil.copyfile(f"{self._path}{suffix}", f"{copy}{suffix}")
            with closing(_open(f"file:{quote(str(copy))}")) as connection:
                yield connection


class PersistentAccess:
    """Keeps the file open between turns; many threads may use it.

    The turn guards the connection that writes, a lock the one that reads: neither
    waits for the other.

    Args:
        path: The file, links resolved.
        wait_seconds: How long to wait for other writers.
    """

    def __init__(self, path: Path, wait_seconds: float) -> None:
        self._path = path
        self._wait_seconds = wait_seconds
        self._turns = SqliteLock(path, wait_seconds)
        self._writer: _OpenConnection | None = None
        self._reader: _OpenConnection | None = None
        self._reading = threading.Lock()

    @contextmanager
    def reading(self) -> Iterator[QueryRunner]:
        """Yield a runner of queries parallel to the turns; no turn waits for them."""
        yield self._query

    def _query(self, query: Query[T]) -> T:
        with self._reading:
            self.file()
            if self._reader is None:
                self._path.stat()  # Without a file, reading creates none.
                self._reader = self._kept()
            return query(self._reader.connection)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Hold the turn, in a transaction that is committed durably on exit."""
        with self._turns.writing():
            refuse_links(self._path, self.file())
            if self._writer is None:
                self._writer = self._kept()
            connection = self._writer.connection
            try:
                created = self._writer.begin()
                yield connection
                connection.execute("COMMIT")
            except BaseException as error:
                self._end_badly(self._writer, error)
                raise
            if created:
                sync_folder(self._path.parent)

    def _end_badly(self, writer: _OpenConnection, error: BaseException) -> None:
        """Roll back what was not committed; reconnect where SQLite failed."""
        try:
            if writer.connection.in_transaction:
                writer.connection.execute("ROLLBACK")
        except sqlite3.Error as worse:
            error = worse
            raise
        finally:
            if isinstance(error, sqlite3.Error):
                self._writer = None
                writer.close()

    def close(self) -> None:
        """Close the connections, in a turn, since the last one tidies up."""
        if self._reader is None and self._writer is None:
            return
        with ExitStack() as resources:
            with suppress(FileNotFoundError):  # The folder is gone, and all readers.
                resources.enter_context(self._turns.writing())
            resources.enter_context(self._reading)
            for kept in (self._reader, self._writer):
                if kept is not None:
                    kept.close()
            self._reader = self._writer = None

    def while_waiting(self, chore: Chore) -> None:
        """Let this thread do some work while it waits for the turn."""
        self._turns.meanwhile.chore = chore

    def _kept(self) -> _OpenConnection:
        refuse_links(self._path, _file(self._path))
        return _OpenConnection(self._path, self._turns, self._wait_seconds)

    def file(self) -> os.stat_result | None:
        """Return the status of the file; None if there is none.

        A file is refused that was put in place of the one that is open, until closed.
        The write-ahead log that lies there belongs to the file before: used with
        another one, it would destroy it.
        """
        # The open connection is checked before the file, and again: another thread may
        # create both, or close one, at the same time.
        before = (self._reader, self._writer)
        found = _file(self._path)
        for kept, now in zip(before, (self._reader, self._writer), strict=True):
            if kept is not None and kept is now and not kept.is_in(found):
                raise replaced(self._path)
        return found


class _OpenConnection:
    """A connection that stays open, and is marked as such.

    Opening it needs no turn: it changes nothing of the file itself. Closing may,
    since the last one to close moves the write-ahead log into the file.
    """

    def __init__(self, path: Path, turns: SqliteLock, wait_seconds: float) -> None:
        self._path = path
        self._message = ExitStack()
        self._message.callback(turns.mark_live())
        try:
            self.connection = connect(path, wait_seconds)
            self._file = _file(path)
            self._approved: tuple[object, ...] | None = None
            #: The state of the file when committed tables were last accepted.
            self._changes: int | None = None
        except BaseException:
            self._message.close()
            raise

    def begin(self) -> bool:
        """Start a transaction, as `prepare` does; most of that is done only once.

        Tables that look as they did when they were accepted are accepted now; so are
        those that no other connection can have changed since.
        """
        created = False
        if self._approved is not None:
            self.connection.execute("BEGIN IMMEDIATE")
            changes = changes_of(self.connection)
            if changes == self._changes:
                return False
            if schema_state(self.connection) == self._approved:
                self._changes = changes
                return False
            if stored_version(self.connection) == SCHEMA_VERSION:
                refuse_other_tables(self.connection, str(self._path))
            else:
                self.connection.execute("ROLLBACK")
                self._approved = None
        if self._approved is None:
            created = prepare(self.connection, self._path)
        self._approved = schema_state(self.connection)
        self._changes = None  # The new tables may be rolled back.
        return created

    def is_in(self, found: os.stat_result | None) -> bool:
        """Return whether the found file is the open one."""
        if found is None or self._file is None:
            return found is self._file
        return os.path.samestat(found, self._file)

    def close(self) -> None:
        """Close the connection, and then take the message back.

        SQLite leaves the write-ahead log where it is if the file was replaced.
        """
        with self._message:
            self.connection.close()


def connect(path: Path, wait_seconds: float) -> sqlite3.Connection:
    """Return a connection that may write; the file is made if it is not there.

    Its other files get its rights from SQLite.
    """
    with suppress(OSError):  # It is there, or SQLite reports the cause.
        create_private(path)
    return sqlite3.connect(
        path, isolation_level=None, timeout=wait_seconds, check_same_thread=False
    )


def prepare(connection: sqlite3.Connection, path: Path) -> bool:
    """Begin a transaction on tables that are up to date."""
    connection.execute("PRAGMA synchronous = FULL")
    version = version_of(connection, str(path))  # Before a byte is changed.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    if version != SCHEMA_VERSION:
        bring_up_to_date(connection, str(path))
    refuse_other_tables(connection, str(path))
    return version == 0


def leftovers_of(path: Path) -> tuple[str, ...]:
    """Return the endings of journals that lie beside the file and are not empty."""
    return tuple(
        suffix for suffix in ("-wal", "-journal") if _size(Path(f"{path}{suffix}"))
    )


def refuse_links(path: Path, found: os.stat_result | None) -> None:
    """Refuse a file with several names: each would have separate locks and logs."""
    if found is not None and found.st_nlink > 1:
        raise linked(path)


def sync_folder(folder: Path) -> None:
    """Make the file's name durable, not only its contents."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _open(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)


def _file(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _size(path: Path) -> int:
    found = _file(path)
    return 0 if found is None else found.st_size
