"""Tokens over HTTP: told once, never more than who makes them, revoked at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from samples.served import HEADER, PEOPLE, ByHeader, Served, served
from samples.small import POLICY
from starlette.requests import Request

from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import Identity
from modicum.api.permissions.tokens import token_digest
from modicum.server.auth.authentication import Recognizing
from modicum.server.auth.registry import Registry


class ByToken:
    """Recognizes whoever sends a token that the registry knows."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def identify(self, request: Request) -> Identity | None:
        """Return who sends a token."""
        sent = request.headers.get("Authorization", "").removeprefix("Bearer ")
        digest = token_digest(sent)
        found = digest and self._registry.token_by_digest(digest)
        return found.identity() if found else None


WITH_HR = {**PEOPLE, "hr-admin": {Role.ADMIN: frozenset({"hr"})}}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "policy.yaml").write_text(POLICY)
    with served(
        tmp_path / "ledger.db", policy=tmp_path / "policy.yaml", people=WITH_HR
    ) as found:
        by_token = ByToken(found.parts.registry)
        found.parts.recognizing = Recognizing([by_token, ByHeader(WITH_HR)])
        yield found


def with_token(server: Served, token: str, path: str) -> Any:
    return server.client.get(
        f"/api/v1{path}", headers={"Authorization": f"Bearer {token}"}
    )


def test_a_token_recognizes_who_made_it_until_it_is_revoked(server: Served) -> None:
    made = server.post("ann", "/tokens", {"name": "laptop"})
    assert made.status_code == 201
    token, identifier = made.json()["token"], made.json()["id"]
    me = with_token(server, token, "/me").json()
    assert (me["name"], me["roles"]) == ("ann", {"analyst": ["visits"]})
    listed = server.get("ann", "/tokens")
    assert [one["id"] for one in listed.json()["tokens"]] == [identifier]
    assert token not in listed.text
    assert token.split("_", 2)[2] not in listed.text
    headers = {"X-Who": "ann"}
    path = f"/api/v1/tokens/{identifier}"
    for _ in range(2):
        gone = server.client.delete(path, headers=headers)
        assert (gone.status_code, gone.json()["status"]) == (200, "revoked")
    assert with_token(server, token, "/me").status_code == 401


def test_a_whole_token_is_revoked_and_not_repeated(server: Served) -> None:
    token = server.post("ann", "/tokens", {}).json()["token"]
    secret = token.split("_", 2)[2]
    path, headers = f"/api/v1/tokens/{token}", {"X-Who": "lee"}
    for given in (path, f"{path}x", path.replace("mdc_", "mdc_x")):
        unknown = server.client.delete(given, headers=headers)  # Hers alone.
        assert unknown.status_code in (400, 404)
        assert secret not in unknown.text
    assert with_token(server, token, "/me").status_code == 200
    gone = server.client.delete(path, headers={"X-Who": "ann"})
    assert (gone.status_code, gone.json()["status"]) == (200, "revoked")
    assert secret not in gone.text
    assert with_token(server, token, "/me").status_code == 401


@pytest.mark.parametrize("name", ["service:etl", "a b"])
def test_no_person_has_a_token_by_a_name_that_nobody_signs_in_by(
    server: Served, name: str
) -> None:
    server.parts.recognizing = Recognizing([ByHeader({name: PEOPLE["ann"]})])
    refused = server.post(name, "/tokens", {})
    assert (refused.status_code, refused.json()["code"]) == (422, "MOD107")


@pytest.mark.parametrize(
    "body",
    [
        {"grants": {"analyst": ["labs"]}},
        {"grants": {"analyst": ["*"]}},
        {"grants": {"data-steward": ["visits"]}},
        {"actor": "amir"},
        {"service": True, "actor": "job", "grants": {"analyst": ["visits"]}},
    ],
)
def test_a_token_may_no_more_than_who_makes_it(
    server: Served, body: dict[str, Any]
) -> None:
    refused = server.post("ann", "/tokens", body)
    assert (refused.status_code, refused.json()["code"]) == (403, "MOD832")
    assert server.get("root", "/tokens").json()["tokens"] == []


def test_an_empty_actor_is_not_taken_for_the_caller(server: Served) -> None:
    answer = server.post("ann", "/tokens", {"actor": ""})
    assert answer.status_code == 422
    (problem,) = answer.json()["problems"]
    assert problem["message"] == "`actor` is empty"


def test_a_token_may_less_than_who_makes_it(server: Served) -> None:
    made = server.post("amir", "/tokens", {"grants": {"analyst": ["visits"]}})
    me = with_token(server, made.json()["token"], "/me").json()
    assert me["roles"] == {"analyst": ["visits"]}


def test_a_token_makes_no_tokens(server: Served) -> None:
    made = server.post("ann", "/tokens", {})
    refused = server.client.post(
        "/api/v1/tokens",
        json={},
        headers={"Authorization": f"Bearer {made.json()['token']}"},
    )
    assert (refused.status_code, refused.json()["code"]) == (403, "MOD832")


def test_nobody_is_told_that_a_token_makes_others(server: Served) -> None:
    making = {"manage-own-tokens", "manage-tokens"}
    for who, own in (("ann", {"manage-own-tokens"}), ("root", making)):
        own_actions = set(server.get(who, "/me").json()["actions"])
        assert own_actions & making == own
        made = server.post(who, "/tokens", {}).json()
        by_token = set(with_token(server, made["token"], "/me").json()["actions"])
        assert by_token <= own_actions - making
        # What makes none still lists and revokes.
        listed = with_token(server, made["token"], "/tokens").json()["tokens"]
        assert made["id"] in {one["id"] for one in listed}


def test_who_manages_tokens_makes_them_for_programs(server: Served) -> None:
    terms = {
        "actor": "service:nightly",
        "service": True,
        "grants": {"platform-engineer": ["*"]},
        "expires_in_days": 7,
    }
    made = server.post("root", "/tokens", terms)
    assert made.status_code == 201
    me = with_token(server, made.json()["token"], "/me").json()
    assert (me["name"], me["is_service"]) == ("service:nightly", True)
    assert server.get("ann", "/tokens").json()["tokens"] == []
    headers = {"X-Who": "ann"}
    path = f"/api/v1/tokens/{made.json()['id']}"
    assert server.client.delete(path, headers=headers).status_code == 404
    assert server.client.delete(path, headers={"X-Who": "root"}).status_code == 200


@pytest.mark.parametrize("role", ["privacy-officer", "data-steward", "admin"])
def test_no_program_answers_for_people(server: Served, role: str) -> None:
    terms = {"actor": "service:job", "service": True, "grants": {role: ["*"]}}
    assert server.post("root", "/tokens", terms).status_code == 403


@pytest.mark.parametrize(
    "actor",
    [
        *("", "service:", " service:job", "service: job", "job ", "a\nb", "a b"),
        *("Job", "Service:job", "service:service:job", "\ufb01", "j" * 193),
    ],
)
def test_programs_have_names(server: Served, actor: str) -> None:
    terms = {"actor": actor, "service": True, "grants": {"analyst": ["*"]}}
    assert server.post("root", "/tokens", terms).status_code in (403, 422)
    unnamed = {key: terms[key] for key in ("service", "grants")}
    assert server.post("root", "/tokens", unnamed).status_code == 403
    assert server.get("root", "/tokens").json()["tokens"] == []


@pytest.mark.parametrize("actor", ["olga", "service:olga"])
def test_no_program_passes_for_a_person(server: Served, actor: str) -> None:
    terms = {"actor": actor, "service": True, "grants": {"analyst": ["*"]}}
    made = server.post("root", "/tokens", terms).json()
    assert (made["actor"], made["kind"]) == ("service:olga", "service")
    me = with_token(server, made["token"], "/me").json()
    assert (me["name"], me["is_service"]) == ("service:olga", True)


def test_who_manages_tokens_for_some_data_sets_makes_none_for_others(
    server: Served,
) -> None:
    terms = {"actor": "service:job", "service": True}
    others = {**terms, "grants": {"analyst": ["labs"]}}
    assert server.post("hr-admin", "/tokens", others).status_code == 403
    everything = {**terms, "grants": {"analyst": ["*"]}}
    assert server.post("hr-admin", "/tokens", everything).status_code == 403
    own = {**terms, "grants": {"analyst": ["hr"]}}
    assert server.post("hr-admin", "/tokens", own).status_code == 201


def test_who_manages_tokens_for_some_data_sets_knows_of_no_others(
    server: Served,
) -> None:
    program = {"actor": "service:job", "service": True}
    made = {
        sets: server.post(
            "root", "/tokens", {**program, "grants": {"analyst": sets.split()}}
        ).json()["id"]
        for sets in ("hr", "hr labs", "labs", "*")
    }
    made["lee"] = server.post("lee", "/tokens", {}).json()["id"]
    own = made["hr-admin"] = server.post("hr-admin", "/tokens", {}).json()["id"]
    listed = server.get("hr-admin", "/tokens")
    assert {one["id"] for one in listed.json()["tokens"]} == {made["hr"], own}
    assert "labs" not in listed.text
    every = server.get("root", "/tokens").json()["tokens"]
    assert {one["id"] for one in every} == {*made.values()}
    for name, identifier in made.items():
        gone = server.client.delete(
            f"/api/v1/tokens/{identifier}", headers={"X-Who": "hr-admin"}
        )
        assert gone.status_code == (200 if name in {"hr", "hr-admin"} else 404)


@pytest.mark.parametrize(
    "body",
    [
        {"grants": {}},
        {"grants": {"analyst": []}},
        {"grants": {"boss": ["*"]}},
        {"expires_in_days": 0},
        {"expires_in_days": 367},
        {"nmae": "x"},
        {"name": "a\nb"},
    ],
)
def test_malformed_terms_are_refused(server: Served, body: dict[str, Any]) -> None:
    refused = server.post("ann", "/tokens", body)
    assert refused.status_code == 422
    assert server.get("ann", "/tokens").json()["tokens"] == []


@pytest.mark.parametrize("who", sorted(PEOPLE))
def test_only_an_auditor_has_no_tokens(server: Served, who: str) -> None:
    made = server.post(who, "/tokens", {})
    assert made.status_code == (403 if who == "audra" else 201)


def test_a_person_has_a_hundred_tokens_until_they_revoke_one(server: Served) -> None:
    made = [server.post("ann", "/tokens", {"name": str(n)}) for n in range(100)]
    assert {one.status_code for one in made} == {201}
    refused = server.post("ann", "/tokens", {"name": "one more"})
    assert (refused.status_code, refused.json()["code"]) == (403, "MOD832")
    assert "revoke an unused one" in refused.json()["help"]
    assert server.post("lee", "/tokens", {"name": "of others"}).status_code == 201
    gone = server.client.delete(
        f"/api/v1/tokens/{made[0].json()['id']}", headers={HEADER: "ann"}
    )
    assert gone.status_code == 200
    assert server.post("ann", "/tokens", {"name": "again"}).status_code == 201
    assert server.post("ann", "/tokens", {"name": "no"}).status_code == 403
