"""Addresses that send what recognizes nobody: they are answered only so often."""

from __future__ import annotations

import asyncio
import io
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples.entrances import BY_PROXY, PROXY, PUBLIC, WITH_OIDC, settings_of
from samples.served import HEADER, Served, served
from samples.small import POLICY
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from modicum.server.auth.anonymous_limits import AnonymousLimits
from modicum.server.auth.middleware import AuthMiddleware
from modicum.server.auth.setup import PublicAddress, _gate
from modicum.server.problems import problem_response
from modicum.server.rate_limits import Rates
from modicum.server.telemetry.context import TelemetryContext
from modicum.server.telemetry.log import Log

MOST = 3
#: Addresses, and what stands for all that their owner has.
ADDRESSES = {
    "203.0.113.9": "a",
    "203.0.113.10": "b",
    "::ffff:203.0.113.9": "a",
    "2001:db8:1:1::1": "c",
    "2001:db8:1:1:ffff::2": "c",
    "2001:db8:1:2::1": "d",
    "": "nobody knows",
    "not an address": "nobody knows",
}
SIGN_IN = ("/login", "/login/callback")


async def _app(scope: Scope, receive: Receive, send: Send) -> None:
    """Recognize whoever says so; signing in never does."""
    status = 200 if "ann" in scope["path"] else 401
    if scope["path"] in SIGN_IN:
        status = 303
    await PlainTextResponse("said", status)(scope, receive, send)


def asked(app: AnonymousLimits, address: str, path: str) -> tuple[int, bytes]:
    """Return the status and the body of an answer."""
    result: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        result.append(message)

    scope: Scope = {
        "type": "http",
        "path": path,
        "client": (address, 1) if address else None,
        "headers": [],
    }
    asyncio.run(app(scope, receive, send))
    first, *rest = result
    assert first["type"] == "http.response.start"
    return first["status"], b"".join(one["body"] for one in rest)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([*ADDRESSES]),
            st.sampled_from(["/ann", "/wrong", "/login/local", *SIGN_IN]),
            st.sampled_from([0, 0, 0, 1, 20]),
        ),
        max_size=40,
    )
)
def test_each_address_is_counted_and_whoever_is_known_is_not(
    steps: list[tuple[str, str, int]],
) -> None:
    now = 0.0
    app = AnonymousLimits(_app, Rates(MOST, clock=lambda: now))
    left: dict[str, float] = defaultdict(lambda: float(MOST))
    for address, path, seconds in steps:
        now += seconds
        for one, value in left.items():
            left[one] = min(MOST, value + seconds * MOST / 60)
        status, body = asked(app, address, path)
        if path == "/ann":
            assert (status, body) == (200, b"said")
            continue
        whose = ADDRESSES[address]
        if left[whose] >= 1 - 1e-9:
            left[whose] -= 1
            assert body == b"said"
        else:
            assert status == 429
            assert json.loads(body)["code"] == "MOD837"


@pytest.mark.parametrize("one", [*ADDRESSES])
@pytest.mark.parametrize("other", [*ADDRESSES])
def test_who_has_several_addresses_has_one_count(one: str, other: str) -> None:
    app = AnonymousLimits(_app, Rates(1, clock=lambda: 0.0))
    assert asked(app, one, "/wrong")[0] == 401
    expected = 429 if ADDRESSES[one] == ADDRESSES[other] else 401
    assert asked(app, other, "/wrong")[0] == expected


def test_signing_in_is_counted_before_the_provider_is_asked() -> None:
    reached = []

    async def signs_in(scope: Scope, receive: Receive, send: Send) -> None:
        reached.append(scope["path"])
        await PlainTextResponse("", 303)(scope, receive, send)

    app = AnonymousLimits(signs_in, Rates(MOST, clock=lambda: 0.0))
    result = [asked(app, "203.0.113.9", SIGN_IN[turn % 2])[0] for turn in range(6)]
    assert result == [303] * MOST + [429] * (6 - MOST)
    assert len(reached) == MOST


def test_who_comes_through_a_proxy_is_told_from_others_behind_it(
    tmp_path: Path,
) -> None:
    settings = settings_of(WITH_OIDC, tmp_path)
    gate = _gate(settings, PublicAddress("127.0.0.1", 8642, "ann"))
    limited = AnonymousLimits(_app, Rates(1, clock=lambda: 0.0))
    app = AuthMiddleware(limited, gate, problem_response)
    client = TestClient(app, base_url=PUBLIC, client=(PROXY, 40000))

    def status(address: str) -> int:
        headers = {**BY_PROXY, "X-Forwarded-For": f"198.51.100.7, {address}"}
        return client.get("/wrong", headers=headers).status_code

    assert [status("203.0.113.9") for _ in range(2)] == [401, 429]
    assert status("203.0.113.10") == 401


@pytest.fixture
def log() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def server(tmp_path: Path, log: io.StringIO) -> Iterator[Served]:
    (tmp_path / "policy.yaml").write_text(POLICY)
    ledger, watch = tmp_path / "ledger.db", TelemetryContext(Log(log))
    rates = Rates(MOST, clock=lambda: 0.0)
    policy = tmp_path / "policy.yaml"
    with served(ledger, policy=policy, strangers=rates, watch=watch) as found:
        yield found


def test_a_server_goes_on_for_those_it_knows(server: Served, log: io.StringIO) -> None:
    result = [server.client.get("/api/v1/me") for _ in range(MOST + 2)]
    assert [one.status_code for one in result] == [401] * MOST + [429] * 2
    assert result[-1].headers["retry-after"] == "1"
    assert result[-1].json()["trace_id"] == result[-1].headers["x-request-id"]
    for _ in range(2 * MOST):
        known = server.client.get("/api/v1/rules", headers={HEADER: "ann"})
        assert known.status_code == 200
    assert server.client.get("/healthz").status_code == 200
    lines = [json.loads(one) for one in log.getvalue().splitlines()]
    refused = [one for one in lines if one["event"] == "not-recognized"]
    assert len(refused) == MOST  # Nor can anybody fill the log with them.


def test_what_is_too_large_is_counted_before_anybody_is_recognized(
    server: Served,
) -> None:
    def status(who: str) -> int:
        large = b"x" * (2**20 + 1)
        sent = server.client.post(
            "/api/v1/releases:check", content=large, headers={HEADER: who}
        )
        return sent.status_code

    assert [status("ann") for _ in range(MOST + 2)] == [413] * MOST + [429] * 2
    assert server.client.get("/api/v1/me").status_code == 429
    assert server.client.get("/api/v1/me", headers={HEADER: "ann"}).status_code == 200
