"""How many releases a second a ledger decides, durably, beside what its disk can do.

Run it with `python bench/ledger.py`, or with `--quick`. A decision is all of it: from a
description as plain data, through reading, pricing, matching and deciding, to an answer
after the commit. Just before and after each load, the same folder's disk is asked for
what a commit costs at least: append, `fdatasync`, again and again. So both sides of a
ratio are of the same moment.

A disk that acknowledges early makes the raw side look better than any durable disk
could be. `--sync-us 250` repeats everything with a sleep of so long after each raw sync
and in each commit: a disk as it would be, on both sides. Such lines say "simulated".
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from msgspec.structs import replace

from modicum.api.local import Decision
from modicum.api.local.evaluation import price_release
from modicum.api.ports.storage import Store, Turn
from modicum.ledger import GENESIS, Event, Record, seal
from modicum.ledger.log.events import (
    PolicyActivated,
    ReleasePosted,
    ReleaseReserved,
    ReleaseStarted,
)
from modicum.ledger.proof.consistency import content_of
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text
from modicum.storage.factory import open_store
from modicum.system.clock import SystemClock
from modicum.writer.service import Decider

Written: TypeAlias = dict[str, Any]

SEED = 20261121
COUNTRIES = ("AT", "BE", "CH", "DE", "ES", "FR", "GB", "IT", "NL", "PL")
ATTRIBUTES = ("age", "pay", "diagnosis")
#: People choose round numbers, and few of them.
SIGMAS = range(20_000, 30_000, 500)
BATCH = 100

POLICY = """
modicum: policy/v1
name: bench
dp: {bare_budget: {type: approx-dp, delta: 1e-6}}
units: {user: {id: user_id}}
labels:
  use: {values: [study, product, unknown], default: unknown}
population:
  partition_by:
    country: {values: [AT, BE, CH, DE, ES, FR, GB, IT, NL, PL], immutable: [user]}
    birth: {range: [0, 99], immutable: [user]}
policies:
  - {name: all, when: "true", unit: user, budget: 8}
  - {name: one, for_each: attribute, unit: user, budget: {low: 3, high: 2}}
  - {name: cat, for_each: category, unit: user, budget: {high: 4},
     levels: {member: same, strong: {scale: 1.25}, weak: {scale: 1.5}}}
extensions:
  - name: use
    settings:
      study: {when: 'm.use == "study"', budget: same}
      any: {when: "true", budget: {scale: 2}}
schema:
  categories: {health: high}
  attributes:
    age: [low, {health: weak}]
    pay: [high]
    diagnosis: [high, {health: member}]
"""


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    Attributes:
        seconds: How long each load lasts.
        events: How many events the log has that is started from.
        stores: Where ledgers live: `sqlite`, `postgres`.
        sync_us: What is added to each sync, in microseconds.
    """

    seconds: float
    events: int
    stores: Sequence[str]
    sync_us: int = 0


# --- releases -------------------------------------------------------------------------


class Releases:
    """Releases that nobody has seen before, as plain data; any thread may take one.

    Args:
        hot: Whether all of them are about one cell.
    """

    def __init__(self, *, hot: bool) -> None:
        self._rng = random.Random(SEED)  # noqa: S311 - no secret
        self._numbers = count()
        self._hot = hot

    def __next__(self) -> Written:
        rng, number = self._rng, next(self._numbers)
        low = 0 if self._hot else 10 * rng.randrange(10)
        country = COUNTRIES[0] if self._hot else rng.choice(COUNTRIES)
        return {
            "release": f"r-{number}",
            "use": rng.choice(("study", "product")),
            "where": {"country": country, "birth": {"from": low, "to": low + 9}},
            "mechanisms": [
                {
                    "name": "counts",
                    "mechanism": "gaussian",
                    "attributes": rng.sample(ATTRIBUTES, rng.choice((1, 2))),
                    "sensitivity": {"user": {"l2": 1}},
                    "sigma": rng.choice(SIGMAS),
                }
            ],
        }


# --- both sides -----------------------------------------------------------------------


def raw_syncs(folder: Path, plan: Plan, size: int = 4096) -> float:
    """Return how often a second so many bytes can be appended durably."""
    page, path = os.urandom(size), folder / "raw"
    with path.open("wb", buffering=0) as file:
        began, done = time.perf_counter(), 0
        while (lasted := time.perf_counter() - began) < plan.seconds / 4:
            file.write(page)
            os.fdatasync(file.fileno())
            if plan.sync_us:
                time.sleep(plan.sync_us / 1e6)
            done += 1
    path.unlink()
    return done / lasted


class SlowSync:
    """A store whose commits take longer, as on a disk that waits for its platter."""

    def __init__(self, store: Store, sync_us: int) -> None:
        self._store = store
        self._seconds = sync_us / 1e6
        self.turns = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """Hold the turn for as much longer."""
        with self._store.turn() as turn:
            yield turn
            if self._seconds:
                time.sleep(self._seconds)
        self.turns += 1


@dataclass
class Load:
    """What some clients did to a ledger, and how long they waited.

    Attributes:
        name: What it is called.
        decided: How many releases were decided.
        lasted: How long it took, in seconds.
        waits: How long each request took, in seconds.
        turns: How many turns there were.
    """

    name: str
    decided: int
    lasted: float
    waits: list[float]
    turns: int

    @property
    def rate(self) -> float:
        """Decisions a second."""
        return self.decided / self.lasted

    def wait(self, share: float) -> float:
        """Return how many milliseconds a share of the requests waited at most."""
        ordered = sorted(self.waits)
        if not ordered:
            return math.nan  # Nothing was answered in so short a time.
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def ask(decider: Decider, releases: Releases, size: int) -> int:
    """Submit some releases and return how many were decided."""
    if size == 1:
        return int(decider.submit(next(releases)).allowed)
    answers = decider.submit_batch([next(releases) for _ in range(size)])
    return sum(isinstance(one, Decision) and one.allowed for one in answers)


def load(ledger: str, plan: Plan, clients: int, size: int, *, hot: bool) -> Load:
    """Let clients submit releases for a while."""
    store = SlowSync(open_store(ledger, keep_open=True), plan.sync_us)
    releases, waits, done = Releases(hot=hot), [], [0] * clients
    with Decider(store, SystemClock(), policy=policy()) as decider:  # type: ignore[arg-type]
        ask(decider, releases, BATCH)  # The ledger is made.
        began, before = time.perf_counter(), store.turns
        until = began + plan.seconds

        def client(number: int) -> None:
            while (began_at := time.perf_counter()) < until:
                done[number] += ask(decider, releases, size)
                waits.append(time.perf_counter() - began_at)

        threads = [threading.Thread(target=client, args=(n,)) for n in range(clients)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        lasted, turns = time.perf_counter() - began, store.turns - before
    name = f"{clients} clients" if size == 1 else f"batches of {size}"
    kind = "one hot cell" if hot else "100 cells"
    return Load(f"{name}, {kind}", sum(done), lasted, waits, turns)


def policy() -> CompiledPolicy:
    """Return the policy."""
    return compile_text(POLICY.encode(), "bench.yaml")


# --- the log, written at once ---------------------------------------------------------


def log(events: int) -> Iterator[Record]:
    """Yield the records of a log of so many events; each release is published."""
    compiled = policy()
    digest = compiled.policy.digest
    at = "2026-11-01T00:00:00.000000Z"
    releases = Releases(hot=False)
    kinds = [price_release(next(releases), compiled) for _ in range(500)]
    bodies: list[Any] = [PolicyActivated(digest, "bench", POLICY)]
    seq, head = 0, GENESIS
    for number in count():
        kind = kinds[number % len(kinds)]
        name = f"release-{number:09d}"
        release = replace(kind, id=name)
        release = replace(release, content=content_of(release))
        bodies += [
            ReleaseReserved(release, digest, "2027-01-01T00:00:00.000000Z"),
            ReleaseStarted(name),
            ReleasePosted(name),
        ]
        for body in bodies:
            record = seal(Event(at, "bench", body), seq := seq + 1, head)
            head = record.hash
            yield record
            if seq == events:
                return
        bodies.clear()


def appends(ledger: str, plan: Plan) -> float:
    """Return how many decided events a second are appended in batches."""
    records = list(log(max(BATCH, int(60_000 * min(1, plan.seconds)))))
    store = SlowSync(open_store(ledger, keep_open=True), plan.sync_us)
    began, done = time.perf_counter(), 0
    while done < len(records) and time.perf_counter() - began < plan.seconds:
        with store.turn() as turn:
            turn.append(records[done : done + BATCH])
        done += BATCH
    lasted = time.perf_counter() - began
    store.close()
    return done / lasted


def write_log(ledger: str, events: int) -> None:
    """Write a log of so many events."""
    store = open_store(ledger, keep_open=True)
    page: list[Record] = []
    for record in log(events):
        page.append(record)
        if len(page) == 10_000 or record.seq == events:
            with store.turn() as turn:
                turn.append(page)
            page.clear()
    store.close()


def start(ledger: str) -> Written:
    """Start a decider, and return how long it took and what memory it took."""
    before = _resident()
    began = time.perf_counter()
    with Decider(open_store(ledger, keep_open=True), SystemClock()):
        lasted = time.perf_counter() - began
        kept = _resident() - before
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"seconds": lasted, "peak_kb": peak, "kept_kb": kept}


def _resident() -> int:
    """Return the memory that this process has now, in KiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 1024


def start_elsewhere(ledger: str) -> Written:
    """Return what `start` says in a process of its own."""
    command = [sys.executable, __file__, "--start", ledger]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    found: Written = json.loads(done.stdout)
    return found


# --- tables ---------------------------------------------------------------------------


def say(*cells: object) -> None:
    """Print a row of a table."""
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def loads_table(place: Callable[[], str], folder: Path, plan: Plan) -> list[float]:
    """Print how many decisions a second there are; return the ratios that matter."""
    say("load", "decisions/s", "raw syncs/s", "ratio", "per turn", "p50 ms", "p99 ms")
    say("---", *["--:"] * 6)
    ratios = []
    for clients, size in ((1, 1), (8, 1), (64, 1), (1, BATCH)):
        for hot in (False, True):
            before = raw_syncs(folder, plan)
            found = load(place(), plan, clients, size, hot=hot)
            raw = (before + raw_syncs(folder, plan)) / 2
            ratio = found.rate / raw
            say(
                found.name,
                f"{found.rate:,.0f}",
                f"{raw:,.0f}",
                f"{ratio:.2f}",
                f"{found.decided / max(1, found.turns):.1f}",
                f"{found.wait(0.5):.2f}",
                f"{found.wait(0.99):.2f}",
            )
            ratios.append(ratio)
    return ratios


def report(name: str, place: Callable[[], str], folder: Path, plan: Plan) -> None:
    """Print everything about one store."""
    how = (
        f"a sync with {plan.sync_us} us added, simulated"
        if plan.sync_us
        else "the disk as is"
    )
    print(f"\n## {name}, {how}\n")
    small = raw_syncs(folder, plan, 200)
    print(f"Raw syncs of 200 bytes: {small:,.0f} a second.\n")
    ratios = loads_table(place, folder, plan)
    raw, many = raw_syncs(folder, plan), appends(place(), plan)
    print(f"\nAppends of decided events in batches of {BATCH}: {many:,.0f} a second,")
    print(f"{many / raw:.1f} x the raw rate of {raw:,.0f}.\n")
    if name == "SQLite":
        claim("8 clients: at least 1.3 x raw", min(ratios[2:4]), 1.3)
        claim("batches of 100: at least 2 x raw", min(ratios[6:8]), 2)
        claim("appends in batches of 100: at least 12 x raw", many / raw, 12)


def claim(target: str, found: float, least: float) -> None:
    """Print whether a target is reached."""
    print(f"- {'PASS' if found >= least else 'FAIL'} {target}: {found:.2f} x")


def starts_table(folder: Path, plan: Plan) -> None:
    """Print how long it takes to start from a long log."""
    ledger = str(folder / "long.db")
    began = time.perf_counter()
    write_log(ledger, plan.events)
    print(f"\n## Start from {plan.events:,} events (written in", end=" ")
    print(f"{time.perf_counter() - began:.0f} s)\n")
    say("start", "seconds", "memory kept MB", "peak MB")
    say("---", *["--:"] * 3)
    for name in ("without a snapshot", "with a snapshot"):
        found = start_elsewhere(ledger)
        kept, peak = found["kept_kb"] / 1024, found["peak_kb"] / 1024
        say(name, f"{found['seconds']:.2f}", f"{kept:.0f}", f"{peak:.0f}")


@contextmanager
def places(names: Sequence[str], folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what makes new ledgers, by the name of their store."""
    numbers = count()
    found: dict[str, Any] = {}
    if "sqlite" in names:
        found["SQLite"] = lambda: str(folder / f"{next(numbers)}.db")
    if "postgres" not in names:
        yield found
        return
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from samples.postgres import running_cluster

    with running_cluster() as cluster:
        if cluster is None:
            print("This machine has no PostgreSQL.")
        else:
            found["PostgreSQL"] = cluster.new_ledger
        yield found


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a second, not a minute")
    parser.add_argument("--folder", type=Path, help="where the ledgers are made")
    parser.add_argument("--sync-us", type=int, default=0, help="also simulate a sync")
    parser.add_argument("--stores", default="sqlite,postgres")
    parser.add_argument("--events", type=int, help="events to start from; 0 for none")
    parser.add_argument("--seconds", type=float, help="how long each load lasts")
    parser.add_argument("--start", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.start:
        print(json.dumps(start(given.start)))
        return
    seconds = given.seconds or (0.05 if given.quick else 2.0)
    events = 2_000 if given.quick else 1_000_000
    events = events if given.events is None else given.events
    with tempfile.TemporaryDirectory(dir=given.folder) as made:
        folder, names = Path(made), given.stores.split(",")
        print(f"Python {sys.version.split()[0]}, {os.cpu_count()} CPUs, seed {SEED}")
        with places(names, folder) as stores:
            for sync_us in dict.fromkeys((0, given.sync_us)):
                plan = Plan(seconds, events, names, sync_us)
                for name, place in stores.items():
                    report(name, place, folder, plan)
        if events:
            starts_table(folder, Plan(seconds, events, names))


if __name__ == "__main__":
    main()
