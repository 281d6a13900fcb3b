"""The tables of a ledger in PostgreSQL: their versions, and their statements.

Version 1 has the log, its head, checkpoints and a snapshot; version 2 adds the service
tables, version 3 the access trail. Log, checkpoints and trail are append-only, which
triggers enforce; the service tables may be changed and deleted from.

Each ledger has its own schema. Every name is qualified with its schema and every
setting is made for one transaction, so that nothing depends on the session.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, LiteralString, NamedTuple

from psycopg import Connection
from psycopg.sql import SQL, Composed, Identifier, Literal

from modicum.api.ports.storage import StoredAnswer
from modicum.core.errors import Code, Problem, VerificationError
from modicum.ledger import Record
from modicum.storage.log_pages import PAGE_BYTES, Page, refuse_gap
from modicum.storage.postgres_errors import broken, forgetful
from modicum.storage.postgres_url import Address
from modicum.storage.service_tables import FORGOTTEN_MAX

_KEPT: LiteralString = """
    SELECT key, digest, answer, at FROM {s}.answers WHERE key = ANY(%s::text[])
"""
_KEEP: LiteralString = """
    WITH forgotten AS (
        DELETE FROM {s}.answers WHERE key IN (
            SELECT key FROM {s}.answers WHERE at < %s ORDER BY at LIMIT {forgotten}
        )
    )
    INSERT INTO {s}.answers (key, digest, answer, at)
    SELECT * FROM unnest(%s::text[], %s::text[], %b::bytea[], %s::text[])
"""


class AnswerStatements:
    """The statements on the responses of one ledger.

    Args:
        address: The address.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        schema = Identifier(address.schema)
        self._kept = SQL(_KEPT).format(s=schema)
        self._keep = SQL(_KEEP).format(s=schema, forgotten=Literal(FORGOTTEN_MAX))

    def kept_for(
        self, connection: Connection[Any], keys: Collection[str]
    ) -> dict[str, StoredAnswer]:
        """Return the stored responses for some keys, by key."""
        with connection.cursor(binary=True) as cursor:
            rows = cursor.execute(self._kept, (list(keys),)).fetchall()
        return {row[0]: StoredAnswer(*row) for row in rows}

    def keep(
        self,
        connection: Connection[Any],
        answers: Sequence[StoredAnswer],
        forget_before: str,
    ) -> None:
        """Insert responses, and delete the oldest of those before a time."""
        stored = connection.execute(
            self._keep,
            (
                forget_before,
                [one.key for one in answers],
                [one.digest for one in answers],
                [one.answer for one in answers],
                [one.at for one in answers],
            ),
        )
        if stored.rowcount != len(answers):  # A trigger took some away.
            raise broken(self._address, "an answer was not stored as written")


#: Steps are never changed once released.
STEPS: Sequence[LiteralString] = (
    """
    CREATE TABLE {s}.events (
        seq bigint PRIMARY KEY CHECK (seq > 0),
        payload bytea NOT NULL,
        hash text NOT NULL
    );
    CREATE TABLE {s}.head (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        seq bigint NOT NULL,
        hash text NOT NULL
    );
    INSERT INTO {s}.head (seq, hash) VALUES (0, '');
    CREATE TABLE {s}.checkpoints (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        data bytea NOT NULL
    );
    CREATE UNIQUE INDEX checkpoints_once ON {s}.checkpoints (sha256(data));
    CREATE TABLE {s}.snapshot (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        data bytea NOT NULL
    );
    CREATE FUNCTION {s}.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'the table % of a ledger is append-only', TG_TABLE_NAME;
    END
    $$;
    CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {s}.events
        FOR EACH STATEMENT EXECUTE FUNCTION {s}.refuse_change();
    CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {s}.checkpoints
        FOR EACH STATEMENT EXECUTE FUNCTION {s}.refuse_change();
    ALTER TABLE {s}.events ENABLE ALWAYS TRIGGER append_only;
    ALTER TABLE {s}.checkpoints ENABLE ALWAYS TRIGGER append_only;
    """,
    """
    CREATE TABLE {s}.answers (
        key text COLLATE "C" PRIMARY KEY,
        digest text NOT NULL,
        answer bytea NOT NULL,
        at text COLLATE "C" NOT NULL
    );
    CREATE INDEX answers_by_time ON {s}.answers (at);
    CREATE TABLE {s}.tokens (
        id text COLLATE "C" PRIMARY KEY,
        digest text COLLATE "C" NOT NULL UNIQUE,
        name text NOT NULL,
        actor text NOT NULL,
        kind text NOT NULL,
        grants text NOT NULL,
        created_by text NOT NULL,
        created_at text COLLATE "C" NOT NULL,
        expires_at text COLLATE "C" NOT NULL,
        revoked_at text COLLATE "C" NOT NULL
    );
    CREATE TABLE {s}.sessions (
        digest text COLLATE "C" PRIMARY KEY,
        identity text NOT NULL,
        csrf text NOT NULL,
        created_at text COLLATE "C" NOT NULL,
        expires_at text COLLATE "C" NOT NULL
    );
    CREATE INDEX sessions_by_end ON {s}.sessions (expires_at);
    """,
    """
    CREATE TABLE {s}.trail (
        seq bigint PRIMARY KEY CHECK (seq > 0),
        payload bytea NOT NULL,
        hash text COLLATE "C" NOT NULL
    );
    CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {s}.trail
        FOR EACH STATEMENT EXECUTE FUNCTION {s}.refuse_change();
    ALTER TABLE {s}.trail ENABLE ALWAYS TRIGGER append_only;
    CREATE TABLE {s}.trail_marks (
        name text COLLATE "C" PRIMARY KEY,
        value text NOT NULL,
        holder text NOT NULL,
        until text COLLATE "C" NOT NULL
    );
    """,
)


#: Idle time after which a client loses the turn.
IDLE_SECONDS = 120

#: Version of the tables; the events have a separate version.
SCHEMA_VERSION = len(STEPS)

_BEGIN: LiteralString = """
    BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
    SELECT
        set_config('lock_timeout', {wait}, true),
        set_config('statement_timeout', {limit}, true),
        set_config('idle_in_transaction_session_timeout', {idle}, true),
        set_config('synchronous_commit', CASE current_setting('synchronous_commit')
            WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true);
    SELECT pg_advisory_xact_lock({lock});
"""
# The advisory lock is granted in the order of arrival, which row locks are not. The row
# is locked as well: it is what an administrator sees and can lock, too.
_HEAD: LiteralString = """
    SELECT head.seq, head.hash, current_setting('fsync'),
        (SELECT max(version) FROM {s}.migrations),
        (SELECT max(seq) FROM {s}.events),
        (SELECT hash FROM {s}.events ORDER BY seq DESC LIMIT 1),
        extract(epoch FROM clock_timestamp())::float8
    FROM {s}.head FOR UPDATE OF head
"""
_APPEND: LiteralString = """
    WITH added AS (
        INSERT INTO {s}.events (seq, payload, hash)
        SELECT * FROM unnest(%s::bigint[], %b::bytea[], %s::text[])
        RETURNING seq, hash
    )
    UPDATE {s}.head SET seq = %s, hash = %s
    WHERE (SELECT count(*) FROM added) = %s
        AND EXISTS (SELECT FROM added WHERE seq = %s AND hash = %s)
"""
# Payloads are added up before they are fetched: a page ends after PAGE_BYTES.
_PAGE: LiteralString = """
    SELECT seq, payload, hash,
        (SELECT max(seq) FROM {s}.events),
        (SELECT max(version) FROM {s}.migrations)
    FROM (
        SELECT *, sum(octet_length(payload)) OVER (ORDER BY seq)
            - octet_length(payload) AS before
        FROM (SELECT * FROM {s}.events WHERE seq > %s ORDER BY seq LIMIT %s) AS next
    ) AS page
    WHERE before < {bytes} ORDER BY seq
"""


class TransactionStart(NamedTuple):
    """A turn that was begun.

    Attributes:
        last: The number of the last record.
        seconds: The server's time of day, in seconds since 1970.
    """

    last: int
    seconds: float


class Statements:
    """The statements on one ledger.

    Args:
        address: The address.
        wait_seconds: How long to wait for other writers.
    """

    def __init__(self, address: Address, wait_seconds: float) -> None:
        self._address = address
        names = {
            "s": Identifier(address.schema),
            "lock": Literal(address.lock),
            "wait": Literal(f"{max(1, round(wait_seconds * 1000))}ms"),
            "limit": Literal(f"{round(wait_seconds) + IDLE_SECONDS}s"),
            "idle": Literal(f"{IDLE_SECONDS}s"),
            "bytes": Literal(PAGE_BYTES),
        }
        self._begin = SQL(_BEGIN).format(**names)
        self._begin_turn = SQL(_BEGIN + _HEAD).format(**names)
        self._append = SQL(_APPEND).format(**names)
        self._page = SQL(_PAGE).format(**names)
        self._names = names

    def start_turn(self, connection: Connection[Any]) -> TransactionStart | None:
        """Wait for the turn, and begin its transaction."""
        cursor = connection.execute(self._begin_turn)
        while cursor.nextset():
            pass
        row = cursor.fetchone()
        if row is None:
            raise broken(self._address, "it has no head")
        seq, hash_, fsync, version, last, last_hash, seconds = row
        refuse_version(self._address.name, version)
        if fsync != "on":
            raise forgetful(self._address)
        if (seq, hash_) != (last or 0, last_hash or ""):
            raise broken(
                self._address, f"its head is {seq}, its last entry is {last or 0}"
            )
        return None if version < SCHEMA_VERSION else TransactionStart(int(seq), seconds)

    def migrate(self, connection: Connection[Any]) -> None:
        """Create missing tables, in one transaction under the ledger's lock."""
        connection.execute(self._begin)
        if not self._query(connection, "SELECT to_regnamespace({name}) IS NOT NULL"):
            self._run(connection, "CREATE SCHEMA {s}")
        self._run(
            connection,
            """
            CREATE TABLE IF NOT EXISTS {s}.migrations (
                version integer PRIMARY KEY,
                applied_at timestamptz NOT NULL DEFAULT now()
            )
            """,
        )
        done = self._query(connection, "SELECT max(version) FROM {s}.migrations") or 0
        refuse_version(self._address.name, done)
        for version in range(done + 1, SCHEMA_VERSION + 1):
            self._run(connection, STEPS[version - 1])
            connection.execute(
                self._of("INSERT INTO {s}.migrations (version) VALUES (%s)"),
                (version,),
            )
        connection.execute("COMMIT")

    def exists(self, connection: Connection[Any]) -> bool:
        """Return whether the ledger's tables are there."""
        return bool(
            self._query(connection, "SELECT to_regclass({name} || '.head') IS NOT NULL")
        )

    def seconds(self, connection: Connection[Any]) -> float:
        """Return the server's time of day, in seconds since 1970."""
        query: LiteralString = "SELECT extract(epoch FROM clock_timestamp())::float8"
        return float(self._query(connection, query))

    def version(self, connection: Connection[Any]) -> int:
        """Return the version of the tables."""
        found = self._query(connection, "SELECT max(version) FROM {s}.migrations")
        refuse_version(self._address.name, found)
        return int(found)

    def page(self, connection: Connection[Any], after: int, count: int) -> Page:
        """Return the next records after a number."""
        with connection.cursor(binary=True) as cursor:
            rows = cursor.execute(self._page, (after, count)).fetchall()
        if not rows:
            return Page((), 0)
        refuse_version(self._address.name, rows[0][4])
        records = [Record(seq, payload, hash_) for seq, payload, hash_, *_ in rows]
        return Page(records, rows[0][3])

    def append(
        self, connection: Connection[Any], last: int, records: Sequence[Record]
    ) -> None:
        """Insert records that follow the last one, and move the head."""
        refuse_gap(last, records)
        if not records:
            return
        head = (records[-1].seq, records[-1].hash)
        added = connection.execute(
            self._append,
            (
                [record.seq for record in records],
                [record.payload for record in records],
                [record.hash for record in records],
                *head,
                len(records),
                *head,
            ),
        )
        if added.rowcount != 1:  # A trigger took some away.
            raise broken(self._address, f"entry {head[0]} was not stored as written")

    def checkpoints(self, connection: Connection[Any]) -> list[bytes]:
        """Return the checkpoints, oldest first."""
        query = self._of("SELECT data FROM {s}.checkpoints ORDER BY id")
        with connection.cursor(binary=True) as cursor:
            return [bytes(data) for (data,) in cursor.execute(query)]

    def add_checkpoint(self, connection: Connection[Any], data: bytes) -> None:
        """Insert a checkpoint, unless the same one is there."""
        connection.execute(
            self._of(
                "INSERT INTO {s}.checkpoints (data) VALUES (%b) ON CONFLICT DO NOTHING"
            ),
            (data,),
        )

    def load_snapshot(self, connection: Connection[Any]) -> bytes | None:
        """Return the snapshot, or None."""
        with connection.cursor(binary=True) as cursor:
            row = cursor.execute(self._of("SELECT data FROM {s}.snapshot")).fetchone()
        return None if row is None else bytes(row[0])

    def save_snapshot(self, connection: Connection[Any], data: bytes) -> None:
        """Put a snapshot in place of the one before."""
        connection.execute(
            self._of(
                "INSERT INTO {s}.snapshot (data) VALUES (%b)"
                " ON CONFLICT (one) DO UPDATE SET data = excluded.data"
            ),
            (data,),
        )

    def _of(self, statement: LiteralString) -> Composed:
        return SQL(statement).format(**self._names, name=Literal(self._address.schema))

    def _run(self, connection: Connection[Any], statement: LiteralString) -> None:
        connection.execute(self._of(statement))

    def _query(self, connection: Connection[Any], query: LiteralString) -> Any:
        row = connection.execute(self._of(query)).fetchone()
        return None if row is None else row[0]


def refuse_version(name: str, version: int | None) -> None:
    """Raise if the tables are of a later version than this one knows."""
    if version is None or version > SCHEMA_VERSION:
        raise VerificationError(
            Problem(
                Code.NOT_A_LEDGER,
                f"{name} has table version {version or 0}; this version of modicum"
                f" reads 1 to {SCHEMA_VERSION}",
                help="use the version of modicum that wrote it, or a newer one",
                places=(name,),
            )
        )
