"""Who studies the ledger for long holds up nobody who checks, or looks something up."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from samples.served import HEADER, Served, served
from samples.small import POLICY

from modicum.core.document import Node
from modicum.policy.lint import warnings
from modicum.server.inputs.body import Body
from modicum.server.service import policies, proposals
from modicum.server.service.threads import (
    ASKING,
    COMPILING_EACH,
    LOOKING,
    STUDYING,
    Threads,
)
from modicum.writer.service import Decider

#: So long a test waits for what must come.
PATIENCE = 60

ASKING_PEOPLE = (
    POLICY
    + """
roles: {privacy-officer: [olga, pavel]}
approvals:
  - {when: 'release.audience == "public"', need: 1, from: [privacy-officer]}
activation: {need: 1, from: [privacy-officer]}
"""
)


def release(name: str, **more: Any) -> dict[str, Any]:
    return {
        "release": name,
        "dataset": "visits",
        **more,
        "mechanisms": [
            {
                "name": "counts",
                "mechanism": "gaussian",
                "attributes": ["age"],
                "sensitivity": {"user": {"l2": 1}},
                "sigma": 5000,
            }
        ],
    }


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "policy.yaml").write_text(ASKING_PEOPLE)
    with served(tmp_path / "ledger.db", policy=tmp_path / "policy.yaml") as found:
        yield found


def send_policy(server: Served, path: str) -> Any:
    return server.client.post(
        f"/api/v1{path}",
        content=ASKING_PEOPLE.replace("budget: 2.0}", "budget: 1.9}", 1),
        headers={HEADER: "olga", "Content-Type": "application/yaml"},
    )


#: What reads the whole log, tries releases, or compares policies.
LONG: dict[str, Callable[[Served], Any]] = {
    "fit": lambda one: one.post("ann", "/releases:fit", release("x")),
    "options": lambda one: one.post("ann", "/releases:options", release("x")),
    "explain": lambda one: one.post(
        "ann", "/releases:check", release("x"), params={"explain": "true"}
    ),
    "weigh": lambda one: send_policy(one, "/policies:weigh"),
    "diff": lambda one: send_policy(one, "/policies:diff"),
    "rules": lambda one: one.get("ann", "/rules"),
    "history": lambda one: one.get(
        "olga", "/rules/history", params={"rule": "global @standard"}
    ),
    "request": lambda one: one.get("olga", "/requests/asked"),
}
#: What must be answered meanwhile.
QUICK: dict[str, Callable[[Served], Any]] = {
    "check": lambda one: one.post("ann", "/releases:check", release("y")),
    "submit": lambda one: one.post("ann", "/releases", release("y")),
    "start": lambda one: one.post("ann", "/releases/there:start"),
    "one": lambda one: one.get("ann", "/releases/there"),
    "page": lambda one: one.get("ann", "/releases"),
    "rule": lambda one: one.get("ann", "/rules/global @standard"),
    "entries": lambda one: one.get("olga", "/ledger/entries"),
    "say": lambda one: one.post(
        "olga",
        "/requests/asked/approvals",
        {"approves": False, "reason": "no"},
        headers={"If-Match": '"' + "0" * 64 + '"'},
    ),
}


@pytest.mark.parametrize("long", sorted(LONG))
def test_a_long_look_holds_up_nobody_who_is_quick(
    server: Served, long: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server.post("ann", "/releases", release("there")).status_code == 200
    written = release("asked", audience="public")
    done = server.post("ann", "/releases", written, params={"reason": "x"})
    assert done.status_code == 202
    started, end = threading.Event(), threading.Event()
    really = Decider.study

    def study(self: Decider, looking: Callable[[Any], Any]) -> Any:
        def slowly(view: Any) -> Any:
            started.set()
            assert end.wait(PATIENCE)
            return looking(view)

        return really(self, slowly)

    monkeypatch.setattr(Decider, "study", study)
    # More of them than there are threads for what is quick; or as many as may wait.
    is_sent = long in ("diff", "weigh")
    many = COMPILING_EACH if is_sent else max(ASKING, LOOKING, STUDYING) + 1
    with ThreadPoolExecutor(many) as others:
        try:
            waiting = [others.submit(LONG[long], server) for _ in range(many)]
            assert started.wait(PATIENCE)
            for name, ask in QUICK.items():
                status = ask(server).status_code
                assert status == (412 if name == "say" else 200), name
            assert not any(one.done() for one in waiting)
        finally:
            end.set()
        assert {one.result().status_code for one in waiting} == {200}


#: What is answered to a policy that is sent, and to the same one again.
SENT = {
    "/policies:lint": {200},
    "/policies:compile": {200},
    "/policies:diff": {200},
    "/policies:weigh": {200},
    "/policies:simulate": {202},
    "/policies?reason=x": {200, 409},
    "/policies:activate?reason=x": {403, 409},
}


@pytest.mark.parametrize("path", SENT)
def test_one_identity_has_one_policy_compiled_at_a_time(
    server: Served, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = policies.compiled_body
    under_way: list[int] = []
    started, end = threading.Event(), threading.Event()
    now, guard = Counter[str](), threading.Lock()

    def slowly(body: Body, node: Node) -> Any:
        whose = "pavel" if b"budget: 1.8}" in body.text else "olga"
        with guard:
            now[whose] += 1
            under_way.append(now[whose])
        try:
            if whose == "olga":
                started.set()
                assert end.wait(PATIENCE)
            return really(body, node)
        finally:
            with guard:
                now[whose] -= 1

    for module in (policies, policies, proposals):
        monkeypatch.setattr(module, "compiled_body", slowly)

    def send(who: str, budget: str) -> int:
        text = ASKING_PEOPLE.replace("budget: 2.0}", f"budget: {budget}}}", 1)
        headers = {
            HEADER: who,
            "Content-Type": "application/yaml",
            "Idempotency-Key": f"key-{next(keys)}",
            "If-Match": tag,
        }
        status: int = server.client.post(
            f"/api/v1{path}", content=text, headers=headers
        ).status_code
        return status

    tag, keys = server.get("olga", "/policies").headers["etag"], count()
    with ThreadPoolExecutor(STUDYING + 2) as others:
        try:
            waiting = [others.submit(send, "olga", "1.9") for _ in range(STUDYING + 1)]
            assert started.wait(PATIENCE)
            # More of hers wait than there are threads, and others are not behind them.
            assert send("pavel", "1.8") in SENT[path]
            assert not any(one.done() for one in waiting)
        finally:
            end.set()
        assert {one.result() for one in waiting} <= SENT[path]
    assert set(under_way) == {1}


def test_few_policies_of_one_identity_stand_in_line(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, end = threading.Semaphore(0), threading.Event()
    really = Threads.ponder

    async def slowly(self: Threads, work: Callable[[], Any]) -> Any:
        started.release()
        assert await asyncio.to_thread(end.wait, PATIENCE)
        return await really(self, work)

    monkeypatch.setattr(Threads, "ponder", slowly)
    threads = server.parts.service.threads
    with ThreadPoolExecutor(COMPILING_EACH) as others:
        try:
            waiting = [
                others.submit(send_policy, server, "/policies:lint")
                for _ in range(COMPILING_EACH)
            ]
            assert started.acquire(timeout=PATIENCE)
            until = time.monotonic() + PATIENCE
            while threads._compiling._lines["olga"].length < COMPILING_EACH:
                assert time.monotonic() < until
                time.sleep(0.01)
            refused = send_policy(server, "/policies:lint")
            assert (refused.status_code, refused.json()["code"]) == (429, "MOD837")
            assert int(refused.headers["retry-after"]) >= 0
            assert server.get("olga", "/me").status_code == 200
        finally:
            end.set()
        assert {one.result().status_code for one in waiting} == {200}
    assert threads._compiling._lines == {}
    assert send_policy(server, "/policies:lint").status_code == 200


@pytest.mark.parametrize("path", ["lint", "compile"])
def test_warnings_are_found_beside_the_loop_that_serves(
    server: Served, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[bool] = []
    usual = warnings.warnings_of

    def noted(*given: Any) -> Any:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            found.append(True)
        else:
            found.append(False)
        return usual(*given)

    monkeypatch.setattr(warnings, "warnings_of", noted)
    assert send_policy(server, f"/policies:{path}").status_code == 200
    assert found == [True]
