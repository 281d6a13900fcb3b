"""A real server among faults: partitions, witnesses, clocks, full disks, and kills.

A schedule that follows from its seed begins and ends faults, which overlap, while
clients submit, start, post and void under keys, and repeat what had no answer. These
are the invariants. They are checked at each step and, with all that takes long, when
no fault is left:

1. Each acknowledged decision (a 2xx) is in the log, exactly once.
2. What is acknowledged, the witness has (LED-29); what the witness has, the log has.
3. The log extends each head that was seen before (LED-18).
4. The auditor of the tests and `modicum ledger verify` find no mistake: no rule is
   exceeded, nobody is denied unjustly, and no hash, time or step is wrong.
5. No reservation expires early, and no entry is dated in the future (LED-15).
6. While a fault stops decisions for longer than five seconds, `/readyz` fails.
   `/healthz` never fails. A server that lives does not end by itself.
7. When the last fault ended, each server that is up decides within ten seconds, and is
   ready, without a restart.
8. An answer that is no decision is a problem with a code, and with no path or address;
   if nothing could be decided, it is a 5xx. Where the clock jumps beyond the life of a
   token, it may be a 401.
9. A request that is repeated under its key gets the first answer.
10. A witness that goes back is refused: nothing is acknowledged until it is restored.

A violation names the seed, the round and the steps so far: the same seed repeats them.
`make soak` tries each kind of witness with each store, some minutes each.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from budget import seed
from oracle.auditor import Row, audit
from samples import shifted_clock
from samples.crash import POLICY
from samples.faults import (
    JUMPS,
    Disk,
    Fault,
    Place,
    Proxy,
    Step,
    Wall,
    carry_out,
    link_faults,
    linked,
    planned,
    witness_place,
)
from samples.ledger_places import LedgerPlace, postgres_place, sqlite_place
from samples.postgres import Cluster
from samples.witnesses import KINDS
from typer.testing import CliRunner

import modicum as mo
from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import ALL
from modicum.api.permissions.tokens import TokenTerms
from modicum.api.schema.account import TOKEN_DAYS_MAX
from modicum.cli.main import app
from modicum.server.auth.registry import open_registry
from modicum.storage.factory import open_store

pytestmark = pytest.mark.suite("kills")

SOAKS = bool(os.environ.get("MODICUM_SOAK"))
STORES = ("sqlite", "postgresql")
PAIRS = [(store, witness) for store in STORES for witness in KINDS]
ROUNDS, FAULTS, SECONDS = (4, 8, 14.0) if SOAKS else (1, 5, 3.0)
CLIENTS = 4
#: How long a server may take to be not ready, to decide again, and to start. A plain
#: run does not judge how busy the machine is.
UNREADY, AGAIN, STARTS = (7.0, 10.0, 120.0) if SOAKS else (20.0, 60.0, 120.0)
#: How long a probe may take; what else runs on a machine may take its processors.
PROBE = 10.0
#: A server may be ready so long before its next decision.
RESUMES = 3.0
#: An answer without a place.
PLACES = re.compile(
    r"/tmp|127\.0\.0\.1|localhost|postgres(ql)?:|@|s3://|https?://|modicum_|\.db\b|PGSQL"
)
EVENTS = {
    "denied": "release-denied",
    "reserved": "release-reserved",
    "started": "release-started",
    "published": "release-posted",
    "canceled": "release-voided",
}


@dataclass
class Attempt:
    """A request to decide, and whether it was answered with a decision."""

    port: int
    begins: float
    ends: float = float("inf")
    is_decided: bool = False


@dataclass
class Journal:
    """What happened: written by all threads.

    Attributes:
        name: What is tried, and by which seed.
        place: Where in the schedule it is.
        violations: What must not be.
        counts: How often things happened.
        told: What was acknowledged: a word, and a release.
        attempts: Requests to decide since the last quiet point.
        ready: Since then, when which server was ready.
        expired_until: Until then, tokens may have expired by a wrong clock.
    """

    name: str
    place: str = "start"
    violations: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    told: list[tuple[str, str]] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    ready: list[tuple[int, float]] = field(default_factory=list)
    expired_until: float = 0.0

    def violated(self, what: str) -> None:
        """Note what must not be."""
        text = f"{self.name}, {self.place}: {what}"
        self.violations.append(text)
        self.tell(f"VIOLATION {text}")

    def tell(self, what: str) -> None:
        """Print what happens, and when."""
        print(f"\n{datetime.now(UTC):%H:%M:%S.%f} {what}", end="", flush=True)


# --- servers --------------------------------------------------------------------------


class Server:
    """A server in a process of its own.

    Args:
        folder: For its settings and logs.
        wall: Its clock.

    Attributes:
        port: Where it listens.
        is_meant: Whether it is meant to be up.
        listens: Whether it answered since it was started.
        started: When it was started last.
    """

    def __init__(self, folder: Path, wall: Wall) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._log = folder / f"server-{self.port}.log"
        self._command = [sys.executable, str(shifted_clock.__file__), str(wall.file)]
        self._command += ["serve", "--config", str(folder / "server.yaml")]
        self._command += ["--port", str(self.port)]
        self.start()

    def start(self) -> None:
        """Start it; it is not waited for."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log)
        self.started, self.listens, self.is_meant = time.monotonic(), False, True

    def kill(self) -> None:
        """End it at once."""
        self.is_meant = False
        self.process.kill()
        self.process.wait(60)

    def look(self) -> bool:
        """Return whether it answers by now: it binds its port long before."""
        with suppress(httpx2.HTTPError):
            found = httpx2.get(f"http://127.0.0.1:{self.port}/healthz", timeout=0.5)
            self.listens = found.status_code == 200
        return self.listens

    @property
    def last_words(self) -> str:
        """The end of its log."""
        return self._log.read_bytes()[-1500:].decode(errors="replace")


class Servers:
    """Servers of one ledger: one, or two of them while one takes over.

    Args:
        folder: For their settings and logs.
        wall: Their clock.
        journal: What happens.
    """

    def __init__(self, folder: Path, wall: Wall, journal: Journal) -> None:
        self._folder = folder
        self._wall = wall
        self._journal = journal
        self._over = threading.Event()
        self._rolling = threading.Thread(target=lambda: None)
        self._rolling.start()
        self.all = [Server(folder, wall)]
        self._threads = [
            threading.Thread(target=one) for one in (self._supervise, self._probe)
        ]
        for one in self._threads:
            one.start()

    @property
    def up(self) -> list[Server]:
        """Those that may be asked."""
        return [one for one in self.all if one.is_meant and one.listens]

    def faults(self, apart: frozenset[str]) -> list[Fault]:
        """Return what can happen to them; nothing of it while their clock is wrong."""
        killed = Fault("SIGKILL", "servers", self._kill, self._start, apart=apart)
        wait = self.settle if apart else lambda: None
        rolling = Fault("rolling restart", "servers", self._roll, wait, apart=apart)
        return [killed, rolling]

    def _kill(self) -> None:
        if not self._rolling.is_alive():
            self.all[0].kill()

    def _start(self) -> None:
        if not self.all[0].is_meant:
            self.all[0].start()

    def _roll(self) -> None:
        if not self._rolling.is_alive():
            self._rolling = threading.Thread(target=self._take_over)
            self._rolling.start()

    def settle(self) -> None:
        """Wait until nobody takes over any more."""
        self._rolling.join()

    def _take_over(self) -> None:
        old, new = self.all[0], Server(self._folder, self._wall)
        self.all.append(new)
        while not new.listens and not self._over.is_set():
            time.sleep(0.05)
        time.sleep(0.5)  # Both serve.
        self.all.remove(old)
        old.process.send_signal(signal.SIGTERM)
        try:
            status = old.process.wait(120)
        except subprocess.TimeoutExpired:
            self._journal.violated("it does not end")
            old.kill()
            return
        if status != 0:
            self._journal.violated(f"it ended with {status}: {old.last_words}")

    def close(self) -> None:
        """End all."""
        self._over.set()
        for one in [*self._threads, self._rolling]:
            one.join()
        for server in self.all:
            server.process.terminate()
            try:
                server.process.wait(60)
            except subprocess.TimeoutExpired:
                self._journal.violated("it does not end")
                server.kill()

    def _supervise(self) -> None:
        """Start again who could not start."""
        while not self._over.wait(0.1):
            for one in list(self.all):
                if not one.is_meant:
                    continue
                if one.process.poll() is None:
                    if not one.listens and one.look():
                        took = time.monotonic() - one.started
                        self._journal.tell(f"{one.port} listens after {took:.1f} s")
                elif one.listens and one in self.all and one.is_meant:
                    self._journal.violated(f"it ended by itself: {one.last_words}")
                    one.start()
                elif time.monotonic() > one.started + 1 and one.is_meant:
                    self._journal.counts["starts that failed"] += 1
                    one.start()

    def _probe(self) -> None:
        """Look who is alive, and who is ready."""
        with httpx2.Client(timeout=PROBE) as client:
            while not self._over.wait(0.25):
                for one in self.up:
                    url = f"http://127.0.0.1:{one.port}"
                    try:
                        health = client.get(f"{url}/healthz")
                        at = time.monotonic()
                        ready = client.get(f"{url}/readyz")
                    except httpx2.HTTPError as error:
                        if one in self.up and one.process.poll() is None:
                            self._journal.violated(f"a probe failed: {error!r}")
                        continue
                    if health.status_code != 200:
                        self._journal.violated(f"not healthy: {health.text}")
                    self._journal.counts[f"readyz {ready.status_code}"] += 1
                    if ready.status_code == 200:
                        self._journal.ready.append((one.port, at))
                    elif one in self.all:
                        judge_problem(self._journal, ready)


def judge_problem(journal: Journal, answer: httpx2.Response) -> None:
    """Hold an answer that is no decision against what it must be."""
    try:
        code = str(answer.json()["code"])
    except (ValueError, KeyError, TypeError):
        journal.violated(f"no problem: {answer.status_code} {answer.text[:300]}")
        return
    journal.counts[f"{answer.status_code} {code}"] += 1
    if not re.fullmatch(r"MOD\d{3}", code):
        journal.violated(f"no code: {answer.text}")
    if answer.headers["content-type"] != "application/problem+json":
        journal.violated(f"no problem: {answer.headers['content-type']}")
    if answer.status_code == 401 and time.monotonic() > journal.expired_until:
        journal.violated(f"not recognized: {answer.text}")
    if PLACES.search(answer.text):
        journal.violated(f"it names a place: {answer.text}")


# --- clients --------------------------------------------------------------------------


class Client:
    """One client: it asks for one thing after the other, until it is answered.

    Args:
        number: Its number.
        token: Its token.
        servers: Whom it asks.
        journal: What happens.
        dice: What it asks for.
    """

    def __init__(
        self,
        number: int,
        token: str,
        servers: Servers,
        journal: Journal,
        dice: random.Random,
    ) -> None:
        self._name = f"c{number}"
        self._headers = {"Authorization": f"Bearer {token}"}
        self._servers = servers
        self._journal = journal
        self._rng = dice
        self._count = 0
        self._answers: list[tuple[str, str, Any, bytes]] = []
        self._over = threading.Event()
        self._http = httpx2.Client(timeout=20)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        """Hear the last answer."""
        self._over.set()
        self._thread.join()
        self._http.close()

    def _run(self) -> None:
        try:
            while not self._over.wait(self._rng.uniform(0, 0.15)):
                self._live()
        except Exception as error:  # noqa: BLE001 - a thread's own is not shown
            self._journal.violated(f"a client ended: {error!r}")

    def _live(self) -> None:
        self._count += 1
        name, dice = f"{self._name}-{self._count}", self._rng.random()
        seconds = self._rng.choice([1, 3600, 3600, 80_000])
        body = release(self._rng, f"{name}-{seconds}")
        name, path = body["release"], f"/releases?reserve_seconds={seconds}"
        if self._ask(name, path, body) != "reserved" or dice < 0.25:
            return
        if dice < 0.4:
            self._ask(name, f"/releases/{name}:void", {"reason": "test"})
        elif self._ask(name, f"/releases/{name}:start") == "started" and dice < 0.9:
            self._ask(name, f"/releases/{name}:post")

    def _ask(self, name: str, path: str, body: Any = None) -> str:
        """Ask until there is an answer, and note it; sometimes ask once more."""
        key = f"{name}{path}"
        found = self._answered(path, key, body)
        if found.status_code >= 400:
            judge_problem(self._journal, found)
            # Its time was over.
            if found.status_code != 409 or not name.endswith("-1"):
                self._journal.violated(f"{path}: {found.text}")
            return ""
        status = str(found.json()["status"])
        self._journal.told.append((status, name))
        self._journal.counts["acknowledged"] += 1
        self._answers.append((path, key, body, found.content))
        if self._rng.random() < 0.2:
            path, key, body, before = self._rng.choice(self._answers)
            again = self._answered(path, key, body)
            self._journal.counts["repeated"] += 1
            if again.content != before:
                self._journal.violated(f"{key}: {again.content!r}, not {before!r}")
        return status

    def _answered(self, path: str, key: str, body: Any) -> httpx2.Response:
        """Return the answer of a server that could decide."""
        while True:
            up = self._servers.up
            if not up:
                time.sleep(0.1)
                continue
            attempt = Attempt(self._rng.choice(up).port, time.monotonic())
            self._journal.attempts.append(attempt)
            self._journal.counts["requests"] += 1
            url = f"http://127.0.0.1:{attempt.port}/api/v1{path}"
            headers = self._headers | {"Idempotency-Key": key}
            try:
                found = self._http.post(url, json=body, headers=headers)
            except httpx2.HTTPError as error:
                attempt.ends = time.monotonic()
                self._journal.counts[f"lost: {type(error).__name__}"] += 1
                time.sleep(0.1)
                continue
            attempt.is_decided = found.status_code < 500 and found.status_code != 401
            attempt.ends = time.monotonic()
            if attempt.is_decided:
                return found
            judge_problem(self._journal, found)
            time.sleep(self._rng.uniform(0.1, 0.4))


def release(rng: random.Random, name: str) -> dict[str, Any]:
    """Return a small release; of some hundreds of them, large ones do not fit."""
    countries = rng.sample(["CH", "DE", "FR"], rng.randint(1, 2))
    mechanism = {
        "name": "m",
        "mechanism": "gaussian",
        "attributes": [rng.choice(["age", "pay"])],
        "where": {"country": countries},
        "cost": {"user": {"rho": 2.0 ** -rng.randint(5, 14)}},
    }
    return {"release": name, "mechanisms": [mechanism]}


# --- what must hold -------------------------------------------------------------------


class Checks:
    """Holds the ledger, and what was seen, against the invariants.

    Args:
        place: The ledger.
        witness: The witness.
        servers: The servers.
        journal: What happened.
    """

    def __init__(
        self, place: LedgerPlace, witness: Place, servers: Servers, journal: Journal
    ) -> None:
        self._place = place
        self._witness = witness
        self._servers = servers
        self._journal = journal
        self._heads: list[tuple[int, str]] = []
        self.older: bytes | None = None
        self.is_back = False

    def quickly(self) -> list[Row]:
        """Check what can be checked at any time; return the log."""
        violated = self._journal.violated
        told = list(self._journal.told)
        try:
            line = self._witness.kept.line()
            # No answer came before what was read after it.
            rows = list(self._place.rows())
        except (sqlite3.OperationalError, psycopg.OperationalError):
            # The log of a killed server where a disk is full; a witness that is down.
            self._journal.counts["not readable"] += 1
            return []
        now = time.time()
        seqs = seqs_of(rows)
        claim = json.loads(line)["claim"] if line else {"seq": 0}
        seq = claim["seq"]
        for status, name in told:
            found = seqs.get((EVENTS[status], name), [])
            if len(found) != 1:
                violated(f"{name} is {status}, at {found}")
            elif found[0] > seq and not self.is_back:
                violated(f"{name} is {status} at {found[0]}; the witness is at {seq}")
                break
        if line and (seq > len(rows) or rows[seq - 1][2] != claim["head"]):
            violated(f"the log of {len(rows)} entries does not have {claim}")
        for number, head in self._heads:
            if number > len(rows) or rows[number - 1][2] != head:
                violated(f"the log lost {number}:{head}")
        self._heads.append((rows[-1][0], rows[-1][2]))
        self._judge_times(rows, now)
        return rows

    def _judge_times(self, rows: list[Row], now: float) -> None:
        for seq, payload, _ in rows[-500:]:
            event = json.loads(payload)["event"]
            at = datetime.fromisoformat(event["at"]).timestamp()
            if at > now + 1:
                self._journal.violated(f"{seq} is of {event['at']}")
            name = str(event["body"].get("release", ""))
            if event["kind"] == "release-expired" and not name.endswith("-1"):
                self._journal.violated(f"{seq}: {name} expired")

    def thoroughly(self) -> None:
        """Check all, where no fault is left."""
        told = list(self._journal.told)
        rows = self.quickly()
        if not rows:
            self._journal.violated("the log cannot be read")
        found = audit(lambda: rows, told)
        for one in found.mistakes:
            self._journal.violated(one)
        self._journal.counts["entries"] = found.entries
        arguments = ["ledger", "verify", "--ledger", self._place.address]
        environment = {"MODICUM_WITNESS": self._witness.name}
        verified = CliRunner().invoke(app, arguments, env=environment)
        if verified.exit_code != 0:
            self._journal.violated(f"verify: {verified.output}")
        self.older = self._witness.kept.line()

    def recover(self, since: float) -> None:
        """Wait until each server decides again, and is ready."""
        self._servers.settle()
        waiting = {one.port: one for one in self._servers.all}
        while waiting:
            now = time.monotonic()
            for port, one in list(waiting.items()):
                decided = [
                    attempt.ends
                    for attempt in list(self._journal.attempts)
                    if attempt.port == port
                    and attempt.is_decided
                    and attempt.begins > max(since, one.started)
                ]
                ready = [at for on, at in list(self._journal.ready) if on == port]
                late = now - max(since + AGAIN, one.started + STARTS)
                if decided and ready and ready[-1] > since:
                    took = min(decided) - max(since, one.started)
                    self._journal.tell(f"{port} decides again after {took:.1f} s")
                    del waiting[port]
                elif late > 0:
                    why = f"decided {bool(decided)}, {one.listens}: {one.last_words}"
                    self._journal.violated(f"it does not go on: {why}")
                    del waiting[port]
            time.sleep(0.1)

    def judge_readiness(self) -> None:
        """Find who was ready while nothing was decided; begin anew."""
        journal = self._journal
        attempts, journal.attempts = journal.attempts, []
        ready, journal.ready = journal.ready, []
        for port, at in ready:
            own = [one for one in attempts if one.port == port]
            if is_stopped(own, at):
                ago = time.monotonic() - at
                journal.violated(f"{port} was ready {ago:.1f} s ago, decided nothing")
                break
        # Those that go on count for the next ones.
        journal.attempts += [one for one in attempts if one.ends == float("inf")]


def is_stopped(attempts: list[Attempt], at: float) -> bool:
    """Return whether a server decided nothing for some time, and was asked always."""
    begins, end = at - UNREADY, at - UNREADY
    meanwhile = [one for one in attempts if one.ends > begins and one.begins < at]
    if any(one.is_decided and one.ends < at + RESUMES for one in meanwhile):
        return False
    for one in sorted(meanwhile, key=lambda one: one.begins):
        if one.begins > end + 1:
            return False
        end = max(end, one.ends)
    return end + 1 > at


def seqs_of(rows: list[Row]) -> dict[tuple[str, str], list[int]]:
    """Return where each thing happened to each release."""
    found: dict[tuple[str, str], list[int]] = {}
    for seq, payload, _ in rows:
        event = json.loads(payload)["event"]
        about = event["body"].get("release")
        name = about["id"] if isinstance(about, dict) else about
        found.setdefault((event["kind"], name), []).append(seq)
    return found


# --- the soak -------------------------------------------------------------------------


class Soak:
    """A server among faults.

    Args:
        place: The ledger.
        witness: The witness.
        faults: What can happen beside.
        folder: For settings and logs.
        name: The seed.
    """

    def __init__(
        self,
        place: LedgerPlace,
        address: str,
        witness: Place,
        faults: list[Fault],
        folder: Path,
    ) -> None:
        self.name = f"seed {seed()} {'/'.join(folder.name.split('/'))}"
        self.journal = Journal(self.name)
        self._rng = random.Random(self.name)
        self._witness = witness
        tokens = begun(place.address, address, witness.name, folder)
        wall = Wall(folder / "clock")
        self._servers = Servers(folder, wall, self.journal)
        self.checks = Checks(place, witness, self._servers, self.journal)
        has_clock = witness.has_clock or place.address != address
        apart: frozenset[str] = frozenset() if has_clock else frozenset({"clock"})
        self._faults = [*faults, *witness.faults, *self._servers.faults(apart)]
        self._faults += [clock_fault(wall, one, self.journal) for one in JUMPS]
        self._faults.append(
            Fault("witness goes back", "witness", self._go_back, self._restore, True)
        )
        self._clients = [
            Client(n, one, self._servers, self.journal, self._dice(n))
            for n, one in enumerate(tokens)
        ]
        self._step = 1

    def _dice(self, number: int) -> random.Random:
        return random.Random(f"{self.name} {number}")

    def run(self) -> None:
        """Let faults happen, and check."""
        self.checks.recover(time.monotonic())
        self.checks.thoroughly()
        for number in range(1, ROUNDS + 1):
            steps = planned(self._rng, self._faults, self._step, FAULTS, SECONDS)
            self._step += len(steps)
            self.journal.place = f"round {number}"
            carry_out(steps, self._note)
            ended = time.monotonic()
            self.journal.place += ", then quiet"
            self.checks.recover(ended)
            self.checks.judge_readiness()
            self.checks.thoroughly()

    def close(self) -> None:
        """End clients and servers."""
        for one in self._clients:
            one.close()
        self._servers.close()

    def _note(self, what: str, step: Step) -> None:
        self.journal.place += f", {step.number} {step.fault.kind} {what}"
        self.journal.tell(f"{step.number} {step.fault.kind} {what}")
        if what == "begins":
            self.journal.counts[f"fault: {step.fault.kind}"] += 1
        self.checks.quickly()

    def _go_back(self) -> None:
        assert self.checks.older is not None
        self.checks.is_back = True
        self._newer = self._witness.kept.swap(self.checks.older)
        time.sleep(0.5)  # Answers under way arrive.
        self._acknowledged = len(self.journal.told)

    def _restore(self) -> None:
        if self._newer == self.checks.older:
            self.checks.is_back = False
            return
        if len(self.journal.told) > self._acknowledged:
            self.journal.violated("acknowledged although the witness went back")
        if self._witness.kept.swap(self._newer) != self.checks.older:
            self.journal.violated("the witness was moved although it went back")
        self.checks.is_back = False


def clock_fault(wall: Wall, seconds: float, journal: Journal) -> Fault:
    """Return a jump of the servers' clock, and back."""

    def jump() -> None:
        if seconds > TOKEN_DAYS_MAX * 86_400:
            journal.expired_until = float("inf")
        wall.set(seconds)

    def back() -> None:
        wall.set(0)
        journal.expired_until = time.monotonic() + PROBE

    way = "forward" if seconds > 0 else "back"
    return Fault(f"clock {way}", "clock", jump, back)


def begun(ledger: str, address: str, witness: str, folder: Path) -> list[str]:
    """Begin a ledger and write the settings of its servers; return tokens.

    Args:
        ledger: The ledger.
        address: Where servers find it.
        witness: Where they find the witness.
        folder: For the settings.
    """
    (folder / "policy.yaml").write_text(POLICY)
    mo.open(ledger, policy=folder / "policy.yaml", actor="olga").init()
    (folder / "server.yaml").write_text(
        f"modicum: server/v1\napi_tokens: true\nledger: '{address}'\n"
        f"witness: '{witness}'\nlimits: {{requests_per_minute: 100000}}\n"
    )
    store = open_store(ledger)
    registry = open_registry(store)
    seconds = TOKEN_DAYS_MAX * 86_400
    grants = {Role.ANALYST: frozenset({ALL})}
    terms = [TokenTerms(f"a{n}", grants, seconds=seconds) for n in range(CLIENTS)]
    found = [registry.add_token(one, created_by="olga").text for one in terms]
    store.close()
    return found


@contextmanager
def ledger_place(
    store: str, folder: Path, cluster: Callable[[], Cluster]
) -> Iterator[tuple[LedgerPlace, str, list[Fault]]]:
    """Yield a ledger, its address for servers, and what can happen to it."""
    if store == "sqlite":
        disk = Disk(folder / "ledger")
        place = sqlite_place(disk.folder / "ledger.db")
        with closing(disk):
            yield place, place.address, disk.faults("ledger")
    else:
        server = cluster()
        place = postgres_place(server)
        proxy = Proxy(f"{server.folder}/.s.PGSQL.5432")
        with closing(proxy):
            yield place, linked(place.address, proxy), link_faults("store link", proxy)


@pytest.mark.soak
@pytest.mark.spec("LED-29", "LED-15")
@pytest.mark.parametrize(
    ("store", "witness"),
    PAIRS if SOAKS else [("sqlite", "file"), ("postgresql", "http")],
)
def test_a_server_among_faults(
    store: str, witness: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    def cluster(name: str) -> Callable[[], Cluster]:
        return lambda: request.getfixturevalue(name)

    began = time.monotonic()
    folder = tmp_path / f"{store}-{witness}"
    folder.mkdir()
    with (
        ledger_place(store, folder, cluster("postgres")) as (place, address, faults),
        witness_place(witness, folder, cluster("own_postgres")) as kept,
    ):
        soak = Soak(place, address, kept, faults, folder)
        try:
            soak.run()
        finally:
            soak.close()
        soak.checks.thoroughly()
    counts = dict(sorted(soak.journal.counts.items()))
    print(f"\n{soak.name}: {time.monotonic() - began:.0f} s, {counts}")
    assert soak.journal.violations == []
    assert counts["acknowledged"] > 50 * ROUNDS
