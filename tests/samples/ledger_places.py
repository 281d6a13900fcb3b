"""Where a ledger of a test lives: its address, and its rows as they are stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg
from oracle.auditor import Row

from samples.postgres import Cluster


@dataclass(frozen=True)
class LedgerPlace:
    """A ledger of a test.

    Attributes:
        address: What `open_store` takes.
        rows: Reads the stored rows, in order, by no code of modicum's.
    """

    address: str
    rows: Callable[[], Iterable[Row]]


def sqlite_place(path: Path) -> LedgerPlace:
    """Return the place of a ledger in a file."""

    def rows() -> Iterator[Row]:
        with closing(sqlite3.connect(path, timeout=30)) as connection:
            if connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                yield from connection.execute(
                    "SELECT seq, payload, hash FROM events ORDER BY seq"
                )

    return LedgerPlace(str(path), rows)


def postgres_place(cluster: Cluster) -> LedgerPlace:
    """Return the place of a new ledger on a server."""
    address = cluster.new_ledger()
    server, _, ledger = address.partition("&modicum_ledger=")

    def rows() -> Iterator[Row]:
        table = f"modicum_{ledger}.events"
        with psycopg.connect(server) as connection:
            found = connection.execute("SELECT to_regclass(%s)", (table,)).fetchone()
            if found == (None,):
                return
            with connection.cursor(name="audit", binary=True) as cursor:
                cursor.execute(
                    f"SELECT seq, payload, hash FROM {table} ORDER BY seq".encode()
                )
                yield from cursor

    return LedgerPlace(address, rows)
