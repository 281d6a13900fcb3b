"""Clients that work without end, until somebody kills them."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from modicum.api.local import Workspace
from modicum.core.errors import ConflictError, UnavailableError
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text
from modicum.storage.factory import open_store
from modicum.system.clock import FixedClock, SystemClock
from modicum.writer.idempotency import IdempotencyKey, Replayed
from modicum.writer.service import Decider
from samples.small import NOON, compiled, counts

T = TypeVar("T")
Written: TypeAlias = dict[str, Any]

#: Noted where the ledger could not be had, and the client asks again.
UNAVAILABLE = "unavailable"
#: The exit code of a process that had fewer statements than were asked for.
NOT_STRUCK = 3

POLICY = """
modicum: policy/v1
name: crash
units: {user: {id: user_id}}
schema: {attributes: {age: low, pay: low}}
population:
  partition_by: {country: {values: [CH, DE, FR], immutable: [user]}}
policies:
  - {name: all, when: "true", unit: user, budget: {rho: 2}}
  - {name: one, for_each: attribute, unit: user, budget: {low: {rho: 1}}}
"""


def policy() -> CompiledPolicy:
    return compile_text(POLICY.encode(), "policy.yaml")


def release(rng: random.Random, name: str) -> Written:
    """Return a small random release; a few hundred of them fit."""
    return {
        "release": name,
        "mechanisms": [
            {
                "name": "m",
                "mechanism": "gaussian",
                "attributes": [rng.choice(["age", "pay"])],
                "where": {"country": rng.sample(["CH", "DE", "FR"], rng.randint(1, 2))},
                "cost": {"user": {"rho": rng.choice([0.005, 0.01, 0.02])}},
            }
        ],
    }


class Worker:
    """A client that notes what it was told before it goes on.

    Args:
        ledger: A path, or the URL of a database.
        name: What it is called; the actor of its events.
        notes: The folder for its notes.
    """

    def __init__(self, ledger: str, name: str, notes: Path) -> None:
        self._rng = random.Random(name)
        self._name = name
        self._workspace = Workspace(
            open_store(ledger, keep_open=True),
            SystemClock(),
            policy=policy(),
            actor=name,
        )
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._notes = os.open(notes / f"{name}.acks", flags)

    def run(self) -> None:
        """Work without end."""
        number = 0
        while True:
            number += 1
            request = release(self._rng, f"{self._name}-{number}")
            self._live(request, publish=self._rng.random() < 0.3)

    def _live(self, request: Written, *, publish: bool) -> None:
        name = str(request["release"])
        answer = self._ask(name, lambda ws: ws.submit(request, publish=publish).status)
        if answer != "reserved":
            return
        if self._rng.random() < 0.3:
            self._ask(name, lambda ws: ws.cancel(name, reason="test").status.value)
            return
        self._ask(name, lambda ws: ws.start(name).status.value)
        if self._rng.random() < 0.5:
            self._ask(name, lambda ws: ws.publish(name).status.value)
        elif self._rng.random() < 0.5:
            self._ask(name, lambda ws: ws.submit(request).status)

    def _ask(self, name: str, question: Callable[[Workspace], str]) -> str:
        """Ask until there is an answer, and note it."""
        while True:
            try:
                answer = question(self._workspace)
            except UnavailableError:
                self._note(UNAVAILABLE, name)
                time.sleep(0.02)
            except ConflictError:
                # It was done in the turn whose outcome was unknown.
                return self._note("", name)
            else:
                return self._note(answer, name)

    def _note(self, answer: str, name: str) -> str:
        if answer:  # One call of the system: a kill leaves no half of it.
            os.write(self._notes, f"{answer} {name}\n".encode())
        return answer


def work_without_end(ledger: str, name: str, notes: Path) -> None:
    """Be a worker until killed."""
    Worker(ledger, name, notes).run()


# --- one statement at a time ----------------------------------------------------------


class StruckConnection(sqlite3.Connection):
    """A connection that is struck at one of the statements of its process."""

    #: How many statements are left until then.
    left = 0
    #: `before` and `after` it the process is killed; `fails` makes it fail, once.
    how = ""

    def execute(self, *args: Any) -> sqlite3.Cursor:
        return self._strike(super().execute, *args)

    def executemany(self, *args: Any) -> sqlite3.Cursor:
        return self._strike(super().executemany, *args)

    def close(self) -> None:
        # SQLite does not tell whether closing fails.
        if StruckConnection.how == "fails":
            super().close()
        else:
            self._strike(super().close)

    @staticmethod
    def _strike(run: Callable[..., T], *args: Any) -> T:
        StruckConnection.left -= 1
        struck = StruckConnection.left == 0
        if struck and StruckConnection.how == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        if struck and StruckConnection.how == "fails":
            raise _disk_error()
        result = run(*args)
        if struck:
            os.kill(os.getpid(), signal.SIGKILL)
        return result


def _disk_error() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
    return error


def live_and_be_struck(
    folder: Path, statement: int, how: str, *, keep_open: bool
) -> None:
    """Reserve, start and publish a release; exit with 0 if no statement was struck.

    Args:
        folder: Where the ledger is, and the note of each step that was acknowledged.
        statement: At which statement that reaches SQLite, from 1.
        how: How; see `StruckConnection`.
        keep_open: Whether the file is kept open between turns, as a server does.
    """
    StruckConnection.left, StruckConnection.how = statement, how
    vars(sqlite3)["connect"] = partial(sqlite3.connect, factory=StruckConnection)
    store = open_store(folder / "ledger.db", keep_open=keep_open)
    ws = Workspace(store, FixedClock(NOON), policy=compiled(), actor="tester")
    steps: dict[str, Callable[[], object]] = {
        "reserved": lambda: ws.submit(counts("r-1", rho="0.015")),
        "started": lambda: ws.start("r-1"),
        "published": lambda: ws.publish("r-1"),
        "closed": store.close,
    }
    with (folder / "told").open("a", encoding="utf-8") as journal:
        for name, step in steps.items():
            _until_available(step)
            journal.write(f"{name}\n")
            journal.flush()
    os._exit(NOT_STRUCK if StruckConnection.left > 0 else 0)


def _until_available(step: Callable[[], object]) -> None:
    """Take a step, once more if it failed; it may have been taken all the same."""
    try:
        step()
    except UnavailableError:
        with suppress(ConflictError):
            step()


def ask_once_and_be_struck(folder: Path, statement: int, how: str) -> None:
    """Ask a decider for three things, each under a key; else as the one above."""
    StruckConnection.left, StruckConnection.how = statement, how
    vars(sqlite3)["connect"] = partial(sqlite3.connect, factory=StruckConnection)
    store = open_store(folder / "ledger.db", keep_open=True)
    journal = (folder / "told").open("a", encoding="utf-8")
    with Decider(store, FixedClock(NOON), policy=compiled(), actor="tester") as decider:
        calls: dict[str, Callable[[IdempotencyKey], object]] = {
            "reserved": lambda once: decider.submit(counts("r-1"), once=once),
            "started": lambda once: decider.start("r-1", once=once),
            "published": lambda once: decider.publish("r-1", once=once),
        }
        for name, ask in calls.items():
            _until_told(partial(ask, once_for(name)))
            journal.write(f"{name}\n")
            journal.flush()
    os._exit(NOT_STRUCK if StruckConnection.left > 0 else 0)


def once_for(name: str) -> IdempotencyKey:
    """Return what makes asking for something one that is done once."""
    return IdempotencyKey(name, "0" * 64, lambda answer: name.encode())


def _until_told(ask: Callable[[], object]) -> None:
    """Ask, once more if it failed; it may have been done all the same."""
    for _ in range(2):
        try:
            ask()
        except UnavailableError:
            continue
        except Replayed:
            return
        else:
            return
