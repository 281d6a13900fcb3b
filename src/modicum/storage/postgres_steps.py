"""The tables of a ledger in PostgreSQL, as numbered steps.

Version 1 has the log, its head, checkpoints and a snapshot; version 2 adds what a
service keeps beside the log. Log and checkpoints are only added to, which triggers see
to; what is beside them may be changed and deleted from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString

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
)
