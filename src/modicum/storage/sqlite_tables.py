"""The tables of a ledger in SQLite: their versions, and their statements.

Table versions are steps that are never changed once released. Version 1 had the log
only; version 2 added checkpoints, version 3 the service tables, version 4 the access
trail. A file of an older
version is read as it is, and migrated in the transaction of the next turn. The service
tables may be changed and deleted from; the rest may not.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence

from modicum.api.ports.storage import StoredAnswer
from modicum.core.errors import Code, Problem, VerificationError
from modicum.ledger import Record
from modicum.storage.log_pages import PAGE_BYTES, Page, refuse_gap
from modicum.storage.service_tables import FORGOTTEN_MAX

#: Marks the file as a modicum ledger ("modi"); `file` and `verify` look at it.
APPLICATION_ID = 0x6D6F6469

_STEPS: Sequence[Sequence[str]] = (
    (
        f"PRAGMA application_id = {APPLICATION_ID}",
        """
        CREATE TABLE events (
            seq INTEGER PRIMARY KEY,
            payload BLOB NOT NULL,
            hash TEXT NOT NULL
        ) STRICT
        """,
    ),
    (
        """
        CREATE TABLE checkpoints (
            id INTEGER PRIMARY KEY,
            data BLOB NOT NULL UNIQUE
        ) STRICT
        """,
    ),
    (
        """
        CREATE TABLE answers (
            key TEXT NOT NULL PRIMARY KEY,
            digest TEXT NOT NULL,
            answer BLOB NOT NULL,
            at TEXT NOT NULL
        ) STRICT
        """,
        "CREATE INDEX answers_by_time ON answers (at)",
        """
        CREATE TABLE tokens (
            id TEXT NOT NULL PRIMARY KEY,
            digest TEXT NOT NULL UNIQUE,
            name TEXT NOT NULL,
            actor TEXT NOT NULL,
            kind TEXT NOT NULL,
            grants TEXT NOT NULL,
            created_by TEXT NOT NULL,
            created_at TEXT NOT NULL,
            expires_at TEXT NOT NULL,
            revoked_at TEXT NOT NULL
        ) STRICT
        """,
        """
        CREATE TABLE sessions (
            digest TEXT NOT NULL PRIMARY KEY,
            identity TEXT NOT NULL,
            csrf TEXT NOT NULL,
            created_at TEXT NOT NULL,
            expires_at TEXT NOT NULL
        ) STRICT
        """,
        "CREATE INDEX sessions_by_end ON sessions (expires_at)",
    ),
    (
        """
        CREATE TABLE trail (
            seq INTEGER PRIMARY KEY,
            payload BLOB NOT NULL,
            hash TEXT NOT NULL
        ) STRICT
        """,
        """
        CREATE TABLE trail_marks (
            name TEXT NOT NULL PRIMARY KEY,
            value TEXT NOT NULL,
            holder TEXT NOT NULL,
            until TEXT NOT NULL
        ) STRICT
        """,
    ),
)
#: What each version adds to a file, besides statistics of SQLite: type, name, table.
_ADDED = (
    {("table", "events", "events")},
    {
        ("table", "checkpoints", "checkpoints"),
        ("index", "sqlite_autoindex_checkpoints_1", "checkpoints"),
    },
    {
        ("table", "answers", "answers"),
        ("index", "sqlite_autoindex_answers_1", "answers"),
        ("index", "answers_by_time", "answers"),
        ("table", "tokens", "tokens"),
        ("index", "sqlite_autoindex_tokens_1", "tokens"),
        ("index", "sqlite_autoindex_tokens_2", "tokens"),
        ("table", "sessions", "sessions"),
        ("index", "sqlite_autoindex_sessions_1", "sessions"),
        ("index", "sessions_by_end", "sessions"),
    },
    {
        ("table", "trail", "trail"),
        ("table", "trail_marks", "trail_marks"),
        ("index", "sqlite_autoindex_trail_marks_1", "trail_marks"),
    },
)
#: The contents of a file of each version: the sum of all additions.
_CONTENTS = [set().union(*_ADDED[:count]) for count in range(1, len(_ADDED) + 1)]
#: Version of the tables; the events have a separate version.
SCHEMA_VERSION = len(_STEPS)


def is_blank(connection: sqlite3.Connection) -> bool:
    """Return whether nothing was ever stored, as after a kill while being made."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    marked = connection.execute("PRAGMA application_id").fetchone()[0]
    return bool(tables == 0 and marked == 0)


def version_of(connection: sqlite3.Connection, name: str) -> int:
    """Return the table version of a ledger; 0 if it is blank."""
    if is_blank(connection):
        return 0
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION_ID:
        raise not_a_ledger(name)
    version = stored_version(connection)
    if not 1 <= version <= SCHEMA_VERSION:
        raise VerificationError(
            Problem(
                Code.NOT_A_LEDGER,
                f"{name} has table version {version}; this version of modicum reads"
                f" 1 to {SCHEMA_VERSION}",
                help="use the version of modicum that wrote it, or a newer one",
                places=(name,),
            )
        )
    _refuse_additions(connection, name, version)
    return version


def has_service_tables(
    connection: sqlite3.Connection, name: str, *, since: int = 3
) -> bool:
    """Return whether a ledger has the tables beside the log; older ones do not."""
    return version_of(connection, name) >= since


def stored_version(connection: sqlite3.Connection) -> int:
    """Return the table version of a file; 0 if it has none."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _refuse_additions(connection: sqlite3.Connection, name: str, version: int) -> None:
    """Refuse a file with more than a ledger's tables: a trigger could drop entries."""
    found = connection.execute(
        "SELECT type, name, tbl_name FROM sqlite_master"
        " WHERE name NOT LIKE 'sqlite_stat%'"
    )
    if set(found) != _CONTENTS[version - 1]:
        raise _broken(
            name, "it has tables, views or triggers that do not belong to a ledger"
        )


def refuse_other_tables(connection: sqlite3.Connection, name: str) -> None:
    """Refuse tables that are not made as modicum makes them, before they are written.

    Raises:
        VerificationError: If they are not.
    """
    version = version_of(connection, name)
    made = {
        _words(statement)
        for step in _STEPS[:version]
        for statement in step
        if "CREATE" in statement
    }
    found = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
    if not made.issubset({_words(sql) for (sql,) in found}):
        raise _broken(name, "its tables differ from those of modicum")


def schema_state(connection: sqlite3.Connection) -> tuple[object, ...]:
    """Return all that `refuse_other_tables` looks at; equal looks, equal answer."""
    return (
        stored_version(connection),
        connection.execute("PRAGMA application_id").fetchone(),
        connection.execute(
            "SELECT type, name, tbl_name, sql FROM sqlite_master"
        ).fetchall(),
    )


def changes_of(connection: sqlite3.Connection) -> int:
    """Return a number that differs once another connection changed the file."""
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def _words(statement: str) -> str:
    return " ".join(statement.split())


def not_a_ledger(name: str) -> VerificationError:
    """Return the mistake of a file that is something else."""
    return VerificationError(
        Problem(Code.NOT_A_LEDGER, f"{name} is not a modicum ledger", places=(name,))
    )


def bring_up_to_date(connection: sqlite3.Connection, name: str) -> None:
    """Make the tables that are missing, within the transaction that is open."""
    version = version_of(connection, name)
    if version == SCHEMA_VERSION:
        return
    for step in _STEPS[version:]:
        for statement in step:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _broken(name: str, why: str) -> VerificationError:
    return VerificationError(
        Problem(
            Code.LEDGER_BROKEN,
            f"the file {name} is damaged: {why}",
            help="restore a backup and compare its head",
            places=(name,),
        )
    )


def page_of(connection: sqlite3.Connection, after: int, count: int) -> Page:
    """Return the next records after a number."""
    rows = connection.execute(
        "SELECT seq, payload, hash FROM events WHERE seq > ? ORDER BY seq LIMIT ?",
        (after, count),
    )
    records: list[Record] = []
    size = 0
    is_all = True  # Then the end of the log need not be queried.
    for seq, payload, hash_ in rows:
        # Contents of another type were never written by modicum; the chain shows it.
        contents = payload if isinstance(payload, bytes) else b""
        records.append(Record(seq, contents, str(hash_)))
        size += len(contents)
        if size >= PAGE_BYTES or len(records) == count:
            is_all = False
            break
    rows.close()
    is_known = is_all and records
    return Page(records, records[-1].seq if is_known else last_of(connection))


def last_of(connection: sqlite3.Connection) -> int:
    """Return the number of the last record; 0 if there is none."""
    return int(
        connection.execute("SELECT ifnull(max(seq), 0) FROM events").fetchone()[0]
    )


def refuse_hidden(connection: sqlite3.Connection, name: str) -> None:
    """Refuse rows before the first: no reader would see them."""
    if connection.execute("SELECT 1 FROM events WHERE seq < 1 LIMIT 1").fetchone():
        raise _broken(name, "it has entries before the first one")


def confirm(connection: sqlite3.Connection, last: Record) -> None:
    """Raise unless the log ends with a record, which is about to be acknowledged."""
    found = connection.execute(
        "SELECT seq, payload, hash FROM events ORDER BY seq DESC LIMIT 1"
    ).fetchone()
    if found != (last.seq, last.payload, last.hash):
        raise VerificationError(
            Problem(
                Code.LEDGER_BROKEN,
                f"entry {last.seq} was not stored as it was written",
                help="nothing of its turn was stored; find what changes the file",
            )
        )


def insert(
    connection: sqlite3.Connection, records: Sequence[Record], last: int
) -> None:
    """Insert records that follow the last one."""
    refuse_gap(last, records)
    connection.executemany(
        "INSERT INTO events (seq, payload, hash) VALUES (?, ?, ?)",
        [(record.seq, record.payload, record.hash) for record in records],
    )


def checkpoints_of(connection: sqlite3.Connection, version: int) -> list[bytes]:
    """Return the checkpoints of a ledger of some table version, oldest first."""
    if version < 2:
        return []
    rows = connection.execute("SELECT data FROM checkpoints ORDER BY id")
    return [bytes(data) for (data,) in rows]


def insert_checkpoint(connection: sqlite3.Connection, data: bytes) -> None:
    """Insert a checkpoint, unless the same one is there."""
    connection.execute("INSERT OR IGNORE INTO checkpoints (data) VALUES (?)", (data,))


def kept_for(
    connection: sqlite3.Connection, keys: Collection[str]
) -> dict[str, StoredAnswer]:
    """Return the stored responses for some keys, by key."""
    rows = connection.execute(
        "SELECT key, digest, answer, at FROM answers"
        " WHERE key IN (SELECT value FROM json_each(?))",
        (json.dumps(list(keys)),),
    )
    return {key: StoredAnswer(key, digest, data, at) for key, digest, data, at in rows}


def keep(
    connection: sqlite3.Connection, answers: Sequence[StoredAnswer], forget_before: str
) -> None:
    """Insert responses, and delete the oldest of those before a time."""
    connection.execute(
        "DELETE FROM answers WHERE key IN"
        " (SELECT key FROM answers WHERE at < ? ORDER BY at LIMIT ?)",
        (forget_before, FORGOTTEN_MAX),
    )
    connection.executemany(
        "INSERT INTO answers (key, digest, answer, at) VALUES (?, ?, ?, ?)",
        [(one.key, one.digest, one.answer, one.at) for one in answers],
    )
