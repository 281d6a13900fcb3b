"""A ledger in memory that fails on purpose, and people who work on it all the same."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager, suppress
from datetime import date, timedelta
from typing import Any, TypeAlias

from modicum.api.local import Decision, Workspace
from modicum.api.ports.storage import StoredAnswer
from modicum.core.errors import (
    Code,
    ConflictError,
    InputError,
    Problem,
    UnavailableError,
    UsageError,
)
from modicum.ledger import AuditReport, Record, audit
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text
from modicum.system.clock import FixedClock, add_seconds

Written: TypeAlias = dict[str, Any]
#: A stored row: its number, its bytes, and its hash.
Row: TypeAlias = tuple[int, bytes, str]

DAWN = date(2026, 11, 25)
POLICY = """
modicum: policy/v1
name: simulated
units:
  user: {id: user_id}
  user-week: {id: user_id, time: {column: at, period: week}, within: user}
  home: {id: home_id, neighbors: substitute}
schema: {attributes: {age: low, pay: low, born: [low, {}, static]}}
population:
  partition_by: {country: {values: [CH, DE, FR], immutable: [user, home]}}
  time_detail: {user-week: 2}
policies:
  - {name: all, when: "true", unit: user, budget: {rho: 0.3}}
  - {name: one, for_each: attribute, unit: user-week, budget: {low: {rho: 0.08}}}
  - {name: home, when: "true", unit: home, budget: {eps: 4, delta: 1e-6}}
"""


class CrashError(Exception):
    """The process dies; nobody hears an answer."""


class Disk:
    """What survives a crash."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.answers: dict[str, StoredAnswer] = {}
        self.snapshot: bytes | None = None


class FaultyStore:
    """A log in memory; each thing that can fail does now and then.

    Args:
        disk: What is shared with the others.
        rng: The dice; None for a store that never fails.
        faults: Counts what was done on purpose.
        others: Called before a turn is had: somebody else may come first.
    """

    name = "memory"

    def __init__(
        self,
        disk: Disk,
        rng: random.Random | None,
        faults: Counter[str],
        others: Callable[[], None] = lambda: None,
    ) -> None:
        self._disk = disk
        self._rng = rng
        self._faults = faults
        self._others = others

    def exists(self) -> bool:
        return bool(self._disk.records)

    def read(self, after: int, limit: int | None = None) -> Iterable[Record]:
        self._fail_at("read refused", 0.01)
        found = self._disk.records[after:]
        return iter(found if limit is None else found[:limit])

    def record(self, seq: int) -> Record | None:
        self._fail_at("record refused", 0.01)
        known = 0 < seq <= len(self._disk.records)
        return self._disk.records[seq - 1] if known else None

    def close(self) -> None:
        pass

    @contextmanager
    def turn(self) -> Iterator[FaultyTurn]:
        self._others()
        self._fail_at("turn refused", 0.03)
        turn = FaultyTurn(self)
        yield turn
        self._crash_at("crash before the commit", 0.02)
        self._fail_at("commit failed", 0.05)
        self._disk.records += turn.added
        self._disk.answers |= {one.key: one for one in turn.kept}
        self._fail_at("outcome unknown", 0.03)
        self._crash_at("crash after the commit", 0.02)

    def append_fails(self) -> None:
        self._fail_at("append failed", 0.04)

    def answered(self, keys: Collection[str]) -> Mapping[str, StoredAnswer]:
        self._fail_at("look-up failed", 0.04)
        return {key: one for key, one in self._disk.answers.items() if key in keys}

    def keeping_fails(self) -> None:
        self._fail_at("keeping failed", 0.04)

    def load_snapshot(self) -> bytes | None:
        if self._happens("snapshot lost", 0.1):
            return None
        return self._disk.snapshot

    def save_snapshot(self, data: bytes) -> None:
        if self._happens("snapshot torn", 0.1):
            self._disk.snapshot = data[: len(data) // 2]
        else:
            self._disk.snapshot = data

    def _happens(self, fault: str, chance: float) -> bool:
        if self._rng is None or self._rng.random() >= chance:
            return False
        self._faults[fault] += 1
        return True

    def _fail_at(self, fault: str, chance: float) -> None:
        if self._happens(fault, chance):
            raise UnavailableError(Problem(Code.LEDGER_BUSY, fault))

    def _crash_at(self, fault: str, chance: float) -> None:
        if self._happens(fault, chance):
            raise CrashError(fault)


class FaultyTurn:
    """A turn on a log in memory."""

    def __init__(self, store: FaultyStore) -> None:
        self._store = store
        self.added: list[Record] = []
        self.kept: list[StoredAnswer] = []

    def read(self, after: int) -> Iterable[Record]:
        return self._store.read(after)

    def append(self, records: Sequence[Record]) -> None:
        self._store.append_fails()
        self.added += records

    def answered(self, keys: Collection[str]) -> Mapping[str, StoredAnswer]:
        return self._store.answered(keys)

    def keep(self, answers: Sequence[StoredAnswer], *, forget_before: str) -> None:
        del forget_before
        self._store.keeping_fails()
        self.kept += answers


class Simulation:
    """People at several desks, one log, and a clock that goes on.

    Args:
        seed: Decides everything.
    """

    def __init__(self, seed: str) -> None:
        self.faults: Counter[str] = Counter()
        self.told: list[tuple[str, str]] = []
        self._rng = random.Random(seed)
        self._disk = Disk()
        self._clock = FixedClock(f"{DAWN.isoformat()}T08:00:00.000000Z")
        self._policy: CompiledPolicy = compile_text(POLICY.encode(), "policy.yaml")
        self._asked: list[Written] = []
        self._desks = [self._desk(number) for number in range(3)]
        # Comes in between others, and never fails.
        self._foreigner = self._workspace(
            FaultyStore(self._disk, None, self.faults), "foreigner"
        )

    def run(self, steps: int = 60) -> None:
        """Let so many things happen."""
        for _ in range(steps):
            seconds = self._rng.choice([1, 60, 3600, 24 * 3600])
            self._clock.time = add_seconds(self._clock.now(), seconds)
            desk = self._rng.randrange(len(self._desks))
            try:
                self._something(self._desks[desk])
            except UnavailableError:
                pass
            except CrashError:
                self._desks[desk] = self._desk(desk)

    def rows(self) -> list[Row]:
        """Return the stored rows."""
        return [(one.seq, one.payload, one.hash) for one in self._disk.records]

    def verified(self) -> AuditReport:
        """Return what the ledger's own audit says."""
        return audit(self._disk.records)

    def _desk(self, number: int) -> Workspace:
        store = FaultyStore(self._disk, self._rng, self.faults, self._come_between)
        return self._workspace(store, f"desk-{number}")

    def _workspace(self, store: FaultyStore, actor: str) -> Workspace:
        return Workspace(
            store,
            self._clock,
            policy=self._policy,
            actor=actor,
            snapshots=store,
            snapshot_every=7,
        )

    def _come_between(self) -> None:
        if self._rng.random() < 0.1:
            self.faults["somebody else came first"] += 1
            request = self._new()
            self._tell(request["release"], self._foreigner.submit(request).status)

    # --- what people do ---

    def _something(self, desk: Workspace) -> None:
        what = self._rng.choice(
            [
                self._submit,
                self._submit,
                self._submit_many,
                self._again,
                self._record,
                self._look,
                self._start,
                self._post,
                self._void,
            ]
        )
        # It may have been given up, or have run out, or not be there.
        with suppress(ConflictError, InputError, UsageError):
            what(desk)

    def _submit(self, desk: Workspace) -> None:
        self._bring_in(desk, self._new())

    def _submit_many(self, desk: Workspace) -> None:
        batch = [self._new() for _ in range(self._rng.randint(2, 5))]
        batch.append(self._rng.choice(self._asked))  # Perhaps one of these again.
        answers = desk.submit_many([desk.prepare(one) for one in batch])
        for request, answer in zip(batch, answers, strict=True):
            if isinstance(answer, Decision):
                self._tell(request["release"], answer.status)

    def _again(self, desk: Workspace) -> None:
        if self._asked:
            self._bring_in(desk, self._rng.choice(self._asked))

    def _bring_in(self, desk: Workspace, request: Written) -> None:
        publish = self._rng.random() < 0.3
        seconds = self._rng.choice([60, 5000, 10**6])
        decision = desk.submit(request, publish=publish, reserve_seconds=seconds)
        self._tell(request["release"], decision.status)

    def _record(self, desk: Workspace) -> None:
        if self._rng.random() < 0.3:
            request = self._new()
            if self._rng.random() < 0.7:
                day = DAWN - timedelta(days=self._rng.randrange(60))
                request["released_on"] = day.isoformat()
            self._tell(request["release"], desk.backfill(request).status)

    def _look(self, desk: Workspace) -> None:
        desk.check(self._new())

    def _start(self, desk: Workspace) -> None:
        self._step(desk.start)

    def _post(self, desk: Workspace) -> None:
        self._step(desk.publish)

    def _void(self, desk: Workspace) -> None:
        self._step(lambda name: desk.cancel(name, reason="not needed"))

    def _step(self, step: Callable[[str], Any]) -> None:
        if self._asked:
            name = self._rng.choice(self._asked[-6:])["release"]
            self._tell(name, step(name).status.value)

    def _tell(self, name: str, answer: str) -> None:
        self.told.append((answer, name))

    def _new(self) -> Written:
        rng = self._rng
        size = rng.choice([0.01, 0.02, 0.05, 0.1])
        part: Written = {}
        if rng.random() < 0.7:
            part["where"] = {
                "country": rng.sample(["CH", "DE", "FR"], rng.choice([1, 2]))
            }
        if rng.random() < 0.7:
            day = DAWN + timedelta(days=rng.randrange(30))
            part["periods"] = {
                "from": day.isoformat(),
                "to": (day + timedelta(days=rng.randrange(10))).isoformat(),
            }
        request: Written = {
            "release": f"r-{len(self._asked)}",
            "mechanisms": [
                {
                    "name": f"m{number}",
                    "mechanism": "gaussian",
                    "attributes": rng.sample(
                        ["age", "pay", "born"], rng.choice([1, 2])
                    ),
                    "cost": {
                        "user": {"rho": size},
                        "user-week": {"rho": size / 2},
                        "home": {"rho": size},
                    },
                    **part,
                }
                for number in range(rng.choice([1, 1, 2]))
            ],
        }
        self._asked.append(request)
        return request
