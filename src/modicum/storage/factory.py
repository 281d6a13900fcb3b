"""The store of a ledger's name."""

from __future__ import annotations

import re
from pathlib import Path

from modicum.api.ports.storage import MaintainedStore
from modicum.core.errors import Code, Problem, UsageError
from modicum.storage.sqlite_store import WAIT_SECONDS, SqliteStore

#: The second slash is missing in a URL that was treated as a path.
_POSTGRES = re.compile(r"\s*(postgresql|postgres)://?", re.IGNORECASE)
#: Not a path, and may contain a password: it is not shown.
_NO_PATH = re.compile(
    r"://|^\s*[a-z][a-z0-9+.-]+:[a-z0-9+.:-]*/|^\s*postgres\w*[:+]|password\s*="
    r"|^\s*postgres\w*/+[^/]*:[^/]*@",
    re.IGNORECASE,
)


def open_store(
    ledger: str | Path, *, wait_seconds: float = WAIT_SECONDS, keep_open: bool = False
) -> MaintainedStore:
    """Return the store of a ledger; nothing is read or made yet."""
    if not _POSTGRES.match(str(ledger)):
        if _NO_PATH.search(str(ledger)):
            raise _no_ledger()
        return SqliteStore(ledger, wait_seconds=wait_seconds, keep_open=keep_open)
    url = _POSTGRES.sub("postgresql://", str(ledger), count=1)
    try:
        from modicum.storage.postgres_store import PostgresStore
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise UsageError(
            Problem(
                Code.LEDGER_MISSING,
                "a ledger in PostgreSQL needs the driver psycopg",
                help="install it with  pip install 'modicum[postgres]'",
            )
        ) from error
    return PostgresStore(url, wait_seconds=wait_seconds)


def _no_ledger() -> UsageError:
    return UsageError(
        Problem(
            Code.LEDGER_MISSING,
            "the ledger's name is neither a path nor a URL of PostgreSQL",
            notes=("it is hidden, because it may contain a password",),
            help="write the path of a file, or postgresql://user@host:5432/database",
        )
    )


def name_of(ledger: str | Path) -> str:
    """Return the display name of a ledger, without passwords."""
    return open_store(ledger).name
