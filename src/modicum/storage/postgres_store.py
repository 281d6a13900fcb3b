"""The ledger in PostgreSQL, for teams and for several servers.

A turn is a transaction that holds the ledger's advisory lock, which is granted in the
order of arrival, and its head row. One connection serves the turns, another one serves
parallel reads; a lost connection is replaced.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, TypeVar

import psycopg
from psycopg import Connection, errors
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.sql import SQL, Composed, Identifier, Placeholder

from modicum.api.ports.storage import StoredAnswer, TableVersions
from modicum.core.errors import ModicumError
from modicum.ledger import Record
from modicum.storage.fair_lock import FairLock
from modicum.storage.idle_work import Chore, IdleWork
from modicum.storage.log_pages import Page, paged, prefetched, refuse_ended
from modicum.storage.postgres_errors import (
    broken,
    is_outside,
    out_of_turn,
    translated,
)
from modicum.storage.postgres_tables import (
    SCHEMA_VERSION,
    AnswerStatements,
    Statements,
    TransactionStart,
)
from modicum.storage.postgres_url import Address, parse_address
from modicum.storage.service_tables import Query, Statement
from modicum.system.clock import SystemClock, refuse_skew

T = TypeVar("T")

_NOW = SystemClock().now
#: Timeout for the turn.
WAIT_SECONDS = 30.0


class PostgresStore:
    """A log in a PostgreSQL database.

    Args:
        url: `postgresql://…`; `modicum_ledger=NAME` names one of several ledgers.
            The tables are made at the first turn if they are not there.
        wait_seconds: How long to wait for other writers.
        wall: Returns this machine's time of day.

    Raises:
        UsageError: If the URL is malformed.
    """

    def __init__(
        self,
        url: str,
        *,
        wait_seconds: float = WAIT_SECONDS,
        wall: Callable[[], str] = _NOW,
    ) -> None:
        self._wall = wall
        self._address = parse_address(url)
        self._wait_seconds = wait_seconds
        self._statements = Statements(self._address, wait_seconds)
        self._answers = AnswerStatements(self._address)
        self._turn_lock = FairLock()
        self._writer = Line(self._address)
        self._read_lock = threading.Lock()
        self._reader = Line(self._address)
        self._meanwhile = IdleWork()
        self._last_known = 0  # The number of the last record when our last turn ended.
        self._is_shared = False

    @property
    def name(self) -> str:
        """The URL without its password."""
        return self._address.name

    def exists(self) -> bool:
        """Return whether the ledger's tables are there."""
        return self._query(self._statements.exists)

    def close(self) -> None:
        """Close the connections, that of a turn after the turn."""
        with self._read_lock:
            self._reader.close()
        with self._turn_of_thread():
            self._writer.close()

    # --- reading ---

    def read(self, after: int, limit: int | None = None) -> Iterator[Record]:
        """Return the records after a number, page by page."""

        def fetch(after: int, count: int) -> Page:
            def query(connection: Connection[Any]) -> Page:
                return self._statements.page(connection, after, count)

            return self._query(query, missing=Page((), 0))

        return prefetched(paged(fetch, after, limit))

    def record(self, seq: int) -> Record | None:
        """Return the record with a number, or None if there is none."""
        found = next(self.read(seq - 1, 1), None)
        return found if found is not None and found.seq == seq else None

    def checkpoints(self) -> list[bytes]:
        """Return every checkpoint, in the order in which they were added."""
        return self._query(self._statements.checkpoints, missing=[])

    def table_versions(self) -> TableVersions:
        """Return the version of the tables, and that which a turn makes them."""
        stored = self._query(self._statements.version, missing=0)
        return TableVersions(stored, SCHEMA_VERSION)

    def _query(
        self, query: Callable[[Connection[Any]], T], *, missing: T | None = None
    ) -> T:
        """Return the answer of a query; another value if there are no tables."""
        with self._read_lock, translated(self._address):
            try:
                return self._reader.retrying(query)
            except (errors.UndefinedTable, errors.InvalidSchemaName):
                if missing is None:
                    raise
                return missing

    # --- writing ---

    @contextmanager
    def turn(self) -> Iterator[PostgresTurn]:
        """Hold the exclusive turn; appended records are durable on exit."""
        with self._transaction() as (connection, (last, seconds)):
            self._refuse_skew(seconds)
            turn = PostgresTurn(self._statements, self._answers, connection, last)
            self._is_shared = last != self._last_known
            try:
                yield turn
            finally:
                turn.ended = True
                self._last_known = turn.last

    def refuse_skew(self) -> None:
        """Refuse a clock of this machine that is far from the server's."""
        self._refuse_skew(self._query(self._statements.seconds))

    def _refuse_skew(self, seconds: float) -> None:
        own = datetime.fromisoformat(self._wall()).timestamp()
        refuse_skew(self._address.name, own, seconds)

    def while_waiting(self, chore: Chore) -> None:
        """Let this thread do some work while it waits for a turn; see `Patient`."""
        self._meanwhile.chore = chore

    def add_checkpoint(self, data: bytes) -> None:
        """Store a checkpoint durably; storing it again changes nothing."""
        with self._transaction() as (connection, _):
            self._statements.add_checkpoint(connection, data)

    @contextmanager
    def _transaction(self) -> Iterator[tuple[Connection[Any], TransactionStart]]:
        """Hold the turn; yield its connection and its initial state.

        The transaction ends on the same connection that it started on: a new one would
        commit nothing, silently.
        """
        with self._turn_of_thread():
            try:
                with translated(self._address):
                    connection, started = self._started()
                    yield connection, started
                with translated(self._address, committing=True):
                    self._commit(connection)
            except BaseException:
                self._writer.roll_back()
                raise

    @contextmanager
    def _turn_of_thread(self) -> Iterator[None]:
        if not self._turn_lock.acquire(self._wait_seconds):
            raise out_of_turn(self._address, self._wait_seconds)
        try:
            yield
        finally:
            self._turn_lock.release()

    def _started(self) -> tuple[Connection[Any], TransactionStart]:
        """Begin a turn; make the tables first if they are not there."""

        def begin(
            connection: Connection[Any],
        ) -> tuple[Connection[Any], TransactionStart | None]:
            return connection, self._statements.start_turn(connection)

        try:
            connection, found = self._awaited(lambda: self._writer.retrying(begin))
        except (errors.UndefinedTable, errors.InvalidSchemaName):
            connection, found = self._writer.connection(), None
        if found is None:
            self._writer.roll_back()
            self._statements.migrate(connection)
            found = self._statements.start_turn(connection)
        if found is None:
            raise broken(self._address, "its tables cannot be upgraded")
        return connection, found

    def _awaited(self, begin: Callable[[], T]) -> T:
        """Return the result of starting a turn; do other work while others write."""
        if self._is_shared and self._meanwhile.chore is not None:
            return self._meanwhile.during(begin)
        return begin()

    def _commit(self, connection: Connection[Any]) -> None:
        """Commit; a transaction that failed inside cannot end as if it had not."""
        answer = connection.execute("COMMIT").statusmessage
        if answer != "COMMIT":
            raise broken(self._address, f"it answered COMMIT with {answer}")

    # --- service tables ---

    def rows_beside(self, statement: Statement) -> list[tuple[Any, ...]]:
        """Return the rows of a query on the service tables; see `ServiceTables`."""

        def query(connection: Connection[Any]) -> list[tuple[Any, ...]]:
            return connection.execute(*self._composed(statement)).fetchall()

        return self._query(query, missing=[])

    def change_beside(self, statements: Sequence[Statement]) -> list[int]:
        """Run statements beside the log in one turn; see `ServiceTables`."""
        return self.change_read(lambda _: statements)

    def change_read(self, change: Callable[[Query], Sequence[Statement]]) -> list[int]:
        """Run statements that follow from what is read; see `ServiceTables`."""
        with self._transaction() as (connection, _):

            def query(statement: Statement) -> list[tuple[Any, ...]]:
                return connection.execute(*self._composed(statement)).fetchall()

            return [
                connection.execute(*self._composed(one)).rowcount
                for one in change(query)
            ]

    def _composed(self, statement: Statement) -> tuple[Composed, Mapping[str, Any]]:
        """Return a statement in PostgreSQL's syntax."""
        names = {name: Placeholder(name) for name in statement.values}
        schema = Identifier(self._address.schema)
        return SQL(statement.text).format(s=schema, **names), statement.values

    # --- the cache ---

    def load_snapshot(self) -> bytes | None:
        """Return the latest snapshot; None if there is none that can be read."""
        with suppress(ModicumError):
            return self._query(self._statements.load_snapshot)
        return None

    def save_snapshot(self, data: bytes) -> None:
        """Keep a snapshot in place of the one before, if it can be kept."""

        def query(connection: Connection[Any]) -> None:
            self._statements.save_snapshot(connection, data)

        with suppress(ModicumError):
            self._query(query)


class PostgresTurn:
    """Reads and appends within one transaction.

    Args:
        statements: The statements on the ledger.
        answers: The statements on stored responses.
        connection: A connection in that transaction.
        last: The number of the last record.

    Attributes:
        ended: Whether it is over; it reads and appends nothing any more.
        last: The number of the last record.
    """

    def __init__(
        self,
        statements: Statements,
        answers: AnswerStatements,
        connection: Connection[Any],
        last: int,
    ) -> None:
        self.ended = False
        self._statements = statements
        self._answers = answers
        self._connection = connection
        self.last = last

    def read(self, after: int) -> Iterator[Record]:
        """Return the records after a number, page by page."""
        return paged(self._page, after)

    def _page(self, after: int, count: int) -> Page:
        refuse_ended(ended=self.ended)
        return self._statements.page(self._connection, after, count)

    def append(self, records: Sequence[Record]) -> None:
        """Store the records that follow the last one."""
        refuse_ended(ended=self.ended)
        self._statements.append(self._connection, self.last, records)
        self.last += len(records)

    def checkpoints(self) -> list[bytes]:
        """Return every checkpoint, those of this turn too, in order."""
        refuse_ended(ended=self.ended)
        return self._statements.checkpoints(self._connection)

    def add_checkpoint(self, data: bytes) -> None:
        """Store a checkpoint with the turn; storing it again changes nothing."""
        refuse_ended(ended=self.ended)
        self._statements.add_checkpoint(self._connection, data)

    def answered(self, keys: Collection[str]) -> Mapping[str, StoredAnswer]:
        """Return the stored responses for some keys, by key."""
        refuse_ended(ended=self.ended)
        return self._answers.kept_for(self._connection, keys)

    def keep(self, answers: Sequence[StoredAnswer], *, forget_before: str) -> None:
        """Store responses, and delete some of those older than a time."""
        refuse_ended(ended=self.ended)
        self._answers.keep(self._connection, answers, forget_before)


class Line:
    """One connection, opened on demand and replaced when it is lost.

    It is closed at the latest when it is no longer referenced.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: Connection[Any] | None = None
        self._closing: Callable[[], object] | None = None

    def connection(self) -> Connection[Any]:
        """Return the connection."""
        if self._connection is None or self._connection.closed:
            self.close()
            self._connection = psycopg.connect(
                make_conninfo("", **self._address.parameters),
                autocommit=True,
                prepare_threshold=None,  # For connection poolers.
            )
            self._closing = weakref.finalize(self, self._connection.close)
        return self._connection

    def retrying(self, work: Callable[[Connection[Any]], T]) -> T:
        """Return the result of some work; repeat it if the connection had been lost.

        The work must be repeatable.
        """
        is_old = self._connection is not None
        try:
            return work(self.connection())
        except psycopg.Error as error:
            if not is_old or not is_outside(error):
                raise
            self.close()
            return work(self.connection())

    def roll_back(self) -> None:
        """Roll back the open transaction, or else drop the connection."""
        connection = self._connection
        if connection is None:
            return
        try:
            if connection.info.transaction_status != TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
        except psycopg.Error:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        closing, self._closing, self._connection = self._closing, None, None
        if closing is not None:
            with suppress(psycopg.Error):
                closing()
