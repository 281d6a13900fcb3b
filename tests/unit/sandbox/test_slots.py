"""A place that is kept from one run to the next: nobody else comes between."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from modicum.api.ports.escrow import Limits
from modicum.core.errors import InvariantError, UnavailableError
from modicum.sandbox import deadline, fixed_time, slots
from modicum.sandbox.fixed_time import Run, at_fixed_time
from modicum.sandbox.slots import SlotLease, Slots, slot_lease

SHORT = Limits(seconds=1.0, memory_bytes=2**20, processes=4)


@pytest.fixture(autouse=True)
def _own_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "folder", lambda: tmp_path / "turns")
    monkeypatch.setattr(deadline, "WAIT_SECONDS", 0.1)


def is_taken() -> bool:
    """Return whether others of this machine find no place."""
    others = Slots(None, 1)
    with suppress(UnavailableError):
        others.free(others.take())
        return False
    return True


def telling(note: Callable[[], object] = lambda: None) -> Run:
    @contextmanager
    def run(_: float, __: int | None) -> Iterator[float]:
        yield 0.5
        note()

    return run


def test_nobody_comes_between_two_runs() -> None:
    with slot_lease(Slots(None, 1)) as stay:
        for _ in range(2):
            assert is_taken()
            assert at_fixed_time(stay, SHORT, telling()) == 0.5
        assert is_taken()
    assert not is_taken()


def test_a_run_begins_when_nothing_is_left_of_the_last_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_end, spans = threading.Event(), list[float]()

    def lingers() -> None:
        may_end.wait()
        spans.append(time.monotonic())

    @contextmanager
    def second(_: float, __: int | None) -> Iterator[float]:
        spans.append(time.monotonic())
        yield 1.0

    with slot_lease(Slots(None, 1)) as stay:
        assert at_fixed_time(stay, SHORT, telling(lingers)) == 0.5
        with pytest.raises(UnavailableError, match="waited for other programs"):
            at_fixed_time(stay, SHORT, second)
        assert spans == []
        monkeypatch.setattr(deadline, "WAIT_SECONDS", 30.0)
        with ThreadPoolExecutor(1) as threads:
            score = threads.submit(at_fixed_time, stay, SHORT, second)
            time.sleep(0.2)
            ended = time.monotonic()
            may_end.set()
            assert score.result() == 1.0
        # What the last one left takes nothing from the time of the next.
        assert time.monotonic() - ended >= SHORT.seconds
        assert spans == sorted(spans)
        assert len(spans) == 2


def test_a_place_stays_taken_until_both_have_left_it() -> None:
    for first, second in (
        (SlotLease.end, SlotLease.leave),
        (SlotLease.leave, SlotLease.end),
    ):
        stay = SlotLease(Slots(None, 1))
        stay.begin()
        first(stay)
        assert is_taken()
        second(stay)
        assert not is_taken()


def test_nothing_begins_in_a_place_that_was_left() -> None:
    with slot_lease(Slots(None, 1)) as stay:
        pass
    with pytest.raises(InvariantError):
        at_fixed_time(stay, SHORT, telling())
    assert not is_taken()


def test_a_run_that_cannot_begin_leaves_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError

    with slot_lease(Slots(None, 1)) as stay:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", no_thread)
            with pytest.raises(RuntimeError):
                at_fixed_time(stay, SHORT, telling())
        assert at_fixed_time(stay, SHORT, telling()) == 0.5
    assert not is_taken()


def test_whoever_stops_waiting_leaves_it_to_what_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As who presses Ctrl-C does: what they began is not over yet."""
    may_end = threading.Event()

    def pressed(_: float) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(fixed_time, "sleep_until", pressed)
        with pytest.raises(KeyboardInterrupt), slot_lease(Slots(None, 1)) as stay:
            at_fixed_time(stay, SHORT, telling(may_end.wait))
    assert is_taken()
    may_end.set()
    monkeypatch.setattr(deadline, "WAIT_SECONDS", 30.0)
    assert not is_taken()


def test_who_is_stopped_while_a_run_begins_leaves_it_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may have begun, and then it says itself that nothing is left of it."""
    may_end, start = threading.Event(), threading.Thread.start

    def pressed(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", pressed)
        with pytest.raises(KeyboardInterrupt), slot_lease(Slots(None, 1)) as stay:
            at_fixed_time(stay, SHORT, telling(may_end.wait))
    assert is_taken()
    may_end.set()
    monkeypatch.setattr(deadline, "WAIT_SECONDS", 30.0)
    assert not is_taken()


def test_a_run_whose_thread_comes_late_does_not_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever asked was stopped before it began, and has left the place for both."""
    late, ran = list[threading.Thread](), list[str]()

    def pressed(thread: threading.Thread) -> None:
        late.append(thread)
        raise KeyboardInterrupt

    start = threading.Thread.start
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", pressed)
        with pytest.raises(KeyboardInterrupt), slot_lease(Slots(None, 1)) as stay:
            at_fixed_time(stay, SHORT, telling(lambda: ran.append("ran")))
    others = Slots(None, 1)
    kept = others.take()
    start(late[0])
    late[0].join()
    assert ran == []
    assert is_taken()
    others.free(kept)
    assert not is_taken()
