"""Results for coroutines: a loop is woken once a turn, and nobody waits in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from samples.small import NOON, compiled, counts

from modicum.api.local.balances import Entry
from modicum.core.errors import Code, InputError, Problem, UnavailableError
from modicum.ledger.log.events import ReleaseStarted
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock
from modicum.writer.queue import QueuedRequest
from modicum.writer.service import Decider, Limits

PATIENCE = 20.0


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    found = asyncio.new_event_loop()
    yield found
    found.close()


@pytest.fixture(name="decider")
def decider_fixture(tmp_path: Path) -> Iterator[Decider]:
    store = SqliteStore(tmp_path / "ledger.db", keep_open=True)
    clock, limits = FixedClock(NOON), Limits(batch=256, queue=300)
    with Decider(store, clock, policy=compiled(), limits=limits) as found:
        yield found


def submissions(decider: Decider, *names: str) -> list[QueuedRequest]:
    requests = decider.for_coroutines
    return [
        requests.submission(
            counts(name, rho="0.0001"),
            "olga",
            None,
            publish=False,
            reserve_seconds=60,
            bound=None,
        )
        for name in names
    ]


async def results(promises: list[asyncio.Future[Any]]) -> list[Any]:
    waiting = asyncio.gather(*promises, return_exceptions=True)
    return await asyncio.wait_for(waiting, PATIENCE)


def test_a_loop_is_woken_once_for_all_results_of_a_turn(
    decider: Decider,
    loop: asyncio.AbstractEventLoop,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    woken, wake = list[int](), loop.call_soon_threadsafe

    def counted(*args: Any) -> asyncio.Handle:
        woken.append(1)
        return wake(*args)

    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
    ones = submissions(decider, *(f"r-{n}" for n in range(150)))
    found = loop.run_until_complete(results(decider.for_coroutines.post(ones, loop)))
    assert [one.status for one in found] == ["reserved"] * 150
    assert [one.seq for one in found] == sorted({one.seq for one in found})
    assert len(woken) == 1


def test_steps_and_mistakes_arrive(
    decider: Decider, loop: asyncio.AbstractEventLoop
) -> None:
    decider.submit(counts("first", rho="0.0001"))
    requests = decider.for_coroutines
    ones = submissions(decider, "r-1")
    for _ in range(2):
        ones.append(requests.step(ReleaseStarted("r-1"), "olga", None))
    ones.append(requests.step(ReleaseStarted("r-2"), "olga", None))
    first, started, twice, unknown = loop.run_until_complete(
        results(requests.post(ones, loop))
    )
    assert (first.status, started.status.value) == ("reserved", "started")
    assert twice.code is Code.RELEASE_STATE
    assert isinstance(unknown, InputError)


def test_all_are_enqueued_or_none(
    decider: Decider, loop: asyncio.AbstractEventLoop
) -> None:
    ones = submissions(decider, *(f"r-{n}" for n in range(301)))
    with pytest.raises(UnavailableError):
        decider.for_coroutines.post(ones, loop)
    found = decider.submit(counts("after", rho="0.0001"))
    assert found.seq == 1  # Only the policy came before.


def test_what_is_cancelled_is_not_done_unless_it_was_begun(
    decider: Decider, loop: asyncio.AbstractEventLoop
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def work(_: Entry) -> None:
        begun.set()
        assert go_on.wait(PATIENCE)

    decider.submit(counts("first", rho="0.0001"))
    blocked = threading.Thread(target=decider.turn, args=(work,))
    blocked.start()
    assert begun.wait(PATIENCE)
    # The limit of a turn is reached only later: these would join it.
    one, other = decider.for_coroutines.post(submissions(decider, "r-1", "r-2"), loop)

    async def cancel() -> list[Any]:
        one.cancel()
        await asyncio.sleep(0)  # The loop calls its callbacks.
        go_on.set()
        return await results([one, other])

    cancelled, done = loop.run_until_complete(cancel())
    blocked.join()
    assert isinstance(cancelled, asyncio.CancelledError)
    assert done.status == "reserved"
    with pytest.raises(InputError):
        decider.standing("r-1")


def test_a_closed_loop_stops_nobody(decider: Decider) -> None:
    gone = asyncio.new_event_loop()
    ones = submissions(decider, "r-1")
    begun, go_on = threading.Event(), threading.Event()

    def work(_: Entry) -> None:
        begun.set()
        assert go_on.wait(PATIENCE)

    decider.submit(counts("first", rho="0.0001"))
    blocked = threading.Thread(target=decider.turn, args=(work,))
    blocked.start()
    assert begun.wait(PATIENCE)
    decider.for_coroutines.post(ones, gone)
    gone.close()
    go_on.set()
    blocked.join()
    assert decider.submit(counts("r-1", rho="0.0001")).retry
    assert decider.submit(counts("r-2", rho="0.0001")).allowed


def test_a_failed_turn_and_a_closed_queue_are_heard_of(
    tmp_path: Path, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "ledger.db", keep_open=True)
    decider = Decider(store, FixedClock(NOON), policy=compiled())
    full = UnavailableError(Problem(Code.LEDGER_UNWRITABLE, "the disk is full"))
    decider.submit(counts("first", rho="0.0001"))

    def turn(_: object) -> None:
        raise full

    monkeypatch.setattr(store, "turn", lambda: turn(None))
    ones = submissions(decider, "r-1", "r-2")
    found = loop.run_until_complete(results(decider.for_coroutines.post(ones, loop)))
    assert [one.code for one in found] == [Code.LEDGER_UNWRITABLE] * 2
    assert found[0] is not found[1]
    decider.close(drain=False)
    with pytest.raises(UnavailableError):
        decider.for_coroutines.post(submissions(decider, "r-3"), loop)
