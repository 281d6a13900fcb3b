"""One run at a time on a machine, whatever process begins it."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest
from samples.sandboxed import record, told_in

from modicum.api.ports.escrow import Limits
from modicum.core.errors import Code, Problem, UnavailableError
from modicum.escrow.programs import Program, Range
from modicum.sandbox import deadline, slots
from modicum.sandbox.deadline import Deadline
from modicum.sandbox.slots import Slots
from modicum.sandbox.tier import Tier

SHORT = Limits(seconds=1.0, memory_bytes=2**20, processes=4)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Turns that nobody else takes, and little patience."""
    monkeypatch.setattr(slots, "FOLDER_OF_ROOT", tmp_path / "turns")
    monkeypatch.setattr(slots, "folder", lambda: tmp_path / "turns")
    monkeypatch.setattr(deadline, "WAIT_SECONDS", 0.2)
    return tmp_path / "turns"


def refused(one: Slots) -> str:
    with pytest.raises(UnavailableError) as caught:
        one.take()
    (problem,) = caught.value.problems
    assert problem.code is Code.SANDBOX_MISSING
    assert problem.help
    return problem.message


@contextmanager
def another_process(folder: Path, at_a_time: int) -> Iterator[None]:
    """Have another process run something for as long as the block takes."""
    script = f"""
        import pathlib, sys
        from modicum.sandbox import slots as turns
        from modicum.sandbox.slots import Slots
        turns.folder = lambda: pathlib.Path({str(folder)!r})
        kept = Slots(None, {at_a_time}).take()
        print("taken", flush=True)
        sys.stdin.read()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"taken\n"
        try:
            yield
        finally:
            process.kill()


def test_another_process_is_waited_for(folder: Path) -> None:
    one = Slots(None, 1)
    with another_process(folder, 1):
        assert "waited for other programs" in refused(one)
    one.free(one.take())  # A process that ended, however it did, has nothing.


def test_who_runs_alone_waits_for_several_and_they_for_it(folder: Path) -> None:
    alone, several = Slots(None, 1), Slots(None, 3)
    with another_process(folder, 3):
        refused(alone)
    with another_process(folder, 1):
        refused(several)
    kept = [several.take() for _ in range(3)]
    refused(several)
    refused(alone)
    for one in kept:
        several.free(one)
    alone.free(alone.take())


def test_nothing_runs_while_a_sandbox_is_tested(folder: Path) -> None:
    several = Slots(None, 3)
    with Slots(None, 3).alone():
        refused(several)
    kept = several.take()
    with pytest.raises(UnavailableError), Slots(None, 1).alone():
        raise AssertionError
    several.free(kept)


def test_runs_of_two_tiers_follow_each_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "WAIT_SECONDS", 30.0)
    spans: list[tuple[float, float, float]] = []

    def run() -> None:
        @contextmanager
        def noted(end_at: float, _: int | None) -> Iterator[float]:
            started = time.monotonic()
            yield 0.5
            time.sleep(0.2)
            spans.append((started, end_at + SHORT.grace_seconds, time.monotonic()))

        assert told_in(Slots(None, 1), SHORT, noted) == 0.5

    threads = [threading.Thread(target=run) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    spans.sort()
    assert len(spans) == 3
    # Each takes all of its time, and the next begins when that and itself are over.
    for (_, told_at, ended), (started, _, _) in itertools.pairwise(spans):
        assert started >= max(told_at, ended)


@pytest.mark.parametrize("what", ["link", "open", "file", "file in it", "stranger's"])
def test_what_somebody_else_put_there_is_not_taken(
    folder: Path, tmp_path: Path, what: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    if what == "link":
        folder.symlink_to(elsewhere)
    elif what == "file":
        folder.write_text("")
    else:
        folder.mkdir(mode=0o700)
    if what == "open":
        folder.chmod(0o777)
    elif what == "file in it":
        (folder / "all").symlink_to(elsewhere / "all")
    elif what == "stranger's":
        if os.geteuid() != 0:
            pytest.skip("only root gives folders away")
        os.chown(folder, 12345, 12345)
    assert "cannot be used" in refused(Slots(None, 1))
    assert not list(elsewhere.iterdir())


def test_turns_are_root_s_where_root_runs_and_a_user_s_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "getresuid", lambda: (0, 0, 0))
    assert slots.folder() == slots.FOLDER_OF_ROOT
    monkeypatch.setattr(os, "getresuid", lambda: (7, 7, 7))
    assert slots.folder() == slots.FOLDER_OF_OTHERS / "modicum-sandbox-7"


# --- how one waits --------------------------------------------------------------------


def test_turns_are_had_in_the_order_of_arrival(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes again and again overtakes nobody: they stand in a queue."""
    monkeypatch.setattr(deadline, "WAIT_SECONDS", 30.0)
    first, had = Slots(None, 1), list[str]()
    kept = first.take()

    def wait(name: str) -> None:
        own = Slots(None, 1)
        place = own.take()
        had.append(name)
        own.free(place)

    threads = []
    for name, file in (("one", "all"), ("another", "all.queue")):
        threads.append(threading.Thread(target=wait, args=(name,)))
        threads[-1].start()
        until = time.monotonic() + 20
        while not blocked(folder / file):
            assert time.monotonic() < until
            time.sleep(0.01)
    first.free(kept)
    for each in threads:
        each.join()
    assert had == ["one", "another"]


def blocked(file: Path) -> bool:
    """Return whether somebody waits for the lock of a file."""
    inode = str(file.stat().st_ino)
    lines = Path("/proc/locks").read_text().splitlines()
    return any("->" in line and f":{inode} " in line for line in lines)


class NoLongerError(Exception):
    """Nobody waits any more."""


def test_who_waits_no_longer_is_let_go_and_takes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "WAIT_SECONDS", 30.0)
    times = list[float]()

    def still() -> None:
        times.append(time.monotonic())
        if len(times) == 3:
            raise NoLongerError

    one, other = Slots(None, 1), Slots(None, 1)
    for holder in (one, other):  # In this process, and by what all share.
        times.clear()
        kept = holder.take()
        with pytest.raises(NoLongerError):
            one.take(Deadline(still))
        holder.free(kept)
    other.free(other.take())
    one.free(one.take())


def test_a_child_that_was_forked_meanwhile_keeps_nothing(folder: Path) -> None:
    one = Slots(None, 1)
    kept = one.take()
    hears, tells = os.pipe()
    child = os.fork()
    if not child:
        os.close(tells)
        os.read(hears, 1)  # It has all that was open.
        os._exit(0)
    try:
        one.free(kept)
        another = Slots(None, 1)
        another.free(another.take())
    finally:
        os.close(tells)
        os.close(hears)
        os.waitpid(child, 0)


def test_a_file_that_was_tidied_away_is_no_turn(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for it would have it beside who makes a new one."""
    monkeypatch.setattr(deadline, "WAIT_SECONDS", 30.0)
    one, had = Slots(None, 1), list[tuple[str, float]]()
    kept = one.take()

    def wait() -> None:
        own = Slots(None, 1)
        place = own.take()
        had.append(("waited", time.monotonic()))
        own.free(place)

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not blocked(folder / "all"):
        time.sleep(0.01)
    for file in folder.iterdir():
        file.unlink()
    newer = Slots(None, 1)
    newly = newer.take()
    one.free(kept)
    time.sleep(0.2)
    assert had == []
    newer.free(newly)
    waiting.join()
    assert len(had) == 1


def test_a_file_in_use_looks_used(folder: Path) -> None:
    one = Slots(None, 1)
    one.free(one.take())
    os.utime(folder / "all", (0, 0))
    one.free(one.take())
    assert (folder / "all").stat().st_mtime > 10**9


# --- a tier ---------------------------------------------------------------------------


class Paper(Tier):
    """A tier that holds nothing: what a program scores is its code."""

    name = "paper"
    language = "python"
    other_tier = "wasm"

    @contextmanager
    def running(
        self,
        program: Program,
        job: int,
        limits: Limits,
        end_at: float,
        uid: int | None,
    ) -> Iterator[bytes]:
        yield record(float(program.code))

    def _needs(self) -> list[Problem]:
        return []

    def _test(self) -> None:
        time.sleep(self.test_seconds)

    test_seconds = 0.0


def scoring(score: float) -> Program:
    return Program("python", str(score).encode(), {}, Range(Fraction(0), Fraction(1)))


def test_a_turn_is_for_several_programs_and_others_wait(folder: Path) -> None:
    one, others = Paper(), Slots(None, 1)
    with one.turn() as turn:
        assert turn.score(scoring(0.25), {}, None, SHORT) == 0.25
        refused(others)
        assert turn.score(scoring(0.5), {}, None, SHORT) == 0.5
        refused(others)
        one.check()  # Its test is passed: nothing is waited for.
    others.free(others.take())
    assert one.score(scoring(0.75), {}, None, SHORT) == 0.75
    others.free(others.take())


def test_many_who_wait_for_the_first_test_wait_no_longer_than_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "WAIT_SECONDS", 1.0)
    one, waited = Paper(), list[float]()

    def ask() -> None:
        started = time.monotonic()
        with pytest.raises(UnavailableError, match="waited for other programs"):
            one.check()
        waited.append(time.monotonic() - started)

    with Slots(None, 1).alone():
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert len(waited) == 4
    assert max(waited) < 2.0
    one.check()


def test_who_waits_for_the_first_test_no_longer_is_let_go(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "WAIT_SECONDS", 30.0)
    one, times = Paper(), list[float]()

    def still() -> None:
        times.append(time.monotonic())
        if len(times) == 4:
            raise NoLongerError

    def turn() -> None:
        times.clear()
        with pytest.raises(NoLongerError), one.turn(still):
            raise AssertionError

    with Slots(None, 1).alone():
        turn()
    with one._lock:  # Another thread is at its test.
        turn()
    one.check()


def test_no_handle_is_left_where_no_thread_can_be_begun(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError

    one, other = Slots(None, 1), Slots(None, 1)
    kept = one.take()
    before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_thread)
        for _ in range(3):
            with pytest.raises(RuntimeError):
                other.take()
    assert len(os.listdir("/proc/self/fd")) == before
    one.free(kept)
