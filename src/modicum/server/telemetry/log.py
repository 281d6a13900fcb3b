"""The log of a server: one line of JSON per event.

Each kind of line is a method here, with its fields as arguments: nothing else can be
logged. None of them accepts text from a client, except the name of an authenticated
caller.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum
from typing import Any, Final, NamedTuple, TextIO

import msgspec

from modicum.server.telemetry.tracebacks import frames_of, kinds_of
from modicum.system.clock import SystemClock


class Level(Enum):
    """The severity of a line; lines below the configured level are left out."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


_NUMBERS: Final[Mapping[Level, int]] = {
    Level.DEBUG: 10,
    Level.INFO: 20,
    Level.WARNING: 30,
    Level.ERROR: 40,
}
_JSON: Final = msgspec.json.Encoder()
#: In ASCII, whatever a name or a message contains.
_ASCII: Final = json.JSONEncoder(separators=(",", ":"))
_NOW: Final = SystemClock().now


class Served(NamedTuple):
    """A served request.

    Attributes:
        trace: Its id.
        route: The template of its route; `(none)` if none matches.
        method: Its method; `OTHER` for one that HTTP does not know.
        status: The status of the response; 0 if the client disconnected before it.
        seconds: How long it took.
        who: The caller; empty if unauthenticated.
        received: How many bytes its body had, as far as it was read.
        sent: How many bytes the body of the answer had.
        code: The code of the mistake; empty if it was none.
        via: How the caller was recognized.
        network: The network address of the client, for the access trail only.
        is_lines: Whether the answer is one of lines.
    """

    trace: str
    route: str
    method: str
    status: int
    seconds: float
    who: str = ""
    received: int = 0
    sent: int = 0
    code: str = ""
    via: str = ""
    network: str = ""
    is_lines: bool = False


class Log:
    """Writes lines.

    Args:
        stream: The output stream; None for none.
        level: The least that is written.
        now: Returns the time, in UTC.
        ledger: The name of the ledger, in each line; empty for the first one.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        level: Level = Level.INFO,
        now: Callable[[], str] = _NOW,
        ledger: str = "",
    ) -> None:
        self._about = {"ledger": ledger} if ledger else {}
        self._least = _NUMBERS[level]
        self._stream = stream
        self._unwritten: list[str] = []
        self._guard = threading.Lock()
        self._now = now

    # --- the server ---

    def began(self, *, version: str) -> None:
        """Log the start of a process."""
        self._write(Level.INFO, "server-began", version=version)

    def ended(self) -> None:
        """Log the end of a process."""
        self._write(Level.INFO, "server-ended")

    def grants_read(self) -> None:
        """Log that the grants of the settings file are in force."""
        self._write(Level.INFO, "grants-read")

    def grants_not_read(self, code: str) -> None:
        """Log that the settings file has a mistake, and the grants stay as they are."""
        self._write(Level.ERROR, "grants-not-read", code=code)

    def not_ready(self, code: str) -> None:
        """Log that `/readyz` fails, since nothing can be decided."""
        self._write(Level.ERROR, "not-ready", code=code)

    # --- requests ---

    def served(self, one: Served, level: Level = Level.INFO) -> None:
        """Log a served request."""
        self._write_soon(
            level,
            "request",
            trace=one.trace,
            route=one.route,
            method=one.method,
            status=one.status,
            ms=round(one.seconds * 1000, 3),
            who=one.who or None,
            received=one.received,
            sent=one.sent,
            code=one.code or None,
        )

    def not_recognized(self, one: Served) -> None:
        """Log a failed authentication, without any of the input."""
        self._write(
            Level.WARNING,
            "not-recognized",
            trace=one.trace,
            route=one.route,
            method=one.method,
            code=one.code or None,
        )

    def failed(self, trace: str, error: BaseException, code: str) -> None:
        """Log a failure: its type and its place."""
        self._write(
            Level.ERROR,
            "failed",
            trace=trace or None,
            code=code,
            types=kinds_of(error),
            frames=frames_of(error),
        )

    # --- libraries ---

    def library(
        self,
        name: str,
        level: Level,
        message: str,
        error: BaseException | None = None,
    ) -> None:
        """Log a message of a library."""
        more: dict[str, Any] = {}
        if error is not None:
            more = {"types": kinds_of(error), "frames": frames_of(error)}
        self._write(level, "library", logger=name, message=message, **more)

    # --- inside ---

    def _write(self, level: Level, event: str, **fields: Any) -> None:
        self._note(level, event, fields)
        self._flush()

    def _write_soon(self, level: Level, event: str, **fields: Any) -> None:
        """Write a line at the end of the present turn of the event loop.

        Requests that end together are written together: each write costs a switch of
        threads.
        """
        if not self._note(level, event, fields):
            return  # Nothing is to be written, or that was arranged.
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._flush()
            return
        loop.call_soon(self._flush)

    def _note(self, level: Level, event: str, fields: Mapping[str, Any]) -> bool:
        """Note a line; return whether it is the first that is not written."""
        if self._stream is None or _NUMBERS[level] < self._least:
            return False
        about = {"event": event, "timestamp": self._now(), "level": level.value}
        line = _line({**about, **self._about, **fields})
        with self._guard:
            self._unwritten.append(line)
            return len(self._unwritten) == 1

    def _flush(self) -> None:
        if self._stream is None:
            return
        with self._guard:
            if self._unwritten:
                text = "".join(self._unwritten)
                self._unwritten.clear()
                self._stream.write(text)
                self._stream.flush()


def _line(fields: Mapping[str, Any]) -> str:
    """Return a line without blanks: msgspec writes none, and is quicker."""
    with suppress(UnicodeEncodeError):  # A surrogate, as in names of files.
        line = _JSON.encode(fields)
        if line.isascii():
            return f"{line.decode()}\n"
    return f"{_ASCII.encode(fields)}\n"
