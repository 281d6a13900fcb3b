"""A head known from elsewhere: no server starts on a ledger that is behind it.

Decision 0043 describes what this proves, and what it leaves open.
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from modicum.api.ports.storage import EventStore
from modicum.core.errors import (
    Code,
    ModicumError,
    Problem,
    UsageError,
    VerificationError,
)
from modicum.ledger import Record
from modicum.ops.files.documents import read_bytes
from modicum.system.files import write_whole

#: Minimum interval between writes of the file, in seconds.
PAUSE_SECONDS = 1.0
_KNOWN = re.compile(r"([1-9][0-9]{0,17}):([0-9a-f]{12,64})")


class KnownHead(NamedTuple):
    """An entry that a ledger must have.

    Attributes:
        seq: Its number.
        digits: Its hash, or the first 12 digits of it or more.
    """

    seq: int
    digits: str

    @classmethod
    def read(cls, text: str) -> KnownHead | None:
        """Parse `SEQ:HASH`; return None for any other text."""
        found = _KNOWN.fullmatch(text.strip().lower())
        return cls(int(found[1]), found[2]) if found else None

    def must_be_in(self, store: EventStore) -> None:
        """Refuse a ledger without this entry."""
        found = store.record(self.seq)
        if found is None or not found.hash.startswith(self.digits):
            has = "has another entry in its place" if found else "ends before it"
            raise _behind(
                f"the ledger {store.name} does not contain the known head"
                f" {self.seq}:{self.digits[:12]}: it {has}",
                "restore a newer copy. To continue without the lost entries,"
                " record their losses with  modicum release backfill,  then"
                " remove the head file, or name another  --known-head",
                store.name,
            )


class HeadFile:
    """A file that keeps the head of a ledger, outside of its store.

    Args:
        path: The file: one line, `SEQ:HASH`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def read(self) -> KnownHead | None:
        """Return the head that it keeps; None if there is no file."""
        try:
            self._path.stat()
        except FileNotFoundError:
            return None
        except OSError:
            pass  # The read reports the cause.
        found = KnownHead.read(read_bytes(self._path).decode("utf-8", "replace"))
        if found is None:
            raise _behind(
                f"{self._path} contains no head, so it is unknown whether the"
                " ledger is behind",
                "restore the file, or remove it and name a  --known-head",
                str(self._path),
            )
        return found

    def keep(self, head: Record) -> None:
        """Keep a head durably, unless the file has a later one."""
        try:
            folder = os.open(self._path.resolve().parent, os.O_RDONLY)
        except OSError as error:
            why = (error.strerror or "its folder cannot be opened").lower()
            problem = f"cannot write {self._path}: {why}"
            raise UsageError(Problem(Code.FILE_UNREADABLE, problem)) from error
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)  # Other processes keep it, too.
            known = self.read()
            if known is None or known.seq < head.seq:
                write_whole(self._path, [f"{head.seq}:{head.hash}\n".encode()])
                os.fsync(folder)
        finally:
            os.close(folder)

    def follow(
        self,
        head: Callable[[], Record | None],
        failed: Callable[[ModicumError, str], object],
    ) -> None:
        """Keep the head now, and from now on in a thread, until `close`."""
        stored = head()
        if stored is not None:
            self.keep(stored)

        def run() -> None:
            nonlocal stored
            is_over = False
            while not is_over:
                is_over = self._over.wait(PAUSE_SECONDS)
                now = head()
                if now is None or now == stored:
                    continue
                try:
                    self.keep(now)
                    stored = now
                except ModicumError as error:
                    failed(error, error.code.value)

        self._thread = threading.Thread(target=run, name="modicum-head", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Keep the last head, and end the thread."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()


def _behind(message: str, remedy: str, place: str) -> VerificationError:
    return VerificationError(
        Problem(Code.LEDGER_BEHIND, message, help=remedy, places=(place,))
    )
