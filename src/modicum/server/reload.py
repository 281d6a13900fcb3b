"""Reading grants again while a server runs, on SIGHUP."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

from modicum.core.errors import Code, InputError, ModicumError, Problem
from modicum.server.auth.grants import CurrentGrants, GrantTable, grant_table
from modicum.server.auth.ports import Names
from modicum.server.lookalikes import refuse_lookalike
from modicum.server.settings.model import Settings
from modicum.server.settings.reader import load_settings
from modicum.server.telemetry.log import Log


def current_settings(settings: Settings) -> Settings:
    """Return settings with the grants that their file has now.

    Raises:
        InputError: If it has mistakes, which may be elsewhere in it.
        UsageError: If it cannot be read.
    """
    if settings.file is None:
        return settings
    found = load_settings(settings.file, alone=True)
    current = replace(
        settings, grants=found.grants, people=found.people, programs=found.programs
    )
    before, after = grant_table(settings), grant_table(current)
    if before.all_people > after.all_people or before.all_programs > after.all_programs:
        raise InputError(
            Problem(
                Code.MISSING_KEY,
                "the settings name no people, or no programs, any more",
                notes=("then tokens are limited only by what they were created for",),
                help="name one; or restart the server if that is meant",
            )
        )
    return current


def checked_grants(settings: Settings, names: Names) -> GrantTable:
    """Return the grants of settings, unless a name looks like another one.

    Raises:
        InputError: If one does.
    """
    table = grant_table(settings)
    for one in sorted(table.names):
        refuse_lookalike(one, names.lookalike_of(one, table.names))
    return table


def reload_grants(
    settings: Settings,
    grants: CurrentGrants,
    names: Names,
    log: Log,
    changed: Callable[[Settings], object] = lambda _: None,
) -> None:
    """Put the grants that the settings file has now in force; keep them on a mistake.

    Args:
        settings: The settings that the server was started with.
        grants: The grants in force.
        names: The names of the ledger.
        log: Where the outcome is written.
        changed: Is called with the settings that are then in force.
    """
    try:
        current = current_settings(settings)
        grants.table = checked_grants(current, names)
    except ModicumError as error:
        log.grants_not_read(error.code.value)
    except Exception:  # noqa: BLE001 - nobody else would see it
        log.grants_not_read("unknown")
    else:
        log.grants_read()
        changed(current)


@contextmanager
def on_hangup(call: Callable[[], None] | None) -> Iterator[None]:
    """Run a function for each SIGHUP, one after the other and in a thread of its own.

    Args:
        call: The function; None to leave the signal as it is.
    """
    if call is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1, "modicum-reload") as thread:
        loop.add_signal_handler(signal.SIGHUP, lambda: thread.submit(call))
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGHUP)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # It would end the process.
