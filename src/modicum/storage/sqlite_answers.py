"""Answers that are kept in a SQLite file beside the log, in a turn of it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence

from modicum.api.ports.storage import KeptAnswer
from modicum.storage.service_tables import FORGOTTEN_MAX


def kept_for(
    connection: sqlite3.Connection, keys: Collection[str]
) -> dict[str, KeptAnswer]:
    """Return the answers that are kept for some keys, by key."""
    rows = connection.execute(
        "SELECT key, digest, answer, at FROM answers"
        " WHERE key IN (SELECT value FROM json_each(?))",
        (json.dumps(list(keys)),),
    )
    return {key: KeptAnswer(key, digest, data, at) for key, digest, data, at in rows}


def keep(
    connection: sqlite3.Connection, answers: Sequence[KeptAnswer], forget_before: str
) -> None:
    """Insert answers, and delete the oldest of those before a time."""
    connection.execute(
        "DELETE FROM answers WHERE key IN"
        " (SELECT key FROM answers WHERE at < ? ORDER BY at LIMIT ?)",
        (forget_before, FORGOTTEN_MAX),
    )
    connection.executemany(
        "INSERT INTO answers (key, digest, answer, at) VALUES (?, ?, ?, ?)",
        [(one.key, one.digest, one.answer, one.at) for one in answers],
    )
