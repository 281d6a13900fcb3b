"""Many clients, many processes, one ledger: an auditor of its own finds no mistake.

`make soak` lets 64 clients in 8 processes ask 100,000 times, on each store.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from pathlib import Path

import pytest
from oracle.auditor import Findings, audit
from samples.ledger_places import LedgerPlace, postgres_place, sqlite_place
from samples.load import Job, work

SOAKS = bool(os.environ.get("MODICUM_SOAK"))
PROCESSES, CLIENTS, ASKS = (8, 8, 1563) if SOAKS else (4, 4, 30)
#: So that some hundred releases fill the limits; or, in the soak, tens of thousands.
SIZES = range(4, 16) if SOAKS else range(4)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> LedgerPlace:
    if request.param == "sqlite":
        return sqlite_place(tmp_path / "ledger.db")
    return postgres_place(request.getfixturevalue("postgres"))


@pytest.mark.soak
@pytest.mark.spec("LED-8")
def test_no_limit_is_overdrawn_and_nothing_is_lost(
    place: LedgerPlace, tmp_path: Path
) -> None:
    seed = os.environ.get("MODICUM_SOAK", "20")
    began = time.monotonic()
    run_all([job(place, number, seed, tmp_path) for number in range(PROCESSES)])
    lasted = time.monotonic() - began
    result = acknowledged(tmp_path)
    found = audit(place.rows, result)
    shares = fair_shares(tmp_path)
    summarize(found, len(result), lasted, shares)
    assert found.mistakes == []
    assert found.kinds["release-denied"] > 0.1 * found.entries
    assert found.kinds["release-reserved"] > 0.1 * found.entries
    assert min(shares) >= 0.5


def job(place: LedgerPlace, number: int, seed: str, notes: Path) -> Job:
    name, looks = f"p{number}", number == 0
    return Job(place.address, name, CLIENTS, ASKS, SIZES, seed, notes, looks)


def run_all(jobs: list[Job]) -> None:
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(len(jobs))
    processes = [context.Process(target=run, args=(one, barrier)) for one in jobs]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(jobs)


def run(job: Job, barrier: multiprocessing.synchronize.Barrier) -> None:
    work(job, lambda: barrier.wait(timeout=120))


def acknowledged(notes: Path) -> list[tuple[str, str]]:
    """Return what the clients were told: a word, and a release."""
    found = []
    for path in sorted(notes.glob("*.acks")):
        for line in path.read_text(encoding="utf-8").splitlines():
            answer, name = line.split()
            found.append((answer, name))
    return found


def fair_shares(notes: Path) -> list[float]:
    """Return how many turns each process had while all worked; 1 is a fair share."""
    turns = [
        json.loads(path.read_text(encoding="utf-8"))["turns"]
        for path in sorted(notes.glob("*.turns"))
    ]
    first, last = max(one[0] for one in turns), min(one[-1] for one in turns)
    counts = [sum(first <= at <= last for at in one) for one in turns]
    return [count * len(counts) / sum(counts) for count in counts]


def summarize(found: Findings, result: int, lasted: float, shares: list[float]) -> None:
    per_second = found.entries / lasted
    print(
        f"{PROCESSES} processes x {CLIENTS} clients, {result} acknowledged in"
        f" {lasted:.0f} s ({per_second:.0f} entries/s), turns {min(shares):.2f} to"
        f" {max(shares):.2f} of a fair share; {found}"
    )
