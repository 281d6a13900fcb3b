"""What programs try in order to get out, each in a real sandbox; and outside of one."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from samples.escapes import ATTEMPTS
from samples.escapes.attempt import WORKS, WORKS_AS_ROOT
from samples.sandboxed import outside, python, sandbox, world

from modicum.api.ports.escrow import Limits

LIMITS = Limits(seconds=2.0, memory_bytes=2**28, processes=16)
AT_A_TIME = 12
#: How much later than its time a run may be told, on a busy machine.
SLACK_SECONDS = 0.5


def processes_of(users: range) -> list[int]:
    """Return the processes that run as some users."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if folder.stat().st_uid in users:
                found.append(int(folder.name))
        except FileNotFoundError:
            continue
    return found


def test_nothing_gets_out(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MODICUM_SECRET", "0.8125")
    monkeypatch.setenv("MODICUM_PRELOAD", "x")
    monkeypatch.setenv("LD_PRELOAD", "")
    held = sandbox(AT_A_TIME)
    with world(tmp_path / "w", later=2.5) as around:

        def tried(number: int) -> tuple[str, float | None, float]:
            attempt = ATTEMPTS[number]
            started = time.monotonic()
            program = python(attempt.code, around.given)
            score = held.score(program, {}, None, LIMITS)
            return attempt.name, score, time.monotonic() - started

        with ThreadPoolExecutor(AT_A_TIME) as threads:
            result = list(threads.map(tried, range(len(ATTEMPTS))))
        time.sleep(1.0)  # Whoever outlived the run would leave a mark now.
        assert around.touched() == []
    wrong = [
        (name, score)
        for (name, score, _), attempt in zip(result, ATTEMPTS, strict=True)
        if score not in attempt.expected
    ]
    assert wrong == []
    assert all(str(score) != "-0.0" for _, score, _ in result)
    early_or_late = [
        (name, seconds)
        for name, _, seconds in result
        if not LIMITS.seconds <= seconds <= LIMITS.seconds + SLACK_SECONDS
    ]
    assert early_or_late == []
    assert "MODICUM-LEAK" not in "".join(capfd.readouterr())
    if held.uid is not None:
        assert processes_of(range(held.uid, held.uid + AT_A_TIME)) == []
    assert not list(Path("/sys/fs/cgroup").glob(f"*/**/modicum-{os.getpid()}-*"))


def test_most_of_it_works_where_nothing_holds_it(tmp_path: Path) -> None:
    """What is refused everywhere would say nothing about a sandbox."""
    kinds = {WORKS, WORKS_AS_ROOT} if os.geteuid() == 0 else {WORKS}
    loose = [attempt for attempt in ATTEMPTS if attempt.control in kinds]

    def tried(number: int) -> str:
        with world(tmp_path / str(number), later=0.1) as around:
            return outside(loose[number], around)

    with ThreadPoolExecutor(2) as threads:
        result = list(threads.map(tried, range(len(loose))))
    silent = [
        (attempt.name, text)
        for attempt, text in zip(loose, result, strict=True)
        if text not in {"score 1.0", "score 0.8125"}
    ]
    assert silent == []


def test_there_are_many_attempts_and_each_is_named_once() -> None:
    names = [attempt.name for attempt in ATTEMPTS]
    assert len(names) == len(set(names)) >= 45
