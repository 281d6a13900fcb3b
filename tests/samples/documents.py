"""JSON documents, and what the page about them says that they hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from samples.shapes import exactly
from samples.tools import tool

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "json.md"


def check_described(section: str, documents: Iterable[Any]) -> None:
    """Check that a section describes documents, and no more than they hold.

    A table made from a shape may have keys that these documents lack.
    """
    made = re.search(r"^<!-- shape: (\w+)(?: in (\w+))? -->$", _part(section), re.M)
    if made is None:
        described = described_in(section)
        found = {path for one in documents for path in keys(one, described)}
        assert sorted(described) == sorted(found)
        return
    kind, listed = tool("json_reference").shapes()[made[1]], made[2]
    for one in documents:
        if listed:
            assert set(one) == {listed}
            assert one[listed]
        for item in one[listed] if listed else (one,):
            exactly(kind, item)


def described_in(section: str) -> dict[str, str]:
    """Return the paths that a section describes, and the type of each."""
    rows = re.findall(r"^\| (`[^|]+`) \| ([^|]+) \|", _part(section), re.MULTILINE)
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


def _part(section: str) -> str:
    text = PAGE.read_text(encoding="utf-8")
    part = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert part is not None, f"json.md has no section `{section}`"
    return part[1]
