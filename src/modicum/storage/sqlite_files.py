"""The rights of a ledger's files: those of its owner, never those of the umask."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

_OWNERS_ONLY: Final = 0o600
_NEW: Final = os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def create_private(path: Path) -> None:
    """Create an empty file that only its owner may read or write."""
    os.close(os.open(path, _NEW | os.O_WRONLY, _OWNERS_ONLY))


def open_beside(path: Path, ledger: Path, flags: int) -> int:
    """Open a file beside a ledger; a new one gets the rights of the ledger.

    So those who share the ledger share its locks and its snapshot, as SQLite does it
    with the write-ahead log.
    """
    try:
        return os.open(path, flags | os.O_CLOEXEC)
    except FileNotFoundError:
        pass
    try:
        descriptor = os.open(path, flags | _NEW, _OWNERS_ONLY)
    except FileExistsError:  # Another process has just created it.
        return os.open(path, flags | os.O_CLOEXEC)
    try:
        _share(descriptor, ledger)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _share(descriptor: int, ledger: Path) -> None:
    try:
        found = os.stat(ledger)
    except FileNotFoundError:  # The turn that creates it needs the locks first.
        return
    mode = stat.S_IMODE(found.st_mode) & 0o666
    if mode == _OWNERS_ONLY:
        return
    if found.st_gid != os.fstat(descriptor).st_gid:
        try:
            os.fchown(descriptor, -1, found.st_gid)
        except PermissionError:  # The rights are for a group that is not this one.
            mode &= ~stat.S_IRWXG
    os.fchmod(descriptor, mode)
