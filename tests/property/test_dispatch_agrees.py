"""The routes as they are called here answer as FastAPI calls them: byte for byte."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from budget import examples
from budget import seed as the_seed
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from samples.served import HEADER, PEOPLE, ByHeader
from samples.small import NOON, POLICY
from starlette.types import ASGIApp, Message

import modicum as mo
from modicum.api.operations import PREFIX
from modicum.api.permissions.actions import Role
from modicum.server.app import build
from modicum.server.auth.authentication import Recognizing
from modicum.server.auth.registry import open_registry
from modicum.server.components import Parts
from modicum.server.dispatch import Application, Dispatch
from modicum.server.rate_limits import Rates
from modicum.storage.factory import open_store
from modicum.system.clock import FixedClock

DRAWN = 1_200
#: What is left to FastAPI: these may answer in lines, or go on answering.
OTHERS = {"/ledger/entries", "/events", "/jobs/{job}/events"}
#: Answers with ids or times that are drawn anew.
NEW = ("/jobs", "/tokens", "/events", ":audit", ":replan", "/metrics")
WHO = (*("amir",) * 14, *("ann", "dara", "olga", "root", "petra", "audra"), "nobody")
IDS = (*("r-1", "r-2", "r-3"), "a%2Fb", "a/b", "x%2Freceipt", "%00", "é", "a b", "a:b")
HOT = (
    *("POST /releases:check", "POST /releases", "POST /releases", "POST /releases"),
    *("POST /releases:batch", "POST /releases/{release:path}:start", "GET /ping"),
    *("POST /releases/{release:path}:post", "POST /releases/{release:path}:void"),
    *("GET /releases/{release:path}", "GET /me"),
)
QUERIES = (
    *("",) * 40,
    *("publish=true", "publish=maybe", "reserve_seconds=0", "text=1"),
    *("reserve_seconds=60", "losses=all", "losses=none", "explain=true", "x=1", "text"),
    *(
        "text=1&text=0",
        "limit=0",
        "limit=5",
        "as_of=1",
        "as_of=x",
        "limit=%31",
        "?",
        "=",
    ),
    *("reason=why", "access_token=t", "reserve_seconds=1e3", "limit=", "publish=%E9"),
)
TYPES = (
    *("application/json",) * 6,
    *("application/yaml", "text/plain", "", "application/JSON; charset=utf-8"),
)
ODD = (b"", b"5", b"[]", b"{", b'{"a": 1, "a": 2}', b"\xff", b"a: b\n", b" " * 70_000)
ODD_HEADERS = (
    *((b"if-match", b'"x"'), (b"if-match", b"W/x"), (b"accept", b"*/*")),
    *((b"idempotency-key", b"a" * 300), (b"idempotency-key", b"a b")),
    *((b"content-length", b"99999999"), (b"transfer-encoding", b"chunked")),
    *((b"traceparent", b"00-" + b"1" * 32 + b"-" + b"1" * 16 + b"-01"),),
    *((b"content-type", b"text/html"), (b"x-who", b"olga"), (b"cookie", b"a=b")),
)


def release(rng: random.Random) -> dict[str, Any]:
    one = {
        "name": "counts",
        "mechanism": "gaussian",
        "attributes": [rng.choice((*("age",) * 8, "steps", "shoe"))],
        "sensitivity": {"user": {"l2": 1}},
        "sigma": rng.choice((200, 200, 200, 300, 300, 3, -1)),
    }
    named = rng.choice(({}, {"dataset": "visits"}))
    return {"release": f"r-{rng.randrange(60)}", **named, "mechanisms": [one]}


def drawn_body(rng: random.Random, path: str) -> bytes:
    if rng.random() < 0.1:
        return rng.choice((*ODD, bytes(2**20 + 1)))
    if path.endswith(":void"):
        return json.dumps({"reason": rng.choice(("no need", "", 5))}).encode()
    if path.endswith(":batch"):
        return json.dumps({"releases": [release(rng), release(rng)]}).encode()
    return json.dumps(release(rng)).encode()


def drawn(rng: random.Random, every: list[str]) -> dict[str, Any]:
    """Return a request as ASGI has it, with its body."""
    operation = rng.choice(HOT if rng.random() < 0.6 else every)
    method, _, template = operation.partition(" ")
    raw = PREFIX + re.sub(
        r"\{[^}]*\}", lambda _: rng.choice((f"r-{rng.randrange(60)}", *IDS)), template
    )
    if rng.random() < 0.05:
        raw = rng.choice((raw + "/", raw.upper(), raw.replace("s", "%73"), "/", "//x"))
    if rng.random() < 0.06:
        method = rng.choice(("GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "FOO"))
    body = drawn_body(rng, template) if method != "GET" else b""
    headers = [(b"host", b"a"), (b"content-length", str(len(body)).encode())]
    if rng.random() < 0.95:
        headers.append((HEADER.lower().encode(), rng.choice(WHO).encode()))
    if rng.random() < 0.95:
        headers.append((b"idempotency-key", b"k-%d" % rng.randrange(2_000)))
    headers.append((b"content-type", rng.choice(TYPES).encode()))
    if rng.random() < 0.2:
        headers.append(rng.choice(ODD_HEADERS))
    return {
        "method": method,
        "raw": raw.encode(),
        "query": rng.choice(QUERIES).encode(),
        "headers": headers,
        "body": body,
    }


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Parts]:
    """Yield the parts of a server of a ledger of its own; it is always noon there."""
    folder.mkdir()
    (folder / "policy.yaml").write_text(POLICY)
    clock, ledger = FixedClock(NOON), folder / "ledger.db"
    space = mo.open(ledger, policy=folder / "policy.yaml", actor="olga", clock=clock)
    space.init()
    people = {**PEOPLE, "nobody": {Role.AUDITOR: frozenset({"none"})}}
    store = open_store(ledger, keep_open=True)
    parts = Parts(
        mo.open_decider(ledger, clock=clock),
        open_registry(store, clock=clock, fresh_seconds=0),
        Recognizing([ByHeader(people)]),
        Rates(10**9),
        anonymous_rates=Rates(10**9),
        closing=(store.close,),
    )
    try:
        yield parts
    finally:
        await parts.close()


async def answered(app: ASGIApp, one: dict[str, Any]) -> tuple[int, Any, bytes]:
    """Return the status, the headers and the body of an answer, without its id."""
    sent: list[Message] = []
    received = iter([{"type": "http.request", "body": one["body"], "more_body": False}])

    async def receive() -> Message:
        return next(received, {"type": "http.disconnect"})

    async def send(message: Message) -> None:
        sent.append(message)

    path = re.sub(rb"%([0-9A-F]{2})", lambda m: bytes([int(m[1], 16)]), one["raw"])
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "server": ("a", 80),
        "client": ("127.0.0.1", 9),
        "scheme": "http",
        "method": one["method"],
        "root_path": "",
        "path": path.decode(errors="replace"),
        "raw_path": one["raw"],
        "query_string": one["query"],
        "headers": [*one["headers"]],
        "state": {},
    }
    await app(scope, receive, send)
    start = sent[0]
    trace = dict(start["headers"])[b"x-request-id"]
    body = b"".join(part.get("body", b"") for part in sent[1:])
    headers = sorted(one for one in start["headers"] if one[1] != trace)
    length = (b"content-length", str(len(body)).encode())
    headers = [one for one in headers if one != length]
    return start["status"], headers, body.replace(trace, b"")


def operations_of(app: FastAPI) -> list[str]:
    """Return the method and the template of all operations that can be compared."""
    return sorted(
        f"{method} {one.path.removeprefix(PREFIX)}"
        for one in iter_route_contexts(app.routes)
        if one.path is not None and one.path.startswith(PREFIX)
        for method in one.methods or ()
        if not any(part in one.path for part in NEW)
    )


def test_answers_are_those_of_fastapi(tmp_path: Path) -> None:
    rng, seen = random.Random(the_seed()), Counter[int]()

    async def compare() -> None:
        async with serving(tmp_path / "a") as one, serving(tmp_path / "b") as other:
            own, ordinary = build(one), build(other)
            ordinary.middleware_stack = FastAPI.build_middleware_stack(ordinary)
            every = operations_of(own)
            for _ in range(examples(DRAWN)):
                asked = drawn(rng, every)
                found = await answered(own, asked)
                assert found == await answered(ordinary, asked), asked
                seen[found[0]] += 1
            logs = [[*each.decider.log().read(0)] for each in (one, other)]
            assert logs[0] == logs[1]

    asyncio.run(compare())
    assert {200, 400, 403, 404} <= {*seen}, seen
    assert seen[200] > examples(DRAWN) // 16


def test_only_a_few_routes_are_left_to_fastapi(tmp_path: Path) -> None:
    async def compare() -> None:
        async with serving(tmp_path / "a") as parts:
            app = build(parts)
            assert isinstance(app, Application)
            dispatch = Dispatch(app.routes, app)
            left = {
                one.path
                for many in dispatch._by_method.values()
                for one in many
                if one.endpoint is None
            }
            assert left == {PREFIX + one for one in OTHERS}

    asyncio.run(compare())


@pytest.mark.parametrize("mark", [b"%", b"#"])
def test_a_path_that_is_not_plain_is_not_known(tmp_path: Path, mark: bytes) -> None:
    """A path is found by its text alone only if it was sent as that text."""

    async def compare() -> None:
        async with serving(tmp_path / "a") as parts:
            app = build(parts)
            asked = drawn(random.Random(1), ["GET /ping"])
            head = {**asked, "method": "GET", "query": b"", "body": b""}
            head["headers"] = [(b"host", b"a"), (b"x-who", b"amir")]
            raw = f"{PREFIX}/pin".encode() + (b"%67" if mark == b"%" else b"g#")
            status, _, _ = await answered(app, {**head, "raw": raw})
            assert status == (204 if mark == b"%" else 404)

    asyncio.run(compare())
