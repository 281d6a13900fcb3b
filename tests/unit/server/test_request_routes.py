"""Requests and proposals over HTTP: who is asked, who may speak, and about what."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from samples.served import ALL_SETS, PEOPLE, Served, served
from samples.small import POLICY

import modicum as mo
from modicum.api.permissions.actions import Role
from modicum.release import price_cache
from modicum.storage.proofs.signing_keys import SigningKey, make_key

ASKING = (
    POLICY
    + """
roles:
  privacy-officer: [olga, pavel]
  data-steward: [dara]
approvals:
  - {when: 'release.audience == "public"', need: 2, from: [privacy-officer]}
activation: {need: 1, from: [privacy-officer]}
"""
)


def release(name: str, sigma: float = 50, data_set: str = "visits") -> dict[str, Any]:
    return {
        "release": name,
        "dataset": data_set,
        "audience": "public",
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
    (tmp_path / "policy.yaml").write_text(ASKING)
    return tmp_path / "ledger.db"


@pytest.fixture
def server(ledger: Path) -> Iterator[Served]:
    people = {**PEOPLE, "both": {Role.PRIVACY_OFFICER: ALL_SETS}}
    policy = ledger.parent / "policy.yaml"
    with served(ledger, policy=policy, people=people) as found:
        yield found


def test_a_request_is_priced_before_its_turn(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some releases take minutes to price, and every other decision waits for turns."""
    pricing: list[str] = []
    exact = price_cache.read_and_price

    def noted(*given: Any) -> Any:
        pricing.append(threading.current_thread().name)
        return exact(*given)

    monkeypatch.setattr("modicum.api.local.evaluation.read_and_price", noted)
    asked = server.post("ann", "/releases", release("slow"), params={"reason": "it is"})
    assert asked.status_code == 202, asked.text
    assert pricing
    assert "modicum-writer" not in pricing


def asked(server: Served, name: str = "r") -> str:
    """Let ann ask for a release; return the ETag of her request."""
    answered = server.post(
        "ann",
        "/releases",
        release(unquote(name)),
        params={"reason": "annual report"},
    )
    assert answered.status_code == 202
    return str(server.get("olga", f"/requests/{name}").headers["etag"])


def say(
    server: Served, who: str, name: str, tag: str, *, approves: bool = True, **more: Any
) -> Any:
    return server.post(
        who,
        f"/requests/{name}/approvals",
        {"approves": approves, "reason": "looked at", **more},
        headers={"If-Match": tag},
    )


def test_two_officers_agree_and_the_release_comes_in(
    server: Served, ledger: Path
) -> None:
    refused = server.post("ann", "/releases", release("r"))
    assert (refused.status_code, refused.json()["code"]) == (403, "MOD604")
    tag = asked(server)
    request = server.get("olga", "/requests/r").json()
    assert (request["by"], request["reason"]) == ("ann", "annual report")
    assert request["decision"]["decision"] == "allow"
    assert request["body"]["id"] == "r"
    assert server.post("ann", "/releases", release("r")).status_code == 403
    for who, missing in (("olga", 1), ("pavel", 0)):
        stated = say(server, who, "r", tag)
        assert stated.status_code == 200
        assert stated.json()["approvals"][0]["missing"] == missing
    done = server.post("ann", "/releases", release("r"))
    assert (done.status_code, done.json()["status"]) == (200, "reserved")
    assert server.get("olga", "/requests").json()["requests"] == []
    entry = mo.open(ledger).standing("r").seq
    stored = server.get("olga", f"/ledger/entries/{entry}").json()
    assert '"approved_by":["olga","pavel"]' in stored["payload"]
    mo.open(ledger).verify()


def test_a_repeated_request_asks_once(server: Served) -> None:
    query = {"reason": "annual report"}
    first = server.post("ann", "/releases", release("r"), key="k", params=query)
    again = server.post("ann", "/releases", release("r"), key="k", params=query)
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.content == first.content
    assert again.headers["idempotency-replayed"] == "true"


@pytest.mark.parametrize(
    ("who", "status"),
    [("ann", 403), ("amir", 403), ("dara", 403), ("audra", 403), ("lee", 403)],
)
def test_only_those_who_are_asked_speak(server: Served, who: str, status: int) -> None:
    tag = asked(server)
    before = server.get("olga", "/ledger/head").json()
    assert say(server, who, "r", tag).status_code == status
    assert server.get("olga", "/ledger/head").json() == before


def test_a_requester_checks_other_contents_and_nobody_else_does(
    server: Served,
) -> None:
    asked(server)
    for who, status in (("ann", 200), ("dara", 409)):
        for query in ({}, {"explain": "true"}):
            body = release("r", sigma=60)
            answer = server.post(who, "/releases:check", body, params=query)
            assert answer.status_code == status, answer.text


def test_what_is_hidden_is_not_asked_about(server: Served) -> None:
    asked(server)
    assert server.get("lee", "/requests").json() == {"requests": []}
    for path in ("/requests/r", "/requests/r/approvals"):
        assert server.get("lee", path).status_code == 404
    withdrawn = server.post("lee", "/requests/r:withdraw", {"reason": "no"})
    assert withdrawn.status_code == 404
    assert len(server.get("ann", "/requests").json()["requests"]) == 1


def test_who_asks_does_not_approve(server: Served) -> None:
    server.post("ann", "/releases", release("r"), params={"reason": "x"})
    # An officer who asks for a release in her own name cannot agree to it.
    asked_by_officer = server.post(
        "both", "/releases", release("r2"), params={"reason": "x"}
    )
    assert asked_by_officer.status_code == 403  # She may not submit at all.


def test_an_approval_is_of_the_content_that_was_looked_at(server: Served) -> None:
    tag = asked(server)
    again = server.post(
        "ann", "/releases", release("r", 60), params={"reason": "more noise"}
    )
    assert again.status_code == 202
    stale = say(server, "olga", "r", tag)
    assert (stale.status_code, stale.json()["code"]) == (412, "MOD606")
    missing = server.post(
        "olga", "/requests/r/approvals", {"approves": True, "reason": "x"}
    )
    assert (missing.status_code, missing.json()["code"]) == (428, "MOD834")
    new = str(server.get("olga", "/requests/r").headers["etag"])
    assert say(server, "olga", "r", new).status_code == 200


def test_an_approval_is_at_the_head_that_was_looked_at(server: Served) -> None:
    tag = asked(server)
    head = server.get("olga", "/ledger/head").json()["head"]
    asked(server, "other")
    stale = say(server, "olga", "r", tag, head=head)
    assert (stale.status_code, stale.json()["code"]) == (412, "MOD606")
    head = server.get("olga", "/ledger/head").json()["head"]
    assert say(server, "olga", "r", tag, head=head).status_code == 200


def test_what_would_be_denied_is_not_approved(server: Served) -> None:
    tag = asked(server)
    # Others use what is left, without being asked: it is internal.
    for number in range(60):
        one = {**release(f"i-{number}", 9), "audience": "internal"}
        if server.post("amir", "/releases", one).json()["decision"] == "deny":
            break
    full = server.post(
        "amir", "/releases:check", {**release("f", 50), "audience": "internal"}
    )
    while full.json()["decision"] == "allow":
        number += 1
        server.post(
            "amir",
            "/releases",
            {**release(f"i-{number}", 50), "audience": "internal"},
        )
        full = server.post(
            "amir", "/releases:check", {**release("f", 50), "audience": "internal"}
        )
    refused = say(server, "olga", "r", tag)
    assert (refused.status_code, refused.json()["code"]) == (409, "MOD605")
    assert server.get("olga", "/requests/r").json()["decision"]["decision"] == "deny"


def test_an_approval_is_taken_back(server: Served) -> None:
    tag = asked(server)
    say(server, "olga", "r", tag)
    say(server, "pavel", "r", tag)
    headers = {"X-Who": "olga", "If-Match": tag, "Idempotency-Key": "back"}
    path = "/api/v1/requests/r/approvals"
    gone = server.client.delete(path, headers=headers)
    assert gone.json()["approvals"][0]["rejected_by"] == ["olga"]
    again = server.client.delete(path, headers=headers)
    assert again.content == gone.content
    assert server.post("ann", "/releases", release("r")).status_code == 403


def test_who_asked_withdraws(server: Served) -> None:
    asked(server)
    other = server.post("amir", "/requests/r:withdraw", {"reason": "not mine"})
    assert other.status_code == 409
    own = server.post("ann", "/requests/r:withdraw", {"reason": "not needed"})
    assert own.status_code == 200
    assert server.get("ann", "/requests").json()["requests"] == []


# --- signed words ---------------------------------------------------------------------


def statement(server: Served, who: str, key: SigningKey) -> dict[str, str]:
    query = {"reason": "looked at", "key": key.public.hex()}
    found = server.get(who, "/requests/r/statement", params=query)
    assert found.status_code == 200
    stated: dict[str, str] = found.json()
    return stated


def test_a_word_signed_elsewhere_is_recorded_and_audited(
    server: Served, ledger: Path
) -> None:
    key = make_key(ledger.parent / "olga.key")
    tag = asked(server)
    stated = statement(server, "olga", key)
    signature = key.signature_of(stated["statement"].encode()).hex()
    signed: dict[str, Any] = {
        "head": stated["head"],
        "key": key.public.hex(),
        "signature": signature,
    }
    answered = say(server, "olga", "r", tag, **signed)
    assert answered.status_code == 200
    assert answered.json()["key"] == key.public.hex()
    mo.open(ledger).verify()


@pytest.mark.parametrize("wrong", ["reason", "signature", "person", "key"])
def test_a_signature_of_something_else_is_refused(
    server: Served, ledger: Path, wrong: str
) -> None:
    key, other = (make_key(ledger.parent / one) for one in ("olga.key", "other.key"))
    tag = asked(server)
    stated = statement(server, "olga", key)
    signature = key.signature_of(stated["statement"].encode()).hex()
    body = {
        "approves": True,
        "reason": "something else" if wrong == "reason" else "looked at",
        "head": stated["head"],
        "key": (other if wrong == "key" else key).public.hex(),
        "signature": "00" * 64 if wrong == "signature" else signature,
    }
    who = "pavel" if wrong == "person" else "olga"
    answered = server.post(
        who, "/requests/r/approvals", body, headers={"If-Match": tag}
    )
    assert (answered.status_code, answered.json()["code"]) == (403, "MOD607")


# --- policies -------------------------------------------------------------------------


def test_a_policy_is_proposed_approved_and_activated(
    server: Served, ledger: Path
) -> None:
    text = ASKING.replace("need: 2", "need: 1")
    yaml = {"X-Who": "olga", "Content-Type": "application/yaml"}
    active = str(server.get("olga", "/policies/active").headers["etag"])

    def post(who: str, path: str, key: str, **named: Any) -> Any:
        headers = {**yaml, "X-Who": who, "Idempotency-Key": key, "If-Match": active}
        return server.client.post(f"/api/v1{path}", headers=headers, **named)

    query = {"reason": "fewer hands"}
    proposed = post("dara", "/policies", "p", content=text, params=query)
    assert proposed.status_code == 200
    digest = proposed.json()["digest"]
    found = server.get("olga", f"/policies/proposals/{digest}").json()
    assert (found["text"], found["by"]) == (text, "dara")
    early = server.post(
        "olga",
        f"/policies/{digest}:activate",
        {"reason": "now"},
        headers={"If-Match": active},
    )
    assert (early.status_code, early.json()["code"]) == (403, "MOD604")
    vote = {"approves": True, "reason": "fine"}
    assert (
        server.post("audra", f"/policies/{digest}/approvals", vote).status_code == 403
    )
    assert (
        server.post("pavel", f"/policies/{digest}/approvals", vote).status_code == 200
    )
    stale = server.post(
        "olga",
        f"/policies/{digest}:activate",
        {"reason": "now"},
        headers={"If-Match": f'"{digest}"'},
    )
    assert stale.status_code == 412
    done = server.post(
        "olga",
        f"/policies/{digest}:activate",
        {"reason": "now"},
        headers={"If-Match": active},
    )
    assert (done.status_code, done.json()["changed"]) == (200, True)
    assert done.headers["etag"] == f'"{digest}"'
    history = server.get("amir", "/policies").json()["policies"]
    assert [one["active"] for one in history] == [False, True]
    mo.open(ledger).verify()


def test_what_activating_would_mean_is_told(server: Served) -> None:
    tighter = ASKING.replace("high: 1.0", "high: 0.01")
    server.post("amir", "/releases", {**release("i", 9), "audience": "internal"})
    headers = {"X-Who": "olga", "Content-Type": "application/yaml"}
    reply = server.client.post(
        "/api/v1/policies:weigh", content=tighter, headers=headers
    ).json()
    assert reply["changed"] is False
    assert [one["rule"] for one in reply["conflicts"] if one["made"]]


# --- what an attacker tried -----------------------------------------------------------


def test_what_was_said_under_a_used_id_is_not_told_to_others(server: Served) -> None:
    tag = asked(server, "x")
    say(server, "olga", "x", tag, approves=False)
    server.post("ann", "/requests/x:withdraw", {"reason": "no"})
    one = release("x", data_set="labs")
    assert (
        server.post("lee", "/releases", one, params={"reason": "y"}).status_code == 202
    )
    for path in ("/requests/x", "/requests/x/approvals"):
        assert server.get("lee", path).json()["votes"] == []
        assert len(server.get("olga", path).json()["votes"]) == 1


def test_who_made_a_conflict_is_told_to_who_may_know_all(server: Served) -> None:
    one = {**release("secret-study", 9), "audience": "internal"}
    assert server.post("ann", "/releases", one).json()["decision"] == "allow"
    tighter = ASKING.replace("high: 1.0", "high: 0.01")
    for who, may_see in (("lee", False), ("ann", False), ("amir", True)):
        headers = {"X-Who": who, "Content-Type": "application/yaml"}
        answered = server.client.post(
            "/api/v1/policies:weigh", content=tighter, headers=headers
        )
        assert answered.status_code == (200 if may_see else 403)
        assert ("secret-study" in answered.text) is may_see


def test_a_word_counts_only_for_what_the_speaker_may_speak_about(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Between the look at rights and the turn, the request is replaced.
    first = release("x", data_set="labs")
    second = release("x", data_set="visits")
    query = {"reason": "y"}
    server.post("amir", "/releases", second, params=query)
    other = str(server.get("olga", "/requests/x").headers["etag"])
    server.post("amir", "/releases", first, params=query)
    requests = server.parts.service.requests
    governed = requests._decider.governed

    def replaced(looking: Any, **named: Any) -> Any:
        found = governed(looking, **named)
        server.post("amir", "/releases", second, params=query)
        return found

    monkeypatch.setattr(requests._decider, "governed", replaced)
    stale = say(server, "olga", "x", other)
    assert (stale.status_code, stale.json()["code"]) == (412, "MOD606")


def test_steps_that_end_what_they_are_about_are_repeated(server: Served) -> None:
    asked(server)
    body = {"reason": "not needed"}
    first = server.post("ann", "/requests/r:withdraw", body, key="w")
    again = server.post("ann", "/requests/r:withdraw", body, key="w")
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.content == first.content
    headers = {"X-Who": "dara", "Content-Type": "application/yaml"}
    text = ASKING.replace("need: 2", "need: 1")
    proposed = server.client.post(
        "/api/v1/policies",
        content=text,
        params={"reason": "fewer"},
        headers={**headers, "Idempotency-Key": "p"},
    )
    digest = proposed.json()["digest"]
    vote = {"approves": True, "reason": "fine"}
    path = f"/policies/{digest}"
    stated = server.post("pavel", f"{path}/approvals", vote, key="a")
    active = {"If-Match": str(server.get("olga", "/policies/active").headers["etag"])}
    done = server.post(
        "olga", f"{path}:activate", {"reason": "now"}, key="b", headers=active
    )
    assert done.json()["changed"] is True
    repeated = server.post("pavel", f"{path}/approvals", vote, key="a")
    assert repeated.content == stated.content
    activated = server.post(
        "olga", f"{path}:activate", {"reason": "now"}, key="b", headers=active
    )
    assert activated.content == done.content


def test_a_slash_that_is_encoded_belongs_to_the_id(server: Served) -> None:
    for name in ("r", "r/statement", "r/approvals"):
        asked(server, quote(name, safe=""))
    for name in ("r", "r/statement", "r/approvals"):
        path = f"/requests/{quote(name, safe='')}"
        found = server.get("olga", path)
        assert (found.status_code, found.json()["release"]) == (200, name)
        again = server.get("olga", f"{path}/approvals")
        assert again.headers["etag"] == found.headers["etag"]
    assert "approvals" in server.get("olga", "/requests/r/approvals").json()
    tag = server.get("olga", "/requests/r%2Fapprovals").headers["etag"]
    # Who means the id does not speak about another request.
    own = {"X-Who": "olga", "Idempotency-Key": "k", "If-Match": tag}
    for method in ("POST", "DELETE"):
        path = "/api/v1/requests/r%2Fapprovals"
        done = server.client.request(method, path, headers=own)
        assert (done.status_code, done.headers["allow"]) == (405, "GET")
    assert say(server, "olga", "r%2Fapprovals", tag).json()["id"] == "r/approvals"
