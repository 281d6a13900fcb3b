"""What proxies say, who may say it, and what every request passes."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from modicum.server.auth.client_address import FORWARDING, client_path
from modicum.server.auth.middleware import AuthMiddleware, Gate
from modicum.server.problems import problem_response

TRUSTED = (ip_network("10.1.2.0/24"), ip_network("fd00::/64"))
ADDRESSES = ["10.1.2.3", "10.1.2.4", "fd00::7", "203.0.113.9", "127.0.0.1", "::1"]
ADDRESSES += ["::ffff:10.1.2.3", "::ffff:127.0.0.1", "nonsense", ""]


def believed(address: str) -> bool:
    return address in ("10.1.2.3", "10.1.2.4", "fd00::7", "::ffff:10.1.2.3")


def plainly(peer: str, hops: list[str], protocol: str | None) -> tuple[Any, bool]:
    """Return the client and whether it came safely, as the manual says it."""
    here = peer in ("127.0.0.1", "::1", "::ffff:127.0.0.1")
    if not believed(peer):
        direct = here and not hops and protocol is None
        return (None if peer in ("nonsense", "") else peer), direct
    left = list(hops)
    while left and believed(left[-1]):
        left.pop()
    client = left[-1] if left and left[-1] not in ("nonsense", "") else None
    return client, protocol == "https"


@given(
    st.sampled_from(ADDRESSES),
    st.lists(st.sampled_from(ADDRESSES), max_size=4),
    st.sampled_from([None, "https", "http", "HTTPS ", "https,http"]),
)
def test_the_client_is_the_last_one_that_a_trusted_proxy_saw(
    peer: str, hops: list[str], protocol: str | None
) -> None:
    headers = [("x-forwarded-for", ", ".join(hops))] if hops else []
    headers += [("x-forwarded-proto", protocol)] if protocol is not None else []
    scheme = protocol.strip().lower() if protocol else protocol

    came = client_path(peer, headers, TRUSTED)

    client, is_safe = plainly(peer, hops, scheme)
    wanted = None if client is None else ip_address(client.removeprefix("::ffff:"))
    assert came.client == wanted
    assert came.is_safe == is_safe
    assert came.is_https == (believed(peer) and is_safe)


@pytest.mark.parametrize("name", sorted(FORWARDING))
def test_who_speaks_for_others_here_must_be_known(name: str) -> None:
    assert not client_path("127.0.0.1", [(name, "https")], TRUSTED).is_safe
    assert client_path("127.0.0.1", [("accept", "*/*")], TRUSTED).is_safe


@pytest.mark.parametrize(
    "headers",
    [
        [("x-forwarded-proto", "http"), ("x-forwarded-proto", "https")],
        [("x-forwarded-proto", "https, http")],
        [("x-forwarded-proto", "")],
        [("forwarded", "proto=https")],
        [("x-forwarded-ssl", "on")],
        [],
    ],
)
def test_a_proxy_that_does_not_say_https_clearly_has_not_said_it(
    headers: list[tuple[str, str]],
) -> None:
    came = client_path("10.1.2.3", headers, TRUSTED)
    assert not came.is_https
    assert not came.is_safe


# --- the guard ---------------------------------------------------------------

GATE = Gate(
    frozenset({"privacy.example.org", "127.0.0.1:8642"}), TRUSTED, is_https=True
)


async def seen(request: Request) -> Response:
    kept = Response(status_code=200, headers={"Cache-Control": "max-age=60"})
    if request.url.path == "/kept":
        return kept
    return JSONResponse(
        {
            "headers": sorted(request.headers.keys()),
            "client": request.client.host if request.client else None,
            "scheme": request.url.scheme,
        }
    )


def client(
    peer: str, gate: Gate = GATE, host: str = "privacy.example.org"
) -> TestClient:
    app = Starlette(routes=[Route("/{path:path}", seen, methods=["GET", "POST"])])
    guarded = AuthMiddleware(app, gate, problem_response)
    return TestClient(guarded, base_url=f"http://{host}", client=(peer, 1))


BY_PROXY = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "1.2.3.4, 203.0.113.9"}


def test_a_request_by_the_proxy_is_told_as_the_client_sent_it() -> None:
    sent = {**BY_PROXY, "X-Forwarded-Host": "evil.example", "Forwarded": "for=1.1.1.1"}
    got = client("10.1.2.3").get("/", headers=sent).json()

    assert got["client"] == "203.0.113.9"
    assert got["scheme"] == "https"
    assert not FORWARDING & set(got["headers"])


def test_nobody_else_is_believed() -> None:
    got = client("203.0.113.7").get("/", headers=BY_PROXY).json()

    assert got["client"] == "203.0.113.7"
    assert got["scheme"] == "http"
    assert not FORWARDING & set(got["headers"])


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "privacy.example.org.evil.example",
        "privacy.example.org:443",
        "127.0.0.1:9999",
        "127.0.0.1",
        "localhost:8642",
        "privacy.example.org@evil.example",
        "",
    ],
)
def test_another_host_is_refused(host: str) -> None:
    got = client("127.0.0.1").get("/", headers={"Host": host})

    assert got.status_code == 400
    assert got.json()["code"] == "MOD840"


def test_hosts_are_the_same_in_capitals_and_stand_once() -> None:
    here = client("127.0.0.1")
    assert here.get("/", headers={"Host": "Privacy.Example.ORG"}).status_code == 200
    twice = [("Host", "privacy.example.org"), ("Host", "privacy.example.org")]
    assert here.get("/", headers=twice).status_code == 400


@pytest.mark.parametrize("name", ["Authorization", "Cookie"])
@pytest.mark.parametrize(
    ("peer", "extra", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("10.1.2.3", BY_PROXY, 200),
        ("10.1.2.3", {}, 401),
        ("10.1.2.3", {**BY_PROXY, "X-Forwarded-Proto": "http"}, 401),
        ("203.0.113.7", {}, 401),
        ("203.0.113.7", BY_PROXY, 401),
        ("127.0.0.1", BY_PROXY, 401),
    ],
)
def test_credentials_come_safely_or_not_at_all(
    name: str, peer: str, extra: dict[str, str], status: int
) -> None:
    got = client(peer).get("/", headers={**extra, name: "canary"})

    assert got.status_code == status
    assert "canary" not in got.text
    assert client(peer).get("/", headers=extra).status_code == 200


def test_a_local_server_answers_this_machine_only() -> None:
    gate = Gate(frozenset({"127.0.0.1:8642"}), (), is_https=False, is_local=True)
    host = "127.0.0.1:8642"
    assert client("127.0.0.1", gate, host).get("/").status_code == 200
    assert client("::1", gate, host).get("/").status_code == 200
    assert client("203.0.113.7", gate, host).get("/").status_code == 401
    reply = client("127.0.0.1", gate, host).get("/", headers=BY_PROXY)
    assert reply.status_code == 401


@pytest.mark.parametrize("host", ["privacy.example.org", "evil.example"])
def test_every_answer_protects_the_browser(host: str) -> None:
    got = client("127.0.0.1", host=host).get("/")

    assert "frame-ancestors 'none'" in got.headers["Content-Security-Policy"]
    assert "default-src 'none'" in got.headers["Content-Security-Policy"]
    assert "unsafe" not in got.headers["Content-Security-Policy"]
    assert got.headers["X-Content-Type-Options"] == "nosniff"
    assert got.headers["X-Frame-Options"] == "DENY"
    assert got.headers["Referrer-Policy"] == "same-origin"
    assert got.headers["Cache-Control"] == "no-store"
    assert int(got.headers["Strict-Transport-Security"].split("=")[1]) >= 31536000


def test_what_may_be_kept_says_so_itself_and_http_promises_no_https() -> None:
    assert client("127.0.0.1").get("/kept").headers["Cache-Control"] == "max-age=60"
    plain = Gate(GATE.hosts, (), is_https=False)
    assert (
        "Strict-Transport-Security" not in client("127.0.0.1", plain).get("/").headers
    )
