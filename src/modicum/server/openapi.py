"""The OpenAPI 3.1 description of the application, as its readers want it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from modicum.api.operations import PREFIX
from modicum.api.schema.shape import Input, Shape, json_schemas, shapes
from modicum.server.problems import MEDIA_TYPE
from modicum.server.routes.releases import release_component

Json = dict[str, Any]

_METHODS: Final = frozenset(
    {"get", "put", "post", "delete", "options", "head", "patch", "trace"}
)
#: Headers without which a request is answered 428.
_REQUIRED: Final = frozenset({"Idempotency-Key", "If-Match"})

_TRACE: Final[Json] = {
    "description": "the id of the request, as in logs",
    "required": True,
    "schema": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
}
_RETRY: Final[Json] = {
    "description": "the seconds to wait before the next request",
    "required": True,
    "schema": {"type": "integer", "minimum": 0},
}
_CHALLENGE: Final[Json] = {
    "description": "how to authenticate",
    "required": True,
    "schema": {"type": "string"},
}
#: The headers of an answer, besides the id of its request, by its status.
_HEADERS: Final[dict[str, dict[str, Json]]] = {
    "401": {"WWW-Authenticate": _CHALLENGE},
    "429": {"Retry-After": _RETRY},
    "503": {"Retry-After": _RETRY},
}


def description_of(app: FastAPI) -> Json:
    """Return the OpenAPI 3.1 description of an application."""
    known: Json | None = getattr(app.state, "description", None)
    if known is None:
        known = app.state.description = _described(app)
    return known


def operations(description: Json) -> Iterator[tuple[str, str, Json]]:
    """Yield the method, the address, and the description of every operation."""
    for path, item in description["paths"].items():
        for method, operation in item.items():
            if method in _METHODS:
                yield method, path, operation


def _described(app: FastAPI) -> Json:
    found = get_openapi(
        title="modicum",
        version="1",
        summary="Privacy budgets for organizations",
        routes=app.routes,
    )
    release = release_component()
    definitions = release.pop("$defs", {})
    components = found.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas.update(json_schemas(_shapes(found)))
    schemas.update(_renamed(definitions))
    schemas["Policy"] = {
        "type": "object",
        "description": "a policy; its JSON Schema is printed by `modicum policy"
        " schema`",
    }
    components["securitySchemes"] = {
        "token": {
            "type": "http",
            "scheme": "bearer",
            "description": "an API token, or a JWT of the organization's provider",
        }
    }
    found["security"] = [{"token": []}]
    mistakes: Json = {}
    for method, path, operation in operations(found):
        _refine(operation, method, path)
        _gather(operation["responses"], mistakes)
    components["responses"] = dict(sorted(mistakes.items()))
    found["paths"] = {
        path.replace(PREFIX, app.state.prefix, 1): item
        for path, item in found["paths"].items()
    }
    return found


def _shapes(found: Json) -> list[type[Shape | Input]]:
    """Return the shapes that a description refers to."""
    known = shapes()
    names = re.findall(r'"#/components/schemas/(\w+)"', json.dumps(found))
    return [known[one] for one in sorted({*names}) if one in known]


# --- operations ---------------------------------------------------------------------


def _refine(operation: Json, method: str, path: str) -> None:
    """Set the id, the description, and the response headers of an operation."""
    operation["operationId"] = _operation_id(method, path)
    summary, _, rest = operation.pop("description").partition("\n\n")
    operation["summary"] = " ".join(summary.split())
    if rest:
        operation["description"] = rest
    for one in operation.get("parameters", ()):
        _insist(one)
    operation["responses"] = dict(sorted(operation["responses"].items()))
    for status, answer in operation["responses"].items():
        answer["headers"] = {"X-Request-Id": _TRACE, **_HEADERS.get(status, {})}


def _insist(parameter: Json) -> None:
    """Mark a header as required whose absence has a separate status."""
    if parameter["name"] in _REQUIRED:
        form = parameter["schema"].pop("anyOf")[0]
        parameter["schema"] = {**form, **parameter["schema"]}
        parameter["required"] = True


def _gather(answers: Json, mistakes: Json) -> None:
    """Let operations share the description of each error."""
    for status, answer in answers.items():
        if status >= "400":
            answer["content"] = {MEDIA_TYPE: answer["content"]["application/json"]}
            mistakes[f"Problem{status}"] = answer
            answers[status] = {"$ref": f"#/components/responses/Problem{status}"}


def _operation_id(method: str, path: str) -> str:
    """Return a stable name that depends on the path alone."""
    parts = re.findall(r"[a-z]+", path.removeprefix(PREFIX))
    return "_".join((method, *parts))


# --- the format of releases ---------------------------------------------------------


def _renamed(definitions: Json) -> Json:
    """Return the definitions of the release format as components."""

    def moved(node: Any) -> Any:
        if isinstance(node, dict):
            return {
                key: _component(value)
                if key == "$ref" and isinstance(value, str)
                else moved(value)
                for key, value in node.items()
            }
        return [moved(one) for one in node] if isinstance(node, list) else node

    return {
        _name_of(name): {k: v for k, v in moved(one).items() if k != "$schema"}
        for name, one in definitions.items()
    }


def _component(reference: str) -> str:
    name = reference.rsplit("/", 1)[-1]
    return f"#/components/schemas/{_name_of(name)}"


def _name_of(name: str) -> str:
    return name[:1].upper() + name[1:]
