"""Health and readiness over HTTP: answered whatever the load, and by codes alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from samples.raw_http import eventually
from samples.served import HEADER, Served, served
from samples.small import POLICY, counts

from modicum.core.errors import Code, Problem, UnavailableError
from modicum.server.rate_limits import LimitedCrowd
from modicum.writer.readiness import Outcome, Readiness

WAYS = ("/healthz", "/readyz")
#: More than all pools of threads together, and than may be under way here.
MANY = 60
CROWD = 40


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "policy.yaml").write_text(POLICY)
    with served(tmp_path / "ledger.db", policy=tmp_path / "policy.yaml") as found:
        yield found


def outcome(monkeypatch: pytest.MonkeyPatch, *codes: Code) -> Outcome:
    found = Outcome(codes, is_writable=False, is_behind=True, failed_at="")
    monkeypatch.setattr(Readiness, "outcome", lambda _: found)
    return found


@pytest.mark.spec("OPS-7")
def test_no_load_delays_health_and_readiness(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All checks wait, all pools are full, and others are refused."""
    monkeypatch.setattr(LimitedCrowd.__init__, "__defaults__", (CROWD,))
    (tmp_path / "policy.yaml").write_text(POLICY)
    with (
        served(tmp_path / "ledger.db", policy=tmp_path / "policy.yaml") as server,
        ThreadPoolExecutor(MANY) as clients,
    ):
        eventually(lambda: server.client.get("/readyz").status_code == 200)
        lock = server.parts.decider._checker._guard
        sent: list[Future[int]] = []

        def ask(number: int) -> int:
            named = {HEADER: "amir", "Idempotency-Key": f"key-{number}"}
            ways = ("/releases:check", "/releases/one:start", "/releases?limit=1")
            way = ways[number % 3]
            found = httpx2.request(
                "GET" if "limit" in way else "POST",
                f"{server.url}/api/v1{way}",
                json=counts(f"r-{number}") if "check" in way else None,
                headers=named,
                timeout=60,
            )
            return found.status_code

        with lock:
            sent = [clients.submit(ask, number) for number in range(MANY)]
            eventually(lambda: sum(one.done() for one in sent) >= MANY // 3)
            # Those that only read were answered, or refused for the crowd.
            for _ in range(2):
                threading.Event().wait(1.1)  # Meanwhile readiness is found anew.
                for way in WAYS * 10:
                    answered = server.client.get(way, timeout=5)
                    assert answered.status_code == 200, way
            left = sum(not one.done() for one in sent)
            assert left >= 24 + 2  # The pools were full all the time.
        statuses = [one.result(60) for one in sent]
    assert set(statuses) <= {200, 404, 503}
    assert statuses.count(200) >= 1


@pytest.mark.spec("OPS-7")
def test_limits_do_not_count_them(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(LimitedCrowd, "__call__", refuse)
    for way in WAYS:
        assert server.client.get(way).status_code == 200


@pytest.mark.spec("OPS-8")
def test_the_reasons_are_codes(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome(monkeypatch, Code.LEDGER_BEHIND, Code.FILE_UNREADABLE)
    answered = server.client.get("/readyz")
    assert answered.status_code == 503
    assert answered.headers["content-type"] == "application/problem+json"
    assert answered.headers["retry-after"] == "1"
    problem = answered.json()
    assert [one["code"] for one in problem["problems"]] == ["MOD711", "MOD001"]
    assert (problem["code"], problem["kind"]) == ("MOD711", "unavailable")
    assert problem["trace_id"] == answered.headers["x-request-id"]
    texts = {one["message"] for one in problem["problems"]}
    assert texts == {"nothing can be decided now"}
    assert server.client.get("/healthz").status_code == 200


def test_a_probe_with_a_body_is_answered_like_any_request(server: Served) -> None:
    for way in WAYS:
        answered = server.client.request("GET", way, content=b"x")
        assert answered.status_code == 200
        assert answered.headers["connection"] == "close"
        assert server.client.post(way).status_code == 405


def test_what_is_not_ready_is_in_metrics_and_doctor(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = outcome(monkeypatch, Code.LEDGER_UNWRITABLE)

    def gauges() -> dict[str, str]:
        text = server.client.get("/metrics", headers={HEADER: "petra"}).text
        lines = [line.split() for line in text.splitlines() if line[0] != "#"]
        return {line[0]: line[1] for line in lines if len(line) == 2}

    shown = gauges()
    assert shown["modicum_ledger_writable"] == "0.0"
    assert shown["modicum_ledger_behind"] == "1.0"
    assert shown["modicum_ledger_last_failure_timestamp_seconds"] == "0.0"
    checks = server.get("petra", "/doctor").json()["checks"]
    (ready,) = [one for one in checks if one["check"] == "readiness"]
    assert ready["status"] == "fail"
    assert ready["facts"] == {"code": "MOD709", "writable": False, "behind": True}
    at = "2026-05-01T12:00:00.000000Z"
    again = Outcome((), is_writable=True, is_behind=False, failed_at=at)
    monkeypatch.setattr(Readiness, "outcome", lambda _: again)
    shown = gauges()
    assert shown["modicum_ledger_writable"] == "1.0"
    assert float(shown["modicum_ledger_last_failure_timestamp_seconds"]) == 1777636800
    assert found.codes


@pytest.mark.spec("OPS-8")
def test_a_store_that_fails_is_not_ready_until_it_works(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def status() -> int:
        return server.client.get("/readyz").status_code

    def fail(*_: Any) -> None:
        raise UnavailableError(Problem(Code.LEDGER_UNWRITABLE, "it is full"))

    assert status() == 200
    with monkeypatch.context() as patched:
        patched.setattr(type(server.parts.decider._store), "turn", fail)
        refused = server.post("amir", "/releases", counts("one"))
        assert (refused.status_code, refused.json()["code"]) == (503, "MOD709")
        eventually(lambda: status() == 503)
    eventually(lambda: status() == 200)
    assert server.post("amir", "/releases", counts("one")).json()["decision"] == "allow"
