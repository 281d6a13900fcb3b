"""Who may do what over HTTP: every route, every role, own and other data sets.

One table says for each route what it takes; a route without a row fails. What is
expected is read from the table of roles, in both directions: nobody gets through who
may not, and nobody is refused who may.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from samples.jobs import PATIENCE
from samples.rights import (
    ABSENT,
    ANALYSIS,
    DATA_SETS,
    HELPER,
    KEEPER,
    PEOPLE,
    ROWS,
    WITHOUT_RIGHTS,
    Case,
    identity,
    numbers,
    served_to_all,
)
from samples.served import HEADER, Served
from starlette.requests import Request

from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import Identity
from modicum.core import yaml_reader
from modicum.ops.files import json_lines
from modicum.server.inputs import body


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_to_all(tmp_path_factory.mktemp("matrix")) as found:
        yield found


def routes_of(server: Served) -> set[tuple[str, str]]:
    """Return every route that the server describes."""
    described = server.client.get("/api/v1/openapi.json").json()["paths"]
    return {
        (method, path.removeprefix("/api/v1"))
        for path, methods in described.items()
        for method in methods
    }


def test_every_route_has_a_row(server: Served) -> None:
    assert routes_of(server) == ROWS.keys()


#: Routes that read the whole ledger. They are asked first, while it is short.
WHOLE_LEDGER = (
    ("get", "/audit/bundles"),
    ("get", "/audit/statement"),
    ("get", "/ledger/checkpoint"),
    ("get", "/releases/{release}/receipt"),
)


@pytest.mark.parametrize(
    "route",
    [" ".join(one) for one in sorted(ROWS, key=lambda row: row not in WHOLE_LEDGER)],
)
def test_who_may_gets_through_and_who_may_not_does_not(
    server: Served, route: str
) -> None:
    method, _, path = route.partition(" ")
    row = ROWS[method, path]
    for name in PEOPLE:
        if name in (HELPER, KEEPER):
            continue
        who = identity(name)
        for data_set in DATA_SETS if name not in ABSENT else ("visits",):
            expected = row.expected(who, data_set)
            answered = row.call(Case(server, name, data_set))
            allowed = row.fine if expected == 200 else (expected,)
            assert answered.status_code in allowed, (
                name,
                data_set,
                expected,
                answered.text,
            )
            if answered.status_code == 403:
                refusal = "MOD832" if expected == 403 else "MOD604"
                assert answered.json()["code"] == refusal


#: What a person must do.
FOR_PEOPLE = (
    "post /requests/{release}/approvals",
    "delete /requests/{release}/approvals",
    "get /requests/{release}/statement",
    "post /policies/{digest}/approvals",
    "delete /policies/{digest}/approvals",
    "post /policies/{digest}:activate",
    "post /policies:activate",
    "post /escrow/contracts/{name}/approvals",
    "delete /escrow/contracts/{name}/approvals",
    "get /escrow/contracts/{name}/statement",
    "post /escrow/data/{name}/versions/{n}/approvals",
)


@pytest.mark.parametrize("route", [" ".join(one) for one in ROWS])
def test_what_a_person_must_do_neither_a_program_nor_a_token_does(
    server: Served, route: str
) -> None:
    # Written out, so that no row and no table takes it back unnoticed.
    method, _, path = route.partition(" ")
    row = ROWS[method, path]
    for name in ABSENT:
        who = identity(name)
        person = Identity("x", who.grants)
        if row.expected(person, None) != 200:
            continue
        refused = row.expected(who, None) == 403
        assert refused == (route in (*FOR_PEOPLE, "post /tokens"))
        if route in FOR_PEOPLE:
            answered = row.call(Case(server, name, None))
            assert (answered.status_code, answered.json()["code"]) == (403, "MOD832")


@pytest.mark.parametrize("route", [" ".join(one) for one in ROWS])
def test_nobody_gets_through_unrecognized(server: Served, route: str) -> None:
    method, _, path = route.partition(" ")
    answered = ROWS[method, path].call(Case(server, "nobody", "visits"))
    assert (answered.status_code, answered.json()["code"]) == (401, "MOD831")


def paths_of(server: Served) -> Iterator[tuple[str, str, bool, dict[str, str]]]:
    """Yield the method, a path, whether it takes a body, and a query of each route."""
    described = server.client.get("/api/v1/openapi.json").json()["paths"]
    for path, methods in described.items():
        named = path.replace("{digest}", "a" * 64).replace("{n}", "1")
        for method, route in methods.items():
            takes = [one["name"] for one in route.get("parameters", ())]
            reason = {"reason": "x"} if "reason" in takes else {}
            url = re.sub(r"{\w+}", "x", named)
            yield method.upper(), url, "requestBody" in route, reason


def sends_anything(
    server: Served, who: str, method: str, path: str, query: dict[str, str]
) -> Any:
    """Send what is no document; return the answer."""
    key = {"Idempotency-Key": f"k-{next(numbers)}", "If-Match": '"x"'}
    return server.client.request(
        method,
        path,
        params=query,
        content="[not a document",
        headers={HEADER: who, **key},
    )


def test_nobody_without_rights_has_a_body_read(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = note_parses(monkeypatch)
    asked = 0
    for method, path, has_body, query in paths_of(server):
        if has_body:
            asked += 1
            answered = sends_anything(server, WITHOUT_RIGHTS, method, path, query)
            # A reader would say 400, and what it is that cannot be read.
            found = answered.status_code, answered.json()["code"]
            assert found == (403, "MOD832"), (path, answered.text)
    assert asked > 20
    assert parsed == []


def note_parses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which each parse of a document or of JSON adds one."""
    parsed = list[str]()

    def noted(name: str, really: Any) -> Any:
        def run(*given: Any) -> Any:
            parsed.append(name)
            return really(*given)

        return run

    whole = noted("document", yaml_reader.decode_text)
    monkeypatch.setattr(yaml_reader, "decode_text", whole)
    monkeypatch.setattr(body, "plain_of", noted("json", json_lines.plain_of))
    return parsed


def test_no_role_has_a_body_read_for_what_it_may_not(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = note_parses(monkeypatch)
    refused = read = 0
    for method, path, has_body, query in paths_of(server):
        for role in Role if has_body else ():
            name = f"{role.value}-all"
            answered = sends_anything(server, name, method, path, query)
            if answered.json().get("code") == "MOD832":
                refused += 1
                assert parsed == [], (path, name)
            read += len(parsed)
            parsed.clear()
    assert refused > 50
    assert read > 20


def test_a_body_is_read_only_where_one_is_taken(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even to see whether a request with a key is repeated."""
    read, body = list[str](), Request.body

    async def noted(request: Request) -> bytes:
        read.append(request.url.path)
        return await body(request)

    monkeypatch.setattr(Request, "body", noted)
    asked = 0
    for method, path, has_body, query in paths_of(server):
        if not has_body and method != "GET":
            asked += 1
            for who in (WITHOUT_RIGHTS, KEEPER):
                answered = sends_anything(server, who, method, path, query)
                assert 400 <= answered.status_code < 500, (path, answered.text)
    assert asked > 8
    assert read == []
    sends_anything(server, KEEPER, "POST", "/api/v1/releases:check", {})
    assert read == ["/api/v1/releases:check"]


def test_what_an_analysis_finds_is_seen_by_nobody_else(server: Served) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        begun = Case(server, HELPER, "visits").post("/risk/analyses", ANALYSIS)
        if begun.status_code == 202:
            break
        assert begun.status_code == 429  # Another one ends before.
        assert time.monotonic() < until
        time.sleep(0.05)
    job = begun.json()["job"]
    for name in PEOPLE:
        expected = 200 if name == HELPER else 404
        for path in (f"/jobs/{job}", f"/jobs/{job}/events"):
            assert Case(server, name, "visits").head(path).status_code == expected
        listed = server.get(name, "/jobs").json()["jobs"]
        assert (job in [one["job"] for one in listed]) == (name == HELPER)
        if name != HELPER:
            assert (
                Case(server, name, "visits").delete(f"/jobs/{job}").status_code == 404
            )


def test_the_description_is_for_everybody(server: Served) -> None:
    assert server.client.get("/api/v1/openapi.json").status_code == 200
