"""Write docs/reference/openapi.json: what the server answers, for programs.

Run `.venv/bin/python tools/openapi.py` after changing a route. It refuses to take
something away from those who rely on it, unless it is told `--breaking`; with
`--check` nothing is written, and the exit code says whether the file is current.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from modicum.server.app import build
from modicum.server.openapi import description_of, operations
from modicum.server.rate_limits import Rates
from modicum.server.telemetry.context import TelemetryContext

FILE = Path(__file__).parents[1] / "docs" / "reference" / "openapi.json"

Json = dict[str, Any]


def described() -> Json:
    """Return the description of the server, without any ledger."""
    parts: Any = SimpleNamespace(
        entrance=None,
        watch=TelemetryContext(),
        anonymous_rates=Rates(),
        console=None,
    )
    return description_of(build(parts))


def text() -> str:
    """Return the whole file."""
    return json.dumps(described(), indent=1, ensure_ascii=False) + "\n"


# --- what would break those who rely on it ------------------------------------------


def breaking(old: Json, new: Json) -> list[str]:
    """Return what those who rely on a description could no longer rely on.

    Args:
        old: The description that they rely on.
        new: The description that is to replace it.
    """
    before, after = _by_address(old), _by_address(new)
    found = []
    for address, operation in before.items():
        if address not in after:
            found.append(f"{address}: the route is gone")
            continue
        later = after[address]
        if operation["operationId"] != later["operationId"]:
            found.append(f"{address}: its operationId is another one")
        found += [
            f"{address}: {one}" for one in _asked_more(old, operation, new, later)
        ]
        found += [f"{address}: {one}" for one in _told_less(old, operation, new, later)]
    return found


def _asked_more(old: Json, before: Json, new: Json, after: Json) -> Iterator[str]:
    """Yield what a request must have now, and need not have had."""
    were = _parameters(old, before)
    for name, parameter in _parameters(new, after).items():
        needed = parameter.get("required", False)
        if needed and not were.get(name, {}).get("required", False):
            yield f"the parameter {' '.join(name)} is required now"
    for name in were.keys() - _parameters(new, after).keys():
        yield f"the parameter {' '.join(name)} is not taken any more"
    bodies, now = _bodies(before), _bodies(after)
    if now and not bodies:
        yield "a body is required now"
    for kind in bodies.keys() - now.keys():
        yield f"a body of type {kind} is not taken any more"
    for kind in bodies.keys() & now.keys():
        for path in _required(new, now[kind]) - _required(old, bodies[kind]):
            yield f"the body's {path} is required now"


def _told_less(old: Json, before: Json, new: Json, after: Json) -> Iterator[str]:
    """Yield what an answer told, and does not tell any more."""
    for status in (one for one in before["responses"] if one < "300"):
        later = after["responses"].get(status)
        if later is None:
            yield f"it does not respond {status} any more"
            continue
        answered = _fields(old, _answer(old, before["responses"][status]))
        tells = _fields(new, _answer(new, later))
        for path in sorted(answered - tells):
            yield f"the answer's {path} is gone"


def _by_address(description: Json) -> dict[str, Json]:
    return {
        f"{method.upper()} {path}": one for method, path, one in operations(description)
    }


def _parameters(description: Json, operation: Json) -> dict[tuple[str, str], Json]:
    found = (_resolved(description, one) for one in operation.get("parameters", ()))
    return {(one["in"], one["name"]): one for one in found}


def _bodies(operation: Json) -> Json:
    content: Json = operation.get("requestBody", {}).get("content", {})
    return {kind: one.get("schema", {}) for kind, one in content.items()}


def _answer(description: Json, answer: Json) -> Json:
    content = _resolved(description, answer).get("content", {})
    found: Json = content.get("application/json", {}).get("schema", {})
    return found


def _required(description: Json, schema: Json) -> set[str]:
    """Return what must be there: paths of keys in objects that are always there."""
    found: set[str] = set()
    whole = _resolved(description, schema)
    for name in whole.get("required", ()):
        found.add(name)
        inner = whole.get("properties", {}).get(name, {})
        found |= {f"{name}.{one}" for one in _required(description, inner)}
    return found


def _fields(description: Json, schema: Json, seen: tuple[str, ...] = ()) -> set[str]:
    """Return every path of keys that a document may have."""
    reference = schema.get("$ref")
    if reference in seen:
        return set()
    seen = (*seen, reference) if reference else seen
    whole = _resolved(description, schema)
    found: set[str] = set()
    for name, inner in whole.get("properties", {}).items():
        below = _fields(description, inner, seen)
        found |= {name, *(f"{name}.{one}" for one in below)}
    parts = [whole.get("items"), whole.get("additionalProperties")]
    for one in (*parts, *whole.get("anyOf", ()), *whole.get("oneOf", ())):
        if isinstance(one, dict):
            found |= _fields(description, one, seen)
    return found


def _resolved(description: Json, node: Json) -> Json:
    while "$ref" in node:
        found: Any = description
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        node = found
    return node


def main() -> None:
    """Write the file, or check it."""
    known = FILE.read_text(encoding="utf-8") if FILE.exists() else ""
    wanted = text()
    broken = breaking(json.loads(known), json.loads(wanted)) if known else []
    print("".join(f"breaking: {one}\n" for one in broken), end="")
    if "--check" in sys.argv[1:]:
        print(f"{FILE.name} is {'current' if known == wanted else 'out of date'}")
        sys.exit(known != wanted)
    if broken and "--breaking" not in sys.argv[1:]:
        sys.exit("nothing was written; with --breaking it is")
    FILE.write_text(wanted, encoding="utf-8")


if __name__ == "__main__":
    main()
