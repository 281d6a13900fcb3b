"""Servers and clients among faults, and what they note."""

from __future__ import annotations

import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2

from samples import shifted_clock
from samples.faults import Fault, Wall

#: How long a probe may take; what else runs on a machine may take its processors.
PROBE = 10.0
#: So many violations are printed at once.
SHOWN = 50
#: An answer without a place.
PLACES = re.compile(
    r"/tmp|127\.0\.0\.1|localhost|postgres(ql)?:|@|s3://|https?://|modicum_|\.db\b|PGSQL"
)


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
        if len(self.violations) < SHOWN:
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
        listens_since: When it answered first after that.
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
        self.listens_since = float("inf")

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
            self.listens_since = time.monotonic()
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
