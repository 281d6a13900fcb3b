"""HTTP as an attacker writes it: nobody is served what they did not ask for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from samples.raw_http import connect, head, heard, statuses
from samples.served import HEADER, Served, served
from samples.small import POLICY

from modicum.server.body_limits import BODY_BYTES
from modicum.server.wire_format import HEAD_BYTES

CHECK = "/api/v1/releases:check"
ANN = "X-Who: ann"
JSON = "Content-Type: application/json"
CHUNKED = "Transfer-Encoding: chunked"
#: What must not be taken for a request of its own.
SMUGGLED = head("GET", "/healthz")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "policy.yaml").write_text(POLICY)
    with served(tmp_path / "ledger.db", policy=tmp_path / "policy.yaml") as found:
        yield found


def told(server: Served, sent: bytes) -> bytes:
    """Return all that a server answers, until it closes the connection."""
    with connect(server.url) as own:
        with suppress(ConnectionError):  # It heard enough.
            own.sendall(sent)
        return heard(own)


@pytest.mark.parametrize(
    "lengths",
    [
        ("Content-Length: 2", "Content-Length: 3"),
        ("Content-Length: 2, 3",),
        ("Content-Length: +2",),
        ("Content-Length: -2",),
        ("Content-Length: 0x2",),
        ("Content-Length: 2", CHUNKED),
        (CHUNKED, "Content-Length: 0"),
        ("Content-Length : 2",),
    ],
)
def test_a_request_has_one_length(server: Served, lengths: tuple[str, ...]) -> None:
    sent = head("POST", CHECK, ANN, JSON, *lengths) + b"0\r\n\r\n" + SMUGGLED
    assert statuses(told(server, sent)) == [400]


def test_what_cannot_be_read_is_told_as_a_problem(
    server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    sent = head("POST", f"{CHECK}?q={'a' * 2 * HEAD_BYTES}", ANN, JSON)
    answer = told(server, sent)
    assert statuses(answer) == [400]
    lines, _, body = answer.partition(b"\r\n\r\n")
    assert b"application/problem+json" in lines.lower()
    problem = json.loads(body)
    assert (problem["code"], problem["status"]) == ("MOD840", 400)
    assert f"X-Request-Id: {problem['trace_id']}".lower().encode() in lines.lower()
    assert problem["trace_id"] in caplog.text
    assert "aaa" not in caplog.text


@pytest.mark.parametrize("coding", ["gzip, chunked", "chunked, chunked", "identity"])
def test_no_other_coding_is_read(server: Served, coding: str) -> None:
    sent = head("POST", CHECK, ANN, JSON, f"Transfer-Encoding: {coding}")
    (status,) = statuses(told(server, sent + b"0\r\n\r\n" + SMUGGLED))
    assert status in (400, 501)


def test_what_says_that_it_is_empty_is_not_read_on(server: Served) -> None:
    """A length of 0 beside chunks would let any number of bytes in."""
    lines = (ANN, JSON, "Content-Length: 0", CHUNKED)
    size = 2 * BODY_BYTES
    sent = head("POST", CHECK, *lines) + f"{size:x}\r\n".encode() + bytes(size)
    with connect(server.url) as own:
        own.sendall(head("POST", CHECK, *lines))
        assert statuses(heard(own)) == [400]
    assert statuses(told(server, sent)) in ([400], [])


@pytest.mark.parametrize(
    "chunks",
    [
        b"2;" + b"x" * 2 * HEAD_BYTES + b"\r\n{}\r\n0\r\n\r\n",
        b"-2\r\n{}\r\n0\r\n\r\n",
        b"2 \r\n{}xx0\r\n\r\n",
        b"0" * 30 + b"2\r\n{}\r\n0\r\n\r\n",
        b"0\r\n" + b"x: y\r\n" * HEAD_BYTES + b"\r\n",
    ],
)
def test_odd_chunks_are_refused(server: Served, chunks: bytes) -> None:
    answers = told(server, head("POST", CHECK, ANN, JSON, CHUNKED) + chunks + SMUGGLED)
    assert statuses(answers) == [400]


@pytest.mark.parametrize(
    "target",
    [
        *("http://127.0.0.1/healthz", "https://elsewhere.example/healthz"),
        *("*", "//healthz", "/healthz/", "/./healthz", "/%2e/healthz", "/HEALTHZ"),
    ],
)
def test_a_path_is_one_path(server: Served, target: str) -> None:
    answers = told(server, head("GET", target, "Connection: close"))
    assert statuses(answers) == [404]


def test_what_follows_is_answered_in_turn(server: Served) -> None:
    sent = head("GET", "/healthz") + head("GET", "/nowhere") + head("GET", "/")
    sent += head("GET", "/healthz", "Connection: close")
    assert statuses(told(server, sent)) == [200, 404, 200, 200]


def test_http_1_0_ends_with_its_answer(server: Served) -> None:
    answers = told(server, head("GET", "/healthz", version="1.0") + SMUGGLED)
    assert statuses(answers) == [200]
    assert answers.endswith(b'{"status":"ok"}')


def test_head_is_taken_nowhere_and_does_nothing(server: Served) -> None:
    """A one-time link is used up by GET: whoever only looks at it gets 405."""
    paths = server.client.get("/api/v1/openapi.json").json()["paths"]
    ways = ["/", "/healthz", "/readyz", "/metrics", "/api/v1/openapi.json"]
    ways += [one.replace("{", "").replace("}", "") for one in paths]
    for path in ways:
        answered = server.client.head(path, headers={HEADER: "olga"})
        assert (answered.status_code, answered.content) == (405, b""), path
    sent = head("HEAD", "/healthz", ANN) + head("GET", "/healthz", "Connection: close")
    answers = told(server, sent)
    assert statuses(answers) == [405, 200]
    assert answers.count(b"{") == 1


def test_an_upgrade_is_not_taken_up(server: Served) -> None:
    for protocol in ("websocket", "h2c"):
        lines = ("Connection: Upgrade, close", f"Upgrade: {protocol}")
        answers = told(server, head("GET", "/healthz", *lines))
        assert statuses(answers) == [200], protocol
