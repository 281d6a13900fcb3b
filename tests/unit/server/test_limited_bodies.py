"""What a server holds of bodies: nothing of strangers, and so much of all others."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples.raw_http import (
    PATIENCE,
    connect,
    eventually,
    head,
    heard,
    heard_until,
    statuses,
)
from samples.served import HEADER, Served, served
from samples.small import POLICY
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from modicum.core.errors import InputError, UnavailableError
from modicum.server.body_limits import BODY_BYTES, Held, LimitedBodies
from modicum.server.telemetry.context import TelemetryContext
from modicum.server.telemetry.log import Level, Log

CHECK = "/api/v1/releases:check"
JSON = "Content-Type: application/json"
CLOSE = "Connection: close"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
#: What is read, and found to be no release.
TEXT = b'{"dataset": "visits"}'


@pytest.fixture
def log() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def server(tmp_path: Path, log: io.StringIO) -> Iterator[Served]:
    (tmp_path / "policy.yaml").write_text(POLICY)
    watch = TelemetryContext(Log(log, Level.DEBUG))
    ledger = tmp_path / "ledger.db"
    with served(ledger, policy=tmp_path / "policy.yaml", watch=watch) as found:
        yield found


def check(who: str, size: int, *more: str) -> bytes:
    """Return the head of a request to check a release of so many bytes."""
    own = [f"X-Who: {who}"] if who else []
    return head("POST", CHECK, *own, JSON, f"Content-Length: {size}", *more)


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def requests_told(log: io.StringIO) -> list[tuple[str, int]]:
    document = [json.loads(one) for one in log.getvalue().splitlines()]
    return [
        (one["level"], one["status"]) for one in document if one["event"] == "request"
    ]


# --- who is not known -----------------------------------------------------------------


@pytest.mark.parametrize("expects", [(), ("Expect: 100-continue",)])
def test_who_is_not_known_is_told_so_before_their_body(
    server: Served, expects: tuple[str, ...]
) -> None:
    with connect(server.url) as own:
        own.sendall(check("", 100_000, *expects))
        response = heard_until(own, b"MOD831")
    assert response.startswith(b"HTTP/1.1 401 ")


def test_who_is_known_is_asked_for_their_body(server: Served) -> None:
    with connect(server.url) as own:
        own.sendall(check("ann", len(TEXT), "Expect: 100-continue", CLOSE))
        assert heard_until(own, b"\r\n\r\n") == CONTINUE
        own.sendall(TEXT)
        assert statuses(heard(own)) == [422]


# --- one body -------------------------------------------------------------------------


@pytest.mark.parametrize(("more", "status"), [(0, 422), (1, 413)])
@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_body_has_so_many_bytes(
    server: Served, more: int, status: int, is_chunked: bool
) -> None:
    body = TEXT.ljust(BODY_BYTES + more)
    lines = ["X-Who: ann", JSON, CLOSE]
    if is_chunked:
        lines.append("Transfer-Encoding: chunked")
        starts = range(0, len(body), 99_999)
        sent = b"".join(chunk(body[at : at + 99_999]) for at in starts)
        sent += chunk(b"")
    else:
        lines.append(f"Content-Length: {len(body)}")
        sent = body
    with connect(server.url) as own:
        own.sendall(head("POST", CHECK, *lines))
        try:
            own.sendall(sent)
        except ConnectionError:
            assert status == 413  # It said so, and then listened no more.
        (response,) = statuses(heard_until(own, b'"trace_id"'))
    assert response == status


def test_a_body_that_is_refused_for_its_length_is_not_received(server: Served) -> None:
    lines = ("X-Who: ann", JSON, f"Content-Length: {10 * BODY_BYTES}")
    with connect(server.url) as own:
        own.sendall(head("POST", CHECK, *lines))
        heard = heard_until(own, b'"trace_id"')
    assert statuses(heard) == [413]
    assert b"connection: close" in heard.lower()


def test_a_body_takes_so_long(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modicum.server.body_limits.READ_SECONDS", 0.2)
    with connect(server.url) as own:
        own.sendall(check("ann", 10) + b"{")
        response = heard_until(own, b'"trace_id"')
    assert response.startswith(b"HTTP/1.1 408 ")
    assert b"ended early" in response


def test_who_goes_while_sending_is_no_mistake_of_the_server(
    server: Served, log: io.StringIO
) -> None:
    with connect(server.url) as own:
        own.sendall(check("ann", 10) + b"{")
    eventually(lambda: len(requests_told(log)) == 1)
    assert requests_told(log) == [("debug", 0)]
    assert '"failed"' not in log.getvalue()
    response = server.client.get("/metrics", headers={HEADER: "petra"}).text
    assert 'status="5' not in response


# --- all of them ----------------------------------------------------------------------


def test_one_asker_has_a_share_of_what_is_held(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is free again when their request is over."""
    monkeypatch.setattr("modicum.server.body_limits.HELD_BYTES", 0)  # 4 MiB, then.
    monkeypatch.setattr("modicum.server.body_limits.READ_SECONDS", 10 * PATIENCE)
    size = 2 * BODY_BYTES // 3
    body = TEXT.ljust(size)
    kind = {"Content-Type": "application/json"}
    taken: list[int] = []
    take = Held.take

    def noted(self: Held, name: str, size: int) -> None:
        take(self, name, size)
        taken.append(size)

    monkeypatch.setattr(Held, "take", noted)

    def asked(who: str) -> httpx2.Response:
        own = {"X-Who": who, **kind}
        return server.client.post(CHECK, content=body, headers=own)

    with connect(server.url) as stalled:
        stalled.sendall(check("amir", BODY_BYTES) + body)
        eventually(lambda: sum(taken) == size)
        response = asked("amir")
        assert (response.status_code, response.headers["retry-after"]) == (503, "1")
        assert "use too much memory" in response.json()["detail"]
        assert asked("ann").status_code == 422  # It was read, and is no release.
    eventually(lambda: asked("amir").status_code == 422)


sizes = st.integers(0, 12)
steps = st.lists(
    st.tuples(st.sampled_from(["", "ann", "lee"]), sizes, st.booleans()), max_size=40
)


@given(st.integers(4, 40), steps)
def test_what_is_held_is_what_was_taken(
    most: int, taken: list[tuple[str, int, bool]]
) -> None:
    held = Held(most)
    kept: list[tuple[str, int]] = []
    for name, size, gives_back in taken:
        own = sum(one for whose, one in kept if whose == name)
        every = sum(one for _, one in kept)
        fits = own + size <= most // 4 and every + size <= most
        try:
            held.take(name, size)
        except UnavailableError:
            assert not fits
        else:
            assert fits
            kept.append((name, size))
        if gives_back and kept:
            held.give_back(*kept.pop(0))
        assert held.bytes == sum(one for _, one in kept)
    for name, size in kept:
        held.give_back(name, size)
    assert held._by_name == Counter()


# --- larger ones ----------------------------------------------------------------------


async def answered(path: str, size: int, *, is_told: bool) -> int:
    """Return the status of a request whose body comes byte by byte.

    Ten bytes are for all, and forty for paths below `/data/`.
    """

    async def reading(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            while (await receive()).get("more_body"):
                pass
        except InputError:
            await Response(status_code=413)(scope, receive, send)
            return
        await Response(status_code=200)(scope, receive, send)

    chunks = iter([b"x"] * (size - 1))

    async def receive() -> Message:
        body = next(chunks, None)
        more = body is not None
        return {"type": "http.request", "body": body or b"x", "more_body": more}

    statuses_sent: list[int] = []

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses_sent.append(message["status"])

    lengths = [(b"content-length", str(size).encode())] if is_told else []
    limited = LimitedBodies(reading, most=10, larger=(re.compile("/data/.*"), 40))
    scope = {"type": "http", "path": path, "headers": lengths, "method": "POST"}
    await limited(scope, receive, send)
    (status,) = statuses_sent
    return status


@pytest.mark.parametrize("is_told", [False, True])
@pytest.mark.parametrize(
    ("path", "most"),
    [("/data/x", 40), ("/data/", 40), ("/data", 10), ("/x/data/", 10), ("/DATA/", 10)],
)
def test_some_addresses_take_larger_bodies(path: str, most: int, is_told: bool) -> None:
    for size, status in ((most, 200), (most + 1, 413)):
        assert asyncio.run(answered(path, size, is_told=is_told)) == status


def test_larger_is_never_less() -> None:
    """Where all bodies may be larger than those, these may be so, too."""

    async def status() -> int:
        statuses_sent: list[int] = []

        async def send(message: Message) -> None:
            statuses_sent.append(message.get("status", 0))

        async def receive() -> Message:
            return {"type": "http.request", "body": b"x" * 40}

        limited = LimitedBodies(
            Response(status_code=200), most=40, larger=(re.compile("/d"), 10)
        )
        length = [(b"content-length", b"40")]
        scope = {"type": "http", "path": "/d", "headers": length, "method": "POST"}
        await limited(scope, receive, send)
        return statuses_sent[0]

    assert asyncio.run(status()) == 200


def test_larger_bodies_may_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 MiB have four times as long as 16 MiB, and nobody has less than all have."""
    given: list[float] = []
    real = asyncio.timeout_at

    def noted(when: float | None) -> asyncio.Timeout:
        assert when is not None
        given.append(when - asyncio.get_running_loop().time())
        return real(when)

    monkeypatch.setattr("modicum.server.body_limits.asyncio.timeout_at", noted)

    async def read(path: str, larger: int) -> None:
        async def reading(scope: Scope, receive: Receive, send: Send) -> None:
            await receive()
            await Response(status_code=200)(scope, receive, send)

        async def receive() -> Message:
            await asyncio.sleep(0)  # It is not there yet.
            return {"type": "http.request", "body": b"x"}

        async def send(message: Message) -> None:
            pass

        limited = LimitedBodies(reading, larger=(re.compile("/data/.*"), larger))
        scope = {"type": "http", "path": path, "headers": [], "method": "POST"}
        await limited(scope, receive, send)

    for path, larger in (("/x", 2**26), ("/data/", 2**26), ("/data/", 2**22)):
        asyncio.run(read(path, larger))
    assert given == [pytest.approx(one, abs=1) for one in (30, 120, 30)]


@pytest.mark.parametrize("waits", [0, 1, 3])
def test_what_a_body_is_waited_for_with_is_told_what_happens(waits: int) -> None:
    """It may wait any number of times, be cancelled, and fail."""
    heard: list[str] = []

    async def receive() -> Message:
        try:
            for _ in range(waits):
                await asyncio.sleep(0)
            heard.append("waited")
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError:
            heard.append("cancelled")
            raise ConnectionError from None
        raise AssertionError

    async def reading(_: Scope, receive: Receive, __: Send) -> None:
        await receive()

    async def send(_: Message) -> None:
        raise AssertionError

    async def cancelled() -> None:
        scope = {"type": "http", "path": "/", "headers": [], "method": "POST"}
        task = asyncio.ensure_future(LimitedBodies(reading)(scope, receive, send))
        while not heard:
            await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(ConnectionError):
        asyncio.run(cancelled())
    assert heard == ["waited", "cancelled"]


def test_what_is_held_has_room_for_four_of_the_largest() -> None:
    limited = LimitedBodies(Response(), larger=(re.compile("/data/"), 2**30))
    limited._held.take("ann", 2**30)
    with pytest.raises(UnavailableError):
        limited._held.take("ann", 1)
