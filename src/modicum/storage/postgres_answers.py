"""Answers that are kept in PostgreSQL beside the log, in a turn of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, LiteralString

from psycopg import Connection
from psycopg.sql import SQL, Identifier, Literal

from modicum.api.ports.storage import KeptAnswer
from modicum.storage.postgres_errors import broken
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
    """The statements on the answers of one ledger.

    Args:
        address: Where it is.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        schema = Identifier(address.schema)
        self._kept = SQL(_KEPT).format(s=schema)
        self._keep = SQL(_KEEP).format(s=schema, forgotten=Literal(FORGOTTEN_MAX))

    def kept_for(
        self, connection: Connection[Any], keys: Collection[str]
    ) -> dict[str, KeptAnswer]:
        """Return the answers that are kept for some keys, by key."""
        with connection.cursor(binary=True) as cursor:
            rows = cursor.execute(self._kept, (list(keys),)).fetchall()
        return {row[0]: KeptAnswer(*row) for row in rows}

    def keep(
        self,
        connection: Connection[Any],
        answers: Sequence[KeptAnswer],
        forget_before: str,
    ) -> None:
        """Insert answers, and delete the oldest of those before a time.

        Raises:
            VerificationError: If they are not stored.
        """
        kept = connection.execute(
            self._keep,
            (
                forget_before,
                [one.key for one in answers],
                [one.digest for one in answers],
                [one.answer for one in answers],
                [one.at for one in answers],
            ),
        )
        if kept.rowcount != len(answers):  # A trigger took some away.
            raise broken(self._address, "an answer was not stored as written")
