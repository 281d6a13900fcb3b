"""The log: a line for each thing, with the fields that are documented and no others."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples.served import HEADER, Served, served
from samples.small import POLICY
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from modicum.core.errors import Code, Problem, VerificationError
from modicum.server.app import build
from modicum.server.auth.authenticators import Authenticators
from modicum.server.auth.middleware import Gate
from modicum.server.auth.setup import Authentication
from modicum.server.service.threads import Threads
from modicum.server.telemetry.context import TelemetryContext
from modicum.server.telemetry.log import Level, Log
from modicum.server.telemetry.log import Served as ServedRequest
from modicum.server.telemetry.middleware import NO_ROUTE, TelemetryMiddleware
from modicum.server.telemetry.tracebacks import CAUSES, FRAMES, frames_of, kinds_of

ROOT = Path(__file__).parents[3]
NOON = "2026-05-01T12:00:00.000000Z"
TRACE = "ab" * 16


def raised(error: Exception) -> Exception:
    """Return an exception that was raised here."""
    try:
        raise error
    except Exception as found:  # noqa: BLE001 - whatever it is
        return found


def write_all(log: Log) -> None:
    """Write a line of each kind."""
    one = ServedRequest(TRACE, "/r", "GET", 200, 0.0015, "ann", 3, 4, "MOD100")
    log.began(version="1")
    log.grants_read()
    log.grants_not_read("MOD111")
    log.not_ready("MOD702")
    log.served(one)
    log.not_recognized(one)
    log.failed(TRACE, raised(ValueError("secret")), "MOD900")
    log.library("uvicorn", Level.INFO, "Shutting down", raised(KeyError("secret")))
    log.ended()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(one) for one in stream.getvalue().splitlines()]


def test_a_request_is_told_in_full() -> None:
    stream = io.StringIO()
    one = ServedRequest(TRACE, "/r", "GET", 200, 0.0015, "ann", 3, 4)
    Log(stream, now=lambda: NOON).served(one)
    assert lines(stream) == [
        {
            "event": "request",
            "timestamp": NOON,
            "level": "info",
            "trace": TRACE,
            "route": "/r",
            "method": "GET",
            "status": 200,
            "ms": 1.5,
            "who": "ann",
            "received": 3,
            "sent": 4,
            "code": None,
        }
    ]


def test_each_line_has_the_documented_fields() -> None:
    document = (ROOT / "docs" / "reference" / "telemetry.md").read_text()
    documented = {}
    for row in re.findall(r"^\| `([a-z-]+)` \| ([^|]*)\|([^|]*)\|$", document, re.M):
        event, level, fields = row
        if event == "event":
            continue  # The names of the columns.
        documented[event] = (level, set(re.findall(r"`([a-z]+)`", fields)))
    stream = io.StringIO()
    write_all(Log(stream, Level.DEBUG))
    result = {
        one["event"]: (one["level"], one.keys() - {"timestamp", "level", "event"})
        for one in lines(stream)
    }
    assert result.keys() == documented.keys()
    for event, (level, fields) in result.items():
        levels, wanted = documented[event]
        assert fields == wanted, event
        assert level in levels or event == "library"
    assert "secret" not in stream.getvalue()


@pytest.mark.parametrize("least", list(Level))
def test_what_matters_less_than_asked_for_is_left_out(least: Level) -> None:
    order = list(Level)
    whole, some = io.StringIO(), io.StringIO()
    write_all(Log(whole, Level.DEBUG, now=lambda: NOON))
    write_all(Log(some, least, now=lambda: NOON))
    assert lines(some) == [
        one
        for one in lines(whole)
        if order.index(Level(one["level"])) >= order.index(least)
    ]


def test_without_a_stream_nothing_is_written(
    capfd: pytest.CaptureFixture[str],
) -> None:
    write_all(Log())
    assert "".join(capfd.readouterr()) == ""


# --- where exceptions come from -------------------------------------------------------


def nested(depth: int, text: str) -> None:
    if depth:
        nested(depth - 1, text)
    else:
        raise ValueError(text)


@given(st.integers(0, 40), st.text(min_size=3))
def test_frames_tell_places_and_no_values(depth: int, text: str) -> None:
    with pytest.raises(ValueError) as found:  # noqa: PT011 - whatever it says
        nested(depth, text)
    result = frames_of(found.value)
    assert len(result) == min(FRAMES, depth + 2)
    form = r"server/test_telemetry_log\.py:\d+:(nested|test_frames_tell_\w+)"
    assert all(re.fullmatch(form, one) for one in result)


def test_what_led_to_an_exception_is_told_by_type() -> None:
    error: Exception = ValueError("0")
    for number in range(1, 9):
        later = KeyError(number)
        later.__cause__ = error
        error = later
    assert kinds_of(error) == ["KeyError"] * CAUSES
    error.__cause__ = ValueError("x")
    assert kinds_of(error) == ["KeyError", "ValueError"]


# --- of a server ----------------------------------------------------------------------


@contextmanager
def logged(folder: Path) -> Iterator[tuple[Served, io.StringIO]]:
    (folder / "policy.yaml").write_text(POLICY)
    stream = io.StringIO()
    watch = TelemetryContext(Log(stream, Level.DEBUG))
    ledger, policy = folder / "ledger.db", folder / "policy.yaml"
    with served(ledger, policy=policy, watch=watch) as server:
        yield server, stream


def test_lines_of_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise VerificationError(Problem(Code.LEDGER_BROKEN, "entry 7 is odd"))

    with logged(tmp_path) as (server, stream):
        answered = server.get("ann", "/rules")
        server.client.get("/healthz")
        server.client.get("/api/v1/rules")
        server.get("lee", "/releases/unknown")
        monkeypatch.setattr(Threads, "read_view", broken)
        failed = server.get("olga", "/ledger/head")
    result = lines(stream)
    assert [
        (one["level"], one["route"], one["status"], one["who"], one["code"])
        for one in result
        if one["event"] == "request"
    ] == [
        ("info", "/api/v1/rules", 200, "ann", None),
        ("debug", "/healthz", 200, None, None),
        ("info", "/api/v1/rules", 401, None, "MOD831"),
        ("info", "/api/v1/releases/{release}", 404, "lee", "MOD704"),
        ("info", "/api/v1/ledger/head", 503, "olga", "MOD702"),
    ]
    (refused,) = [one for one in result if one["event"] == "not-recognized"]
    assert refused["route"] == "/api/v1/rules"
    (failure,) = [one for one in result if one["event"] == "failed"]
    assert (failure["types"], failure["code"]) == (["VerificationError"], "MOD702")
    assert failure["trace"] == failed.json()["trace_id"]
    assert "entry 7" not in stream.getvalue()
    first = result[0]
    assert first["trace"] == answered.headers["x-request-id"]
    assert first["sent"] == len(answered.content)


def test_a_server_with_an_entrance_tells_the_same(tmp_path: Path) -> None:
    """The gate stands between whoever watches and the routes: both see one request."""
    with logged(tmp_path) as (server, stream):
        gate = Gate(frozenset({"127.0.0.1"}), (), is_https=False)
        server.parts.entrance = Authentication(Authenticators([], "modicum"), gate)
        app = build(server.parts)
        here = TestClient(app, "http://127.0.0.1", client=("127.0.0.1", 40000))
        for path in ("healthz", "readyz", "metrics", "api/v1/rules", "nowhere"):
            here.get(f"/{path}", headers={HEADER: "petra"})
        here.get("/healthz", headers={"Host": "elsewhere.example"})
    result = [one for one in lines(stream) if one["event"] == "request"]
    assert [(one["level"], one["route"], one["who"]) for one in result] == [
        ("debug", "/healthz", None),
        ("debug", "/readyz", None),
        ("debug", "/metrics", "petra"),
        ("info", "/api/v1/rules", "petra"),
        ("info", NO_ROUTE, None),
        ("info", NO_ROUTE, None),  # For another host, no route was looked for.
    ]
    counted = server.parts.watch.counts.collect()
    routes = Counter(
        one.labels["route"]
        for family in counted
        for one in family.samples
        if one.name == "modicum_http_requests_total"
    )
    assert routes.keys() == {one["route"] for one in result}


async def ask(app: Any, scope: dict[str, Any]) -> list[Message]:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent


def request() -> dict[str, Any]:
    return {"type": "http", "method": "GET", "path": "/x", "headers": []}


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer nothing: the client went."""


async def _half(scope: Scope, receive: Receive, send: Send) -> None:
    """Fail in the middle of an answer."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    raise ValueError(HEADER)


@pytest.mark.parametrize(
    ("app", "status", "events"),
    [(_nothing, 0, ["request"]), (_half, 200, ["failed", "request"])],
)
def test_answers_that_do_not_come_to_their_end(
    app: Any, status: int, events: list[str]
) -> None:
    import asyncio

    stream = io.StringIO()
    sent = asyncio.run(
        ask(TelemetryMiddleware(app, TelemetryContext(Log(stream))), request())
    )
    result = lines(stream)
    assert [one["event"] for one in result] == events
    assert result[-1]["status"] == status
    assert len(sent) == (status > 0)


@given(st.text(st.characters(exclude_categories=[])))
def test_a_line_is_one_line_in_ascii(text: str) -> None:
    """Lone surrogates, ends of lines and marks of direction included."""
    stream = io.StringIO()
    Log(stream).library("name", Level.INFO, text)
    written = stream.getvalue()
    assert written.isascii()
    assert written.splitlines(keepends=True) == [written]
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert json.loads(written)["message"] == joined
