"""What a route does not take is refused, whoever asks; and everything else is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import pytest
from pydantic import BaseModel, Field, ValidationError
from samples.served import HEADER, Served, served
from samples.small import POLICY

from modicum.server.inputs.body import malformed
from modicum.server.openapi import operations


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("parameters")
    (folder / "policy.yaml").write_text(POLICY)
    with served(folder / "ledger.db", policy=folder / "policy.yaml") as found:
        yield found


def test_what_is_not_taken_is_refused_everywhere(server: Served) -> None:
    description = server.client.get("/api/v1/openapi.json").json()
    looked_at = 0
    for method, path, operation in operations(description):
        where = re.sub(r"\{.*?\}", "x", path)
        known = [
            one["name"]
            for one in operation.get("parameters", ())
            if one["in"] == "query"
        ]
        for who in ("ann", "root"):
            answered = server.client.request(
                method, where, params={"lost": "1"}, headers={HEADER: who}
            )
            told = answered.json()
            assert (answered.status_code, told["code"]) == (400, "MOD840"), where
            assert "`lost` is not allowed here" in told["detail"], where
            assert all(name in told["help"] for name in known), where
        nobody = server.client.request(method, where, params={"lost": "1"})
        assert nobody.status_code == 401, where
        looked_at += 1
    assert looked_at > 50


def test_what_is_taken_once_is_not_taken_twice(server: Served) -> None:
    description = server.client.get("/api/v1/openapi.json").json()
    several: dict[bool, set[str]] = {True: set(), False: set()}
    for method, path, operation in operations(description):
        where = re.sub(r"\{.*?\}", "x", path)
        for one in operation.get("parameters", ()):
            if one["in"] != "query":
                continue
            name, is_list = one["name"], one["schema"].get("type") == "array"
            answered = server.client.request(
                method, f"{where}?{name}=1&{name}=1", headers={HEADER: "root"}
            )
            told = f"the parameter `{name}` is given more than once"
            assert (answered.json().get("detail") == told) is not is_list, where
            several[is_list].add(name)
    assert several[True] == {"accept", "status"}
    assert several[False] > {"limit", "cursor", "solver", "reason"}


def test_what_is_taken_is_not(server: Served) -> None:
    for path in (
        "/rules?unit=user&limit=3",
        "/releases?status=published&cursor=",
        "/releases?status=published&status=reserved",
        "/me?",
    ):
        assert server.get("olga", path).status_code == 200, path


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def test_what_an_address_takes_is_told_where_it_is_not(server: Served) -> None:
    description = server.client.get("/api/v1/openapi.json").json()
    paths = {re.sub(r"\{.*?\}", "x", path) for path in description["paths"]}
    several = 0
    for path in (*paths, "/", "/healthz"):
        # A parameter that no route takes: nothing is done.
        answers = {
            method: server.client.request(
                method, path, params={"lost": "1"}, headers={HEADER: "ann"}
            )
            for method in METHODS
        }
        taken = {one for one in METHODS if answers[one].status_code != 405}
        assert taken != set(METHODS), path
        several += len(taken) > 1
        for one in {*METHODS} - taken:
            assert set(answers[one].headers["Allow"].split(", ")) == taken, path
    assert several > 5


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("/rules?limit=x", "the parameter `limit` is not an integer"),
        ("/rules?limit=0", "the parameter `limit` is less than 1"),
        ("/rules?limit=501", "the parameter `limit` is more than 500"),
        ("/releases?status=lost", "the parameter `status.0` is not 'reserved', "),
        ("/ledger/entries/x", "in the address, `seq` is not an integer"),
    ],
)
def test_a_form_that_is_not_taken_is_told_in_a_sentence(
    server: Served, asked: str, told: str
) -> None:
    answered = server.get("olga", asked)
    assert (answered.status_code, answered.json()["code"]) == (400, "MOD840")
    assert answered.json()["detail"].startswith(told)


@pytest.mark.parametrize(
    "found",
    [
        {"loc": ("query", "reason"), "type": "missing"},
        {"loc": ("query", "reason"), "type": "missing", "ctx": {}},
    ],
)
def test_what_is_missing_is_named(found: dict[str, object]) -> None:
    assert malformed(found).message == "the parameter `reason` is missing"


def test_what_has_no_words_is_told_without_the_words_of_others() -> None:
    found = {"loc": ("header", "x"), "type": "new", "msg": "Field required", "ctx": {}}
    told = malformed(found).message
    assert told == "the header `x` is malformed"


def test_every_limit_of_a_parameter_has_words() -> None:
    """As the library itself tells them, of parameters of each kind."""

    class Taken(BaseModel):
        limit: int = Field(ge=1, le=5)
        exact: bool
        kind: Literal["a", "b"]
        text: str = Field(min_length=2, max_length=3)

    wrong: tuple[dict[str, object], ...] = (
        {},
        {"limit": "x", "exact": "x", "kind": "x", "text": "x"},
        {"limit": 0, "exact": 2, "kind": "", "text": "long"},
        {"limit": 6},
        {"limit": "1" * 5000},
    )
    for one in wrong:
        with pytest.raises(ValidationError) as caught:
            Taken.model_validate(one)
        for found in caught.value.errors():
            told = malformed({**found, "loc": ("query", *found["loc"])}).message
            assert "another form" not in told, found
            assert "{" not in told, found
