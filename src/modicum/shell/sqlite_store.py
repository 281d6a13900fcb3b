"""The ledger in one SQLite file.

Writers take turns by an exclusive lock on a sidecar file, then write in WAL mode
with full synchronization. A reader never writes a byte: it takes the lock shared,
reads the resting file as immutable, and if a killed writer left a write-ahead log
behind, reads a private copy, so that recovery happens to the copy.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from modicum.core.errors import (
    Code,
    ModicumError,
    Problem,
    UnavailableError,
    UsageError,
    VerificationError,
)
from modicum.ledger import Record

#: Marks the file as a modicum ledger ("modi"); `file` and `verify` look at it.
APPLICATION_ID = 0x6D6F6469
#: Version of the tables; the events carry a version of their own.
SCHEMA_VERSION = 1
#: How long to wait for the turn before giving up.
WAIT_SECONDS = 30.0

_SCHEMA = """
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    payload BLOB NOT NULL,
    hash TEXT NOT NULL
) STRICT
"""
_MAGIC = b"SQLite format 3\x00"


class SqliteStore:
    """A log in a SQLite file.

    Args:
        path: The file. It is made at the first turn if it is not there.
        wait_seconds: How long to wait for other writers.
    """

    def __init__(self, path: str | Path, *, wait_seconds: float = WAIT_SECONDS) -> None:
        # SQLite follows links; the log and the lock must lie beside the same file.
        self._path = Path(path).resolve()
        self._shown = str(path)
        self._lock_path = Path(f"{self._path}.lock")
        self._wait_seconds = wait_seconds

    @property
    def name(self) -> str:
        """The path of the file."""
        return self._shown

    def exists(self) -> bool:
        """Return whether the file is there and not empty."""
        try:
            return self._path.stat().st_size > 0 or bool(self._leftovers())
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._unreadable(error) from error

    # --- reading ---

    def read(self, after: int) -> Sequence[Record]:
        """Return the records after a number, without writing a byte.

        Raises:
            VerificationError: If the file is damaged or not a ledger.
            UnavailableError: If the lock cannot be had in time.
        """
        with self._shared(), self._resting_copy() as uri:
            try:
                connection = sqlite3.connect(uri, uri=True, isolation_level=None)
                with closing(connection):
                    if _is_blank(connection):
                        return []
                    self._check_identity(connection)
                    return _select(connection, after)
            except sqlite3.DatabaseError as error:
                raise self._damaged(error) from error

    @contextmanager
    def _resting_copy(self) -> Iterator[str]:
        """Yield the URI of a database that can be read without being written."""
        leftovers = self._leftovers()
        if not leftovers:
            yield f"file:{quote(str(self._path.absolute()))}?mode=ro&immutable=1"
            return
        with tempfile.TemporaryDirectory(prefix="modicum-") as folder:
            copy = Path(folder, "ledger.db")
            try:
                shutil.copyfile(self._path, copy)
                for suffix in leftovers:
                    shutil.copyfile(f"{self._path}{suffix}", f"{copy}{suffix}")
            except OSError as error:
                raise self._unreadable(error) from error
            yield f"file:{quote(str(copy))}"

    @contextmanager
    def _shared(self) -> Iterator[None]:
        """Hold the lock shared, if there is one to hold; never make it."""
        try:
            descriptor = os.open(self._lock_path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            yield  # A copied ledger that nobody writes to.
            return
        except OSError as error:
            raise self._unreadable(error) from error
        try:
            self._wait_for(descriptor, fcntl.LOCK_SH)
            yield
        finally:
            os.close(descriptor)

    # --- writing ---

    @contextmanager
    def turn(self) -> Iterator[_SqliteTurn]:
        """Hold the exclusive turn; what was appended is durable on exit.

        Raises:
            UnavailableError: If the turn cannot be had, or the disk refuses.
            VerificationError: If the file is damaged or not a ledger.
        """
        with self._exclusive():
            try:
                connection = sqlite3.connect(
                    self._path, isolation_level=None, timeout=self._wait_seconds
                )
            except sqlite3.Error as error:
                raise self._unwritable(error) from error
            with closing(connection):
                try:
                    created = self._prepare(connection)
                    connection.execute("BEGIN IMMEDIATE")
                    yield _SqliteTurn(connection)
                    connection.execute("COMMIT")
                except sqlite3.OperationalError as error:
                    if "locked" in str(error):  # By another program than modicum.
                        raise self._busy() from error
                    raise self._unwritable(error) from error
                except sqlite3.DatabaseError as error:
                    raise self._damaged(error) from error
            if created:
                _sync_folder(self._path.parent)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        try:
            descriptor = os.open(
                self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666
            )
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            self._wait_for(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _wait_for(self, descriptor: int, kind: int) -> None:
        deadline = time.monotonic() + self._wait_seconds
        pause = 0.001
        while True:
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise self._busy() from None
                time.sleep(pause)
                pause = min(pause * 2, 0.05)
            else:
                return

    def _prepare(self, connection: sqlite3.Connection) -> bool:
        """Make the tables if there are none; return whether they were made."""
        connection.execute("PRAGMA synchronous = FULL")
        created = _is_blank(connection)
        if not created:
            self._check_identity(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        if created:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute(_SCHEMA)
            connection.execute("COMMIT")
        self._check_identity(connection)
        return created

    # --- what can go wrong ---

    def _leftovers(self) -> tuple[str, ...]:
        """Return the endings of journals that a killed writer left beside the file."""
        return tuple(
            suffix
            for suffix in ("-wal", "-journal")
            if _size(Path(f"{self._path}{suffix}"))
        )

    def _check_identity(self, connection: sqlite3.Connection) -> None:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application != APPLICATION_ID:
            raise VerificationError(
                Problem(Code.NOT_A_LEDGER, f"{self._path} is not a modicum ledger")
            )
        if version != SCHEMA_VERSION:
            raise VerificationError(
                Problem(
                    Code.NOT_A_LEDGER,
                    f"{self._path} has table version {version}; this version of"
                    f" modicum reads {SCHEMA_VERSION}",
                    help="use the version of modicum that wrote it, or a newer one",
                )
            )

    def _damaged(self, error: sqlite3.Error) -> ModicumError:
        try:
            with self._path.open("rb") as file:
                is_database = file.read(len(_MAGIC)) == _MAGIC
        except OSError as unreadable:
            return self._unreadable(unreadable)
        if not is_database:
            return VerificationError(
                Problem(Code.NOT_A_LEDGER, f"{self._path} is not a modicum ledger")
            )
        return VerificationError(
            Problem(
                Code.LEDGER_BROKEN,
                f"the file {self._path} is damaged ({error})",
                help="restore a backup and compare its head",
            )
        )

    def _busy(self) -> UnavailableError:
        return UnavailableError(
            Problem(
                Code.LEDGER_BUSY,
                f"{self._path} was busy for {self._wait_seconds:g} seconds",
                help="try again",
            )
        )

    def _unwritable(self, error: Exception) -> UnavailableError:
        reason = str(getattr(error, "strerror", None) or error).lower()
        return UnavailableError(
            Problem(
                Code.LEDGER_UNWRITABLE,
                f"cannot write {self._path}: {reason}",
                help="make its folder first"
                if isinstance(error, FileNotFoundError)
                else "nothing is acknowledged that was not stored; try again, the"
                " same id is one release",
            )
        )

    def _unreadable(self, error: OSError) -> UsageError:
        reason = (error.strerror or "it cannot be read").lower()
        return UsageError(
            Problem(Code.LEDGER_MISSING, f"cannot read {self._path}: {reason}")
        )


class _SqliteTurn:
    """Reads and appends within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def read(self, after: int) -> Sequence[Record]:
        """Return the records after a number."""
        return _select(self._connection, after)

    def append(self, records: Sequence[Record]) -> None:
        """Insert the records; a number that is taken already is an error."""
        self._connection.executemany(
            "INSERT INTO events (seq, payload, hash) VALUES (?, ?, ?)",
            [(record.seq, record.payload, record.hash) for record in records],
        )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _is_blank(connection: sqlite3.Connection) -> bool:
    """Return whether nothing was ever stored, as after a kill while being made."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    marked = connection.execute("PRAGMA application_id").fetchone()[0]
    return bool(tables == 0 and marked == 0)


def _select(connection: sqlite3.Connection, after: int) -> list[Record]:
    rows = connection.execute(
        "SELECT seq, payload, hash FROM events WHERE seq > ? ORDER BY seq", (after,)
    )
    return [
        Record(seq, payload if isinstance(payload, bytes) else b"", str(hash_))
        for seq, payload, hash_ in rows
    ]


def _sync_folder(folder: Path) -> None:
    """Make the file's name durable, not only its contents."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
