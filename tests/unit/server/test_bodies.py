"""What is sent is read exactly, with its places, and only so much of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from samples.served import Served, served
from samples.small import POLICY

from modicum.server.bodies import FORM_BYTES, TREE_BYTES


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "policy.yaml").write_text(POLICY)
    with served(tmp_path / "ledger.db", policy=tmp_path / "policy.yaml") as found:
        yield found


def send(server: Served, path: str, text: str, kind: str = "application/json") -> Any:
    headers = {"X-Who": "amir", "Content-Type": kind, "Idempotency-Key": "k"}
    return server.client.post(f"/api/v1{path}", content=text, headers=headers)


@pytest.mark.parametrize("kind", ["application/json", "application/yaml", ""])
@pytest.mark.parametrize("path", ["/releases:check", "/releases/none:void"])
@pytest.mark.parametrize("text", ["", " \n"])
def test_a_request_without_a_body_is_told_so(
    server: Served, path: str, kind: str, text: str
) -> None:
    told = send(server, path, text, kind)
    assert (told.status_code, told.json()["code"]) == (400, "MOD007")
    assert told.json()["detail"] == "the request has no body"
    assert "JSON" in told.json()["help"]


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
    json = send(server, "/releases:check", text)
    small = send(server, "/releases:check", '{"release": "r", "mechanisms": []}')
    # Its own mistake is told, if not the place of it.
    assert (json.status_code, small.status_code) == (422, 422)
    assert json.json()["code"] == small.json()["code"]
    assert (json.json()["line"], small.json()["line"]) == (None, 1)


def test_what_else_is_sent_is_not_read(server: Served) -> None:
    other = send(server, "/releases:check", "x", "text/html")
    assert (other.status_code, other.json()["code"]) == (415, "MOD839")
