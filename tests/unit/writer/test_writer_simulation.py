"""The writer over a store that fails now and then: a simulation, one seed at a time."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from budget import examples
from samples.simulation import DAWN, POLICY, CrashError, Disk, FaultyStore, FaultyTurn
from samples.small import compiled

from modicum.api.local import Workspace
from modicum.api.local.live_ledger import LiveLedger
from modicum.api.local.submit import Submitter, prepared
from modicum.core.errors import ConflictError, UnavailableError
from modicum.ledger import audit
from modicum.system.clock import FixedClock, add_seconds
from modicum.writer.future import Posted
from modicum.writer.group_commit import Writer
from modicum.writer.log_tail import FeedingStore, FollowingStore, LogTail
from modicum.writer.queue import Queue, QueuedRequest


class PowerCut(BaseException):
    """The process dies; nothing in it hears of it."""


class Fragile(FaultyStore):
    """A store whose crashes take the process with them."""

    @contextmanager
    def turn(self) -> Iterator[FaultyTurn]:
        try:
            with super().turn() as turn:
                yield turn
        except CrashError as error:
            raise PowerCut from error


COUNTED = ("reserved", "started", "published")


class Office:
    """A writer without a thread, clients who ask at random, and a reader beside them.

    Args:
        seed: Decides everything.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.disk = Disk()
        self.faults: Counter[str] = Counter()
        self.clock = FixedClock(f"{DAWN.isoformat()}T08:00:00.000000Z")
        self.compiled = compiled(POLICY)
        self.bringing_in = Submitter("memory", self.clock)
        self.told: list[tuple[str, str]] = []
        self.asked: list[dict[str, Any]] = []
        self.open()

    def open(self) -> None:
        """Begin anew, as a process that was started again: only the disk is left."""
        self.feed = LogTail(records_kept=self.rng.choice([3, 50]), clock=lambda: 0.0)
        self.line = Queue(1000)
        ledger = LiveLedger(
            FeedingStore(self._store(), self.feed),
            self.clock,
            policy=self.compiled,
            actor="office",
            snapshots=None,
            snapshot_every=10**9,
        )
        self.writer = Writer(ledger, self.line, self.compiled, 7)
        self.line.pause = lambda seconds: None  # type: ignore[method-assign]
        reader = FollowingStore(FaultyStore(self.disk, None, self.faults), self.feed)
        self.reader = Workspace(reader, self.clock, policy=self.compiled)

    def _store(self) -> Fragile:
        return Fragile(self.disk, self.rng, self.faults)

    def run(self, rounds: int) -> None:
        for _ in range(rounds):
            self.clock.time = add_seconds(self.clock.now(), self.rng.choice([1, 4000]))
            waiting = [self._client() for _ in range(self.rng.randrange(1, 12))]
            self.line.join([one for _, one in waiting])
            try:
                while len(self.line):
                    self.writer._serve(self.line.take(7))
            except PowerCut:
                self.open()
            for name, one in waiting:
                self._note(name, one)
            self._look()

    def _client(self) -> tuple[str, QueuedRequest]:
        rng = self.rng
        if self.asked and rng.random() < 0.3:
            request = rng.choice(self.asked)
        else:
            request = self._new()
            self.asked.append(request)
        one = prepared(
            request, self.compiled, publish=rng.random() < 0.3, reserve_seconds=5000
        )
        answer = self.bringing_in.answer
        return one.release.id, QueuedRequest(lambda entry: answer(one, entry), "client")

    def _note(self, name: str, one: QueuedRequest) -> None:
        assert not isinstance(one.answer, Posted)  # No event loop waits.
        if not one.answer.done():
            return  # It stood in line when all went down.
        try:
            self.told.append((name, one.answer.result().status))
        except (UnavailableError, ConflictError):
            self.told.append((name, "no answer"))

    def _look(self) -> None:
        """Look beside the writer: what was told is seen, and what is seen is stored."""
        seen = self.reader.check({**self._new(), "release": "look"})
        assert seen.seq <= len(self.disk.records)
        assert not seen.seq or seen.head == self.disk.records[seen.seq - 1].hash
        for name, answer in self.told:
            if answer in COUNTED:
                assert self.reader.standing(name).id == name

    def _new(self) -> dict[str, Any]:
        rng = self.rng
        day = DAWN + timedelta(days=rng.randrange(20))
        mechanism = {
            "name": "m",
            "mechanism": "gaussian",
            "attributes": [rng.choice(["age", "pay", "born"])],
            "cost": {
                unit: {"rho": rng.choice([0.02, 0.05, 0.2])}
                for unit in ("user", "user-week", "home")
            },
            "where": {"country": rng.choice(["CH", "DE", "FR"])},
            "periods": day.isoformat(),
        }
        return {"release": f"r-{len(self.asked)}", "mechanisms": [mechanism]}


@pytest.mark.spec("LED-8")
@pytest.mark.spec("LED-14")
@pytest.mark.parametrize("seed", range(examples(6)))
def test_nothing_told_is_lost_and_nothing_stored_twice(seed: int) -> None:
    office = Office(seed)
    office.run(15)
    report = audit(office.disk.records)
    disk = FaultyStore(office.disk, None, office.faults)
    state = Workspace(disk, office.clock, policy=office.compiled).state()
    for name, answer in office.told:
        if answer in COUNTED:
            assert name in state.releases, (seed, name, answer)
    result = Counter(answer for _, answer in office.told)
    assert report.decisions == state.denials + len(state.releases)
    assert result["reserved"] + result["published"] + result["denied"] > 5


def test_the_same_seed_gives_the_same_log() -> None:
    one, two = Office(5), Office(5)
    one.run(10)
    two.run(10)
    assert one.told == two.told
    assert [r.hash for r in one.disk.records] == [r.hash for r in two.disk.records]


def test_the_simulation_meets_every_fault() -> None:
    found: Counter[str] = Counter()
    for seed in range(15):
        office = Office(seed)
        office.run(4)
        found += office.faults
    assert {"turn refused", "commit failed", "outcome unknown", "append failed"} <= (
        found.keys()
    )
    assert {"crash before the commit", "crash after the commit"} <= found.keys()
