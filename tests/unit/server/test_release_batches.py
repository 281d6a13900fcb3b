"""Batches: each release is decided by itself, as submitting it alone would."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from samples.served import HEADER, Served, served
from samples.small import POLICY

import modicum as mo
from modicum.api.local.balances import Entry
from modicum.core.errors import UnavailableError
from modicum.server.rate_limits import Rates
from modicum.server.service.threads import ASKING
from modicum.storage.factory import open_store
from modicum.system.clock import SystemClock
from modicum.writer.service import Decider, Limits

PATIENCE = 20.0
ASKED = (
    POLICY
    + """
roles: {privacy-officer: [olga, pavel]}
approvals:
  - {when: 'release.audience == "public"', need: 1, from: [privacy-officer]}
"""
)


def release(
    name: str, sigma: float = 50, data_set: str = "visits", **more: Any
) -> dict[str, Any]:
    return {
        "release": name,
        "dataset": data_set,
        **more,
        "mechanisms": [
            {
                "name": "counts",
                "mechanism": "gaussian",
                "attributes": ["diagnosis"],
                "sensitivity": {"user": {"l2": 1}},
                "sigma": sigma,
            }
        ],
    }


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "policy.yaml").write_text(ASKED)
    path = tmp_path / "ledger.db"
    with served(path, policy=tmp_path / "policy.yaml") as found:
        yield found


def batch(server: Served, who: str, *releases: Any, **more: Any) -> Any:
    return server.post(who, "/releases:batch", {"releases": list(releases)}, **more)


def words(answered: httpx2.Response) -> list[Any]:
    """Return the status or the code of each answer."""
    assert answered.status_code == 200, answered.text
    return [
        one["problem"]["code"] if one["decision"] is None else one["decision"]["status"]
        for one in answered.json()["answers"]
    ]


def entries(server: Served) -> list[dict[str, Any]]:
    found = server.get("olga", "/ledger/entries").json()["entries"]
    assert isinstance(found, list)
    return found


# --- each by itself ------------------------------------------------------------------


def test_each_is_answered_by_itself_and_in_order(server: Served) -> None:
    answered = batch(
        server,
        "ann",
        release("a"),
        release("b", 1),
        release("a"),
        release("a", 51),
        release("c", data_set="labs"),
        release("d", audience="public"),
        {**release("e"), "mechanism": []},
        5,
        release("f"),
    )
    denied = "denied"
    assert words(answered) == [
        *("reserved", denied, "reserved", "MOD703", "MOD832", "MOD604", "MOD102"),
        *("MOD832", "reserved"),
    ]
    answers = answered.json()["answers"]
    assert [one["decision"] is None for one in answers] == [
        one["problem"] is not None for one in answers
    ]
    assert answers[2]["decision"]["retry"] is True
    assert answers[6]["problem"]["line"] == 1
    trace = answered.headers["x-request-id"]
    assert {one["problem"]["trace_id"] for one in answers if one["problem"]} == {trace}


def test_options_are_for_all_of_them(server: Served) -> None:
    query = {"publish": True, "text": True}
    answered = batch(server, "ann", release("a"), release("b"), params=query)
    assert words(answered) == ["published"] * 2
    for one in answered.json()["answers"]:
        assert one["decision"]["losses"]
        assert one["decision"]["text"]["headline"].startswith("ALLOW")
    refused = batch(server, "ann", release("c"), params={"reserve_seconds": 0})
    assert (refused.status_code, refused.json()["code"]) == (400, "MOD840")
    refused = batch(server, "ann", release("c"), params={"reason": "x"})
    assert (refused.status_code, refused.json()["code"]) == (400, "MOD840")


def test_what_somebody_else_reserved_is_not_published(server: Served) -> None:
    assert words(batch(server, "ann", release("hers"))) == ["reserved"]
    query = {"publish": True}
    assert words(
        batch(server, "amir", release("hers"), release("his"), params=query)
    ) == ["MOD832", "published"]


def test_ids_of_hidden_releases_are_only_taken(server: Served) -> None:
    assert words(batch(server, "lee", release("x", data_set="labs"))) == ["reserved"]
    alone = server.post("ann", "/releases", release("x")).json()
    answered = batch(server, "ann", release("x"), release("y"))
    assert words(answered) == ["MOD703", "reserved"]
    problem = answered.json()["answers"][0]["problem"]
    assert problem.pop("trace_id") != alone.pop("trace_id")
    assert problem == alone
    assert "reserved" not in json.dumps(problem)


# --- the form ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"", (400, "MOD840")),
        (b"[]", (400, "MOD840")),
        (b"{}", (400, "MOD840")),
        (b'{"releases": {}}', (400, "MOD840")),
        (b'{"releases": [{}], "publish": true}', (400, "MOD840")),
        (b'{"releases": [{}], "releases": [{}]}', (400, "MOD840")),
        (b'{"releases": [{}]} {"releases": [{}]}', (400, "MOD840")),
        (b'{"releases": [{},]}', (400, "MOD840")),
        (b'{"Releases": [{}]}', (400, "MOD840")),
        (b'{"releases": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", (400, "MOD840")),
        (b'{"releases": [' + b"\xff" + b"]}", (400, "MOD840")),
        (b'{"releases": []}', (422, "MOD106")),
        (b'{"releases": [' + b"{}," * 256 + b"{}]}", (422, "MOD106")),
        (b'{"releases": [' + b" " * 2**20 + b"]}", (413, "MOD005")),
    ],
)
def test_another_form_is_refused_whole(
    server: Served, body: bytes, found: tuple[int, str]
) -> None:
    headers = {HEADER: "ann", "Idempotency-Key": "k"}
    headers["Content-Type"] = "application/json"
    answered = server.client.post(
        "/api/v1/releases:batch", content=body, headers=headers
    )
    assert (answered.status_code, answered.json()["code"]) == found
    assert len(entries(server)) == 1


def test_yaml_is_refused_and_an_escaped_key_is_not(server: Served) -> None:
    headers = {HEADER: "ann", "Idempotency-Key": "k"}
    path = "/api/v1/releases:batch"
    for kind, status in (("application/yaml", 415), ("application/json", 200)):
        headers["Content-Type"] = kind
        content = json.dumps({"releases": [release("a")]}).replace(
            "rel", "r\\u0065l", 1
        )
        assert (
            server.client.post(path, content=content, headers=headers).status_code
            == status
        )


@pytest.mark.parametrize(
    "item",
    [
        b'{"release": "a", "release": "b"}',
        b'{"release": "a", "dataset": "visits", "mechanisms": 1e999}',
        b'{"release": NaN}',
        b'"\xff"',
        b'{"dataset": "visits", "mechanisms": [{"sigma": 1}]}',
    ],
)
def test_a_bad_release_is_refused_as_if_alone(server: Served, item: bytes) -> None:
    headers = {HEADER: "dara", "Content-Type": "application/json"}
    alone = server.client.post(
        "/api/v1/releases", content=item, headers={**headers, "Idempotency-Key": "k"}
    )
    content = b'{"releases": [%s, %s]}' % (item, json.dumps(release("z")).encode())
    answered = server.client.post(
        "/api/v1/releases:batch",
        content=content,
        headers={**headers, "Idempotency-Key": "l"},
    )
    if answered.status_code == 400:  # Not even JSON.
        assert alone.status_code in (400, 422)
        return
    assert words(answered)[1] == "reserved"
    problem = answered.json()["answers"][0]["problem"]
    for one in (problem, expected := alone.json()):
        one.pop("trace_id")
    assert problem == expected


# --- limits --------------------------------------------------------------------------


def test_each_release_counts_for_the_rate(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    rates = Rates(20, clock=lambda: 0.0)
    path = tmp_path / "ledger.db"
    with served(path, policy=tmp_path / "policy.yaml", rates=rates) as server:
        many = [release(f"r-{n}") for n in range(19)]
        assert len(words(batch(server, "ann", *many))) == 19
        refused = batch(server, "ann", release("x"), release("y"))
        assert (refused.status_code, refused.json()["code"]) == (429, "MOD837")
        assert words(batch(server, "amir", *many)) == ["reserved"] * 19
        assert len(entries(server)) == 20


def test_a_queue_without_room_takes_none_of_them(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    path = tmp_path / "ledger.db"
    with served(path, policy=tmp_path / "policy.yaml") as server:
        small = Decider(
            open_store(path, keep_open=True), SystemClock(), limits=Limits(queue=3)
        )
        server.parts.service.releases._decider, kept = (
            small,
            server.parts.service.releases._decider,
        )
        many = [release(f"r-{n}") for n in range(4)]
        refused = batch(server, "ann", *many, key="k")
        assert (refused.status_code, refused.json()["code"]) == (503, "MOD706")
        assert "retry-after" in refused.headers
        assert len(entries(server)) == 1
        assert words(batch(server, "ann", *many[:3])) == ["reserved"] * 3
        server.parts.service.releases._decider = kept
        small.close()


# --- done once -----------------------------------------------------------------------


@pytest.mark.spec("REG-8")
def test_a_repeated_batch_is_answered_as_before(server: Served) -> None:
    many = (release("a"), release("b", 1), release("c", data_set="labs"), release("d"))
    first = batch(server, "ann", *many, key="k")
    assert words(first) == ["reserved", "denied", "MOD832", "reserved"]
    after = entries(server)
    again = batch(server, "ann", *many, key="k")
    replayed = [one["replayed"] for one in again.json()["answers"]]
    assert replayed == [True, True, False, True]
    assert [one["decision"] for one in again.json()["answers"]] == [
        one["decision"] for one in first.json()["answers"]
    ]
    assert entries(server) == after
    # A new key: then it is the id that is known.
    retried = batch(server, "ann", *many).json()["answers"]
    assert [one["decision"] and one["decision"]["retry"] for one in retried] == [
        *(True, False, None, True)
    ]


@pytest.mark.spec("REG-8")
def test_another_request_under_the_key_is_refused_whole(server: Served) -> None:
    first = batch(server, "ann", release("c", data_set="labs"), release("a"), key="k")
    assert words(first) == ["MOD832", "reserved"]
    after = entries(server)
    for other in (
        batch(server, "ann", release("z"), key="k"),
        batch(server, "ann", *(release(f"z-{n}") for n in range(9)), key="k"),
        batch(server, "ann", release("a"), params={"publish": True}, key="k"),
        server.post("ann", "/releases", release("a"), key="k"),
    ):
        assert (other.status_code, other.json()["code"]) == (422, "MOD835")
    assert entries(server) == after
    assert words(batch(server, "amir", release("z"), key="k")) == ["reserved"]
    single = server.post("ann", "/releases", release("b"), key="l")
    assert single.status_code == 200
    assert batch(server, "ann", release("b"), key="l").status_code == 422


class _End(BaseException):
    """The process ends."""


@pytest.mark.spec("REG-8")
def test_a_batch_that_a_process_did_not_end_is_completed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    path = tmp_path / "ledger.db"
    many = [release(f"r-{n}") for n in range(7)]
    with served(path, policy=tmp_path / "policy.yaml") as server:
        dying = Decider(
            open_store(path, keep_open=True), SystemClock(), limits=Limits(batch=3)
        )
        turns, turn = [0], dying._desk._writer._turn

        def ends(*given: Any) -> Any:
            turns[0] += 1
            if turns[0] == 2:
                raise _End
            return turn(*given)

        monkeypatch.setattr(dying._desk._writer, "_turn", ends)
        monkeypatch.setattr(threading, "excepthook", lambda _: None)
        server.parts.service.releases._decider = dying
        lost = batch(server, "ann", *many, key="k")
        assert lost.status_code == 503
        with pytest.raises(UnavailableError):
            dying.submit(release("x"))
        dying.close()
    assert set(mo.open(path).state().releases) == {"r-0", "r-1", "r-2"}
    with served(path) as server:
        done = batch(server, "ann", *many, key="k")
        assert words(done) == ["reserved"] * 7
        replayed = [one["replayed"] for one in done.json()["answers"]]
        assert replayed == [True] * 3 + [False] * 4
        assert not any(one["decision"]["retry"] for one in done.json()["answers"])
        assert len(entries(server)) == 8


# --- beside others -------------------------------------------------------------------


def test_steps_that_wait_for_a_turn_hold_no_thread(server: Served) -> None:
    names = [f"r-{n}" for n in range(ASKING + 4)]
    answered = batch(server, "ann", *(release(name, 5000) for name in names))
    assert words(answered) == ["reserved"] * len(names)
    begun, go_on = threading.Event(), threading.Event()

    def work(_: Entry) -> None:
        begun.set()
        assert go_on.wait(PATIENCE)

    blocked = threading.Thread(target=server.parts.decider.turn, args=(work,))
    blocked.start()
    assert begun.wait(PATIENCE)
    statuses: list[str] = []

    def start(name: str) -> None:
        statuses.append(server.post("ann", f"/releases/{name}:start").json()["status"])

    starting = [threading.Thread(target=start, args=(name,)) for name in names]
    for one in starting:
        one.start()
    until = time.monotonic() + PATIENCE
    while server.parts.decider.waiting < len(names):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert server.post("ann", "/releases:check", release("x")).status_code == 200
    go_on.set()
    for one in (blocked, *starting):
        one.join()
    assert statuses == ["started"] * len(names)
