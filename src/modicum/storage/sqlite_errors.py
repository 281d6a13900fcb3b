"""Errors of a ledger's file, with remedies."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from modicum.core.errors import (
    Code,
    ModicumError,
    Problem,
    UnavailableError,
    UsageError,
    VerificationError,
)
from modicum.storage.sqlite_lock import TurnTimeoutError
from modicum.storage.sqlite_tables import not_a_ledger

_MAGIC = b"SQLite format 3\x00"
_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")
_PERHAPS_NO_DATABASE = ("SQLITE_NOTADB", "SQLITE_CANTOPEN")
#: Refusals of the machine; they do not depend on the file's contents.
_OUTSIDE = (
    "SQLITE_CANTOPEN",
    "SQLITE_FULL",
    "SQLITE_IOERR",
    "SQLITE_NOMEM",
    "SQLITE_PERM",
    "SQLITE_READONLY",
)
#: A confirmed request is durable; an unconfirmed one has an unknown outcome.
_TRY_AGAIN = (
    "everything acknowledged was stored; submit again: the same id is one"
    " release; after `start` or `publish`, check first:  modicum release show ID"
)


def replaced(path: Path) -> VerificationError:
    """Return the mistake of a file that is not the one that was opened."""
    return VerificationError(
        Problem(
            Code.LEDGER_BROKEN,
            f"the file {path} was replaced or removed while it was open",
            notes=("it is no longer used",),
            help=f"stop everything that uses it; remove {path.name}-wal,"
            f" {path.name}-shm and"
            f" {path.name}.snapshot, put the copy in place, and start again",
            places=(str(path), path.name),
        )
    )


def linked(path: Path) -> UsageError:
    """Return the mistake of a file with several names."""
    return UsageError(
        Problem(
            Code.LEDGER_MISSING,
            f"{path} is one of several hard links to a file",
            notes=("writers under different names would not wait for each other",),
            help="remove the other names; copy instead of linking",
            places=(str(path),),
        )
    )


class SqliteTroubles:
    """The mistakes of one ledger's file.

    Args:
        path: The file.
        wait_seconds: How long its store waits for a turn.
    """

    def __init__(self, path: Path, wait_seconds: float) -> None:
        self._path = path
        self._wait_seconds = wait_seconds

    @contextmanager
    def translated(self, *, writing: bool) -> Iterator[None]:
        """Translate exceptions of SQLite and files within the block into our errors."""
        try:
            yield
        except TurnTimeoutError as error:
            raise self.busy() from error
        except sqlite3.Error as error:
            raise self._of_sqlite(error, writing=writing) from error
        except UnicodeDecodeError as error:
            # Python's message, not SQLite's, for names of tables that are no text.
            raise self._damaged("its tables have no names") from error
        except OSError as error:
            raise (
                self.unwritable(error) if writing else self.unreadable(error)
            ) from error

    def _of_sqlite(self, error: sqlite3.Error, *, writing: bool) -> ModicumError:
        """Return the ledger error for an exception of SQLite."""
        name = str(getattr(error, "sqlite_errorname", ""))
        if name.startswith(_BUSY):
            return self.busy()  # Held by another program than modicum.
        if name in _PERHAPS_NO_DATABASE:
            try:
                with self._path.open("rb") as file:
                    if file.read(len(_MAGIC)) != _MAGIC:
                        return not_a_ledger(str(self._path))
            except OSError as unreadable:
                return (
                    self.unwritable(unreadable)
                    if writing
                    else self.unreadable(unreadable)
                )
        if name.startswith(_OUTSIDE):
            return self.unwritable(error, "write" if writing else "read")
        return self._damaged(str(error))

    def _damaged(self, why: str) -> VerificationError:
        return VerificationError(
            Problem(
                Code.LEDGER_BROKEN,
                f"the file {self._path} is damaged ({why})",
                help="restore a backup and compare its head",
                places=(str(self._path),),
            )
        )

    def busy(self) -> UnavailableError:
        """Return the mistake of a turn that could not be had in time."""
        return UnavailableError(
            Problem(
                Code.LEDGER_BUSY,
                f"{self._path} was busy for {self._wait_seconds:g} seconds",
                help="try again",
                places=(str(self._path),),
            )
        )

    def unwritable(self, error: Exception, what: str = "write") -> UnavailableError:
        """Return the mistake of a disk that refuses."""
        reason = str(getattr(error, "strerror", None) or error).lower()
        remedy = "try again" if what == "read" else _TRY_AGAIN
        if isinstance(error, FileNotFoundError):
            remedy = "create its folder first"
        return UnavailableError(
            Problem(
                Code.LEDGER_UNWRITABLE,
                f"cannot {what} {self._path}: {reason}",
                help=remedy,
                places=(str(self._path),),
            )
        )

    def unreadable(self, error: OSError) -> UsageError:
        """Return the mistake of a file that is not there or may not be read."""
        reason = (error.strerror or "it cannot be read").lower()
        return UsageError(
            Problem(
                Code.LEDGER_MISSING,
                f"cannot read {self._path}: {reason}",
                places=(str(self._path),),
            )
        )
