"""Marked strings are sent everywhere; none of them comes out where operators look."""

from __future__ import annotations

import io
import json
import logging
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from samples.jobs import PATIENCE
from samples.served import HEADER, Served, served
from samples.small import POLICY

from modicum.server.resources import Equipment
from modicum.server.service.threads import Threads
from modicum.server.settings.tables import TablesOf
from modicum.server.telemetry.context import TelemetryContext
from modicum.server.telemetry.library_logs import taking_over
from modicum.server.telemetry.log import Level, Log
from modicum.server.telemetry.traces import OpenTelemetry
from modicum.storage.factory import open_store
from modicum.storage.proofs.bundles import export_bundle

#: Every marked string holds this.
MARK = "pEnGuIn"
#: Amounts of people, whose digits stand nowhere else.
AMOUNTS = [1930571, 4082657719]


def canary(kind: str) -> str:
    """Return a marked string that tells where it was sent."""
    return f"{MARK}-{kind}"


@dataclass
class Seen:
    """A server, and all that operators see of it."""

    server: Served
    lines: io.StringIO
    spans: InMemorySpanExporter
    ledger: Path
    answers: list[tuple[str, httpx2.Response]] = field(default_factory=list)

    def ask(self, kind: str, who: str, method: str, path: str, **named: Any) -> None:
        """Send a request that holds something marked."""
        headers = {HEADER: who, "Idempotency-Key": f"k-{len(self.answers)}"}
        headers |= named.pop("headers", {})
        answer = self.server.client.request(method, path, headers=headers, **named)
        self.answers.append((kind, answer))

    def settle(self) -> None:
        """Wait until all requests are told of: that comes after their answers."""
        deadline = time.monotonic() + 60
        while self.lines.getvalue().count('"event":"request"') < len(self.answers):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def traces(self) -> str:
        """Return all that was traced."""
        return "\n".join(one.to_json() for one in self.spans.get_finished_spans())

    def metrics(self) -> str:
        """Return the page of metrics."""
        found = self.server.client.get("/metrics", headers={HEADER: "petra"})
        assert found.status_code == 200
        return found.text


@contextmanager
def seen(folder: Path) -> Iterator[Seen]:
    (folder / "policy.yaml").write_text(POLICY)
    lines, spans = io.StringIO(), InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    log = Log(lines, Level.DEBUG)
    names = [f"{MARK}-{number}" for number in range(len(AMOUNTS))]
    rows = pa.table({"name": names, "amount": AMOUNTS})
    pq.write_table(rows, folder / "visits.parquet")
    tables = {"visits": TablesOf({"": str(folder / "visits.parquet")})}
    watch = TelemetryContext(log, OpenTelemetry(provider))
    ledger = folder / "ledger.db"
    with (
        taking_over(log),
        served(
            ledger,
            policy=folder / "policy.yaml",
            watch=watch,
            own=Equipment(tables),
        ) as server,
    ):
        yield Seen(server, lines, spans, ledger)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Seen]:
    with seen(tmp_path) as found:
        yield found


def release(name: str, **more: Any) -> dict[str, Any]:
    return {
        "release": name,
        "dataset": "visits",
        **more,
        "mechanisms": [
            {
                "name": "counts",
                "mechanism": "gaussian",
                "attributes": ["diagnosis"],
                "cost": {"user": {"rho": 0.0001}},
            }
        ],
    }


def send_secrets(watched: Seen) -> None:
    """Send what only its owner may know."""
    path = "/api/v1/rules"
    token = f"mdc_{'a' * 10}_{canary('token')}"
    watched.ask(
        "token", "nobody", "GET", path, headers={"Authorization": f"Bearer {token}"}
    )
    watched.ask(
        "basic", "ann", "GET", path, headers={"Authorization": canary("authorization")}
    )
    cookie = f"__Host-session={canary('cookie')}"
    watched.ask("cookie", "nobody", "GET", path, headers={"Cookie": cookie})
    watched.ask("who", canary("who"), "GET", path)
    watched.ask("query", "ann", "GET", path, params={"token": canary("query-token")})
    watched.ask("csrf", "ann", "GET", path, headers={"X-CSRF": canary("csrf")})


def send_text(watched: Seen) -> None:
    """Send text wherever a request may hold some."""
    releases = "/api/v1/releases"
    sql = f"SELECT * FROM visits WHERE name = '{canary('sql')}'"
    whole = release(
        canary("release-id"),
        purpose=canary("purpose"),
        requester=canary("requester"),
        query=sql,
    )
    for path in (f"{releases}:check", releases, f"{releases}:fit"):
        watched.ask("release", "ann", "POST", path, json=whole)
        for key in ("purpose", "requester", "query"):
            less = {name: one for name, one in whole.items() if name != key}
            watched.ask("release", "ann", "POST", path, json=less)
    plain = release("plain", purpose=canary("purpose"))
    watched.ask("purpose", "ann", "POST", releases, json=plain)
    watched.ask(
        "reason",
        "ann",
        "POST",
        f"{releases}/plain:void",
        json={"reason": canary("reason")},
    )
    labeled = release("labeled", labels={"ml": canary("label")})
    watched.ask("label", "ann", "POST", f"{releases}:check", json=labeled)
    other = release("others", dataset=canary("data-set"))
    watched.ask("data-set", "ann", "POST", releases, json=other)
    watched.ask(
        "literal",
        "ann",
        "POST",
        f"{releases}:check",
        json=release("where") | {"where": {"age": canary("literal")}},
    )


def send_nonsense(watched: Seen) -> None:
    """Send what no route takes, or cannot be read."""
    json_type = {"Content-Type": "application/json"}
    for text in (canary("json"), f'{{"{canary("key")}": 1', f'"{canary("string")}"'):
        for path in ("/api/v1/releases:check", "/api/v1/policies:lint"):
            watched.ask("json", "olga", "POST", path, content=text, headers=json_type)
    watched.ask("path", "ann", "GET", f"/{canary('path')}")
    watched.ask("path", "ann", "GET", f"/api/v1/releases/{canary('path-id')}")
    watched.ask("path", "ann", "POST", f"/api/v1/releases/{canary('step')}:start")
    watched.ask("path", "ann", "GET", f"/api/v1/policies/{canary('policy')}")
    watched.ask("query", "ann", "GET", "/api/v1/releases", params={"cursor": MARK})
    watched.ask("query", "ann", "GET", "/api/v1/releases", params={"status": MARK})
    watched.ask("query", "ann", "GET", "/api/v1/releases", params={MARK: MARK})
    watched.ask("method", "ann", MARK.upper(), "/api/v1/releases")
    watched.ask("verb", "ann", "SOURCE", "/api/v1/releases")
    for name in ("User-Agent", "Referer", "X-Request-Id", "Baggage", "Tracestate"):
        watched.ask("header", "ann", "GET", "/api/v1/rules", headers={name: MARK})
    for parent in (MARK, f"00-{MARK}-{MARK}-01"):
        own = {"traceparent": parent}
        watched.ask("header", "ann", "GET", "/api/v1/rules", headers=own)
    kind = {"Content-Type": f"text/{MARK}"}
    watched.ask("type", "ann", "POST", "/api/v1/releases", content=b"x", headers=kind)
    key = {"Idempotency-Key": canary("key")}
    watched.ask(
        "key", "ann", "POST", "/api/v1/releases", json=release("k"), headers=key
    )


def analyze(watched: Seen) -> None:
    """Analyze rows that are marked, and fail on them; what is found is told its owner.

    Amounts are marked, too: nobody's is another number than these digits.
    """
    query = "SELECT SUM(amount) FROM visits"
    whole = {"dataset": "visits", "query": query, "unit": "name", "rows_max": 1}
    wrong = "SELECT SUM(CAST(name AS INTEGER)) FROM visits"
    for sent in (
        {**whole, "bounds": [0, 9 * 10**9], "groups": [f"name = '{MARK}-0'", "true"]},
        {**whole, "query": wrong, "bounds": [0, 1]},
        {**whole, "query": f"SELECT SUM({MARK}) FROM visits"},
        {**whole, "tau": MARK},
        {**whole, MARK: 1},
        {**whole, "dataset": MARK},
    ):
        watched.ask("analysis", "dara", "POST", "/api/v1/risk/analyses", json=sent)
        _, answer = watched.answers[-1]
        if answer.status_code != 202:
            continue
        place = answer.headers["location"]
        until = time.monotonic() + PATIENCE
        while True:
            watched.ask("job", "dara", "GET", place)
            _, answer = watched.answers[-1]
            if answer.json()["state"] not in ("queued", "running"):
                break
            assert time.monotonic() < until
            time.sleep(0.05)
        watched.ask("job", "dara", "GET", "/api/v1/jobs")


def send_broken(watched: Seen) -> None:
    """Send what is no HTTP at all."""
    host, port = watched.server.url.removeprefix("http://").split(":")
    for text in (f"{MARK}\r\n\r\n", f"GET /{MARK} {MARK}\r\n{MARK}\r\n\r\n"):
        with socket.create_connection((host, int(port)), timeout=10) as one:
            one.sendall(text.encode())
            one.recv(4096)


def raise_unforeseen(watched: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let something go wrong that nobody foresaw, and that tells of rows."""

    async def wrong(*_: object) -> None:
        row = canary("row")
        try:
            raise KeyError(row)
        except KeyError as error:
            raise ValueError(f"the value {row} is odd") from error

    with monkeypatch.context() as patched:
        patched.setattr(Threads, "read_view", wrong)
        watched.ask("row", "olga", "GET", "/api/v1/ledger/head")


def test_nothing_marked_comes_out_where_operators_look(
    watched: Seen, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    send_secrets(watched)
    send_text(watched)
    send_nonsense(watched)
    send_broken(watched)
    analyze(watched)
    raise_unforeseen(watched, monkeypatch)
    # What is no request of HTTP gets 400, and is neither a request nor traced.
    unread = [answer for kind, answer in watched.answers if kind == "method"]
    assert [answer.status_code for answer in unread] == [400]
    watched.answers = [one for one in watched.answers if one[0] != "method"]
    watched.settle()
    lines, traces = watched.lines.getvalue(), watched.traces()
    metrics = watched.metrics()
    statuses = {answer.status_code for _, answer in watched.answers}
    assert {200, 400, 401, 403, 404, 405, 422, 500} <= statuses
    assert lines.count('"event":"request"') == len(watched.answers)
    assert traces.count('"name": "http.request"') == len(watched.answers)
    assert lines.count('"event":"failed"') == 1
    assert '"types":["ValueError","KeyError"]' in lines
    for result in (lines, traces, metrics, *capfd.readouterr()):
        assert MARK.lower() not in result.lower()


def test_what_an_analysis_finds_is_told_to_its_owner_alone(
    watched: Seen, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    analyze(watched)
    watched.settle()
    done = [one.json() for kind, one in watched.answers if kind == "job"]
    found = [one["result"] for one in done if one.get("state") == "done"]
    failed = [one["problem"] for one in done if one.get("state") == "failed"]
    assert [one["people"] for one in found] == [len(AMOUNTS)]
    assert len(failed) == 2
    for one in failed:
        assert f"{MARK}-" not in json.dumps(one)  # No value of a row.
    path = tmp_path / "audit.zip"
    with closing(open_store(watched.ledger)) as store:
        export_bundle(store, path)
        entries = sum(1 for _ in store.read(0))
    assert entries == 1
    result = (
        watched.lines.getvalue(),
        watched.traces(),
        watched.metrics(),
        path.read_bytes().decode("latin-1"),
        watched.ledger.read_bytes().decode("latin-1"),
        *capfd.readouterr(),
    )
    # The least and the greatest indicator are those of some person.
    facts = {str(found[0]["candidates"][0][key]) for key in ("least", "greatest")}
    assert all(len(one) > 8 for one in facts)
    for one in result:
        for fact in (MARK, *map(str, AMOUNTS), *facts):
            assert fact.lower() not in one.lower(), fact


def test_what_is_secret_is_answered_to_nobody(
    watched: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_secrets(watched)
    raise_unforeseen(watched, monkeypatch)
    for kind, answer in watched.answers:
        result = f"{answer.text} {answer.headers}"
        assert MARK.lower() not in result.lower(), kind


def test_credentials_are_in_no_bundle(watched: Seen, tmp_path: Path) -> None:
    send_secrets(watched)
    send_text(watched)
    send_nonsense(watched)
    path = tmp_path / "audit.zip"
    with closing(open_store(watched.ledger)) as store:
        export_bundle(store, path)
    result = path.read_bytes()
    assert canary("purpose").encode() in result  # It is stored, and part of the record.
    for kind in ("token", "authorization", "cookie", "who", "csrf", "query-token"):
        assert canary(kind).encode() not in result
    assert canary("key").encode() not in result


def test_who_asked_is_told_in_the_log_alone(watched: Seen) -> None:
    watched.ask("plain", "ann", "GET", "/api/v1/rules")
    watched.settle()
    requests = [json.loads(line) for line in watched.lines.getvalue().splitlines()]
    assert [one["who"] for one in requests if one["event"] == "request"] == ["ann"]
    assert '"ann"' not in watched.traces() + watched.metrics()


def test_a_library_that_fills_in_what_was_sent_is_not_quoted() -> None:
    lines = io.StringIO()
    with taking_over(Log(lines)):
        uvicorn = logging.getLogger("uvicorn.error")
        uvicorn.info("Started server process [%d]", 7)
        uvicorn.warning("odd header %s", MARK)
        uvicorn.warning(f"odd header {MARK}")
        uvicorn.error(ValueError(MARK))
        try:
            raise RuntimeError(MARK)
        except RuntimeError:
            uvicorn.exception("Exception in ASGI application\n")
            logging.getLogger("opentelemetry.sdk").exception("export of %s", MARK)
    result = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert MARK not in lines.getvalue()
    assert [one["message"] for one in result[:2]] == [
        "Started server process [%d]",
        "(hidden: it may contain client data)",
    ]
    assert len(result) == 6
    assert result[-1]["types"] == ["RuntimeError"]
    assert result[-1]["frames"][-1].startswith("server/test_telemetry_canary.py:")


def test_loggers_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    uvicorn = logging.getLogger("uvicorn")
    monkeypatch.setattr(uvicorn, "propagate", True)
    monkeypatch.setattr(uvicorn, "handlers", [logging.NullHandler()])
    hook = threading.excepthook
    before = (uvicorn.handlers[:], uvicorn.propagate, uvicorn.level)
    with taking_over(Log(sys.stderr)):
        assert uvicorn.handlers != before[0]
    assert (uvicorn.handlers[:], uvicorn.propagate, uvicorn.level) == before
    assert threading.excepthook is hook


def test_what_ends_a_thread_is_not_quoted(capfd: pytest.CaptureFixture[str]) -> None:
    def wrong() -> None:
        raise ValueError(MARK)

    lines = io.StringIO()
    with taking_over(Log(lines)):
        thread = threading.Thread(target=wrong)
        thread.start()
        thread.join()
    (result,) = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert (result["event"], result["types"]) == ("failed", ["ValueError"])
    assert MARK not in lines.getvalue() + "".join(capfd.readouterr())
