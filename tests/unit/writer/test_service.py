"""The decider: many clients, one writer, and nothing that is lost or blocked."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
from budget import examples
from samples.small import NOON, POLICY, compiled, counts, workspace

import modicum as mo
from modicum.api.local import Decision, Turn
from modicum.api.local.balances import Entry
from modicum.core.errors import (
    Code,
    ConflictError,
    InputError,
    Problem,
    StaleError,
    UnavailableError,
    UsageError,
)
from modicum.ledger import Record, audit
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock, SystemClock
from modicum.writer.group_commit import outcome
from modicum.writer.service import Decider, Limits

T = TypeVar("T")

#: No test waits longer for a thread; only a test that fails waits so long.
PATIENCE = 20.0


class Gate(SqliteStore):
    """A store whose turns wait at a gate before they commit, or fail around it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, keep_open=True)
        self.open = threading.Event()
        self.open.set()
        self.reached = threading.Event()
        self.before: Exception | None = None
        self.after: Exception | None = None
        self.turns = 0
        self.reads = 0

    def read(self, after: int, limit: int | None = None) -> Iterator[Record]:
        self.reads += 1
        return super().read(after, limit)

    @contextmanager
    def turn(self) -> Iterator[Turn]:  # type: ignore[override]
        self.turns += 1
        with super().turn() as turn:
            yield turn
            self.reached.set()
            assert self.open.wait(PATIENCE)
            if self.before:
                raise self.before
        if self.after:
            raise self.after

    def shut(self) -> None:
        self.reached.clear()
        self.open.clear()


@pytest.fixture
def store(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "ledger.db")


@pytest.fixture(name="decider")
def decider_fixture(store: Gate) -> Iterator[Decider]:
    with serving(store) as found:
        yield found
        store.open.set()


def serving(store: Gate, **more: Any) -> Decider:
    more.setdefault("policy", compiled())
    return Decider(store, more.pop("clock", FixedClock(NOON)), actor="desk", **more)


def busy(reason: str = "the disk is full") -> UnavailableError:
    return UnavailableError(Problem(Code.LEDGER_UNWRITABLE, reason))


def stuck(decider: Decider, store: Gate) -> Future[Decision]:
    """Return a release that the writer is about to commit, and cannot."""
    store.shut()
    first = decider.submit_soon(counts("first"))
    assert store.reached.wait(PATIENCE)
    return first


def kinds(folder: Path) -> dict[str, str]:
    """Return where each release stands in the ledger, read anew."""
    state = workspace(folder).state()
    return {name: one.status.value for name, one in state.releases.items()}


# --- what it does --------------------------------------------------------------------


def test_a_release_goes_through_its_life(decider: Decider, tmp_path: Path) -> None:
    assert decider.check(counts("r-1")).status == "checked"
    answer = decider.submit(counts("r-1"), actor="olga")
    assert (answer.status, answer.allowed) == ("reserved", True)
    assert decider.check(counts("r-1")).retry
    assert decider.start("r-1").status.value == "started"
    assert decider.publish("r-1").status.value == "published"
    assert decider.submit(counts("r-2"), publish=True).status == "published"
    decider.submit(counts("r-3"))
    assert decider.cancel("r-3", reason="no need").status.value == "canceled"
    assert decider.backfill(counts("r-4", rho="9")).status == "recorded"
    denied = decider.submit(counts("r-5", rho="0.01"))
    assert (denied.status, denied.allowed) == ("denied", False)
    assert decider.standing("r-4").status.value == "recorded"
    decider.close()
    assert kinds(tmp_path) == {
        "r-1": "published",
        "r-2": "published",
        "r-3": "canceled",
        "r-4": "recorded",
    }
    assert workspace(tmp_path).verify().decisions


def test_events_are_signed_by_who_asked(decider: Decider, tmp_path: Path) -> None:
    decider.submit(counts("r-1"), actor="olga")
    decider.submit(counts("r-2"))
    decider.start("r-1", actor="pavel")
    decider.governance("quinn").annotate("a remark")
    decider.close()
    texts = [one.payload.decode() for one in workspace(tmp_path).records()]
    actors = [text.split('"actor":"')[1].split('"')[0] for text in texts]
    assert actors == ["olga", "olga", "desk", "pavel", "quinn"]


def test_mistakes_are_raised_and_leave_nothing(
    decider: Decider, tmp_path: Path
) -> None:
    with pytest.raises(InputError):
        decider.submit({"release": "r-1", "mechanisms": []})
    with pytest.raises(UsageError):
        decider.start("r-1")
    decider.submit(counts("r-1"))
    with pytest.raises(ConflictError):
        decider.submit(counts("r-1", rho="0.002"))
    with pytest.raises(ConflictError):
        decider.publish("r-1")
    with pytest.raises(InputError):
        decider.cancel("r-1", reason=" ")
    with pytest.raises(InputError):
        decider.standing("r-9")
    decider.close()
    assert workspace(tmp_path).state().seq == 2


@pytest.mark.spec("LED-14")
def test_a_batch_has_an_answer_for_each(decider: Decider, store: Gate) -> None:
    turns = store.turns
    batch = [
        counts("r-1"),
        {"release": "?"},
        counts("r-1", rho="0.002"),
        counts("r-2"),
    ]
    first, malformed, other, second = decider.submit_batch(batch)
    assert isinstance(first, Decision)
    assert isinstance(second, Decision)
    assert isinstance(malformed, InputError)
    assert isinstance(other, ConflictError)
    assert second.seq > first.seq
    assert store.turns == turns + 1


def test_what_is_asked_again_is_what_was_asked_at_first(
    decider: Decider, tmp_path: Path
) -> None:
    """The caller may make another release of the same mapping meanwhile."""
    decider.submit(counts("r-1"))
    with Decider(SqliteStore(tmp_path / "ledger.db"), FixedClock(NOON)) as follower:
        clerk, release = follower._clerk, counts("first")
        waiting = (
            clerk.submission(
                release, "", publish=False, reserve_seconds=60, bound=None
            ),
            clerk.past(release, ""),
        )
        release["release"] = "second"
        for one in waiting:
            assert one.again is not None
            work: Any = one.again(follower.policy())
            assert work.args[0].release.id == "first"


def test_a_batch_may_be_longer_than_the_line(store: Gate) -> None:
    with serving(store, limits=Limits(batch=4, queue=5)) as decider:
        batch = [counts(f"r-{n}", rho="0.0001") for n in range(11)]
        answers = decider.submit_batch(batch)
        assert [one.status for one in answers if isinstance(one, Decision)] == (
            ["reserved"] * 11
        )
        assert store.turns == 3


def test_without_a_ledger_and_a_policy_there_is_nothing_to_serve(store: Gate) -> None:
    with pytest.raises(UsageError) as caught:
        serving(store, policy=None)
    assert caught.value.code is Code.LEDGER_MISSING


# --- one turn for many ---------------------------------------------------------------


@pytest.mark.spec("LED-14")
def test_those_who_came_during_a_commit_are_the_next_batch(
    decider: Decider, store: Gate
) -> None:
    first = stuck(decider, store)
    later = [decider.submit_soon(counts(f"r-{n}", rho="0.0001")) for n in range(50)]
    turns = store.turns
    assert not first.done()
    store.open.set()
    done = [one.result(PATIENCE) for one in later]
    assert store.turns == turns + 1
    assert [one.seq for one in done] == sorted({one.seq for one in done})


@pytest.mark.spec("LED-14")
def test_those_who_come_while_others_are_decided_are_served_with_them(
    store: Gate,
) -> None:
    with serving(store, limits=Limits(batch=4)) as decider:
        decider.submit(counts("first", rho="0.0001"))
        turns = store.turns
        came = coming(decider, 5)
        done = [one.result(PATIENCE) for one in came]
        decider.check(counts("x"))
        assert [one.status for one in done] == ["reserved"] * 5
        assert [one.seq for one in done] == sorted({one.seq for one in done})
        assert store.turns == turns + 2  # Four in one turn, and two in the next.


def coming(
    decider: Decider, many: int, then: Callable[[Entry], None] = lambda _: None
) -> list[Future[Decision]]:
    """Return who comes to stand in line while somebody else is served."""
    came: list[Future[Decision]] = []

    def work(entry: Entry) -> None:
        if not came:
            came.extend(
                decider.submit_soon(counts(f"c-{n}", rho="0.0001")) for n in range(many)
            )
        then(entry)

    with suppress(RuntimeError, UnavailableError):
        decider.turn(work)
    return came


@pytest.mark.spec("LED-14")
def test_those_who_came_while_another_broke_the_turn_are_served(
    decider: Decider, tmp_path: Path
) -> None:
    decider.submit(counts("first", rho="0.0001"))
    decider.submit_soon(counts("beside", rho="0.0001"))
    came = coming(decider, 3, _breaks)
    assert [one.result(PATIENCE).status for one in came] == ["reserved"] * 3
    decider.close()
    assert set(kinds(tmp_path)) == {"first", "beside", "c-0", "c-1", "c-2"}


def test_those_who_came_hear_of_a_failure(decider: Decider, store: Gate) -> None:
    decider.submit(counts("first", rho="0.0001"))
    store.before = busy()
    for one in coming(decider, 3):
        with pytest.raises(UnavailableError, match="the disk is full"):
            one.result(PATIENCE)
    store.before = None
    assert not decider.submit(counts("c-0", rho="0.0001")).retry


@pytest.mark.spec("LED-8")
@pytest.mark.parametrize("seed", range(examples(2)))
def test_what_threads_are_told_is_what_a_replay_says(seed: int, tmp_path: Path) -> None:
    store = Gate(tmp_path / f"{seed}.db")
    result: dict[str, str] = {}

    def client(number: int) -> None:
        rng = random.Random(f"{seed} {number}")
        for count in range(12):
            name = f"r-{number}-{count}" if rng.random() < 0.8 else f"shared-{count}"
            rho = rng.choice(["0.0005", "0.001", "0.002"])
            try:
                result[f"{name} {number}"] = decider.submit(
                    counts(name, rho=rho), publish=rng.random() < 0.3
                ).status
            except ConflictError:
                result[f"{name} {number}"] = "other"
            decider.check(counts(name, rho=rho)) if name.startswith("r") else None

    with (
        serving(store, clock=SystemClock()) as decider,
        ThreadPoolExecutor(6) as pool,
    ):
        list(pool.map(client, range(6)))
    report = audit(list(SqliteStore(tmp_path / f"{seed}.db").read(0)))
    state = workspace_at(tmp_path / f"{seed}.db").state()
    assert report.decisions == state.denials + len(state.releases)
    for key, status in result.items():
        name = key.split()[0]
        if status == "denied":
            assert name not in state.releases or name.startswith("shared")
        elif status != "other":
            assert state.releases[name].status.value in ("reserved", "published")
    assert {"denied", "reserved", "published"} <= {*result.values()}


def workspace_at(path: Path) -> Any:
    from modicum.api.local import Workspace

    return Workspace(SqliteStore(path), FixedClock(NOON), policy=compiled())


# --- looking beside the writer -------------------------------------------------------


def test_a_check_is_answered_while_the_writer_commits(
    decider: Decider, store: Gate
) -> None:
    decider.submit(counts("r-1", rho="0.005"))
    alone = decider.check(counts("new", rho="0.001"))
    decider.standing("r-1")  # The view of quick reads is made.
    first, reads, began = stuck(decider, store), store.reads, time.monotonic()
    for number in range(20):
        answer = decider.check(counts(f"c-{number}", rho="0.001"))
        assert (answer.status, answer.seq) == ("checked", alone.seq)
        assert answer.losses.keys() == alone.losses.keys()
    assert decider.standing("r-1").status.value == "reserved"
    assert not first.done()
    # At most once in half a second, however slow this machine is.
    assert store.reads <= reads + 1 + (time.monotonic() - began) // 0.5
    store.open.set()
    assert first.result(PATIENCE).allowed


def test_submissions_go_on_while_there_are_checks(decider: Decider) -> None:
    over = threading.Event()

    def look() -> int:
        count = 0
        while not over.is_set():
            decider.check(counts("c", rho="0.0001"))
            count += 1
        return count

    with ThreadPoolExecutor(3) as pool:
        looks = [pool.submit(look) for _ in range(3)]
        try:
            for number in range(30):
                assert decider.submit(counts(f"r-{number}", rho="0.0001")).allowed
        finally:
            over.set()
        assert all(one.result(PATIENCE) for one in looks)


def test_a_check_sees_what_was_told_before(decider: Decider) -> None:
    for number in range(10):
        before = decider.check(counts("x", rho="0.0005"))
        decider.submit(counts(f"r-{number}", rho="0.0005"))
        after = decider.check(counts("x", rho="0.0005"))
        assert after.seq > before.seq
        assert decider.standing(f"r-{number}").status.value == "reserved"


# --- too many, too late --------------------------------------------------------------


def test_a_full_line_refuses_at_once(store: Gate, tmp_path: Path) -> None:
    with serving(store, limits=Limits(queue=3)) as decider:
        stuck(decider, store)
        batch = [decider.submit_soon(counts(f"r-{n}")) for n in range(3)]
        with pytest.raises(UnavailableError) as caught:
            decider.submit(counts("r-3"))
        assert caught.value.code is Code.LEDGER_BUSY
        assert caught.value.problems[0].help
        store.open.set()
        assert all(one.result(PATIENCE).status for one in batch)
        assert decider.submit(counts("r-3")).status in ("reserved", "denied")


def test_who_gives_up_in_time_is_dropped(
    decider: Decider, store: Gate, tmp_path: Path
) -> None:
    first = stuck(decider, store)
    with pytest.raises(UnavailableError, match="not started"):
        decider.submit(counts("late"), timeout=0.01)
    store.open.set()
    first.result(PATIENCE)
    decider.close()
    assert kinds(tmp_path) == {"first": "reserved"}


def test_who_gives_up_too_late_finds_it_done(decider: Decider, store: Gate) -> None:
    store.shut()
    waiting = decider._clerk.submission(
        counts("late"), "", publish=False, reserve_seconds=60, bound=None
    )
    decider._desk._line.join([waiting])
    assert store.reached.wait(PATIENCE)
    with pytest.raises(UnavailableError, match="there is no result"):
        outcome(waiting, 0.01)
    store.open.set()
    again = decider.submit(counts("late"))
    assert (again.status, again.retry) == ("reserved", True)


# --- when things fail ----------------------------------------------------------------


def test_all_who_wait_hear_of_a_failure_and_may_ask_again(
    decider: Decider, store: Gate, tmp_path: Path
) -> None:
    first = stuck(decider, store)
    others = [decider.submit_soon(counts(f"r-{n}", rho="0.0001")) for n in range(3)]
    store.before = busy()
    store.open.set()
    for one in (first, *others):
        with pytest.raises(UnavailableError, match="the disk is full"):
            one.result(PATIENCE)
    store.before = None
    assert decider.submit(counts("first")).retry is False
    assert not decider.submit_batch([])
    decider.close()
    assert kinds(tmp_path) == {"first": "reserved"}


def test_after_an_unknown_outcome_the_log_says_what_happened(
    decider: Decider, store: Gate
) -> None:
    store.after = busy("the connection was lost")
    with pytest.raises(UnavailableError):
        decider.submit(counts("r-1"))
    store.after = None
    again = decider.submit(counts("r-1"))
    assert (again.status, again.retry) == ("reserved", True)
    assert decider.check(counts("r-1")).retry


@pytest.mark.spec("LED-14")
def test_one_who_breaks_a_turn_breaks_only_his_own(
    decider: Decider, store: Gate, tmp_path: Path
) -> None:
    first = stuck(decider, store)
    good = [decider.submit_soon(counts(f"r-{n}", rho="0.0001")) for n in range(2)]
    with ThreadPoolExecutor(1) as pool:
        bad = pool.submit(decider.turn, _breaks)
        good.append(decider.submit_soon(counts("r-2", rho="0.0001")))
        store.open.set()
        assert first.result(PATIENCE).status == "reserved"
        assert [one.result(PATIENCE).status for one in good] == ["reserved"] * 3
        with pytest.raises(RuntimeError, match="broken"):
            bad.result(PATIENCE)
    decider.close()
    assert kinds(tmp_path) == dict.fromkeys(("first", "r-0", "r-1", "r-2"), "reserved")


def _breaks(entry: Entry) -> None:
    from modicum.ledger.log.events import Annotated

    entry.add(Annotated("", "half of it"))
    raise RuntimeError("broken")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_writer_that_dies_says_so(decider: Decider, store: Gate) -> None:
    decider.submit(counts("r-1"))
    first = stuck(decider, store)
    with ThreadPoolExecutor(1) as pool:
        deadly = pool.submit(decider.turn, _dies)
        while not len(decider._desk._line):
            threading.Event().wait(0.001)
        beside = decider.submit_soon(counts("r-2"))
        store.open.set()
        assert first.result(PATIENCE).allowed
        for one in (deadly, beside):
            with pytest.raises(UnavailableError):
                one.result(PATIENCE)
    decider._desk._thread.join(PATIENCE)
    with pytest.raises(UnavailableError, match="writer failed"):
        decider.submit(counts("r-3"))
    assert decider.check(counts("r-3")).status == "checked"


def _dies(entry: Entry) -> None:
    raise SystemExit(1)


# --- the end -------------------------------------------------------------------------


def test_closing_serves_those_who_wait(store: Gate, tmp_path: Path) -> None:
    decider = serving(store)
    stuck(decider, store)
    later = [decider.submit_soon(counts(f"r-{n}", rho="0.0001")) for n in range(3)]
    store.open.set()
    decider.close()
    decider.close()
    assert [one.result(0).status for one in later] == ["reserved"] * 3
    with pytest.raises(UnavailableError, match="closed"):
        decider.submit(counts("r-9"))


def test_closing_may_refuse_those_who_wait(store: Gate, tmp_path: Path) -> None:
    decider = serving(store)
    first = stuck(decider, store)
    later = decider.submit_soon(counts("r-1"))
    closing = threading.Thread(target=decider.close, kwargs={"drain": False})
    closing.start()
    with pytest.raises(UnavailableError, match="closed"):
        later.result(PATIENCE)
    store.open.set()
    closing.join(PATIENCE)
    assert first.result(0).status == "reserved"
    assert kinds(tmp_path) == {"first": "reserved"}


def test_a_forked_process_is_refused(decider: Decider) -> None:
    decider.submit(counts("r-1"))
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        outcome = b"served"
        try:
            decider.submit(counts("r-2"))
        except UsageError:
            decider.close()  # It does nothing here.
            outcome = b"refused"
        finally:
            os.write(writer, outcome)
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 20) == b"refused"
    os.close(reader)
    os.close(writer)
    assert decider.submit(counts("r-2")).allowed


# --- several processes, several policies ---------------------------------------------


def test_what_others_did_meanwhile_is_decided_upon(
    decider: Decider, tmp_path: Path
) -> None:
    decider.submit(counts("r-1", rho="0.001"))
    assert decider.check(counts("r-2", rho="0.015")).allowed
    assert workspace(tmp_path).submit(counts("other", rho="0.015")).allowed
    assert not decider.submit(counts("r-2", rho="0.015")).allowed
    assert not decider.check(counts("r-2", rho="0.015")).allowed


def test_who_means_the_active_policy_is_decided_by_the_next_one(
    store: Gate, tmp_path: Path
) -> None:
    workspace(tmp_path).init()
    wider = POLICY.replace("name: small", "name: wider").replace(
        "budget: 2.0}", "budget: 3.0}"
    )
    with serving(store, policy=None) as decider:
        assert decider.submit(counts("r-1")).policy_name == "small"
        workspace(tmp_path).governance.activate(compiled(wider), reason="wider")
        answer = decider.submit(counts("r-2"))
        assert (answer.policy_name, answer.status) == ("wider", "reserved")
        assert decider.check(counts("r-3")).policy_name == "wider"


def test_who_means_one_policy_hears_that_it_was_replaced(
    decider: Decider, tmp_path: Path
) -> None:
    decider.submit(counts("r-1"))
    wider = POLICY.replace("name: small", "name: wider")
    decider.governance("olga").activate(compiled(wider), reason="another name")
    with pytest.raises(StaleError):
        decider.submit(counts("r-2"))


def test_two_deciders_share_a_ledger(store: Gate, tmp_path: Path) -> None:
    other = Gate(tmp_path / "ledger.db")
    with serving(store) as one, serving(other) as two, ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(_fill, decider, name)
            for decider, name in ((one, "a"), (two, "b"))
        ]
        result = [status for job in jobs for status in job.result(PATIENCE)]
    state = workspace(tmp_path).state()
    assert result.count("reserved") == len(state.releases)
    assert result.count("denied") == state.denials
    assert workspace(tmp_path).verify().decisions == len(result)


def _fill(decider: Decider, name: str) -> Sequence[str]:
    batch = (counts(f"{name}-{n}", rho="0.001") for n in range(25))
    return [decider.submit(one).status for one in batch]


def test_on_postgresql_it_survives_a_restart_of_the_server(
    own_postgres: Any,
) -> None:
    ledger = own_postgres.new_ledger()
    with mo.open_decider(ledger, policy=compiled(), actor="desk") as decider:
        assert decider.submit(counts("r-1", rho="0.0001")).allowed
        own_postgres.restart()
        status = patiently(lambda: decider.submit(counts("r-2", rho="0.0001")).status)
        assert status == "reserved"
        assert patiently(lambda: decider.check(counts("r-3", rho="0.0001"))).allowed
        answers = decider.submit_batch([counts(f"b-{n}", rho="0.0001") for n in (1, 2)])
        assert [one.status for one in answers if isinstance(one, Decision)] == (
            ["reserved"] * 2
        )
    state = mo.open(ledger).state()
    assert set(state.releases) == {"r-1", "r-2", "b-1", "b-2"}


def patiently(ask: Callable[[], T]) -> T:
    """Ask again as long as there is no answer."""
    for _ in range(50):
        try:
            return ask()
        except UnavailableError:
            threading.Event().wait(0.05)
    return ask()


def test_a_snapshot_is_left_for_the_next_start(
    store: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("modicum.writer.group_commit.SNAPSHOT_AT_CLOSE", 3)
    with serving(store) as decider:
        decider.submit_batch([counts(f"r-{n}", rho="0.0001") for n in range(3)])
        assert not (tmp_path / "ledger.db.snapshot").exists()
    assert (tmp_path / "ledger.db.snapshot").exists()
    with serving(Gate(tmp_path / "ledger.db")) as again:
        assert again.check(counts("r-1", rho="0.0001")).retry
        assert again.submit(counts("r-9", rho="0.0001")).seq == 4


@pytest.mark.parametrize("name", ["SNAPSHOT_WHEN_IDLE", "SNAPSHOT_AT_LAST"])
def test_a_snapshot_is_written_at_leisure_and_at_last(
    name: str, store: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"modicum.writer.group_commit.{name}", 2)
    monkeypatch.setattr("modicum.writer.group_commit.IDLE_SECONDS", 0.01)
    with serving(store) as decider:
        decider.submit(counts("r-1", rho="0.0001"))
        written = (tmp_path / "ledger.db.snapshot").exists
        assert patiently_true(written)
        assert decider.submit(counts("r-2", rho="0.0001")).allowed


def patiently_true(found: Callable[[], bool]) -> bool:
    """Return whether something comes true before patience ends."""
    return any(
        found() or threading.Event().wait(0.01) for _ in range(int(100 * PATIENCE))
    )
