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
from pathlib import Path

import pytest
from samples.sandboxed import told_in

from modicum.core.errors import Code, UnavailableError
from modicum.shell.sandbox import places, turns
from modicum.shell.sandbox.places import Places
from modicum.workspace.escrowing.ports import Limits

SHORT = Limits(seconds=1.0, memory_bytes=2**20, processes=4)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Turns that nobody else takes, and little patience."""
    monkeypatch.setattr(turns, "FOLDER_OF_ROOT", tmp_path / "turns")
    monkeypatch.setattr(turns, "folder", lambda: tmp_path / "turns")
    monkeypatch.setattr(places, "WAIT_SECONDS", 0.2)
    return tmp_path / "turns"


def refused(one: Places) -> str:
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
        from modicum.shell.sandbox import turns
        from modicum.shell.sandbox.places import Places
        turns.folder = lambda: pathlib.Path({str(folder)!r})
        kept = Places(None, {at_a_time}).take()
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
    one = Places(None, 1)
    with another_process(folder, 1):
        assert "waited for others" in refused(one)
    one.free(one.take())  # A process that ended, however it did, has nothing.


def test_who_runs_alone_waits_for_several_and_they_for_it(folder: Path) -> None:
    alone, several = Places(None, 1), Places(None, 3)
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
    several = Places(None, 3)
    with Places(None, 3).alone():
        refused(several)
    kept = several.take()
    with pytest.raises(UnavailableError), Places(None, 1).alone():
        raise AssertionError
    several.free(kept)


def test_runs_of_two_tiers_follow_each_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "WAIT_SECONDS", 30.0)
    spans: list[tuple[float, float]] = []

    def run() -> None:
        @contextmanager
        def noted(_: float, __: int | None) -> Iterator[float]:
            begun = time.monotonic()
            yield 0.5
            time.sleep(0.2)
            spans.append((begun, time.monotonic()))

        assert told_in(Places(None, 1), SHORT, noted) == 0.5

    threads = [threading.Thread(target=run) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    spans.sort()
    assert len(spans) == 3
    # Each takes all of its time, and the next begins when that is over.
    assert all(b[0] - a[0] >= SHORT.seconds for a, b in itertools.pairwise(spans))


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
    assert "cannot be used" in refused(Places(None, 1))
    assert not list(elsewhere.iterdir())


def test_turns_are_root_s_where_root_runs_and_a_user_s_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "getresuid", lambda: (0, 0, 0))
    assert turns.folder() == turns.FOLDER_OF_ROOT
    monkeypatch.setattr(os, "getresuid", lambda: (7, 7, 7))
    assert turns.folder() == turns.FOLDER_OF_OTHERS / "modicum-sandbox-7"
