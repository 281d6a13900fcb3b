"""A request with a key is done once, however often, and to whomever, it is sent."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from budget import examples
from samples.simulation import DAWN, CrashError, Disk, FaultyStore, FaultyTurn
from samples.small import NOON, POLICY, compiled, counts, workspace
from samples.stores import Place, postgres_place, sqlite_place

from modicum.api.local import Workspace
from modicum.api.local.balances import Entry
from modicum.api.local.governance.annotations import annotate
from modicum.api.local.live_ledger import LiveLedger
from modicum.api.ports.storage import Store, StoredAnswer
from modicum.core.errors import (
    ApprovalError,
    Code,
    ConflictError,
    InputError,
    ModicumError,
    Problem,
    UnavailableError,
)
from modicum.ledger import event_of
from modicum.ledger.log.events import Annotated
from modicum.system.clock import FixedClock, add_seconds
from modicum.writer.future import Posted
from modicum.writer.group_commit import Writer
from modicum.writer.idempotency import IdempotencyKey, Replayed
from modicum.writer.log_tail import FeedingStore, LogTail
from modicum.writer.queue import Queue, QueuedRequest
from modicum.writer.service import Decider

PATIENCE = 20.0
DAY = 24 * 60 * 60
APPROVALS = """
roles: {officer: [olga]}
approvals:
  - {when: 'release.audience == "public"', need: 1, from: [officer]}
"""


def once(
    key: str, body: str = "a", render: Callable[[Any], bytes] | None = None
) -> IdempotencyKey:
    """Return what makes a request one that is done once."""
    return IdempotencyKey(key, sha256(body.encode()).hexdigest(), render or _render)


def _render(answer: Any) -> bytes:
    return str(getattr(answer, "status", answer)).encode()


# --- the laws, under every fault ------------------------------------------------------


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


class Office:
    """A writer, and clients who send the same requests again and again.

    Each request adds a remark that names its key and what was asked for: so the log
    says how often it was done.

    Args:
        seed: Decides everything.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.disk = Disk()
        self.faults: Counter[str] = Counter()
        self.clock = FixedClock(f"{DAWN.isoformat()}T08:00:00.000000Z")
        self.told: list[tuple[str, str, str]] = []
        never_fails = FaultyStore(self.disk, None, self.faults)
        Workspace(never_fails, self.clock, policy=compiled()).init()
        self.open(self.rng)

    def open(self, rng: random.Random | None) -> None:
        """Begin anew, as a process that was started again: only the disk is left."""
        self.line = Queue(1000)
        ledger = LiveLedger(
            FeedingStore(Fragile(self.disk, rng, self.faults), LogTail()),
            self.clock,
            policy=compiled(),
            actor="office",
            snapshots=None,
            snapshot_every=10**9,
        )
        self.writer = Writer(ledger, self.line, compiled(), 5)
        self.line.pause = lambda seconds: None  # type: ignore[method-assign]

    def run(self, rounds: int) -> None:
        for _ in range(rounds):
            batch = [self._request() for _ in range(self.rng.randrange(1, 9))]
            self.serve(batch)

    def serve(self, batch: Sequence[tuple[str, str]]) -> None:
        """Send requests, and note what each is told."""
        waiting = [(key, body, self._waiting(key, body)) for key, body in batch]
        self.line.join([one for _, _, one in waiting])
        try:
            while len(self.line):
                self.writer._serve(self.line.take(self.rng.randrange(1, 6)))
        except PowerCut:
            self.open(self.rng)
        self.told += [(key, body, told(one)) for key, body, one in waiting]

    def _request(self) -> tuple[str, str]:
        return f"k{self.rng.randrange(12)}", self.rng.choice(["a", "a", "a", "b"])

    def _waiting(self, key: str, body: str) -> QueuedRequest:
        kind = int(key[1:]) % 4

        def work(entry: Entry) -> str:
            if kind == 1:
                raise ConflictError(Problem(Code.RELEASE_STATE, "a mistake"))
            if kind != 2:  # Else there is nothing to write.
                annotate(entry, f"{key} {body}")
            return f"{key} {body} {entry.added}"

        return QueuedRequest(work, "client", once=once(key, body))

    def done(self) -> Counter[str]:
        """Return how often each request was done, as the log says."""
        bodies = (event_of(record, record.seq).body for record in self.disk.records)
        return Counter(one.text for one in bodies if isinstance(one, Annotated))


def told(one: QueuedRequest) -> str:
    """Return in a word what somebody was told."""
    assert not isinstance(one.answer, Posted)  # No event loop waits.
    if not one.answer.done():
        return "nothing"  # It stood in line when all went down.
    try:
        return f"did {one.answer.result()}"
    except Replayed as replayed:
        return f"again {replayed.answer.decode()}"
    except InputError as error:
        return "reused" if error.code is Code.KEY_REUSED else str(error)
    except ConflictError:
        return "a mistake"
    except UnavailableError:
        return "nothing"


@pytest.mark.spec("REG-1")
@pytest.mark.spec("REG-2")
@pytest.mark.parametrize("seed", range(examples(8)))
def test_under_every_fault_a_key_is_done_at_most_once(seed: int) -> None:
    office = Office(seed)
    office.run(25)
    office.open(None)  # From here on nothing fails: everybody is told at last.
    office.serve([(f"k{n}", "a") for n in range(12)])
    kept = {key.split()[1]: one for key, one in office.disk.answers.items()}
    done = office.done()
    assert set(done.values()) <= {1}
    # An answer is kept if and only if what was done is in the log.
    bodies = {name.split()[0]: name.split()[1] for name in done}
    assert len(bodies) == len(done)
    assert (
        kept.keys() == bodies.keys() == {f"k{n}" for n in range(12) if n % 4 in (0, 3)}
    )
    for key, one in kept.items():
        assert one.digest == once(key, bodies[key]).digest
    for key, body, answer_of in office.told:
        how, _, answer = answer_of.partition(" ")
        kind = int(key[1:]) % 4
        if kind == 1:
            assert answer_of in {"a mistake", "nothing"}
        elif kind == 2:
            assert how in {"did", "nothing"}
        elif how in {"did", "again"}:  # Whoever is told anything is told the same.
            assert bodies[key] == body
            assert answer == kept[key].answer.decode()
        elif answer_of == "reused":
            assert bodies[key] != body
        else:
            assert answer_of == "nothing"


def test_the_simulation_meets_every_fault_and_every_answer() -> None:
    faults: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    for seed in range(12):
        office = Office(seed)
        office.run(25)
        faults += office.faults
        answers += Counter(answer_of.split()[0] for _, _, answer_of in office.told)
    assert {"look-up failed", "keeping failed", "outcome unknown"} <= faults.keys()
    assert {"crash before the commit", "crash after the commit"} <= faults.keys()
    assert answers.keys() == {"did", "again", "reused", "a", "nothing"}


# --- the decider, on both stores ------------------------------------------------------


class Watched:
    """A store that notes how often answers are looked up and kept."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.looked_up: list[set[str]] = []
        self.kept: list[StoredAnswer] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @contextmanager
    def turn(self) -> Iterator[Any]:
        with self._store.turn() as turn:
            yield WatchedTurn(turn, self)


class WatchedTurn:
    def __init__(self, turn: Any, store: Watched) -> None:
        self._turn = turn
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._turn, name)

    def answered(self, keys: Collection[str]) -> Mapping[str, StoredAnswer]:
        self._store.looked_up.append(set(keys))
        found: Mapping[str, StoredAnswer] = self._turn.answered(keys)
        return found

    def keep(self, answers: Sequence[StoredAnswer], *, forget_before: str) -> None:
        self._store.kept += answers
        self._turn.keep(answers, forget_before=forget_before)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "postgres":
        return postgres_place(request.getfixturevalue("postgres"))
    return sqlite_place(tmp_path / "ledger.db", keep_open=True)


@pytest.fixture
def store(place: Place) -> Watched:
    return Watched(place.open())


@pytest.fixture(name="decider")
def decider_fixture(store: Watched) -> Iterator[Decider]:
    with serving(store) as found:
        yield found


def serving(store: Store | Watched, **more: Any) -> Decider:
    more.setdefault("policy", compiled())
    clock = more.pop("clock", FixedClock(NOON))
    return Decider(store, clock, actor="desk", **more)


def again(ask: Callable[[], object]) -> str:
    """Return what is replayed."""
    with pytest.raises(Replayed) as caught:
        ask()
    return caught.value.answer.decode()


def entries(store: Watched) -> int:
    return sum(1 for _ in store.read(0))


def test_each_verb_is_done_once(place: Place, decider: Decider, store: Watched) -> None:
    calls: dict[str, Callable[[Decider], Any]] = {
        "submit": lambda d: d.submit(counts("r-1"), once=once("1")),
        "start": lambda d: d.start("r-1", once=once("2")),
        "post": lambda d: d.publish("r-1", once=once("3")),
        "soon": lambda d: d.submit_soon(counts("r-2"), once=once("4")).result(PATIENCE),
        "void": lambda d: d.cancel("r-2", reason="why not", once=once("5")),
        "past": lambda d: d.backfill(counts("r-3"), once=once("6")),
        "remark": lambda d: d.governance("olga", once=once("7")).annotate("hello"),
        "turn": lambda d: d.turn(lambda e: annotate(e, "bye"), once=once("8")),
    }
    rendered = {name: _render(ask(decider)).decode() for name, ask in calls.items()}
    after = entries(store)
    assert {name: again(partial(ask, decider)) for name, ask in calls.items()} == (
        rendered
    )
    with serving(place.open()) as other:  # Another process, or the same one later.
        assert again(lambda: calls["start"](other)) == rendered["start"]
    assert entries(store) == after
    assert len(store.kept) == len(calls)


def test_a_denial_is_an_answer_too(decider: Decider, store: Watched) -> None:
    request = counts("r-1", rho="0.9")
    assert decider.submit(request, once=once("k")).status == "denied"
    assert again(lambda: decider.submit(request, once=once("k"))) == "denied"
    assert workspace_of(store).state().denials == 1


def workspace_of(store: Watched) -> Workspace:
    return Workspace(store, FixedClock(NOON), policy=compiled())


@pytest.mark.spec("REG-2")
def test_a_key_for_another_request_is_refused(decider: Decider, store: Watched) -> None:
    decider.submit(counts("r-1"), once=once("k", "one"))
    after = entries(store)
    for _ in range(2):  # The second time the writer reads it.
        with pytest.raises(InputError) as caught:
            decider.submit(counts("r-2"), once=once("k", "two"))
        assert caught.value.code is Code.KEY_REUSED
        assert "`k`" in str(caught.value)
    assert entries(store) == after


def test_a_key_belongs_to_whoever_chose_it(decider: Decider) -> None:
    """Nobody hears another's answer, nor learns that there is one."""
    who = [("olga", "k"), ("olga k", "k"), ("olga", "k-k"), ("paul", "k")]
    for number, (actor, key) in enumerate(who):
        answer = decider.submit(
            counts(f"r-{number}"), actor=actor, once=once(key, str(number))
        )
        assert answer.status == "reserved"
    for number, (actor, key) in enumerate(who):
        request, own = counts(f"r-{number}"), once(key, str(number))
        replayed = again(partial(decider.submit, request, actor=actor, once=own))
        assert replayed == "reserved"


def test_what_wrote_nothing_is_not_kept(decider: Decider, store: Watched) -> None:
    decider.submit(counts("r-1"))
    retry = decider.submit(counts("r-1"), once=once("k"))
    assert (retry.retry, store.kept) == (True, [])
    with pytest.raises(ConflictError):
        decider.publish("r-1", once=once("k", "other"))
    with pytest.raises(InputError):
        decider.cancel("none", reason="x", once=once("k", "third"))
    assert store.kept == []
    decider.start("r-1", once=once("k", "fourth"))
    assert [one.key for one in store.kept] == ["desk k"]


def test_what_people_must_agree_to_is_asked_again(store: Watched) -> None:
    policy = compiled(POLICY + APPROVALS)
    with serving(store, policy=policy) as decider:
        Workspace(store, FixedClock(NOON), policy=policy).init()
        request = counts("r-1", audience="public")
        with pytest.raises(ApprovalError):
            decider.submit(request, once=once("k"))
        decider.governance("olga").approve(request, reason="fine")
        assert decider.submit(request, once=once("k")).status == "reserved"
        assert again(lambda: decider.submit(request, once=once("k"))) == "reserved"


def test_what_the_writer_reads_is_done_once(decider: Decider, store: Watched) -> None:
    """A release whose like was priced before is read by the writer."""
    decider.submit(counts("r-1"))
    assert decider.submit(counts("r-2"), once=once("k")).status == "reserved"
    assert again(lambda: decider.submit(counts("r-2"), once=once("k"))) == "reserved"
    assert set(workspace_of(store).state().releases) == {"r-1", "r-2"}


def test_a_policy_that_changes_meanwhile_changes_nothing(
    store: Watched, place: Place
) -> None:
    workspace_of(store).init()
    wider = compiled(POLICY.replace("name: small", "name: wider"))
    with serving(store, policy=None) as decider:
        decider.submit(counts("r-1"), once=once("k"))
        officer = Workspace(place.open(), FixedClock(NOON), policy=None)
        officer.governance.activate(wider, reason="another name")
        # It was decided by another policy, of which the decider has not heard yet.
        assert again(lambda: decider.submit(counts("r-1"), once=once("k"))) == (
            "reserved"
        )
        answer = decider.submit(counts("r-2"), once=once("k2"))
        assert answer.policy_name == "wider"
        assert again(lambda: decider.submit(counts("r-2"), once=once("k2"))) == (
            "reserved"
        )


@pytest.mark.parametrize("raised", [ValueError, ModicumError, ConflictError])
def test_an_answer_that_cannot_be_rendered_leaves_nothing(
    decider: Decider, store: Watched, raised: type[Exception]
) -> None:
    decider.submit(counts("r-1"))
    after = entries(store)

    def fails(answer: Any) -> bytes:
        problem = Problem(Code.RELEASE_STATE, "no")
        raise raised(problem) if issubclass(raised, ModicumError) else raised("no")

    with pytest.raises(raised):
        decider.start("r-1", once=once("k", render=fails))
    assert (entries(store), store.kept) == (after, [])
    assert decider.start("r-1", once=once("k")).status.value == "started"


@pytest.mark.spec("REG-3")
def test_an_answer_is_kept_for_seven_days(store: Watched) -> None:
    clock = FixedClock(NOON)

    def later(days: float) -> None:
        clock.time = add_seconds(NOON, round(days * DAY))

    with serving(store, clock=clock) as decider:
        ask = partial(decider.submit, counts("r-1"), once=once("k"))
        ask()
        later(7)
        decider.submit(counts("r-2"), once=once("other 1".replace(" ", "-")))
        assert again(ask) == "reserved"
        later(8)
        assert again(ask) == "reserved"  # Nobody kept anything since.
        decider.submit(counts("r-3"), once=once("other-2"))
        with pytest.raises(ConflictError):  # It has expired, and is no new release.
            ask()


def test_keys_are_looked_up_once_for_a_batch(store: Watched) -> None:
    gate = Gate(store)
    with serving(gate) as decider, ThreadPoolExecutor(8) as pool:
        first = gate.hold(lambda: pool.submit(decider.submit, counts("first")))
        waiting = [
            pool.submit(
                decider.submit, counts(f"r-{n % 4}"), once=once(f"k{n % 4}", "x")
            )
            for n in range(6)
        ]
        gate.let_go(lambda: len(decider._desk._line) == len(waiting))
        assert first.result(PATIENCE).status == "reserved"
        outcomes = Counter(outcome(one) for one in waiting)
    assert outcomes == {"reserved": 4, "again reserved": 2}
    assert store.looked_up == [{f"desk k{n}" for n in range(4)}]
    assert len(store.kept) == 4


def outcome(one: Any) -> str:
    try:
        return str(one.result(PATIENCE).status)
    except Replayed as replayed:
        return f"again {replayed.answer.decode()}"


class Gate(Watched):
    """A store whose turns can be held up before they commit."""

    def __init__(self, store: Watched) -> None:
        import threading

        super().__init__(store)
        self._open = threading.Event()
        self._open.set()
        self._reached = threading.Event()

    @contextmanager
    def turn(self) -> Iterator[Any]:
        with self._store.turn() as turn:
            yield turn
            self._reached.set()
            assert self._open.wait(PATIENCE)

    def hold(self, ask: Callable[[], Any]) -> Any:
        """Ask, and hold up the turn in which it is done."""
        self._reached.clear()
        self._open.clear()
        answer = ask()
        assert self._reached.wait(PATIENCE)
        return answer

    def let_go(self, ready: Callable[[], bool]) -> None:
        """Let the turn end as soon as something is so."""
        import time

        deadline = time.monotonic() + PATIENCE
        while not ready():
            assert time.monotonic() < deadline
            time.sleep(0.001)
        self._open.set()


def test_who_needs_no_key_pays_for_none(decider: Decider, store: Watched) -> None:
    decider.submit(counts("r-1"))
    decider.start("r-1")
    decider.submit_batch([counts("r-2"), counts("r-3")])
    assert (store.looked_up, store.kept) == ([], [])


@pytest.mark.parametrize("key", ["", "a b", "a\n", "é", "k" * 256, "\x00"])
def test_a_malformed_key_is_refused(key: str) -> None:
    with pytest.raises(InputError) as caught:
        once(key)
    assert caught.value.code is Code.BAD_NAME


@pytest.mark.parametrize("digest", ["", "a" * 63, "A" * 64, "a" * 65, "g" * 64])
def test_a_malformed_digest_is_refused(digest: str) -> None:
    with pytest.raises(InputError):
        IdempotencyKey("k", digest, _render)
    assert IdempotencyKey("k" * 255, "0123456789abcdef" * 4, _render).key == "k" * 255


def test_a_begun_activation_that_is_withdrawn_keeps_no_answer(tmp_path: Path) -> None:
    """A ledger is not begun by a mistake, and no answer says that it was."""
    ws = workspace(tmp_path)
    with suppress(KeyError), ws._store.turn() as turn:
        from modicum.api.local.balances import LedgerBalances

        entry = Entry(LedgerBalances(), turn, NOON, "tester")
        entry.activate(compiled())
        entry.keep(StoredAnswer("k", "d" * 64, b"{}", NOON))
        entry.withdraw_activation()
        entry.commit()
    with ws._store.turn() as turn:
        assert turn.answered(["k"]) == {}
        assert list(turn.read(0)) == []
