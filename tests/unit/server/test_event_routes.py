"""Streams of events: of jobs, and of what is added to the log."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from samples.jobs import PATIENCE, events_of
from samples.served import PEOPLE, ByHeader, Served, served
from samples.shapes import exactly
from samples.small import POLICY
from starlette.requests import Request

from modicum.api.permissions.actions import Action, Role
from modicum.api.permissions.identity import ALL, Identity
from modicum.api.schema.job import JobItem
from modicum.core.errors import Code, Problem, UnavailableError
from modicum.server.auth.authentication import Recognizing
from modicum.server.event_streams import STREAMS_EACH
from modicum.server.service.jobs import Report

pytestmark = pytest.mark.filterwarnings("error")

STREAM = "/api/v1/events"
AUDRA = Identity("audra", {Role.AUDITOR: frozenset({ALL})})


def release(name: str, data_set: str = "visits", sigma: float = 500) -> dict[str, Any]:
    return {
        "release": name,
        "dataset": data_set,
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
    (tmp_path / "policy.yaml").write_text(POLICY)
    ledger = tmp_path / "ledger.db"
    with served(ledger, policy=tmp_path / "policy.yaml") as found:
        yield found


def stream(server: Served, who: str, path: str, **headers: str) -> Any:
    given = {key.replace("_", "-"): value for key, value in headers.items()}
    return server.client.stream(
        "GET", f"/api/v1{path}", headers={"X-Who": who, **given}
    )


def heard(server: Served, who: str, last: int, count: int) -> list[Any]:
    """Return the first events after one that somebody saw."""
    with stream(server, who, "/events", Last_Event_ID=str(last)) as answered:
        found = events_of(answered.iter_lines())
        return [next(found) for _ in range(count)]


def test_a_job_is_watched_until_it_is_over(server: Served) -> None:
    end = threading.Event()

    def work(report: Report) -> object:
        report(0.5)
        assert end.wait(PATIENCE)
        return {"secret": 1}

    jobs = server.parts.service.jobs
    job = jobs.begin(AUDRA, Action.READ_LEDGER, "test", work)
    with stream(server, "audra", f"/jobs/{job.id}/events") as answered:
        assert answered.headers["content-type"].startswith("text/event-stream")
        seen = []
        for kind, data, identifier in events_of(answered.iter_lines()):
            exactly(JobItem, data)
            seen.append((kind, data["state"], data["progress"], identifier))
            if data["progress"] == 0.5:
                end.set()
    assert {one[0] for one in seen} == {"job"}
    assert seen[-1][1:3] == ("done", 1.0)
    versions = [int(one[3] or 0) for one in seen]
    assert versions == sorted({*versions})
    path = f"/jobs/{job.id}/events"
    with stream(server, "audra", path, Last_Event_ID=str(versions[-1])) as again:
        assert [*events_of(again.iter_lines())] == []
    with stream(server, "audra", path, Last_Event_ID="1") as late:
        (only,) = events_of(late.iter_lines())
        assert only[1]["state"] == "done"


def test_a_job_is_given_up_over_http(server: Served) -> None:
    started = threading.Event()

    def work(report: Report) -> object:
        started.set()
        while True:
            report(0.1)

    job = server.parts.service.jobs.begin(AUDRA, Action.READ_LEDGER, "test", work)
    assert started.wait(PATIENCE)
    own = {"X-Who": "audra"}
    assert (
        server.client.delete(f"/api/v1/jobs/{job.id}", headers=own).status_code == 200
    )
    with stream(server, "audra", f"/jobs/{job.id}/events") as answered:
        *_, last = events_of(answered.iter_lines())
    assert last[1]["state"] == "cancelled"


def test_who_reads_the_ledger_hears_of_every_entry(server: Served) -> None:
    with stream(server, "audra", "/events") as answered:
        lines = answered.iter_lines()
        assert next(lines).startswith(":")
        server.post("ann", "/releases", release("anns"))
        server.post("lee", "/releases", release("lees", "labs"))
        found = events_of(lines)
        result = [next(found) for _ in range(2)]
    assert [kind for kind, _, _ in result] == ["entry", "entry"]
    assert [identifier for _, _, identifier in result] == ["2", "3"]
    for _, data, identifier in result:
        entry = server.get("audra", f"/ledger/entries/{identifier}").json()
        assert data == {
            "seq": entry["seq"],
            "head": entry["hash"],
            "kind": "release-reserved",
        }


def test_who_comes_back_misses_nothing(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("modicum.server.service.events._AT_ONCE", 2)
    for number in range(7):
        server.post("ann", "/releases", release(f"r{number}"))
    for last in range(8):
        result = heard(server, "audra", last, 8 - last)
        assert [data["seq"] for _, data, _ in result] == [*range(last + 1, 9)]
    odd = server.client.get(
        "/api/v1/events", headers={"X-Who": "audra", "Last-Event-ID": "-1"}
    )
    assert odd.status_code == 400


def test_others_hear_of_their_own_releases_only(server: Served) -> None:
    server.post("ann", "/releases", release("anns"))  # 2
    server.post("lee", "/releases", release("lees", "labs"))  # 3
    server.post("amir", "/releases", release("amirs"))  # 4
    server.post("dara", "/releases/anns:start")  # 5
    server.post("dara", "/releases/lees:start")  # 6
    server.post("ann", "/releases", release("much", sigma=0.5))  # 7: denied
    server.post("ann", "/releases/anns:post")  # 8
    server.post("lee", "/releases/lees:post")  # 9
    expected = {
        "ann": [
            (2, "release-reserved", "anns"),
            (5, "release-started", "anns"),
            (7, "release-denied", "much"),
            (8, "release-posted", "anns"),
        ],
        "lee": [
            (3, "release-reserved", "lees"),
            (6, "release-started", "lees"),
            (9, "release-posted", "lees"),
        ],
        "amir": [(4, "release-reserved", "amirs")],
    }
    for who, entries in expected.items():
        # What comes after the last one is theirs, too: nothing else is in between.
        own = f"{who}-last"
        data_set = "labs" if who == "lee" else "visits"
        server.post(who, "/releases", release(own, data_set))
        result = heard(server, who, 0, len(entries) + 1)
        found = [(one["seq"], one["kind"], one["release"]) for _, one, _ in result]
        assert found[:-1] == entries
        assert found[-1][2] == own
    assert server.get("root", "/events").status_code == 403


def test_own_jobs_are_told_beside_entries(server: Served) -> None:
    with stream(server, "audra", "/events") as answered:
        lines = answered.iter_lines()
        assert next(lines).startswith(":")
        server.post("olga", "/ledger:verify")
        began = server.post("audra", "/ledger:verify")
        for kind, data, identifier in events_of(lines):
            assert (kind, identifier) == ("job", None)
            assert data["job"] == began.json()["job"]
            if data["state"] == "done":
                break


def test_so_many_streams_are_open(server: Served) -> None:
    with ExitStack() as open_ones:
        kept = []
        for _ in range(STREAMS_EACH):
            one = open_ones.enter_context(stream(server, "audra", "/events"))
            kept.append(one.iter_lines())
            assert one.status_code == 200
            next(kept[-1])
        with stream(server, "audra", "/events") as refused:
            assert refused.status_code == 429
        with stream(server, "olga", "/events") as other:
            assert other.status_code == 200
    until = time.monotonic() + PATIENCE
    while True:  # They are free again once the server saw that nobody listens.
        with stream(server, "audra", "/events") as again:
            if again.status_code == 200:
                break
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("path", ["/events", "/jobs/{}/events"])
@pytest.mark.parametrize("change", ["revoked", "other rights", "unknown now"])
def test_streams_end_with_the_rights_of_their_listener(
    server: Served, path: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("modicum.server.auth.authentication.STANDING_SECONDS", 0.0)
    people = dict(PEOPLE)
    server.parts.recognizing = Recognizing([ByHeader(people)])
    end = threading.Event()
    job = server.parts.service.jobs.begin(
        AUDRA, Action.READ_LEDGER, "test", lambda _: end.wait(PATIENCE)
    )
    try:
        with stream(server, "audra", path.format(job.id)) as answered:
            lines = answered.iter_lines()
            found = events_of(lines)
            if path == "/events":
                next(lines)
                server.post("ann", "/releases", release("first"))
            assert next(found)[0] == ("entry" if path == "/events" else "job")
            if change == "revoked":
                del people["audra"]
            elif change == "other rights":
                people["audra"] = {Role.AUDITOR: frozenset({"visits"})}
            else:
                monkeypatch.setattr(Recognizing, "identify", _cannot_tell)
            # It is still being worked on, and neither the server nor time ends it.
            assert [*found] == []
    finally:
        end.set()


async def _cannot_tell(*_: object) -> Identity:
    raise UnavailableError(Problem(Code.PROVIDER_FAILED, "not now"))


def test_a_listener_is_looked_at_every_few_seconds_only(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[object] = []
    known = Recognizing.identify

    async def noted(self: Recognizing, request: Request) -> Identity:
        sent.append(request)
        return await known(self, request)

    monkeypatch.setattr(
        "modicum.server.auth.authentication.STANDING_SECONDS", PATIENCE * 10
    )
    monkeypatch.setattr(Recognizing, "identify", noted)
    with stream(server, "audra", "/events") as answered:
        lines = answered.iter_lines()
        next(lines)
        for number in range(3):
            server.post("ann", "/releases", release(f"r{number}"))
            next(events_of(lines))
    assert sum(STREAM in str(one) for one in map(_path, sent)) == 1


def _path(request: object) -> str:
    assert isinstance(request, Request)
    return request.url.path


def test_streams_end_when_the_server_is_about_to(server: Served) -> None:
    with stream(server, "audra", "/events") as answered:
        lines = answered.iter_lines()
        next(lines)
        server.parts.is_leaving = True
        assert [*events_of(lines)] == []
