"""Ids are one name space: that one is taken is told, and nothing of what has it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from samples.served import HEADER, PEOPLE, Served, served
from samples.small import POLICY

from modicum.api.permissions.actions import Role

#: Who may read what ann does not: labs. Her own rows are visits.
ASKING = (
    POLICY
    + """
roles: {privacy-officer: [olga, pavel], data-steward: [dara]}
approvals:
  - {when: 'release.audience == "public"', need: 1, from: [privacy-officer]}
"""
)


def release(name: str, data_set: str, sigma: float = 5000) -> dict[str, Any]:
    return {
        "release": name,
        "dataset": data_set,
        "mechanisms": [
            {
                "name": "counts",
                "mechanism": "gaussian",
                "attributes": ["age"],
                "sensitivity": {"user": {"l2": 1}},
                "sigma": sigma,
            }
        ],
    }


def public(name: str, data_set: str, sigma: float = 5000) -> dict[str, Any]:
    return {**release(name, data_set, sigma), "audience": "public"}


#: What somebody else did with an id, as `lee`, who has the data set `labs`.
STEPS: dict[str, tuple[tuple[str, bool], ...]] = {
    "reserved": (("/releases", True),),
    "started": (("/releases", True), ("/releases/{id}:start", False)),
    "published": (
        ("/releases", True),
        ("/releases/{id}:start", False),
        ("/releases/{id}:post", False),
    ),
    "canceled": (("/releases", True), ("/releases/{id}:void", False)),
}
#: How somebody else tries to use it.
TRIES: tuple[tuple[str, dict[str, str]], ...] = (
    ("/releases:check", {}),
    ("/releases:check", {"explain": "true"}),
    ("/releases:fit", {}),
    ("/releases:options", {}),
    ("/releases", {}),
    ("/releases", {"publish": "true"}),
    ("/releases", {"reason": "please"}),
    ("/releases:record-past", {}),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("hidden")
    (folder / "policy.yaml").write_text(ASKING)
    people = {**PEOPLE, "stew": {Role.DATA_STEWARD: frozenset({"visits"})}}
    with served(
        folder / "ledger.db", policy=folder / "policy.yaml", people=people
    ) as found:
        yield found


def make(server: Served, how: str, name: str) -> None:
    """Have lee do something with an id."""
    for path, describes in STEPS[how]:
        sent = release(name, "labs") if describes else {"reason": "x"}
        document = None if path.endswith((":start", ":post")) else sent
        done = server.post("lee", path.replace("{id}", name), document)
        assert done.status_code == 200, done.text


def told(answered: Any) -> tuple[int, dict[str, Any]]:
    """Return what an answer says, but for what is made anew each time."""
    body = answered.json()
    body.pop("trace_id", None)
    return answered.status_code, body


def unusable(name: str) -> dict[str, Any]:
    """Return all that is told of an id that is taken by what is hidden."""
    message, remedy = (
        f"the id `{name}` cannot be used",
        "give the release a different id",
    )
    return {
        "type": "/docs/errors#MOD703",
        "title": "conflict",
        "status": 409,
        "detail": message,
        "code": "MOD703",
        "kind": "conflict",
        "line": None,
        "column": None,
        "help": remedy,
    }


@pytest.mark.parametrize(
    ("how", "number"),
    [(how, number) for how, number in product(STEPS, range(len(TRIES)))],
)
def test_nothing_is_told_of_a_release_that_is_hidden(
    server: Served, how: str, number: int
) -> None:
    path, query = TRIES[number]
    name = f"{how}-{number}"
    make(server, how, name)
    body = public(name, "visits") if "reason" in query else release(name, "visits")
    who = "stew" if path.endswith("record-past") else "ann"
    status, said = told(server.post(who, path, body, params=query))
    (problem,) = said.pop("problems")
    assert (status, said) == (409, unusable(name))
    assert problem["message"] == f"the id `{name}` cannot be used"
    assert not problem["notes"]


@pytest.mark.parametrize("number", range(len(TRIES)))
def test_who_may_know_of_it_is_told_what_stands(server: Served, number: int) -> None:
    path, query = TRIES[number]
    name = f"seen-{number}"
    make(server, "canceled", name)
    body = release(name, "labs", 6000)
    who = "dara" if path.endswith("record-past") else "lee"
    status, said = told(server.post(who, path, body, params=query))
    assert (status, said["code"]) == (409, "MOD703")
    assert "canceled" in said["detail"]


def test_nothing_is_told_of_a_request_that_is_hidden(server: Served) -> None:
    asked = server.post(
        "lee", "/releases", public("asked", "labs"), params={"reason": "mine"}
    )
    assert asked.status_code == 202
    status, said = told(
        server.post(
            "ann", "/releases", public("asked", "visits"), params={"reason": "me too"}
        )
    )
    (problem,) = said.pop("problems")
    assert (status, said) == (409, unusable("asked"))
    assert not problem["notes"]
    # Whoever may see the request is told who asks for it.
    other = public("asked", "labs", 6000)
    status, said = told(
        server.post("amir", "/releases", other, params={"reason": "mine"})
    )
    assert (status, "`lee`" in said["detail"]) == (409, True)


@pytest.mark.parametrize("number", range(len(TRIES)))
def test_the_id_of_a_request_is_taken_from_nobody(server: Served, number: int) -> None:
    path, query = TRIES[number]
    name = f"waits-{number}"
    asked = server.post(
        "lee", "/releases", public(name, "labs"), params={"reason": "mine"}
    )
    assert asked.status_code == 202
    waiting = server.get("lee", f"/requests/{name}").json()
    past = path.endswith("record-past")
    body = public if "reason" in query else release
    status, said = told(
        server.post("stew" if past else "ann", path, body(name, "visits"), params=query)
    )
    (problem,) = said.pop("problems")
    assert (status, said) == (409, unusable(name))
    assert not problem["notes"]
    # Whoever may see the request is told who asks for it.
    seeing = "dara" if past else "amir"
    other = body(name, "labs", 6000)
    status, said = told(server.post(seeing, path, other, params=query))
    assert (status, said["code"]) == (409, "MOD703")
    assert "requested by `lee`" in said["detail"]
    # It waits as before; and who asks may ask for something else under it.
    assert server.get("lee", f"/requests/{name}").json() == waiting
    mine = server.post("lee", "/releases:check", release(name, "labs", 6000))
    assert (mine.status_code, mine.json()["decision"]) == (200, "allow")


def test_an_id_that_is_no_text_tells_nothing_either(server: Served) -> None:
    make(server, "canceled", "2026")
    text = "release: 2026\ndataset: visits\nmechanisms:\n  - name: counts\n"
    text += "    mechanism: gaussian\n    attributes: [age]\n"
    text += "    sensitivity: {user: {l2: 1}}\n    sigma: 5000\n"
    answered = server.client.post(
        "/api/v1/releases:check",
        content=text,
        headers={HEADER: "ann", "Content-Type": "application/yaml"},
    )
    assert answered.status_code in (409, 422)
    assert "canceled" not in answered.text
    assert "entry" not in answered.text


def test_a_denial_of_one_s_own_request_keeps_its_words(server: Served) -> None:
    body = public("too-much", "visits", 0.3)
    answered = server.post("ann", "/releases", body, params={"reason": "please"})
    assert (answered.status_code, answered.json()["decision"]) == (200, "deny")


@pytest.mark.spec("LED-27")
@pytest.mark.parametrize("number", range(len(TRIES)))
def test_an_id_that_looks_like_a_hidden_one_is_refused_and_tells_nothing(
    server: Served, number: int
) -> None:
    path, query = TRIES[number]
    make(server, "reserved", f"alike-{number}")
    name = f"\u0430like-{number}"  # It begins with another letter.
    past = path.endswith("record-past")
    body = public if "reason" in query else release
    who = "stew" if past else "ann"
    status, said = told(server.post(who, path, body(name, "visits"), params=query))
    (problem,) = said.pop("problems")
    assert (status, said) == (409, unusable(name))
    assert not problem["notes"]
    # Who may see the other one is told which it is.
    seeing = "dara" if past else "lee"
    status, said = told(server.post(seeing, path, body(name, "labs"), params=query))
    assert (status, said["code"]) == (409, "MOD703")
    assert f"looks like that of release `alike-{number}`" in said["detail"]


@pytest.mark.spec("LED-27")
def test_an_id_that_looks_like_a_hidden_request_is_refused_and_tells_nothing(
    server: Served,
) -> None:
    asked = public("alike-r", "labs")
    query = {"reason": "please"}
    assert server.post("lee", "/releases", asked, params=query).status_code == 202
    name = "\u0430like-r"
    answered = server.post("ann", "/releases:check", release(name, "visits"))
    status, said = told(answered)
    (problem,) = said.pop("problems")
    assert (status, said) == (409, unusable(name))
    assert not problem["notes"]
