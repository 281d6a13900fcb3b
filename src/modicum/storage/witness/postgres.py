"""A witness in a PostgreSQL database other than that of the ledger."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import Connection, errors
from psycopg.sql import SQL, Composed, Identifier

from modicum.storage.postgres_errors import error_of
from modicum.storage.postgres_store import Line
from modicum.storage.postgres_url import parse_address
from modicum.storage.witness.heads import unreachable
from modicum.system.clock import seconds

T = TypeVar("T")

#: A turn of the ledger waits for the witness, but not for long.
_OPTIONS = "-c synchronous_commit=on -c statement_timeout=10s"
_SELECT: LiteralString = """
    SELECT (SELECT line FROM {s}.head), current_setting('fsync'),
        extract(epoch FROM clock_timestamp())::float8
"""
_UPDATE: LiteralString = "UPDATE {s}.head SET line = %(new)s WHERE line = %(known)s"
_INSERT: LiteralString = """
    INSERT INTO {s}.head (line) VALUES (%(new)s) ON CONFLICT DO NOTHING
"""
_MISSING = (errors.UndefinedTable, errors.InvalidSchemaName)


class PostgresWitness:
    """A table with one row; it is made when the first head is kept.

    Args:
        url: `postgresql://…`; `modicum_ledger=NAME` names one of several ledgers.

    Attributes:
        ahead: By how many seconds its clock was ahead of this machine's when it
            answered last; None before that.

    Raises:
        UsageError: If the URL is malformed.
    """

    def __init__(self, url: str) -> None:
        found = parse_address(url)
        options = f"{found.parameters.get('options', '')} {_OPTIONS}".strip()
        self._address = replace(
            found, parameters=found.parameters | {"options": options}
        )
        self._schema = Identifier(f"{found.schema}_witness")
        self._lock = threading.Lock()
        self._line = Line(self._address)
        self.ahead: float | None = None

    @property
    def name(self) -> str:
        """Return the URL without its password."""
        return self._address.name

    @property
    def kind(self) -> str:
        """Return `postgresql`."""
        return "postgresql"

    def is_beside(self, ledger: str) -> bool:
        """Return whether it is in the database of a ledger."""
        if "://" not in ledger:
            return False
        other = parse_address(ledger)
        return all(
            self._address.parameters.get(key) == other.parameters.get(key)
            for key in ("host", "hostaddr", "port", "dbname", "service")
        )

    def latest(self) -> bytes | None:
        """Return the line; None if there is no table, or no row."""

        def query(connection: Connection[Any]) -> bytes | None:
            select = self._sql(_SELECT)
            try:
                (row,) = connection.execute(select).fetchall()
            except _MISSING:
                return None
            line, fsync, there = row
            if line is not None and fsync != "on":
                raise unreachable(self.name, "it runs with fsync off")
            self.ahead = there - seconds()
            return None if line is None else bytes(line)

        return self._query(query)

    def kept(self) -> list[bytes]:
        """Return nothing: it has the last line only."""
        return []

    def replace(self, known: bytes | None, new: bytes) -> bool:
        """Update the row, or insert the first one."""

        def query(connection: Connection[Any]) -> bool:
            statement = self._sql(_INSERT if known is None else _UPDATE)
            values = {"new": new, "known": known}
            try:
                return connection.execute(statement, values).rowcount == 1
            except _MISSING:
                if known is not None:
                    return False
            self._make(connection)
            return connection.execute(statement, values).rowcount == 1

        return self._query(query)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._line.close()

    def _make(self, connection: Connection[Any]) -> None:
        with connection.transaction():
            lock = "SELECT pg_advisory_xact_lock(%s)"
            connection.execute(lock, (self._address.lock,))
            connection.execute(self._sql("CREATE SCHEMA IF NOT EXISTS {s}"))
            table = self._sql(
                "CREATE TABLE IF NOT EXISTS {s}.head (line bytea NOT NULL,"
                " one boolean PRIMARY KEY DEFAULT true CHECK (one))"
            )
            connection.execute(table)

    def _query(self, query: Callable[[Connection[Any]], T]) -> T:
        with self._lock:
            try:
                return self._line.retrying(query)
            except psycopg.Error as error:
                reason = error_of(self._address, error).problems[0].message
                raise unreachable(self.name, reason) from error

    def _sql(self, text: LiteralString) -> Composed:
        return SQL(text).format(s=self._schema)
