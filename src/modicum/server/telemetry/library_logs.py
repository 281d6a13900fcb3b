"""What libraries log: it goes into the server's own log, without what is filled in.

The template of a message stands in a library's source and says nothing of a request;
what is filled into it may. A message that was put together before it was logged
cannot be told from a template, so that only those of a closed list are written.
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

#: The loggers whose lines are taken, and no other's.
LOGGERS: Final = ("uvicorn", "opentelemetry", "asyncio", "fastapi")

#: What uvicorn says of itself, as it stands in its source.
SAYINGS: Final = frozenset(
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
#: Stands for anything else.
OTHER: Final = "(hidden: it may contain client data)"


class LogOfLibraries(logging.Handler):
    """Takes what libraries log.

    Args:
        log: The server's log.
    """

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        says = record.msg if isinstance(record.msg, str) else OTHER
        error = record.exc_info[1] if record.exc_info else None
        self._log.library(
            record.name,
            _level(record.levelno),
            says.strip() if says in SAYINGS else OTHER,
            error,
        )


@contextmanager
def taking_over(log: Log) -> Iterator[None]:
    """Take what libraries log, until the block ends; then all is as it was before.

    What ends a thread is taken, too: Python would print all that it says. It keeps its
    loggers and hooks for a whole process: there is no other place to take it at.
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
    """Tell of a thread that an exception ended."""
    if found.exc_value is not None:
        log.failed("", found.exc_value, Code.INTERNAL.value)


def _level(number: int) -> Level:
    if number >= logging.ERROR:
        return Level.ERROR
    if number >= logging.WARNING:
        return Level.WARNING
    return Level.INFO if number >= logging.INFO else Level.DEBUG
