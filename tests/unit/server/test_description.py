"""The OpenAPI description: checked in, well formed, and kept to."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from samples.tools import tool

from modicum.server.openapi import operations

ROOT = Path(__file__).parents[3]

Json = dict[str, Any]


TOOL: Any = tool("openapi")
_DESCRIBED: Json = TOOL.described()


@pytest.fixture
def described() -> Json:
    return copy.deepcopy(_DESCRIBED)


def test_what_is_checked_in_is_current() -> None:
    shown = TOOL.FILE.read_text(encoding="utf-8")
    assert shown == TOOL.text(), "run .venv/bin/python tools/openapi.py"


def test_it_is_openapi(described: Json) -> None:
    assert described["openapi"].startswith("3.1.")
    schemathesis.openapi.from_dict(described).validate()
    for one in described["components"]["schemas"].values():
        Draft202012Validator.check_schema(one)


def test_its_references_lead_somewhere(described: Json) -> None:
    found = re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(described))
    assert found
    for one in found:
        node = described
        for part in one.split("/"):
            node = node[part]


def test_operations_have_short_names_of_their_own(described: Json) -> None:
    names = [one["operationId"] for _, _, one in operations(described)]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[a-z]+(_[a-z]+)+", one) for one in names)
    assert max(map(len, names)) <= 42


def test_every_operation_says_what_it_does_and_how_it_fails(described: Json) -> None:
    mistakes = described["components"]["responses"]
    for method, path, one in operations(described):
        where = f"{method} {path}"
        assert len(one["tags"]) == 1, where
        assert one["summary"].endswith("."), where
        assert len(one["summary"]) <= 90, where
        assert one["responses"].keys() >= {"400", "401", "403", "413", "429"}, where
        assert any(status < "300" for status in one["responses"]), where
        for status, answer in one["responses"].items():
            if status < "400":
                content = answer.get("content", {})
                assert bool(content) is (status not in ("204", "304")), where
                assert all(one["schema"] for one in content.values()), where
            else:
                assert answer == {"$ref": f"#/components/responses/Problem{status}"}
    for name, one in mistakes.items():
        assert one["content"] == {
            "application/problem+json": {
                "schema": {"$ref": "#/components/schemas/ProblemDetails"}
            }
        }, name
        assert one["description"] != "a mistake", name


# --- changes that break -------------------------------------------------------------


def _operation(description: Json, method: str, path: str) -> Json:
    found: Json = description["paths"][f"/api/v1{path}"][method]
    return found


def _without_route(description: Json) -> None:
    del description["paths"]["/api/v1/me"]["get"]


def _with_parameter(description: Json) -> None:
    own = {"name": "day", "in": "query", "required": True, "schema": {}}
    _operation(description, "get", "/me").setdefault("parameters", []).append(own)


def _with_needed_parameter(description: Json) -> None:
    for one in _operation(description, "get", "/releases")["parameters"]:
        one["required"] = True


def _without_parameter(description: Json) -> None:
    _operation(description, "get", "/releases")["parameters"].clear()


def _without_field(description: Json) -> None:
    del description["components"]["schemas"]["Head"]["properties"]["seq"]


def _with_needed_field(description: Json) -> None:
    description["components"]["schemas"]["Release"]["required"].append("audience")


def _without_kind(description: Json) -> None:
    operation = _operation(description, "post", "/releases")
    del operation["requestBody"]["content"]["application/yaml"]


def _without_answer(description: Json) -> None:
    del _operation(description, "post", "/releases")["responses"]["202"]


def _with_body(description: Json) -> None:
    body = {"required": True, "content": {"application/json": {"schema": {}}}}
    _operation(description, "get", "/me")["requestBody"] = body


def _renamed(description: Json) -> None:
    _operation(description, "get", "/me")["operationId"] = "who"


BREAKING: dict[str, tuple[Callable[[Json], None], str]] = {
    "route": (_without_route, "GET /api/v1/me: the route is gone"),
    "parameter": (
        _with_parameter,
        "GET /api/v1/me: the parameter query day is required now",
    ),
    "needed parameter": (
        _with_needed_parameter,
        "GET /api/v1/releases: the parameter query cursor is required now",
    ),
    "lost parameter": (
        _without_parameter,
        "GET /api/v1/releases: the parameter query cursor is not taken any more",
    ),
    "field": (_without_field, "GET /api/v1/ledger/head: the answer's seq is gone"),
    "inner field": (
        _without_field,
        "POST /api/v1/releases:check: the answer's ledger.seq is gone",
    ),
    "needed field": (
        _with_needed_field,
        "POST /api/v1/releases: the body's audience is required now",
    ),
    "kind": (
        _without_kind,
        "POST /api/v1/releases: a body of type application/yaml is not taken any more",
    ),
    "answer": (
        _without_answer,
        "POST /api/v1/releases: it does not respond 202 any more",
    ),
    "body": (_with_body, "GET /api/v1/me: a body is required now"),
    "name": (_renamed, "GET /api/v1/me: its operationId is another one"),
}


@pytest.mark.parametrize("name", BREAKING)
def test_what_breaks_is_told(described: Json, name: str) -> None:
    change, expected = BREAKING[name]
    old = copy.deepcopy(described)
    change(described)
    assert expected in TOOL.breaking(old, described)


def test_what_adds_breaks_nothing(described: Json) -> None:
    old = copy.deepcopy(described)
    described["paths"]["/api/v1/days"] = {"get": _operation(old, "get", "/me")}
    more = {"name": "day", "in": "query", "required": False, "schema": {}}
    _operation(described, "get", "/releases")["parameters"].append(more)
    head = described["components"]["schemas"]["Head"]
    head["properties"]["more"] = {"type": "string"}
    head["required"].append("more")
    assert TOOL.breaking(old, described) == []
    assert TOOL.breaking(old, old) == []
