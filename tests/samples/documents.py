"""JSON documents, and what the page about them says that they hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "json.md"


def described_in(section: str) -> dict[str, str]:
    """Return the paths that a section describes, and the type of each."""
    text = PAGE.read_text(encoding="utf-8")
    part = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert part is not None, f"json.md has no section `{section}`"
    rows = re.findall(r"^\| (`[^|]+`) \| ([^|]+) \|", part[1], re.MULTILINE)
    named = [
        (path, kind) for cell, kind in rows for path in re.findall(r"`([^`]+)`", cell)
    ]
    described = dict(named)
    assert len(described) == len(named)
    return described


def keys(value: object, described: dict[str, str], path: str = "") -> Iterator[str]:
    """Yield the paths of a document.

    Below a described `x.*` every key is one path; what is described as `a decision`
    or `a problem` is described elsewhere.
    """
    if described.get(path, "").startswith("a "):
        yield path
    elif isinstance(value, dict):
        for key, inner in value.items():
            below = f"{path}.*" if f"{path}.*" in described else f"{path}.{key}"
            yield below.removeprefix(".")
            yield from keys(inner, described, below.removeprefix("."))
    elif isinstance(value, list):
        for item in value:
            yield from keys(item, described, f"{path}[]")
