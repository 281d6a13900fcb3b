"""A real server that is told to end, or loses a process: nobody is left without."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from samples.raw_http import connect, eventually, head, heard, statuses
from samples.served import HEADER
from samples.small import POLICY

import modicum as mo

SCRIPT = Path(__file__).parents[1] / "samples" / "serving.py"
RELEASE = b'{"dataset": "visits"}'
BEGAN = '"event":"server-began"'


class Run:
    """A server of several processes.

    Args:
        folder: Where its ledger is.
        workers: How many processes.
        leave: For how many seconds it goes on serving.
    """

    def __init__(self, folder: Path, workers: int, leave: float) -> None:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
        self.url = f"http://127.0.0.1:{port}"
        self._stderr = folder / "stderr"
        ledger = str(folder / "ledger.db")
        with self._stderr.open("w") as stderr:
            more = (ledger, str(port), str(workers), str(leave))
            self.process = subprocess.Popen(
                [sys.executable, str(SCRIPT), *more], stderr=stderr
            )

    @property
    def told(self) -> str:
        """What it logged."""
        return self._stderr.read_text()

    def workers(self) -> list[int]:
        """Return the processes that serve."""
        found = []
        for one in Path("/proc").glob("[0-9]*"):
            try:
                parent = (one / "stat").read_text().rpartition(")")[2].split()[1]
                command = (one / "cmdline").read_bytes()
            except OSError:
                continue
            if int(parent) == self.process.pid and b"spawn_main" in command:
                found.append(int(one.name))
        return found

    def status(self, path: str) -> int:
        """Return what it answers, on a connection of its own."""
        return httpx2.get(self.url + path, headers={HEADER: "ann"}).status_code


@contextmanager
def running(folder: Path, workers: int, leave: float = 0.0) -> Iterator[Run]:
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    mo.open(folder / "ledger.db", policy=policy, actor="olga").init()
    run = Run(folder, workers, leave)
    try:
        eventually(lambda: run.told.count(BEGAN) == workers)
        yield run
    finally:
        run.process.kill()
        run.process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_under_way_is_finished(
    tmp_path: Path, workers: int, number: signal.Signals
) -> None:
    with running(tmp_path, workers) as run, connect(run.url) as own:
        lines = (f"{HEADER}: ann", "Content-Type: application/json")
        length = f"Content-Length: {len(RELEASE)}"
        ask = head("POST", "/api/v1/releases:check", *lines, length)
        own.sendall(ask + RELEASE[:5])
        assert run.status("/healthz") == 200
        run.process.send_signal(number)
        eventually(lambda: "Shutting down" in run.told)
        own.sendall(RELEASE[5:])
        assert statuses(heard(own)) == [422]
        assert run.process.wait(60) == 0
        assert run.told.count('"event":"server-ended"') == workers
        assert "Traceback" not in run.told


@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_that_leaves_says_so_and_goes_on(tmp_path: Path, workers: int) -> None:
    with running(tmp_path, workers, leave=15) as run:
        assert run.status("/readyz") == 200
        run.process.send_signal(signal.SIGTERM)
        eventually(lambda: run.status("/readyz") == 503)
        # Any of the processes answers; all of them say the same, a moment later.
        eventually(lambda: {run.status("/readyz") for _ in range(12)} == {503})
        assert {run.status("/api/v1/rules") for _ in range(6)} == {200}
        assert "Shutting down" not in run.told
        run.process.send_signal(signal.SIGTERM)  # The first one counts.
        for one in run.workers():
            os.kill(one, signal.SIGTERM)
        assert run.status("/readyz") == 503
        assert run.process.wait(60) == 0


def test_nobody_is_taken_on_whom_nobody_answers(tmp_path: Path) -> None:
    """While one request is still under way, others are refused, and do not hang."""
    with running(tmp_path, 2) as run, connect(run.url) as own:
        lines = (f"{HEADER}: ann", "Content-Type: application/json")
        own.sendall(head("POST", "/api/v1/releases:check", *lines, "Content-Length: 2"))
        assert run.status("/healthz") == 200
        run.process.send_signal(signal.SIGTERM)
        eventually(lambda: run.told.count("Shutting down") == 2)

        def is_refused() -> bool:
            try:
                connect(run.url).close()
            except ConnectionRefusedError:
                return True
            return False

        eventually(is_refused)
        own.sendall(b"{}")
        assert statuses(heard(own)) == [403]
        assert run.process.wait(60) == 0


def test_no_process_is_left_alone(tmp_path: Path) -> None:
    with running(tmp_path, 2) as run:
        assert len(run.workers()) == 2
        run.process.kill()
        eventually(lambda: run.told.count('"event":"server-ended"') == 2)


def test_a_process_that_dies_is_begun_anew(tmp_path: Path) -> None:
    with running(tmp_path, 2) as run:
        first, second = run.workers()
        os.kill(first, signal.SIGKILL)
        eventually(lambda: run.told.count(BEGAN) == 3)
        assert second in run.workers()
        assert {run.status("/readyz") for _ in range(8)} == {200}
        run.process.send_signal(signal.SIGTERM)
        assert run.process.wait(60) == 0
