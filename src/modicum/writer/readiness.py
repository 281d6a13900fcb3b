"""Whether requests can be decided: found by a thread of its own, about every second.

A probe of a load balancer reads the last outcome. It waits for no lock, store or pool.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Final

from modicum.api.local.balances import Entry
from modicum.api.ports.storage import EventStore, StoredAnswer, Versioned
from modicum.core.errors import (
    Code,
    ModicumError,
    Problem,
    UnavailableError,
    VerificationError,
)
from modicum.writer.group_commit import GroupCommit
from modicum.writer.queue import QueuedRequest
from modicum.writer.turn_outcomes import NOW

#: Interval of the checks, in seconds.
CHECK_SECONDS: Final = 1.0
#: An outcome older than this many seconds counts as not ready.
STALE_SECONDS: Final = 5.0
#: A store is probed after this many seconds without a turn.
PROBE_SECONDS: Final = 10.0
#: How long a start waits for the first outcome.
START_SECONDS: Final = 2.0
#: Maximum wait for a turn that is tried again after a failure.
RETRY_SECONDS: Final = 2.0
#: A failure outside counts if this many checks in a row find one, or if a check took an
#: interval or longer to find it: most are over by then, and no client is sent elsewhere
#: for them.
FAILURES_MIN: Final = 2
#: With less room than this, a turn in a file may fail.
ROOM_BYTES: Final = 2**20


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a check.

    Attributes:
        codes: Why nothing can be decided; empty if it can.
        is_writable: Whether the store took the last write.
        is_behind: Whether the ledger lacks an entry that is known to be acknowledged,
            or contradicts what was read before.
        failed_at: The time of the last failure, in UTC; empty if none.
    """

    codes: tuple[Code, ...]
    is_writable: bool
    is_behind: bool
    failed_at: str


#: The outcome while there is none.
UNKNOWN: Final = Outcome(
    (Code.LEDGER_BUSY,), is_writable=False, is_behind=False, failed_at=""
)


class Readiness:
    """Checks whether requests can be decided.

    Args:
        store: The store of the log.
        desk: The queue and its writer.
        must_be_sound: Reads the log, and raises a mistake if nothing can be decided.
        clock: Returns seconds, from any origin.
    """

    def __init__(
        self,
        store: EventStore,
        desk: GroupCommit,
        must_be_sound: Callable[[], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._desk = desk
        self._checks = [must_be_sound]
        self._clock = clock
        self._changed: Callable[[Outcome], object] = lambda _: None
        self._found: tuple[float, Outcome] | None = None
        self._probed = float("-inf")
        self._failed_at = ""
        self._failures = 0
        self._over = threading.Event()
        self._first = threading.Event()
        self._thread: threading.Thread | None = None

    def outcome(self) -> Outcome:
        """Return the last outcome, or an unknown one if it is old."""
        found = self._found
        if found is None or self._clock() - found[0] > STALE_SECONDS:
            return UNKNOWN
        return found[1]

    def start(
        self,
        *checks: Callable[[], object],
        changed: Callable[[Outcome], object] = lambda _: None,
        seconds: float = CHECK_SECONDS,
    ) -> None:
        """Check from now on in a thread, until `close`.

        Args:
            checks: Further checks, which raise a mistake.
            changed: Receives each outcome whose codes differ from those before.
            seconds: The interval.
        """
        self._checks += checks
        self._changed = changed

        def run() -> None:
            while not self._over.is_set():
                self.check()
                self._first.set()
                self._over.wait(seconds)

        self._thread = threading.Thread(
            target=run, name="modicum-readiness", daemon=True
        )
        self._thread.start()
        self._first.wait(START_SECONDS)

    def close(self) -> None:
        """End the thread. It is not waited for where a store keeps it."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(STALE_SECONDS)

    def check(self) -> Outcome:
        """Check now, and return the outcome."""
        began = self._clock()
        read = [*self._read_failures()]
        write = None if any(map(_is_lasting, read)) else self._write_failure()
        failures = [*read, *([] if write is None else [write])]
        if failures:
            self._failed_at = NOW()
        self._failures = self._failures + 1 if failures else 0
        has_lasted = self._failures >= FAILURES_MIN
        # Else a check that hangs for seconds would make the server ready again.
        has_lasted |= self._clock() - began >= CHECK_SECONDS
        counts = has_lasted or any(map(_is_lasting, failures))
        codes = tuple(dict.fromkeys(one.code for one in failures)) if counts else ()
        outcome = Outcome(
            codes,
            is_writable=write is None and self._desk.turns.failure is None,
            is_behind=any(_is_behind(one) for one in failures),
            failed_at=max(self._failed_at, self._desk.turns.failed_at),
        )
        before, self._found = self._found, (self._clock(), outcome)
        if codes != (before[1].codes if before is not None else ()):
            with suppress(Exception):  # Such as a log that cannot be written.
                self._changed(outcome)
        return outcome

    def _read_failures(self) -> Iterator[ModicumError]:
        for check in self._checks:
            try:
                check()
            except ModicumError as error:
                yield error
            except Exception:  # noqa: BLE001 - the thread must go on
                yield _not_working("a check failed unexpectedly", Code.INTERNAL)

    def _write_failure(self) -> ModicumError | None:
        """Return why turns fail; None if they do not, as far as is known."""
        turns = self._desk.turns
        if not self._desk.is_serving:
            return _not_working("the writer ended", Code.LEDGER_BUSY)
        failure = turns.failure
        try:
            if failure is not None:
                self._try_again()
            elif self._clock() - max(turns.succeeded, self._probed) >= PROBE_SECONDS:
                probe(self._store)
                self._probed = self._clock()
        except ModicumError as error:
            if error.code is not Code.LEDGER_BUSY:
                return error
            return failure  # Others have the turn: that is no failure of the store.
        except Exception:  # noqa: BLE001 - the thread must go on
            return _not_working("a probe failed unexpectedly", Code.INTERNAL)
        return None

    def _try_again(self) -> None:
        """Let the writer take a turn that stores a row beside the log."""

        def work(entry: Entry) -> None:
            entry.keep(_row(entry.now))

        self._desk.submit(QueuedRequest(work, "unknown"), RETRY_SECONDS)


class _UndoError(Exception):
    """Raised to end a turn without storing anything."""


def probe(store: EventStore) -> None:
    """Take a turn that writes a row and is rolled back.

    Raises:
        ModicumError: If a turn cannot be had, or nothing can be written.
    """
    if not store.exists():
        return  # The first turn makes it.
    if isinstance(store, Versioned) and len({*store.table_versions()}) > 1:
        return  # Only a decision, or an operator, brings tables up to date.
    path = Path(store.name)
    with suppress(OSError):
        room = os.statvfs(path.parent) if path.is_file() else None
        if room is not None and room.f_bavail * room.f_frsize < ROOM_BYTES:
            raise _not_working("its disk is full", Code.LEDGER_UNWRITABLE)
    with suppress(_UndoError), store.turn() as turn:
        turn.keep([_row("9999")], forget_before="")
        raise _UndoError


def _row(at: str) -> StoredAnswer:
    """Return a row that belongs to nobody: no key of a client begins with a space."""
    return StoredAnswer(f" probe {token_hex(16)}", "", b"", at)


def _not_working(why: str, code: Code) -> UnavailableError:
    return UnavailableError(Problem(code, f"nothing can be decided: {why}"))


def _is_behind(error: ModicumError) -> bool:
    return error.code in (Code.LEDGER_BEHIND, Code.LEDGER_BROKEN)


def _is_lasting(error: ModicumError) -> bool:
    """Return whether a failure is none that passes by itself."""
    return isinstance(error, VerificationError) or error.code is Code.CLOCK_JUMPED
