"""What clients of a decider do to it: it harms, if anybody, only themselves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from samples.small import NOON, compiled, counts, workspace

from modicum.api.local import Decision
from modicum.api.local.balances import Entry
from modicum.api.local.ledger_view import LedgerView
from modicum.core.errors import (
    Code,
    InputError,
    ModicumError,
    Problem,
    StaleError,
    UnavailableError,
    UsageError,
)
from modicum.ledger import Standing
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock
from modicum.writer.queue import QueuedRequest, too_long
from modicum.writer.service import Decider, Limits

#: No test waits longer for a thread; only a test that fails waits so long.
PATIENCE = 20.0

TINY = "0.0001"


@pytest.fixture(name="decider")
def decider_fixture(tmp_path: Path) -> Iterator[Decider]:
    with serving(tmp_path) as found:
        found.submit(counts("first", rho=TINY))
        yield found


def serving(folder: Path, **more: Any) -> Decider:
    store = SqliteStore(folder / "ledger.db", keep_open=True)
    return Decider(store, FixedClock(NOON), policy=compiled(), actor="desk", **more)


@contextmanager
def held(decider: Decider) -> Iterator[None]:
    """Hold the writer in a turn meanwhile, so that all who come stand in line."""
    reached, gate = threading.Event(), threading.Event()

    def work(_: Entry) -> None:
        reached.set()
        gate.wait(PATIENCE)

    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(decider.turn, work)
        assert reached.wait(PATIENCE)
        try:
            yield
        finally:
            gate.set()
        holding.result(PATIENCE)


def soon(decider: Decider, *names: str) -> list[Future[Decision]]:
    return [decider.submit_soon(counts(name, rho=TINY)) for name in names]


def force(promise: Future[Any]) -> None:
    """Put an end to a promise behind its back."""
    Future.set_result(promise, "mine")


def words(promises: list[Future[Decision]]) -> list[str]:
    return [one.result(PATIENCE).status for one in promises]


# --- promises ------------------------------------------------------------------------


def test_a_client_cannot_keep_its_own_promise(decider: Decider) -> None:
    with held(decider):
        promises = soon(decider, "a", "b")
        for attempt in (
            lambda: promises[0].set_result(None),  # type: ignore[arg-type]
            lambda: promises[0].set_exception(ValueError()),
            promises[0].set_running_or_notify_cancel,
        ):
            with pytest.raises(UsageError, match="set by its writer"):
                attempt()
    assert words(promises) == ["reserved", "reserved"]


def test_a_promise_that_was_forced_harms_nobody_else(decider: Decider) -> None:
    with held(decider):
        before, forced, after = soon(decider, "before", "forced", "after")
        force(forced)
    assert words([before, after]) == ["reserved", "reserved"]
    assert decider.submit(counts("later", rho=TINY)).allowed


def test_a_promise_that_was_forced_too_late_harms_nobody_else(
    decider: Decider,
) -> None:
    def forcing(_: Entry) -> None:
        force(forced[0])

    with held(decider):
        turns = ThreadPoolExecutor(1)
        forced = soon(decider, "forced")
        turn = turns.submit(decider.turn, forcing)
        after = soon(decider, "after")
    turn.result(PATIENCE)
    turns.shutdown()
    assert words(after) == ["reserved"]
    assert decider.submit(counts("later", rho=TINY)).allowed


def test_a_promise_can_be_cancelled_until_it_is_begun(
    decider: Decider, tmp_path: Path
) -> None:
    with held(decider):
        dropped, kept = soon(decider, "dropped", "kept")
        assert dropped.cancel()
    assert kept.result(PATIENCE).allowed
    assert not kept.cancel()
    assert set(workspace(tmp_path).state().releases) == {"first", "kept"}


def test_a_promise_can_be_awaited(decider: Decider) -> None:
    async def ask() -> Decision:
        return await asyncio.wrap_future(soon(decider, "a")[0])

    assert asyncio.run(ask()).status == "reserved"


# --- those who are called back -------------------------------------------------------


@pytest.mark.parametrize("end", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_who_is_called_back_cannot_end_the_writer(
    end: type[BaseException], decider: Decider
) -> None:
    def ending(_: Any) -> None:
        raise end

    called = threading.Event()
    with held(decider):
        ended, after = soon(decider, "ended", "after")
        ended.add_done_callback(ending)
        ended.add_done_callback(lambda _: called.set())
    assert words([ended, after]) == ["reserved", "reserved"]
    assert called.wait(PATIENCE)
    assert decider.submit(counts("later", rho=TINY)).allowed


@pytest.mark.parametrize(
    "ask",
    [
        lambda decider: decider.submit(counts("inner", rho=TINY)),
        lambda decider: decider.submit_batch([counts("inner", rho=TINY)]),
        lambda decider: decider.backfill(counts("inner", rho=TINY)),
        lambda decider: decider.start("first"),
        lambda decider: decider.close(),
    ],
)
def test_who_is_called_back_cannot_wait_for_the_writer(
    ask: Callable[[Decider], object], decider: Decider
) -> None:
    result = called_back(decider, ask)
    assert isinstance(result, UsageError)
    assert result.code is Code.NOT_SUPPORTED
    assert decider.submit(counts("later", rho=TINY)).allowed


def test_who_is_called_back_may_look_and_stand_in_line(decider: Decider) -> None:
    inner = called_back(decider, lambda decider: soon(decider, "inner"))
    assert words(inner) == ["reserved"]
    checked = called_back(decider, lambda decider: decider.check(counts("b", rho=TINY)))
    assert checked.status == "checked"


def called_back(decider: Decider, ask: Callable[[Decider], object]) -> Any:
    """Return what the writer is told that calls back somebody who asks."""
    result: Future[object] = Future()

    def again(_: Any) -> None:
        try:
            result.set_result(ask(decider))
        except ModicumError as mistake:
            result.set_result(mistake)

    with held(decider):
        soon(decider, f"outer-{id(ask)}")[0].add_done_callback(again)
    return result.result(PATIENCE)


# --- what fails beside a decision ----------------------------------------------------


@pytest.mark.parametrize(
    "name", ["SNAPSHOT_WHEN_IDLE", "SNAPSHOT_AT_LAST", "SNAPSHOT_AT_CLOSE"]
)
def test_a_snapshot_that_fails_is_only_missed(
    name: str, decider: Decider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = threading.Event()

    def no_memory(_: object) -> bytes:
        failed.set()
        raise MemoryError

    monkeypatch.setattr("modicum.api.local.live_ledger.write_snapshot", no_memory)
    monkeypatch.setattr(f"modicum.writer.group_commit.{name}", 1)
    monkeypatch.setattr("modicum.writer.group_commit.IDLE_SECONDS", 0.01)
    for number in range(3):
        assert decider.submit(counts(f"r-{number}", rho=TINY)).allowed
    decider.close()
    assert failed.is_set()
    with pytest.raises(UnavailableError, match="it was closed"):  # It did not die.
        decider.submit(counts("late", rho=TINY))
    assert len(workspace(tmp_path).state().releases) == 4


def test_work_that_cannot_be_made_anew_is_its_own_mistake(decider: Decider) -> None:
    def outdated(_: Entry) -> StaleError:
        return StaleError(Problem(Code.POLICY_STALE, "the active policy has changed"))

    def again(_: object) -> Any:
        raise RuntimeError("its description breaks")

    broken = decider._desk.join(QueuedRequest(outdated, "client", again))
    with pytest.raises(RuntimeError, match="its description breaks"):
        broken.result(PATIENCE)
    assert decider.submit(counts("later", rho=TINY)).allowed


# --- batches -------------------------------------------------------------------------


def test_a_batch_that_is_cut_short_says_what_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    releases = [counts(f"r-{number}", rho=TINY) for number in range(5)]
    with serving(tmp_path, limits=Limits(batch=2, queue=2)) as decider:
        join, joined = decider._desk._line.join, []

        def joining(ones: list[QueuedRequest]) -> None:
            joined.append(len(ones))
            if len(joined) == 2:
                raise too_long(2)
            join(ones)

        monkeypatch.setattr(decider._desk._line, "join", joining)
        answers = decider.submit_batch(releases)
        assert [getattr(one, "status", "none") for one in answers] == (
            ["reserved"] * 2 + ["none"] * 3
        )
        assert all(isinstance(one, UnavailableError) for one in answers[2:])
        assert joined == [2, 2]
        again = decider.submit_batch(releases)
        assert [getattr(one, "retry", None) for one in again] == [True] * 2 + [
            False
        ] * 3


def test_a_batch_of_which_nothing_was_done_is_refused(decider: Decider) -> None:
    decider.close()
    with pytest.raises(UnavailableError, match="closed"):
        decider.submit_batch([counts(f"r-{number}") for number in range(600)])


def test_a_promise_knows_no_second_end() -> None:
    from modicum.writer.future import Deferred

    promise: Deferred[int] = Deferred()
    assert promise.begin()
    assert not promise.begin()
    promise.keep(1)
    promise.keep(2)
    promise.fail(ValueError())
    assert promise.result(0) == 1
    with pytest.raises(InvalidStateError):
        Future.set_result(promise, 3)


def test_what_cannot_be_copied_is_read_or_refused_as_ever(tmp_path: Path) -> None:
    """Under the active policy, a decider keeps a copy of what it may read again."""
    workspace(tmp_path).init()
    store = SqliteStore(tmp_path / "ledger.db", keep_open=True)
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with Decider(store, FixedClock(NOON), actor="desk") as decider:
        still = MappingProxyType(counts("still", rho=TINY))
        assert decider.submit(still).status == "reserved"
        for odd in (deep, threading.Lock(), (one for one in TINY)):
            with pytest.raises(InputError):
                decider.submit({**counts("odd", rho=TINY), "purpose": odd})


def test_what_another_process_brought_in_is_found_at_once(tmp_path: Path) -> None:
    with serving(tmp_path) as one, serving(tmp_path) as other:
        for number in range(3):
            # The other one has looked just now, and takes what it knows to be fresh.
            name, more = f"r-{number}", f"more-{number}"
            one.submit(counts(f"before-{number}", rho=TINY))
            other.standing(f"before-{number}")
            one.submit(counts(name, rho=TINY))
            assert other.read_view(partial(_standing, name)).id == name
            one.submit(counts(more, rho=TINY))
            assert other.standing(more).id == more
            with pytest.raises(InputError, match="unknown release"):
                other.standing(f"unknown-{number}")


def _standing(release: str, view: LedgerView) -> Standing:
    return view.standing(release)
