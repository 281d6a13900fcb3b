"""Rounds over HTTP: opened, planned, and plans committed as by a workspace."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from samples.jobs import finished
from samples.served import HEADER, Served, served
from samples.shapes import exactly
from samples.small import POLICY

import modicum as mo
from modicum.api.local.plans.plan import read_plan
from modicum.api.schema.plan import (
    CommittedPlan,
    OpenedRound,
    PlanItem,
    RoundDetails,
    RoundList,
)
from modicum.ledger import decide
from modicum.ops.files.requests import load
from modicum.planner.ledger_round import plan as planned

pytestmark = pytest.mark.filterwarnings("error")

LINES = {"Content-Type": "application/x-ndjson"}


def wish(name: str, sigma: float = 20, data_set: str = "visits") -> dict[str, Any]:
    return {
        "release": name,
        "dataset": data_set,
        "utility": 3,
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


#: More than there is room for.
WISHES = [wish(f"w{number}", 10 + number) for number in range(8)]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path / "ledger.db"


@pytest.fixture
def server(ledger: Path) -> Iterator[Served]:
    with served(ledger, policy=ledger.parent / "policy.yaml") as found:
        yield found


def opened(server: Served, name: str = "q1") -> str:
    answered = server.post("petra", "/rounds", {"round": name})
    assert answered.status_code == 200, answered.text
    return name


def made(server: Served, requests: Any = WISHES, **params: str) -> dict[str, Any]:
    began = server.post("petra", "/rounds/q1/plan", requests, params=params)
    job = finished(server, "petra", began)
    assert job["state"] == "done", job
    plan: dict[str, Any] = job["result"]
    return plan


def committed(
    server: Served, plan: dict[str, Any], key: str | None = None, head: str = ""
) -> Any:
    tag = {"If-Match": f'"{head or plan["ledger"]["head"]}"'}
    return server.post("petra", "/plans:commit", plan, key=key, headers=tag)


def test_a_round_is_opened_and_told(server: Served, ledger: Path) -> None:
    assert server.get("ann", "/rounds").json() == {"rounds": []}
    first = server.post(
        "petra", "/rounds", {"round": "spring/1", "unlocked": {"user": 0.25}}
    )
    exactly(OpenedRound, first.json())
    assert first.json()["unlocked"] == {"user": 0.25}
    second = server.post("petra", "/rounds", {})
    assert second.json()["round"] == "round-2"
    listed = server.get("ann", "/rounds").json()
    exactly(RoundList, listed)
    assert [(one["round"], one["open"]) for one in listed["rounds"]] == [
        ("spring/1", False),
        ("round-2", True),
    ]
    for one in listed["rounds"]:
        document = server.get("ann", f"/rounds/{one['round']}").json()
        exactly(RoundDetails, document)
        assert {key: document[key] for key in one} == one
        assert (document["active"] is None) is (not one["open"])
    assert server.get("ann", "/rounds/odd").status_code == 404
    actors = [one.payload for one in mo.open(ledger).records()]
    assert sum(b'"petra"' in one for one in actors) == 2


def test_opening_a_round_is_done_once(server: Served) -> None:
    first = server.post("petra", "/rounds", {}, key="k")
    again = server.post("petra", "/rounds", {}, key="k")
    assert again.content == first.content
    assert again.headers["idempotency-replayed"] == "true"
    other = server.post("petra", "/rounds", {"round": "x"}, key="k")
    assert (other.status_code, other.json()["code"]) == (422, "MOD835")
    assert len(server.get("ann", "/rounds").json()["rounds"]) == 1


@pytest.mark.parametrize(
    ("document", "status"),
    [
        ({"unlocked": {"user": 1.5}}, 422),
        ({"unlocked": {"nobody": 0.5}}, 422),
        ({"unlocked": 3}, 422),
        ({"round": ""}, 422),
        ({"odd": 1}, 422),
        ({"round": "q0"}, 409),
        ({"unlocked": {"user": 0.125}}, 409),
    ],
)
def test_a_round_that_cannot_be_opened(
    server: Served, document: dict[str, Any], status: int
) -> None:
    first = {"round": "q0", "unlocked": {"user": 0.25}}
    assert server.post("petra", "/rounds", first).status_code == 200
    opened(server, "q1")
    assert server.post("petra", "/rounds", document).status_code == status
    assert len(server.get("ann", "/rounds").json()["rounds"]) == 2


def test_the_policy_says_who_opens_rounds(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(
        POLICY
        + "population: {groups: {immutable: [user]}}\n"
        + "roles: {planner: [olga]}\n"
        + "rotation: {active: 3, opened_by: [planner]}\n"
    )
    with served(tmp_path / "l.db", policy=tmp_path / "policy.yaml") as server:
        refused = server.post("petra", "/rounds", {})
        assert (refused.status_code, refused.json()["code"]) == (403, "MOD604")
        assert server.post("olga", "/rounds", {}).status_code == 200


def test_a_plan_is_the_one_that_a_workspace_makes(server: Served, ledger: Path) -> None:
    opened(server)
    document = made(server)
    requests = ledger.parent / "wishes.jsonl"
    lines = "".join(json.dumps(one) + "\n" for one in WISHES)
    requests.write_text(lines)
    space = mo.open(ledger, actor="petra")
    expected = space.rounds.plan(load(requests, policy=space.policy()))
    assert document == json.loads(json.dumps(expected.to_dict()))
    assert 0 < len(document["accepted"]) < len(WISHES)
    began = server.post(
        "petra", "/rounds/q1/plan", headers=LINES, content=lines, params={}
    )
    assert finished(server, "petra", began)["result"] == document
    other = made(server, solver="fcfs")
    assert other["solver"] == "fcfs"
    assert server.get("ann", "/releases").json()["releases"] == []
    assert space.state().planning.plans == {}


def test_a_plan_is_committed_once(server: Served, ledger: Path) -> None:
    opened(server)
    plan = made(server)
    first = committed(server, plan, key="k")
    assert first.status_code == 200, first.text
    exactly(CommittedPlan, first.json())
    assert first.json()["releases"] == plan["accepted"]
    again = committed(server, plan, key="k")
    assert again.content == first.content
    assert again.headers["idempotency-replayed"] == "true"
    server.post("ann", "/releases", wish("later", 500))
    late = committed(server, plan, key="k")
    assert late.content == first.content
    anew = committed(server, plan)
    assert anew.json()["releases"] == plan["accepted"]
    planned = [*mo.open(ledger).state().planning.plans.values()]
    assert [one.releases for one in planned] == [tuple(plan["accepted"])]
    document = server.get("amir", f"/plans/{plan['plan']}").json()
    exactly(PlanItem, document)
    assert (document["releases"], document["hidden"]) == (plan["accepted"], 0)
    rounds = server.get("ann", "/rounds").json()["rounds"]
    assert rounds[0]["plans"] == [plan["plan"]]


def test_a_key_of_another_plan_commits_nothing(server: Served, ledger: Path) -> None:
    opened(server)
    plan, other = made(server), made(server, WISHES[:2])
    assert committed(server, other, key="k").status_code == 200
    refused = committed(server, plan, key="k")
    assert (refused.status_code, refused.json()["code"]) == (422, "MOD835")
    assert len(mo.open(ledger).state().planning.plans) == 1


def test_a_stale_plan_reserves_nothing(server: Served, ledger: Path) -> None:
    opened(server)
    plan = made(server)
    server.post("ann", "/releases", wish("meanwhile", 500))
    now = server.get("ann", "/ledger/head").json()["head"]
    for head in ("", now, "0" * 64):
        refused = committed(server, plan, head=head)
        assert refused.status_code == 412
    assert committed(server, plan, head="").json()["code"] == "MOD802"
    bare = server.post("petra", "/plans:commit", plan)
    assert (bare.status_code, bare.json()["code"]) == (428, "MOD834")
    state = mo.open(ledger).state()
    assert (len(state.releases), len(state.planning.plans)) == (1, 0)


def test_a_plan_of_another_head_than_is_meant_reserves_nothing(
    server: Served, ledger: Path
) -> None:
    opened(server)
    plan = made(server)
    refused = committed(server, plan, head="0" * 64)
    assert (refused.status_code, refused.json()["code"]) == (412, "MOD836")
    assert len(mo.open(ledger).state().releases) == 0
    assert committed(server, plan).status_code == 200


def test_a_plan_that_was_changed_is_refused(server: Served, ledger: Path) -> None:
    opened(server)
    plan = made(server)
    longer = {**plan, "accepted": [*plan["accepted"], "w7"]}
    assert read_plan(plan).id == plan["plan"]
    assert committed(server, longer).status_code == 409
    assert committed(server, {**plan, "round": "q0"}).status_code == 409
    missing = {key: value for key, value in plan.items() if key != "content"}
    assert committed(server, missing).status_code == 422
    assert len(mo.open(ledger).state().releases) == 0


def test_a_plan_is_for_the_round_that_is_open(server: Served) -> None:
    opened(server, "q0")
    opened(server, "q1")
    closed = server.post("petra", "/rounds/q0/plan", WISHES)
    assert (closed.status_code, closed.json()["code"]) == (409, "MOD801")
    assert server.post("petra", "/rounds/odd/plan", WISHES).status_code == 404
    mistaken = server.post("petra", "/rounds/q1/plan", [{**wish("x"), "odd": 1}])
    assert mistaken.status_code == 422
    nothing = server.post("petra", "/rounds/q1/plan", [])
    assert (nothing.status_code, nothing.json()["code"]) == (400, "MOD007")
    odd = server.post("petra", "/rounds/q1/plan", WISHES, params={"solver": "luck"})
    assert odd.status_code in (400, 422)
    assert server.get("petra", "/jobs").json()["jobs"] == []


def test_releases_of_other_data_sets_are_only_counted(server: Served) -> None:
    opened(server)
    both = [wish("anns", 30), wish("lees", 30, "labs")]
    plan = made(server, both)
    assert {*plan["accepted"]} == {"anns", "lees"}
    assert committed(server, plan).status_code == 200
    for who, seen in (("ann", ["anns"]), ("lee", ["lees"])):
        for document in (
            server.get(who, "/plans").json()["plans"][0],
            server.get(who, f"/plans/{plan['plan']}").json(),
        ):
            assert (document["releases"], document["hidden"]) == (seen, 1)
    assert server.get("ann", "/plans/plan-000000000000").status_code == 404


def test_who_plans_and_who_commits(server: Served) -> None:
    opened(server)
    plan = made(server)
    head = {"If-Match": f'"{plan["ledger"]["head"]}"'}
    for who in ("ann", "amir", "audra", "root"):
        assert server.post(who, "/rounds", {}).status_code == 403
        assert server.post(who, "/rounds/q1/plan", WISHES).status_code == 403
    for who in ("ann", "amir", "audra", "root", "dara"):
        refused = server.post(who, "/plans:commit", plan, headers=head)
        assert (refused.status_code, refused.json()["code"]) == (403, "MOD832")
    assert server.get("root", "/rounds").status_code == 403
    assert committed(server, plan).status_code == 200


def test_a_plan_that_nobody_waits_for_ends_at_its_next_step(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(server)
    started, end = threading.Event(), threading.Event()
    decided = []
    really = decide

    def slowly(*given: Any) -> Any:
        decided.append(given)
        started.set()
        assert end.wait(60)
        return really(*given)

    monkeypatch.setattr(planned, "decide", slowly)
    answered = server.post("petra", "/rounds/q1/plan", WISHES)
    path = f"/api/v1/jobs/{answered.json()['job']}"
    assert started.wait(60)
    given_up = server.client.delete(path, headers={HEADER: "petra"})
    assert (given_up.status_code, given_up.json()["state"]) == (200, "running")
    end.set()
    job = finished(server, "petra", answered)
    assert (job["state"], len(decided)) == ("cancelled", 1)
