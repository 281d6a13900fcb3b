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
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from itertools import combinations
from pathlib import Path

import psycopg
import pytest
from budget import seed
from oracle.auditor import Row, audit
from samples.ailing_witnesses import Place, witness_place
from samples.crash import POLICY
from samples.faulted import PROBE, Attempt, Client, Journal, Servers
from samples.faults import (
    JUMPS,
    Disk,
    Fault,
    Proxy,
    Step,
    Wall,
    carry_out,
    link_faults,
    linked,
    planned,
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
ROUNDS, FAULTS, SECONDS = (4, 8, 14.0) if SOAKS else (1, 5, 2.0)
CLIENTS = 4
#: How long a server may take to be not ready, to decide again, and to start. A plain
#: run does not judge how busy the machine is.
UNREADY, AGAIN, STARTS = (7.0, 10.0, 120.0) if SOAKS else (20.0, 60.0, 120.0)
#: A server may be ready so long before its next decision.
RESUMES = 3.0
EVENTS = {
    "denied": "release-denied",
    "reserved": "release-reserved",
    "started": "release-started",
    "published": "release-posted",
    "canceled": "release-voided",
}


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
                ends = max(since, one.listens_since) + AGAIN
                ends = ends if one.listens else one.started + STARTS
                if decided and ready and ready[-1] > since:
                    took = min(decided) - max(since, one.started)
                    self._journal.tell(f"{port} decides again after {took:.1f} s")
                    del waiting[port]
                elif now > ends:
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


def test_a_schedule_follows_from_its_seed() -> None:
    def nothing() -> None: ...

    apart = frozenset({"clock"})
    faults = [
        Fault("back", "clock", nothing, nothing),
        Fault("killed", "server", nothing, nothing, apart=apart),
        Fault("full", "disk", nothing, nothing),
        Fault("gone", "disk", nothing, nothing),
        Fault("older", "witness", nothing, nothing, alone=True),
    ]
    most = 0
    for number in range(50):
        steps, again = (planned(random.Random(number), faults, 1, 8, 9) for _ in "ab")
        assert steps == again
        assert [one.number for one in steps] == list(range(1, len(steps) + 1))
        together = [
            {one.fault.kind, two.fault.kind}
            for one, two in combinations(steps, 2)
            if one.begins < two.ends and two.begins < one.ends
        ]
        may = ({"back", "full"}, {"back", "gone"}, {"killed", "full"})
        assert all(one in (*may, {"killed", "gone"}) for one in together)
        most = max(most, len(together))
    assert most > 2


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
    assert counts["acknowledged"] > ROUNDS
