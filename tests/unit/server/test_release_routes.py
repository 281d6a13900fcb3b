"""Releases over HTTP: decided as by a workspace, hidden from whom they are not for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from samples.served import Served, served
from samples.small import POLICY

import modicum as mo
from modicum.api.local.alternatives import trials
from modicum.api.local.explanation.remedies import ENDED_EARLY

pytestmark = pytest.mark.filterwarnings("error")


def release(name: str, sigma: float = 50, data_set: str = "visits") -> dict[str, Any]:
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
def ledger(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path / "ledger.db"


@pytest.fixture
def server(ledger: Path) -> Iterator[Served]:
    with served(ledger, policy=ledger.parent / "policy.yaml") as found:
        yield found


def test_what_is_answered_is_what_a_workspace_answers(
    server: Served, ledger: Path
) -> None:
    for sigma in (50, 6.5, 1):
        one = release(f"r-{sigma}", sigma)
        decision = mo.open(ledger, actor="ann").check(one)
        for result in ("none", "denying", "all"):
            expected = decision.to_dict(losses=result)
            query = {"losses": result}
            answered = server.post("ann", "/releases:check", one, params=query)
            assert answered.status_code == 200
            assert answered.json() == expected
        brief = server.post("ann", "/releases:check", one)
        assert brief.json() == decision.to_dict(losses="none")
        assert brief.json()["losses"] is None
        assert brief.headers["etag"] == f'"{decision.head}"'


def test_a_release_lives_and_its_story_is_told(server: Served, ledger: Path) -> None:
    first = server.post("ann", "/releases", release("life"))
    assert (first.status_code, first.json()["status"]) == (200, "reserved")
    again = server.post("ann", "/releases", release("life"))
    assert again.json()["retry"] is True
    assert server.post("ann", "/releases/life:start").json()["status"] == "started"
    assert server.post("ann", "/releases/life:post").json()["status"] == "published"
    result = server.get("ann", "/releases/life").json()
    assert [(one["kind"], one["actor"]) for one in result["story"]] == [
        ("release-reserved", "ann"),
        ("release-started", "ann"),
        ("release-posted", "ann"),
    ]
    assert mo.open(ledger).standing("life").status.value == "published"


def test_a_denial_is_an_answer(server: Served) -> None:
    denied = server.post("ann", "/releases", release("much", 0.5))
    assert denied.status_code == 200
    assert (denied.json()["decision"], denied.json()["status"]) == ("deny", "denied")
    assert denied.json()["blocking"]


def test_other_contents_of_an_id_conflict(server: Served) -> None:
    server.post("ann", "/releases", release("same"))
    other = server.post("ann", "/releases", release("same", 60))
    assert (other.status_code, other.json()["code"]) == (409, "MOD703")


def test_a_mistake_is_told_with_its_place(server: Served) -> None:
    text = '{"release": "r", "dataset": "visits",\n "mechanisms": [{"nmae": "x"}]}'
    answered = server.client.post(
        "/api/v1/releases:check",
        content=text,
        headers={"X-Who": "ann", "Content-Type": "application/json"},
    )
    problem = answered.json()
    assert answered.status_code == 422
    assert answered.headers["content-type"] == "application/problem+json"
    assert (problem["code"], problem["line"]) == ("MOD102", 2)
    assert problem["column"] == text.splitlines()[1].index('"nmae"') + 1


# --- keys -----------------------------------------------------------------------------


def test_a_step_without_a_key_is_not_taken(server: Served) -> None:
    answered = server.client.post(
        "/api/v1/releases", json=release("keyless"), headers={"X-Who": "ann"}
    )
    assert (answered.status_code, answered.json()["code"]) == (428, "MOD834")
    assert server.get("ann", "/releases/keyless").status_code == 404


def test_a_repeated_request_hears_the_same(server: Served) -> None:
    first = server.post("ann", "/releases", release("once"), key="k1")
    server.post("ann", "/releases", release("between"))
    again = server.post("ann", "/releases", release("once"), key="k1")
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert again.content == first.content
    assert again.headers["etag"] == first.headers["etag"]
    started = server.post("ann", "/releases/once:start", key="k2")
    restarted = server.post("ann", "/releases/once:start", key="k2")
    assert restarted.content == started.content
    assert restarted.headers["idempotency-replayed"] == "true"
    assert server.post("ann", "/releases/once:start").status_code == 409


def test_a_key_is_for_one_request(server: Served) -> None:
    server.post("ann", "/releases", release("one"), key="k")
    for answered in (
        server.post("ann", "/releases", release("two"), key="k"),
        server.post(
            "ann", "/releases", release("one"), key="k", params={"publish": "1"}
        ),
        server.post("ann", "/releases/one:start", key="k"),
    ):
        assert (answered.status_code, answered.json()["code"]) == (422, "MOD835")
    assert server.get("ann", "/releases/one").json()["status"] == "reserved"
    assert server.get("ann", "/releases/two").status_code == 404


def test_two_people_may_choose_the_same_key(server: Served) -> None:
    one = server.post("ann", "/releases", release("anns"), key="k")
    other = server.post("amir", "/releases", release("amirs"), key="k")
    assert (one.status_code, other.status_code) == (200, 200)
    assert other.json()["release"] == "amirs"


# --- what is for whom -----------------------------------------------------------------


def test_a_release_of_another_data_set_is_not_there(server: Served) -> None:
    server.post("ann", "/releases", release("hers"))
    unknown = server.get("lee", "/releases/unknown")
    hidden = server.get("lee", "/releases/hers")
    assert hidden.status_code == unknown.status_code == 404
    details = [one.json()["detail"] for one in (hidden, unknown)]
    assert details[0].replace("`hers`", "") == details[1].replace("`unknown`", "")
    for step in ("start", "post"):
        assert server.post("lee", f"/releases/hers:{step}").status_code == 404
    assert (
        server.post("lee", "/releases/hers:void", {"reason": "no"}).status_code == 404
    )
    assert server.get("lee", "/releases").json()["releases"] == []
    assert len(server.get("ann", "/releases").json()["releases"]) == 1


@pytest.mark.parametrize("path", ["/releases", "/releases:check"])
def test_nobody_asks_for_other_data_sets(server: Served, path: str) -> None:
    for one in (
        release("labs", data_set="labs"),
        {key: value for key, value in release("all").items() if key != "dataset"},
        {**release("odd"), "dataset": ["visits"]},
    ):
        answered = server.post("ann", path, one)
        assert (answered.status_code, answered.json()["code"]) == (403, "MOD832")


def test_an_analyst_carries_out_only_their_own(server: Served) -> None:
    server.post("ann", "/releases", release("anns"))
    refused = server.post("amir", "/releases/anns:start")
    assert (refused.status_code, refused.json()["code"]) == (403, "MOD832")
    assert server.post("dara", "/releases/anns:start").status_code == 200


def test_nobody_says_that_somebody_elses_release_is_out(server: Served) -> None:
    server.post("ann", "/releases", release("anns"))
    refused = server.post("amir", "/releases", release("anns"), params={"publish": "1"})
    assert (refused.status_code, refused.json()["code"]) == (403, "MOD832")
    assert server.get("ann", "/releases/anns").json()["status"] == "reserved"
    own = server.post("ann", "/releases", release("anns"), params={"publish": "1"})
    assert own.json()["status"] == "published"
    server.post("ann", "/releases", release("other"))
    steward = server.post("dara", "/releases:record-past", release("other"))
    assert steward.json()["status"] == "published"


def test_who_filled_a_cell_is_hidden_from_other_data_sets(server: Served) -> None:
    spent = server.post("ann", "/releases", release("secret-study", 5.5))
    assert spent.json()["decision"] == "allow"
    wanted = release("mine", 5.5, "labs")
    query = {"explain": "true"}
    mine = server.post("lee", "/releases:check", wanted, params=query)
    all_of_it = server.post("amir", "/releases:check", wanted, params=query)
    assert mine.json()["decision"] == "deny"
    assert "secret-study" in all_of_it.text
    assert "secret-study" not in mine.text
    assert "(another data set)" in mine.text
    rule = mine.json()["blocking"][0]
    for who, result in (("lee", False), ("amir", True)):
        history = server.get(who, "/rules/history", params={"rule": rule})
        assert ("secret-study" in history.text) is result


def test_pages_go_on_where_they_ended(server: Served) -> None:
    names = [f"p-{number}" for number in range(7)]
    for name in names:
        server.post("ann", "/releases", release(name, 500))
    found: list[str] = []
    cursor = ""
    for _ in range(10):
        page = server.get(
            "ann", "/releases", params={"limit": 3, "cursor": cursor}
        ).json()
        found += [one["release"] for one in page["releases"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert found == names
    assert server.get("ann", "/releases", params={"cursor": "xx"}).status_code == 400
    wrong = server.get("audra", "/ledger/entries", params={"limit": 1}).json()["next"]
    assert server.get("ann", "/releases", params={"cursor": wrong}).status_code == 400


def test_a_loop_of_the_same_denial_adds_one_entry(server: Served, ledger: Path) -> None:
    first = server.post("ann", "/releases", release("much", 0.5))
    seq = first.json()["ledger"]["seq"] + 1
    for _ in range(3):
        again = server.post("ann", "/releases", release("much", 0.5))
        assert (again.status_code, again.json()["decision"]) == (200, "deny")
        assert again.json()["blocking"] == first.json()["blocking"]
        assert any(f"entry {seq};" in one for one in again.json()["notices"])
    assert mo.open(ledger).state().seq == seq
    # Somebody else's, and what was denied on other balances, is told again.
    server.post("amir", "/releases", release("much", 0.5))
    server.post("amir", "/releases", release("small", 500))
    server.post("amir", "/releases", release("much", 0.5))
    assert mo.open(ledger).state().denials == 3


def test_a_search_that_ended_early_says_so(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    loud = release("loud", 1)
    whole = server.post("ann", "/releases:options", loud).json()
    assert (whole["ended_early"], len(whole["options"]) > 0) == (False, True)
    assert server.post("ann", "/releases:fit", loud).json()["ended_early"] is False
    monkeypatch.setattr(trials, "WORK_MAX", 3)
    early = server.post("ann", "/releases:options", loud).json()
    assert (early["ended_early"], early["options"]) == (True, [])
    fit = server.post("ann", "/releases:fit", loud).json()
    assert (fit["ended_early"], fit["found"]) == (True, False)
    assert fit["why"] == [ENDED_EARLY]
    query = {"explain": "true"}
    result = server.post("ann", "/releases:check", loud, params=query).json()
    assert result["explanation"]["fit"]["why"] == [ENDED_EARLY]
