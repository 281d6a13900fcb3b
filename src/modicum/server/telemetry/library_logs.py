"""Logs of libraries: written to the server's log, without their arguments.

The template of a message is constant in a library's source and contains no request
data; its arguments may. A message formatted before logging cannot be distinguished from
a template, so only those of a closed list are written.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from modicum.core.errors import Code
from modicum.server.telemetry.log import Level, Log

#: The loggers that are included.
LOGGERS: Final = ("uvicorn", "opentelemetry", "asyncio", "fastapi")

#: Uvicorn's own messages, as in its source.
CONSTANT_TEXTS: Final = frozenset(
    {
        "Application shutdown complete.",
        "Application shutdown failed. Exiting.",
        "Application startup complete.",
        "Application startup failed. Exiting.",
        "Cancel %s running task(s), timeout graceful shutdown exceeded",
        "Exception in ASGI application\n",
        "Finished server process [%d]",
        "Invalid HTTP request received.",
        "Shutting down",
        "Started parent process [%d]",
        "Started server process [%d]",
        "Uvicorn running on %s://%s:%d (Press CTRL+C to quit)",
        "Uvicorn running on socket %s (Press CTRL+C to quit)",
        "Waiting for application shutdown.",
        "Waiting for application startup.",
        "Waiting for background tasks to complete. (CTRL+C to force quit)",
        "Waiting for connections to close. (CTRL+C to force quit)",
    }
)
#: The placeholder for anything else.
OTHER: Final = "(hidden: it may contain client data)"


class LogOfLibraries(logging.Handler):
    """Receives the logs of libraries.

    Args:
        log: The server's log.
    """

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        message = record.msg if isinstance(record.msg, str) else OTHER
        error = record.exc_info[1] if record.exc_info else None
        self._log.library(
            record.name,
            _level(record.levelno),
            message.strip() if message in CONSTANT_TEXTS else OTHER,
            error,
        )


@contextmanager
def taking_over(log: Log) -> Iterator[None]:
    """Receive logs of libraries until the block ends; then restore all handlers.

    Exceptions that end a thread are included: Python would print their messages.
    Loggers and hooks are global to a process, so they must be replaced there.
    """
    handler = LogOfLibraries(log)
    found = [logging.getLogger(name) for name in LOGGERS]
    before = [(one.handlers[:], one.propagate, one.level) for one in found]
    for one in found:
        one.handlers[:] = [handler]
        one.propagate = False
        one.setLevel(logging.INFO)
    hook = threading.excepthook
    threading.excepthook = partial(_ended, log)
    try:
        yield
    finally:
        threading.excepthook = hook
        for one, (handlers, propagate, level) in zip(found, before, strict=True):
            one.handlers[:] = handlers
            one.propagate = propagate
            one.setLevel(level)


def _ended(log: Log, found: threading.ExceptHookArgs) -> None:
    """Log a thread that an exception ended."""
    if found.exc_value is not None:
        log.failed("", found.exc_value, Code.INTERNAL.value)


def _level(number: int) -> Level:
    if number >= logging.ERROR:
        return Level.ERROR
    if number >= logging.WARNING:
        return Level.WARNING
    return Level.INFO if number >= logging.INFO else Level.DEBUG
