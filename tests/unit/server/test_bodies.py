"""What is sent is read exactly, with its places, and only so much of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from samples.served import Served, served
from samples.small import POLICY

from modicum.core.yaml_reader import read_document
from modicum.server.inputs import body
from modicum.server.inputs.body import FORM_BYTES, TREE_BYTES
from modicum.server.service.threads import ASKING


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "policy.yaml").write_text(POLICY)
    with served(tmp_path / "ledger.db", policy=tmp_path / "policy.yaml") as found:
        yield found


RELEASE = {
    "release": "r",
    "dataset": "visits",
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


def send(
    server: Served,
    path: str,
    text: str,
    kind: str = "application/json",
    who: str = "amir",
) -> Any:
    headers = {"X-Who": who, "Content-Type": kind, "Idempotency-Key": "k"}
    return server.client.post(f"/api/v1{path}", content=text, headers=headers)


@pytest.mark.parametrize("kind", ["application/json", "application/yaml", ""])
@pytest.mark.parametrize("path", ["/releases:check", "/releases/none:void"])
@pytest.mark.parametrize("text", ["", " \n"])
def test_a_request_without_a_body_is_told_so(
    server: Served, path: str, kind: str, text: str
) -> None:
    response = send(server, path, text, kind)
    assert (response.status_code, response.json()["code"]) == (400, "MOD007")
    assert response.json()["detail"] == "the request has no body"
    assert "JSON" in response.json()["help"]


def test_a_form_is_read_up_to_a_size(server: Served) -> None:
    padded = '{"reason": "x"' + " " * FORM_BYTES + "}"
    large = send(server, "/releases/none:void", padded)
    assert (large.status_code, large.json()["code"]) == (413, "MOD005")
    fits = send(server, "/releases/none:void", '{"reason": "x"}')
    assert fits.status_code == 404


def test_yaml_is_read_up_to_a_size_and_json_further(server: Served) -> None:
    text = '{"release": "r", "mechanisms": []' + " " * TREE_BYTES + "}"
    yaml = send(server, "/releases:check", text, "application/yaml")
    assert (yaml.status_code, yaml.json()["code"]) == (413, "MOD005")
    assert "65536 bytes" in yaml.json()["detail"]
    assert "JSON" in yaml.json()["help"]
    json = send(server, "/releases:check", text)
    small = send(server, "/releases:check", '{"release": "r", "mechanisms": []}')
    # Its own mistake is told, if not the place of it.
    assert (json.status_code, small.status_code) == (422, 422)
    assert json.json()["code"] == small.json()["code"]
    assert (json.json()["line"], small.json()["line"]) == (None, 1)


def test_what_aliases_repeat_counts_each_time(server: Served) -> None:
    many = ", ".join(["1"] * 200)
    text = f"mechanisms: [&a [{many}], {', '.join(['*a'] * 200)}]"
    response = send(server, "/releases:check", text, "application/yaml")
    assert (response.status_code, response.json()["code"]) == (413, "MOD005")
    assert response.json()["detail"] == "more than 32768 values in one document"
    assert response.json()["help"]


def test_a_large_policy_is_read_as_json_only(server: Served) -> None:
    policy = YAML(typ="safe").load(POLICY)
    del policy["extensions"]  # Its map has numbers for keys, and JSON has none.
    for number in range(800):
        name = f"a_column_with_quite_a_long_name_{number:050}"
        policy["schema"]["attributes"][name] = ["high", {"health": "member"}]
    text = json.dumps(policy)
    assert TREE_BYTES < len(text) < 2**20
    yaml = send(server, "/policies:lint", text, "application/yaml")
    assert (yaml.status_code, yaml.json()["code"]) == (413, "MOD005")
    large = send(server, "/policies:lint", text)
    assert large.status_code == 200, large.text
    wrong = send(server, "/policies:lint", text.replace('"high"', '"hihg"', 1))
    assert (wrong.status_code, wrong.json()["line"]) == (422, None)


def test_one_document_is_read_at_a_time_and_others_do_not_wait(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, end = threading.Event(), threading.Event()
    now, most, guard = [0], [0], threading.Lock()
    really = read_document

    def slowly(*given: Any) -> Any:
        with guard:
            now[0] += 1
            most[0] = max(most[0], now[0])
        started.set()
        try:
            assert end.wait(60)
            return really(*given)
        finally:
            with guard:
                now[0] -= 1

    monkeypatch.setattr(body, "read_document", slowly)
    release = json.dumps(RELEASE)
    with ThreadPoolExecutor(2 * ASKING) as others:
        try:
            waiting = [
                others.submit(send, server, path, release, "application/yaml", who)
                for who in ("amir", "dara")
                for path in ["/releases:check"] * ASKING
            ]
            assert started.wait(60)
            # Neither health nor decisions wait for any of them.
            assert server.client.get("/healthz").status_code == 200
            assert server.client.get("/readyz").status_code == 200
            for path in ("/releases:check", "/releases"):
                assert send(server, path, release, who="ann").status_code == 200
            assert not any(one.done() for one in waiting)
        finally:
            end.set()
        assert {one.result().status_code for one in waiting} == {200}
    assert most == [1]


def test_what_else_is_sent_is_not_read(server: Served) -> None:
    other = send(server, "/releases:check", "x", "text/html")
    assert (other.status_code, other.json()["code"]) == (415, "MOD839")


@pytest.mark.parametrize("size", [0, 100, 200_000])
def test_who_is_refused_before_a_body_is_read_may_ask_again(
    server: Served, size: int
) -> None:
    text = "x" * size
    for _ in range(4):  # The client keeps its connection, unless it is told not to.
        response = send(server, "/releases:check", text, "application/yaml", who="root")
        assert response.status_code == 403
        assert (response.headers.get("connection") == "close") == (size > 0)
