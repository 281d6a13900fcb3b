"""A new ledger's file: it is there as a whole, or not at all, and replaces nothing."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from modicum.core.errors import (
    Code,
    InvariantError,
    ModicumError,
    Problem,
    UnavailableError,
    UsageError,
)
from modicum.storage.sqlite_connection import leftovers_of, sync_folder
from modicum.storage.sqlite_store import SqliteStore

#: The files beside a ledger that belong to it alone.
_BESIDE = ("-wal", "-shm", "-journal", ".snapshot")


@contextmanager
def new_ledger(path: str | Path) -> Iterator[SqliteStore]:
    """Yield a store to fill; the file then gets the name, if it is unused.

    Until then it lies in a hidden folder beside its place, which only its owner may
    look into. Later on, too, only its owner may read it, as any new ledger.
    """
    target = Path(path).resolve()  # A link that leads nowhere yet stays a link.
    refuse_present(path)
    try:
        folder = tempfile.TemporaryDirectory(
            prefix=f".{target.name}.", dir=target.parent
        )
    except OSError as error:
        raise _unwritable(path, error) from error
    with folder:
        draft = Path(folder.name, target.name)
        yield SqliteStore(draft)
        _put_in_place(path, draft, target)


def refuse_present(path: str | Path) -> None:
    """Refuse a name in use, or with leftover files.

    A write-ahead log of another ledger would destroy the new one; a snapshot of
    another, longer one would stand for entries that the new one lacks.
    """
    target = Path(path).resolve()
    if os.path.lexists(target):
        raise _in_the_way(path, "existing files are never overwritten")
    for suffix in _BESIDE:
        if os.path.lexists(f"{target}{suffix}"):
            why = "it belongs to an earlier ledger"
            raise _in_the_way(f"{path}{suffix}", why)


def _put_in_place(path: str | Path, draft: Path, target: Path) -> None:
    """Give a draft its name, unless something got that name meanwhile."""
    if leftovers_of(draft):
        raise InvariantError(
            Problem(Code.INTERNAL, "the restored ledger is still open")
        )
    try:
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        refuse_present(path)
        os.link(draft, target)  # Unlike a rename, it replaces nothing.
        sync_folder(target.parent)
    except FileExistsError as error:
        why = "existing files are never overwritten"
        raise _in_the_way(path, why) from error
    except OSError as error:
        raise _unwritable(path, error) from error


def _in_the_way(path: str | Path, why: str) -> UsageError:
    return UsageError(
        Problem(
            Code.ALREADY_EXISTS,
            f"{path} exists",
            notes=(why,),
            help="choose another name, or move the existing file",
        )
    )


def _unwritable(path: str | Path, error: OSError) -> ModicumError:
    reason = (error.strerror or "it cannot be written").lower()
    return UnavailableError(
        Problem(
            Code.LEDGER_UNWRITABLE,
            f"cannot write {path}: {reason}",
            help="choose a writable folder, on a disk with free space",
        )
    )
