"""Many clients on one ledger: what they ask for, and what they were told.

`work` is one process of the load. It runs client threads on one ledger, notes each
acknowledgment in a file of its own before it goes on, and when it began each turn.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TextIO, TypeAlias, cast

from modicum.api.ports.storage import Store, Turn
from modicum.core.errors import ConflictError, InputError, UnavailableError
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text
from modicum.storage.factory import open_store
from modicum.system.clock import SystemClock
from modicum.writer.service import Decider

Written: TypeAlias = dict[str, Any]

ATTRIBUTES = tuple(f"a{number}" for number in range(20))
CATEGORIES = ("body", "mind", "money")
COUNTRIES = ("CH", "DE", "FR", "IT")
BIRTHS = 8
GROUPS = 4
#: Days around today that releases are about.
DAYS = 10

_HEAD = """
modicum: policy/v1
name: load
dp: {bare_budget: {type: approx-dp, delta: 1e-6}}
units:
  user: {id: user_id}
  user-day: {id: user_id, time: {column: at, period: day}, within: user}
  home: {id: home_id, neighbors: substitute}
labels:
  use: {values: [study, product, unknown], default: unknown}
population:
  partition_by:
    country: {values: [CH, DE, FR, IT], immutable: [user, home]}
    birth: {range: [0, 7], immutable: [user]}
  groups: {immutable: [user]}
  time_detail: {user-day: 6}
policies:
  - {name: all, when: "true", unit: user, budget: 8}
  - {name: one, for_each: attribute, unit: user, budget: {low: 3}}
  - {name: cat, for_each: category, unit: user, budget: {high: 4},
     levels: {member: same, strong: {scale: 1.25}, weak: {scale: 1.5}}}
  - {name: day, when: "true", unit: user-day, budget: 4}
  - {name: day-one, for_each: attribute, unit: user-day, budget: {low: 2}}
  - {name: day-cat, for_each: category, unit: user-day, budget: {high: 2}}
  - {name: home, when: "true", unit: home, budget: {rho: 8}}
  - {name: home-one, for_each: attribute, unit: home, budget: {low: {rho: 2}}}
extensions:
  - name: use
    settings:
      study: {when: 'm.use == "study"', budget: same}
      product: {when: 'm.use == "product"', budget: same}
      any: {when: "true", budget: {scale: 2}}
schema:
  categories: {body: high, mind: high, money: high}
  attributes:
"""


def policy_text() -> str:
    """Return a policy of some two hundred rules, over a divided population."""
    levels = ("member", "strong", "weak")
    lines = [
        f"    {name}: [low, {{{CATEGORIES[n % 3]}: {levels[n % 3]},"
        f" {CATEGORIES[(n + 1) % 3]}: {levels[n // 3 % 3]}}}"
        f"{', static' if n % 10 == 9 else ''}]\n"
        for n, name in enumerate(ATTRIBUTES)
    ]
    return _HEAD + "".join(lines)


def policy() -> CompiledPolicy:
    return compile_text(policy_text().encode(), "policy.yaml")


def release(rng: random.Random, name: str, sizes: range) -> Written:
    """Return a random release of one to three mechanisms, as in a file."""
    return {
        "release": name,
        "mechanisms": [
            _mechanism(rng, n, sizes) for n in range(rng.choice([1, 1, 2, 3]))
        ],
    }


def _mechanism(rng: random.Random, number: int, sizes: range) -> Written:
    # Large ones fill the limits soon, small ones come to meet them for long.
    size = 0.02 / 2 ** rng.choice(sizes)
    part: Written = {}
    if rng.random() < 0.8:
        part["where"] = [_box(rng) for _ in range(rng.choice([1, 1, 2]))]
    if rng.random() < 0.8:
        part["periods"] = _days(rng)
    if rng.random() < 0.5:
        part["groups"] = rng.sample(range(GROUPS), rng.randint(1, 2))
    return {
        "name": f"m{number}",
        "mechanism": "gaussian",
        "attributes": sorted(rng.sample(ATTRIBUTES, rng.randint(1, 3))),
        "use": rng.choice(["study", "product", "unknown"]),
        "cost": {
            "user": {"rho": size},
            "user-day": {"rho": size / 2},
            "home": {"rho": size * 8},
        },
        **part,
    }


def _box(rng: random.Random) -> Written:
    box: Written = {}
    if rng.random() < 0.8:
        box["country"] = rng.sample(COUNTRIES, rng.randint(1, 2))
    if rng.random() < 0.5 or not box:
        low = rng.randrange(BIRTHS)
        box["birth"] = {"from": low, "to": min(BIRTHS - 1, low + rng.randrange(4))}
    return box


def _days(rng: random.Random) -> Any:
    first = datetime.now(UTC).date() - timedelta(days=rng.randrange(DAYS))
    if rng.random() < 0.5:
        return first.isoformat()
    last = first + timedelta(days=rng.randrange(4))
    return {"from": first.isoformat(), "to": last.isoformat()}


# --- stores that tell -----------------------------------------------------------------


class CountedTurns:
    """A store that notes when each turn began."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.began: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        with self._store.turn() as turn:
            self.began.append(time.monotonic())  # The same clock in all processes.
            yield turn


# --- clients --------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """What one process of the load does.

    Attributes:
        ledger: A path, or the URL of a database.
        name: What the process is called; it is the actor of its events.
        clients: How many client threads it runs.
        asks: How often each of them asks for something.
        sizes: The sizes of losses, as powers of a half.
        seed: The dice.
        notes: The folder that the notes go to.
        looks: Whether its clients also look what would be answered. For that a
            process follows the log a second time, as much work as for its writer.
    """

    ledger: str
    name: str
    clients: int
    asks: int
    sizes: range
    seed: str
    notes: Path
    looks: bool = True


def work(job: Job, all_set: Callable[[], object]) -> None:
    """Run the clients of a process until each has asked as often as it should.

    Args:
        job: What to do.
        all_set: Called when all is set up; returns when everybody else is.
    """
    store = CountedTurns(open_store(job.ledger, keep_open=True))
    decider = Decider(
        cast(Store, store), SystemClock(), policy=policy(), actor=job.name
    )
    with decider, (job.notes / f"{job.name}.acks").open("a", encoding="utf-8") as notes:
        desk = Desk(decider, notes)
        clients = [
            threading.Thread(target=Client(desk, job, number).run)
            for number in range(job.clients)
        ]
        all_set()
        for client in clients:
            client.start()
        for client in clients:
            client.join()
    turns = {"turns": store.began, "failures": desk.failures}
    (job.notes / f"{job.name}.turns").write_text(json.dumps(turns), encoding="utf-8")


class Desk:
    """Where the clients of a process ask; it notes what they are told.

    Args:
        decider: What answers.
        notes: The file of the notes.
    """

    def __init__(self, decider: Decider, notes: TextIO) -> None:
        self._decider = decider
        self._notes = notes
        self._noting = threading.Lock()
        self.failures = 0

    def ask(self, name: str, question: Callable[[Decider], str]) -> str:
        """Ask until there is an answer; note it before anybody hears of it."""
        while True:
            try:
                answer = question(self._decider)
            except UnavailableError:  # The same id is one release: ask again.
                with self._noting:
                    self.failures += 1
                time.sleep(0.05)
                continue
            with self._noting:
                self._notes.write(f"{answer} {name}\n")
                self._notes.flush()
            return answer

    def read_view(self, request: Written) -> None:
        """Ask what would be answered now; nothing of it is noted."""
        with suppress(ConflictError):
            self._decider.check(request)


class Client:
    """One client: submits, asks again, gives up, starts and posts."""

    def __init__(self, desk: Desk, job: Job, number: int) -> None:
        self._desk = desk
        self._rng = random.Random(f"{job.seed} {job.name} {number}")
        self._asks = job.asks
        self._sizes = job.sizes
        self._looks = job.looks
        self._name = f"{job.name}-{number}"
        self._asked: list[Written] = []
        self._reserved: list[str] = []
        self._started: list[str] = []

    def run(self) -> None:
        for number in range(self._asks):
            self._one(number)

    def _one(self, number: int) -> None:
        dice = self._rng.random()
        if dice < 0.08 and self._asked:
            self._submit(self._rng.choice(self._asked))
        elif dice < 0.12 and self._reserved:
            self._step("canceled", self._take(self._reserved))
        elif dice < 0.18 and self._reserved:
            started = self._take(self._reserved)
            if self._step("started", started):
                self._started.append(started)
        elif dice < 0.23 and self._started:
            self._step("published", self._take(self._started))
        elif dice < 0.26 and self._looks:
            self._desk.read_view(self._new(number))
        else:
            request = self._new(number)
            self._asked.append(request)
            if self._rng.random() < 0.002:
                self._ask_for(request, lambda decider: decider.backfill(request).status)
            else:
                self._submit(request)

    def _new(self, number: int) -> Written:
        return release(self._rng, f"{self._name}-{number}", self._sizes)

    def _take(self, names: list[str]) -> str:
        return names.pop(self._rng.randrange(len(names)))

    def _submit(self, request: Written) -> None:
        publish = self._rng.random() < 0.3
        seconds = self._rng.choice([1, 1, 3600, 3600, 3600])
        name = str(request["release"])
        status = self._ask_for(
            request,
            lambda decider: (
                decider.submit(request, publish=publish, reserve_seconds=seconds).status
            ),
        )
        if status == "reserved" and name not in self._reserved:
            self._reserved.append(name)
        elif name in self._reserved and status != "reserved":
            self._reserved.remove(name)

    def _ask_for(self, request: Written, question: Callable[[Decider], str]) -> str:
        try:
            return self._desk.ask(str(request["release"]), question)
        except ConflictError:  # It was given up, or ran out, before it was asked again.
            return "gone"

    def _step(self, status: str, name: str) -> bool:
        def taken(decider: Decider) -> str:
            if status == "canceled":
                return decider.cancel(name, reason="not needed").status.value
            step = decider.start if status == "started" else decider.publish
            return step(name).status.value

        try:
            return self._desk.ask(name, taken) == status
        except (ConflictError, InputError):  # Its reservation ran out.
            return False
