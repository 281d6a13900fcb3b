"""Connections whose clients say nothing, or not enough, or do not listen: they end."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from samples.raw_http import (
    PATIENCE,
    connect,
    eventually,
    head,
    heard,
    heard_until,
    listening,
    statuses,
)
from starlette.types import Receive, Scope, Send
from uvicorn import Server

from modicum.server import connections
from modicum.server.connections import (
    CONNECTIONS,
    HEAD_BYTES,
    READ_BYTES,
    Timeouts,
    connections_max,
)

#: Long enough that nothing ends by it in a test.
LONG = PATIENCE * 10
SHORT = 0.2
NEVER = {"idle": LONG, "head": LONG, "rest": LONG, "taking": LONG}
ASK = head("GET", "/")


async def answer(send: Send, body: bytes = b"well") -> None:
    length = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": length})
    await send({"type": "http.response.body", "body": body})


async def at_once(_: Scope, __: Receive, send: Send) -> None:
    """Answer without reading anything."""
    await answer(send)


async def slowly(_: Scope, receive: Receive, send: Send) -> None:
    """Take longer to answer than a client may keep the server waiting."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message["body"]
        more = message["more_body"]
    await asyncio.sleep(4 * SHORT)
    await answer(send, body)


async def much(_: Scope, __: Receive, send: Send) -> None:
    await answer(send, bytes(2**24))


def is_so_many(server: Server, count: int) -> bool:
    return len(server.server_state.connections) == count


def ends_though_more_comes(own: socket.socket) -> bool:
    """Return whether a connection ends to which something is sent all the time."""
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        try:
            own.sendall(b"x")
        except OSError:
            return True
        time.sleep(SHORT / 4)
    return False


def test_who_says_nothing_is_let_go() -> None:
    waits = Timeouts(**{**NEVER, "idle": SHORT})
    with listening(at_once, waits=waits) as (_, url), connect(url) as own:
        assert heard(own) == b""


def test_who_asks_no_more_is_let_go() -> None:
    waits = Timeouts(**{**NEVER, "idle": SHORT})
    with listening(at_once, waits=waits) as (_, url), connect(url) as own:
        own.sendall(ASK)
        assert heard(own).endswith(b"well")


@pytest.mark.parametrize("start", [b"GET / HTTP/1.1\r\nHos", b"G"])
def test_half_a_head_is_not_waited_for(start: bytes) -> None:
    waits = Timeouts(**{**NEVER, "head": SHORT})
    with listening(at_once, waits=waits) as (_, url), connect(url) as own:
        own.sendall(start)
        assert heard(own) == b""


def test_a_head_that_comes_byte_by_byte_has_an_end() -> None:
    waits = Timeouts(**{**NEVER, "head": 4 * SHORT})
    with listening(at_once, waits=waits) as (_, url), connect(url) as own:
        own.sendall(b"GET / HTTP/1.1\r\nX: ")
        assert ends_though_more_comes(own)


def test_a_second_head_has_an_end_too() -> None:
    waits = Timeouts(**{**NEVER, "head": SHORT})
    with listening(at_once, waits=waits) as (_, url), connect(url) as own:
        own.sendall(ASK)
        assert heard_until(own, b"well")
        own.sendall(ASK[:-2])
        assert heard(own) == b""


def test_the_rest_of_what_was_answered_is_not_waited_for() -> None:
    waits = Timeouts(**{**NEVER, "rest": 4 * SHORT})
    with listening(at_once, waits=waits) as (_, url), connect(url) as own:
        own.sendall(head("POST", "/", "Content-Length: 1000000") + b"some")
        assert heard_until(own, b"well")
        assert ends_though_more_comes(own)


def test_who_sends_the_rest_may_ask_again() -> None:
    waits = Timeouts(**NEVER)
    with listening(at_once, waits=waits) as (_, url), connect(url) as own:
        own.sendall(head("POST", "/", "Content-Length: 300000"))
        assert heard_until(own, b"well")
        own.sendall(bytes(300_000))
        own.sendall(head("GET", "/", "Connection: close"))
        assert heard(own).endswith(b"well")


def test_who_does_not_take_an_answer_is_let_go() -> None:
    waits = Timeouts(**{**NEVER, "taking": SHORT})
    with listening(much, waits=waits) as (server, url), socket.socket() as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        own.settimeout(PATIENCE)
        own.connect(("127.0.0.1", int(url.rpartition(":")[2])))
        own.sendall(ASK)
        eventually(lambda: server.server_state.total_requests == 1)
        eventually(lambda: not server.server_state.connections)


def test_who_takes_it_little_by_little_gets_all() -> None:
    waits = Timeouts(**{**NEVER, "taking": 10 * SHORT})
    with listening(much, waits=waits) as (_, url), connect(url) as own:
        own.sendall(head("GET", "/", "Connection: close"))
        first = heard_until(own, b"\r\n\r\n")
        time.sleep(2 * SHORT)
        assert len(first) + len(heard(own)) > 2**24


def test_the_server_takes_its_own_time() -> None:
    waits = Timeouts(idle=SHORT, head=SHORT, rest=SHORT, taking=SHORT)
    with listening(slowly, waits=waits) as (_, url), connect(url) as own:
        own.sendall(head("POST", "/", "Content-Length: 4"))
        time.sleep(2 * SHORT)  # How long a body may take is for the application.
        own.sendall(b"body")
        assert heard(own).endswith(b"body")


def test_whoever_asks_takes_the_place_of_whoever_waits_longest() -> None:
    with (
        listening(at_once, waits=Timeouts(**NEVER), most=3) as (server, url),
        ExitStack() as all_of_them,
    ):
        silent = []
        for count in range(3):
            silent.append(all_of_them.enter_context(connect(url)))
            eventually(partial(is_so_many, server, count + 1))
        with connect(url) as own:
            own.sendall(head("GET", "/", "Connection: close"))
            assert heard(own).endswith(b"well")
        assert heard(silent[0]) == b""
        for one in silent[1:]:
            one.sendall(ASK)
            assert heard_until(one, b"well")


def test_who_is_being_served_is_not_let_go_for_others() -> None:
    with (
        listening(slowly, waits=Timeouts(**NEVER), most=1) as (server, url),
        connect(url) as busy,
    ):
        busy.sendall(head("GET", "/", "Connection: close"))
        eventually(lambda: len(server.server_state.tasks) == 1)
        with connect(url) as other:
            other.sendall(ASK)
            assert heard(other) == b""
        assert statuses(heard(busy)) == [200]


@pytest.mark.parametrize("size", [HEAD_BYTES // 2, 2 * HEAD_BYTES])
@pytest.mark.parametrize("line", ["X: {}", "{}"])
def test_a_head_is_read_up_to_a_size(size: int, line: str) -> None:
    text = line.format("a" * size) if "X" in line else "a:\r\n" * (size // 4) + "a:"
    with listening(at_once) as (_, url), connect(url) as own:
        own.sendall(head("GET", "/", text, "Connection: close"))
        (status,) = statuses(heard(own))
    assert status == (200 if size < HEAD_BYTES else 400)


def test_little_is_held_of_what_nobody_asks_for() -> None:
    held: list[int] = []

    async def never_reads(_: Scope, __: Receive, send: Send) -> None:
        await asyncio.sleep(4 * SHORT)
        (one,) = server.server_state.connections
        held.append(len(one.cycle.body))  # type: ignore[union-attr]
        await answer(send)

    with listening(never_reads) as (server, url), connect(url) as own:
        own.sendall(head("POST", "/", "Content-Length: 500000") + bytes(500_000))
        assert heard_until(own, b"well")
    assert 0 < held[0] <= 2 * READ_BYTES


def test_what_follows_an_answer_and_is_not_http_just_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        caplog.at_level(logging.ERROR),
        listening(at_once) as (_, url),
        connect(url) as own,
    ):
        own.sendall(head("POST", "/", "Transfer-Encoding: chunked"))
        assert heard_until(own, b"well")
        own.sendall(b"no length\r\n")
        assert heard(own) == b""
    assert caplog.records == []


AMBIGUOUS = b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"


def test_what_cannot_be_read_does_not_take_the_answer_of_what_is_served() -> None:
    with listening(slowly, waits=Timeouts(**NEVER)) as (_, url), connect(url) as own:
        own.sendall(head("POST", "/", "Content-Length: 4") + b"body" + AMBIGUOUS)
        answers = heard(own)
    assert statuses(answers) == [200]
    assert answers.endswith(b"body")


def test_what_cannot_be_read_is_refused_after_an_answer() -> None:
    with listening(at_once) as (_, url), connect(url) as own:
        own.sendall(ASK)
        assert heard_until(own, b"well")
        own.sendall(AMBIGUOUS)
        assert statuses(heard(own)) == [400]


def test_nothing_is_written_into_an_answer_that_was_begun() -> None:
    async def in_parts(_: Scope, __: Receive, send: Send) -> None:
        length = [(b"content-length", b"1000")]
        await send({"type": "http.response.start", "status": 200, "headers": length})
        for part in range(2):
            body, more = b"x" * 500, part == 0
            await send({"type": "http.response.body", "body": body, "more_body": more})
            await asyncio.sleep(2 * SHORT)

    with listening(in_parts) as (_, url), connect(url) as own:
        own.sendall(ASK)
        first = heard_until(own, b"x" * 500)
        own.sendall(head("POST", "/", "Transfer-Encoding: chunked") + b"no length\r\n")
        assert b" 400 " not in first + heard(own)


def test_who_is_served_learns_that_the_client_is_gone() -> None:
    """Although another request was read behind it."""
    heard_of: list[str] = []

    async def waits(_: Scope, receive: Receive, __: Send) -> None:
        await receive()
        heard_of.append((await receive())["type"])

    with listening(waits, waits=Timeouts(**NEVER)) as (server, url):
        with connect(url) as own:
            own.sendall(ASK + ASK)
            eventually(lambda: len(server.server_state.tasks) == 1)
            time.sleep(SHORT)
        eventually(lambda: heard_of == ["http.disconnect"])


def test_nothing_is_kept_of_a_connection_that_ended() -> None:
    waits = Timeouts(**NEVER)
    with listening(much, waits=waits) as (server, url):
        with socket.socket() as own:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0" + bytes(4))
            own.connect(("127.0.0.1", int(url.rpartition(":")[2])))
            own.sendall(3 * ASK)
            eventually(partial(is_so_many, server, 1))
            (one,) = server.server_state.connections
            eventually(lambda: server.server_state.total_requests == 1)
        eventually(partial(is_so_many, server, 0))
        time.sleep(SHORT)
        assert one not in one._own._waiting  # type: ignore[union-attr]


def test_so_many_connections_as_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def files(soft: int) -> None:
        limits = (soft, resource.RLIM_INFINITY)
        monkeypatch.setattr(resource, "getrlimit", lambda _: limits)

    files(resource.RLIM_INFINITY)
    assert connections_max() == CONNECTIONS
    for soft in (1024, 4096, 10**6):
        files(soft)
        assert 0 < connections_max() < soft
        assert connections_max() <= CONNECTIONS


async def head_first(_: Scope, __: Receive, send: Send) -> None:
    """Send the head, and the body only a while later."""
    length = [(b"content-length", b"4")]
    await send({"type": "http.response.start", "status": 200, "headers": length})
    await asyncio.sleep(4 * SHORT)
    await send({"type": "http.response.body", "body": b"well"})


def test_a_head_does_not_wait_for_a_body_that_comes_later() -> None:
    with listening(head_first) as (_, url), connect(url) as own:
        own.sendall(ASK)
        assert heard_until(own, b"\r\n\r\n").endswith(b"\r\n\r\n")
        assert heard_until(own, b"well").endswith(b"well")


def test_heads_without_bodies_are_sent_in_order() -> None:
    with listening(at_once) as (_, url), connect(url) as own:
        own.sendall(head("HEAD", "/") * 3 + head("GET", "/", "Connection: close"))
        found = heard(own)
    assert found.count(b"HTTP/1.1 200") == 4
    assert found.endswith(b"\r\n\r\nwell")


@pytest.mark.parametrize(
    ("size", "writes"), [(0, 1), (4, 1), (READ_BYTES, 1), (READ_BYTES + 1, 2)]
)
def test_a_head_is_written_with_its_body(
    size: int, writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = list[bytes]()
    made = connections.PatientProtocol.connection_made

    def watched(self: connections.PatientProtocol, transport: Any) -> None:
        monkeypatch.setattr(transport, "write", noting(transport.write))
        made(self, transport)

    def noting(write: Callable[[bytes], None]) -> Callable[[bytes], None]:
        def noted(data: bytes) -> None:
            written.append(data)
            write(data)

        return noted

    async def answering(_: Scope, __: Receive, send: Send) -> None:
        await answer(send, bytes(size))

    monkeypatch.setattr(connections.PatientProtocol, "connection_made", watched)
    with listening(answering) as (_, url), connect(url) as own:
        own.sendall(head("GET", "/", "Connection: close"))
        found = heard(own)
    assert b"".join(written) == found
    assert len(written) == writes
