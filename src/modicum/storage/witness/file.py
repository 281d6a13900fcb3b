"""A witness in a file, on another disk than the ledger."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from modicum.core.errors import UsageError
from modicum.storage.witness.heads import unreachable
from modicum.system.files import write_whole


class FileWitness:
    """A file with one line. Its folder must be there: else its disk is missing.

    Args:
        path: The file.

    Attributes:
        ahead: None, since it has no clock of its own.
    """

    ahead: float | None = None

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder = Path(os.path.realpath(path)).parent

    @property
    def name(self) -> str:
        """Return its path."""
        return str(self._path)

    @property
    def kind(self) -> str:
        """Return `file`."""
        return "file"

    def is_beside(self, ledger: str) -> bool:
        """Return whether it is on the disk of a ledger's file."""
        with self._translated():
            if "://" in ledger:
                return False
            other = Path(os.path.realpath(ledger)).parent
            return other.stat().st_dev == self._folder.stat().st_dev

    def latest(self) -> bytes | None:
        """Return the line; None if there is no file in the folder."""
        with self._translated():
            try:
                return self._path.read_bytes()
            except FileNotFoundError:
                self._folder.stat()
                return None

    def kept(self) -> list[bytes]:
        """Return nothing: it has the last line only."""
        return []

    def replace(self, known: bytes | None, new: bytes) -> bool:
        """Replace the file as a whole, under a lock on its folder."""
        with self._translated():
            folder = os.open(self._folder, os.O_RDONLY)
            try:
                fcntl.flock(folder, fcntl.LOCK_EX)
                if self.latest() != known:
                    return False
                write_whole(self._path, [new])
                os.fsync(folder)
            finally:
                os.close(folder)
        return True

    def close(self) -> None:
        """Do nothing: no file is kept open."""

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = (error.strerror or "system error").lower()
            raise unreachable(self.name, reason) from error
        except UsageError as error:
            raise unreachable(self.name, error.problems[0].message) from error
