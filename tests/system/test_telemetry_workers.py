"""A real server of several processes: its metrics add up, and its log is JSON."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families
from samples.served import HEADER
from samples.small import POLICY

import modicum as mo

SCRIPT = Path(__file__).parents[1] / "samples" / "serving.py"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def serving(folder: Path, workers: int) -> Iterator[str]:
    """Run a server; it ends with the block, and what it wrote is in `stderr`."""
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    mo.open(folder / "ledger.db", policy=policy, actor="olga").init()
    port = free_port()
    command = [sys.executable, str(SCRIPT), str(folder / "ledger.db"), str(port)]
    with (
        (folder / "stderr").open("w") as stderr,
        (folder / "stdout").open("w") as stdout,
        subprocess.Popen(
            [*command, str(workers)], stderr=stderr, stdout=stdout
        ) as process,
    ):
        url = f"http://127.0.0.1:{port}"
        try:
            wait_for(url, folder / "stderr", workers)
            yield url
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def wait_for(url: str, stderr: Path, workers: int) -> None:
    deadline = time.monotonic() + 120
    while stderr.read_text().count('"event":"server-began"') < workers:
        assert time.monotonic() < deadline, stderr.read_text()
        time.sleep(0.05)
    assert get(url, "/readyz").status_code == 200


def get(url: str, path: str) -> httpx2.Response:
    """Ask on a connection of its own: any of the processes may answer."""
    return httpx2.get(url + path, headers={HEADER: "petra"}, timeout=60)


def counted(url: str) -> float:
    """Return how many requests for rules are counted."""
    families = text_string_to_metric_families(get(url, "/metrics").text)
    return sum(
        one.value
        for family in families
        for one in family.samples
        if one.name == "modicum_http_requests_total"
        and one.labels["route"] == "/api/v1/rules"
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_processes_add_up_what_they_count(tmp_path: Path, workers: int) -> None:
    count = 30
    with serving(tmp_path, workers) as url:
        for _ in range(count):
            assert get(url, "/api/v1/rules").status_code == 200
        deadline = time.monotonic() + 60
        while counted(url) < count:
            assert time.monotonic() < deadline
        assert {counted(url) for _ in range(10)} == {count}
    lines = [json.loads(one) for one in (tmp_path / "stderr").read_text().splitlines()]
    assert (tmp_path / "stdout").read_text() == ""
    events = [one["event"] for one in lines]
    assert events.count("request") == count
    assert events.count("server-began") == events.count("server-ended") == workers
    assert {"timestamp", "level", "event"} <= set.intersection(*map(set, lines))
    assert "uvicorn.access" not in {one.get("logger") for one in lines}
