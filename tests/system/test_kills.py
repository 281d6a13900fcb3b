"""Processes killed at random moments under load, and a server that goes away.

Whatever happens, the log is right, what was acknowledged is there, and others go on.
`make soak` kills a thousand processes on each store.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkContext, ForkProcess
from pathlib import Path

import pytest
from budget import seed
from oracle.auditor import Findings, audit
from samples.crash import UNAVAILABLE, work_without_end
from samples.ledger_places import LedgerPlace, postgres_place, sqlite_place
from samples.postgres import Cluster

from modicum.api.local import Workspace
from modicum.storage.factory import open_store
from modicum.system.clock import SystemClock

SOAKS = bool(os.environ.get("MODICUM_SOAK"))
#: How often a process is killed on one ledger, before a new one is begun.
KILLS = 20 if SOAKS else 4
LEDGERS = 52 if SOAKS else 1
RESTARTS = 10 if SOAKS else 1
WORKERS = 3
#: How long others may take to go on. It is long since the machine may be busy.
PATIENCE = 60.0


class Crew:
    """Processes that work on one ledger without end.

    Args:
        place: The ledger.
        notes: The folder for what they were told.
    """

    def __init__(self, place: LedgerPlace, notes: Path) -> None:
        self._place = place
        self._notes = notes
        self._context: ForkContext = multiprocessing.get_context("fork")
        self._hired = 0
        self.workers: dict[str, ForkProcess] = {}
        self.findings = Findings()

    def hire(self) -> None:
        self._hired += 1
        name = f"w{self._hired}"
        worker = self._context.Process(
            target=work_without_end, args=(self._place.address, name, self._notes)
        )
        worker.start()
        self.workers[name] = worker

    def kill(self, name: str) -> None:
        worker = self.workers.pop(name)
        worker.kill()
        worker.join()
        assert worker.exitcode == -signal.SIGKILL

    def told(self) -> list[tuple[str, str]]:
        """Return what was acknowledged: a word, and a release."""
        found = []
        for path in self._notes.glob("*.acks"):
            for line in path.read_text(encoding="utf-8").splitlines():
                answer, name = line.split()
                found.append((answer, name))
        return found

    def acknowledged(self) -> Counter[str]:
        """Return how many answers each worker has had."""
        return Counter(
            name.partition("-")[0]
            for answer, name in self.told()
            if answer != UNAVAILABLE
        )

    def go_on(self) -> None:
        """Wait until each worker has had another answer."""
        before = self.acknowledged()
        deadline = time.monotonic() + PATIENCE
        waiting = set(self.workers)
        while waiting:
            assert time.monotonic() < deadline, "nobody goes on"
            assert all(worker.is_alive() for worker in self.workers.values())
            time.sleep(0.01)
            now = self.acknowledged()
            waiting = {one for one in waiting if now[one] == before[one]}

    def check(self) -> None:
        """Hold the log, as it is now, against what was acknowledged before."""
        told = [(answer, name) for answer, name in self.told() if answer != UNAVAILABLE]
        rows = list(self._place.rows())  # Others go on writing.
        self.findings = audit(lambda: rows, told)
        assert self.findings.mistakes == []

    def verify(self) -> int:
        """Take every decision again, by the ledger's own audit."""
        store = open_store(self._place.address)
        report = Workspace(store, SystemClock(), actor="auditor").verify()
        store.close()
        return report.entries


@contextmanager
def hired(place: LedgerPlace, notes: Path) -> Iterator[Crew]:
    """Yield workers on a ledger; whoever is left at the end is killed."""
    notes.mkdir()
    crew = Crew(place, notes)
    try:
        for _ in range(WORKERS):
            crew.hire()
        yield crew
    finally:
        for name in list(crew.workers):
            crew.kill(name)


@pytest.fixture(params=["sqlite", "postgres"])
def new_place(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Callable[[int], LedgerPlace]:
    if request.param == "sqlite":
        return lambda number: sqlite_place(tmp_path / f"{number}.db")
    cluster: Cluster = request.getfixturevalue("postgres")
    return lambda number: postgres_place(cluster)


@pytest.mark.soak
@pytest.mark.spec("LED-8")
def test_killed_at_random_moments_under_load(
    new_place: Callable[[int], LedgerPlace], tmp_path: Path
) -> None:
    rng = dice("kills")
    entries = 0
    for number in range(LEDGERS):
        with hired(new_place(number), tmp_path / f"notes-{number}") as crew:
            for kill in range(KILLS):
                if kill:  # The first one may hit while the ledger is made.
                    crew.go_on()
                time.sleep(rng.uniform(0, 0.1))
                crew.kill(rng.choice(sorted(crew.workers)))
                crew.check()
                crew.hire()
            crew.go_on()
        crew.check()
        entries += crew.verify()
    print(f"{LEDGERS * KILLS} kills, {entries} entries")
    assert entries > LEDGERS * KILLS * 5


@pytest.mark.soak
@pytest.mark.spec("LED-8")
def test_a_server_that_restarts_is_waited_for(
    own_postgres: Cluster, tmp_path: Path
) -> None:
    rng = dice("restarts")
    with hired(postgres_place(own_postgres), tmp_path / "notes") as crew:
        for how in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL) * RESTARTS:
            crew.go_on()
            time.sleep(rng.uniform(0, 0.1))
            own_postgres.restart(how)
            crew.go_on()
            crew.check()
        failures = sum(answer == UNAVAILABLE for answer, _ in crew.told())
    crew.check()
    print(f"{3 * RESTARTS} restarts, {failures} times unavailable; {crew.findings}")
    assert crew.verify() == crew.findings.entries
    assert failures >= WORKERS


def dice(what: str) -> random.Random:
    return random.Random(f"{what} {seed()}")
