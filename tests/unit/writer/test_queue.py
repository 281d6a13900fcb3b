"""The line and its answers: nobody is lost, woken in vain or told twice."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from budget import counted

from modicum.core.errors import InvariantError, UnavailableError
from modicum.writer.future import Deferred, Reply
from modicum.writer.queue import Queue, QueuedRequest, not_read

#: No test waits longer for a thread; only a test that fails waits so long.
PATIENCE = 20.0


def waiting(name: str = "") -> QueuedRequest:
    return QueuedRequest(not_read, name)


def names(ones: list[QueuedRequest]) -> list[str]:
    return [one.actor for one in ones]


# --- answers -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Reply, Deferred])
def test_an_answer_is_begun_or_cancelled_and_not_both(
    kind: type[Reply[int] | Deferred[int]],
) -> None:
    ready = threading.Barrier(2)

    def at_once(call: Callable[[], bool]) -> bool:
        ready.wait(PATIENCE)
        return call()

    with ThreadPoolExecutor(2) as pool:
        for _ in range(counted(200)):
            one = kind()
            took = [pool.submit(at_once, call) for call in (one.begin, one.cancel)]
            assert sorted(found.result(PATIENCE) for found in took) == [False, True]


def test_who_gave_up_cannot_begin_and_who_began_cannot_give_up() -> None:
    one, other = Reply[int](), Reply[int]()
    assert one.begin()
    assert not one.cancel()
    assert not one.begin()
    assert other.cancel()
    assert not other.begin()


def test_an_answer_is_given_once_and_stays() -> None:
    one: Reply[int] = Reply()
    assert not one.done()
    one.keep(1)
    one.keep(2)
    one.fail(ValueError())
    assert one.done()
    assert [one.result(), one.result(0), one.result(-1.0)] == [1, 1, 1]
    failed: Reply[int] = Reply()
    failed.fail(ValueError("mine"))
    failed.keep(1)
    for _ in range(2):
        with pytest.raises(ValueError, match="mine"):
            failed.result()


@pytest.mark.parametrize("timeout", [0, 0.001, -1.0, float("nan")])
def test_without_an_answer_the_time_is_over(timeout: float) -> None:
    one: Reply[int] = Reply()
    for _ in range(2):
        with pytest.raises(TimeoutError):
            one.result(timeout)
    one.keep(7)
    assert one.result(timeout) == 7


def test_an_answer_comes_whenever_the_wait_ends() -> None:
    """The time is over about when the answer is given: it is one or the other."""
    with ThreadPoolExecutor(1) as pool:
        for number in range(counted(300)):
            one: Reply[int] = Reply()
            giving = pool.submit(one.keep, number)
            try:
                assert one.result(random.Random(number).random() * 1e-4) == number
            except TimeoutError:
                assert one.result(PATIENCE) == number
            giving.result(PATIENCE)


def test_who_is_interrupted_while_waiting_may_wait_again() -> None:
    """As by Ctrl-C, which raises wherever the main thread is."""
    one: Reply[int] = Reply()
    me, caught = threading.get_ident(), threading.Event()

    def interrupt() -> None:
        while not caught.wait(0.01):
            signal.pthread_kill(me, signal.SIGUSR1)

    def interrupted(*_: object) -> None:
        if not caught.is_set():
            caught.set()
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupted)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            one.result(PATIENCE)
    finally:
        caught.set()
        thread.join()
        signal.signal(signal.SIGUSR1, before)
    assert not one.done()
    one.keep(3)
    assert one.result(0) == 3


# --- the line ------------------------------------------------------------------------


def test_it_is_first_come_first_served_and_bounded() -> None:
    line = Queue(3)
    line.join([waiting("a"), waiting("b")])
    with pytest.raises(UnavailableError):
        line.join([waiting("c"), waiting("d")])  # All together, or not at all.
    line.join([waiting("e")])
    assert names(line.take(2)) == ["a", "b"]
    assert names(line.take(2)) == ["e"]
    assert line.take(2, 0) == line.take(2, 0.001) == []
    line.join([])
    assert len(line) == 0


def test_nobody_who_comes_wakes_nobody() -> None:
    """An empty batch is no reason to end, and neither is the end of patience."""
    line = Queue(3)
    with ThreadPoolExecutor(1) as pool:
        taking = pool.submit(line.take, 3)
        while not line._is_listening:
            threading.Event().wait(0.001)
        line.join([])
        assert line._is_listening
        line.join([waiting("a")])
        assert names(taking.result(PATIENCE)) == ["a"]


def test_a_bell_that_rings_when_the_time_is_over_rings_once() -> None:
    line = Queue(3)
    bell = line._bell

    class Late:
        """Somebody comes just after the time was over."""

        release = bell.release

        def acquire(self, timeout: float = -1) -> bool:
            if timeout < 0:
                return bell.acquire()
            line.join([waiting("late")])
            return False

    line._bell = Late()  # type: ignore[assignment]
    assert names(line.take(3, 0.001)) == ["late"]
    assert bell.locked()


@pytest.mark.parametrize("drain", [True, False])
def test_closing_wakes_whoever_takes_or_pauses(drain: bool) -> None:
    line, paused = Queue(3), Queue(3)
    with ThreadPoolExecutor(2) as pool:
        taking = pool.submit(line.take, 3)
        pausing = pool.submit(paused.pause, PATIENCE * 10)
        assert line.close("over", drain=drain) == []
        paused.join([waiting("a")])  # Who comes ends no pause.
        assert names(paused.close("over", drain=drain)) == ([] if drain else ["a"])
        assert taking.result(PATIENCE) == []
        pausing.result(PATIENCE)
    assert line.is_closed
    with pytest.raises(UnavailableError, match="over"):
        line.join([waiting("late")])
    assert names(paused.take(3)) == (["a"] if drain else [])


@pytest.mark.parametrize("seed", range(counted(5)))
def test_nobody_is_lost_however_they_meet(seed: int) -> None:
    """Many come while one takes, whose patience ends again and again."""
    rng, line = random.Random(seed), Queue(10**6)
    sizes = [rng.choice([0, 1, 1, 2, 5]) for _ in range(400)]

    def come(who: int) -> None:
        for number, size in enumerate(sizes):
            line.join([waiting(f"{who} {number} {n}") for n in range(size)])

    found: list[str] = []
    with ThreadPoolExecutor(3) as pool:
        coming = [pool.submit(come, who) for who in range(3)]
        while len(found) < 3 * sum(sizes):
            patience = rng.choice([None, 0, 1e-5, 1e-4])
            found += names(line.take(rng.choice([1, 7, 256]), patience))
        for one in coming:
            one.result(PATIENCE)
    assert line.take(1, 0) == []
    for who in range(3):
        own = [name for name in found if name.startswith(f"{who} ")]
        assert own == [f"{who} {k} {n}" for k, s in enumerate(sizes) for n in range(s)]


def test_what_was_not_read_is_not_done() -> None:
    with pytest.raises(InvariantError):
        waiting().work(None)  # type: ignore[arg-type]
