"""The browser libraries are what `tools/vendor.py` wrote, and nothing else."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from samples.tools import tool

VENDOR = tool("vendor")
LISTED = json.loads((VENDOR.FOLDER / "hashes.json").read_text(encoding="utf-8"))


def test_files_are_those_that_are_listed() -> None:
    found = {
        path.name: sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.FOLDER.iterdir()
        if path.name != "hashes.json"
    }
    assert found == LISTED["files"]


def test_packages_are_those_that_are_pinned() -> None:
    versions = {name: one["version"] for name, one in LISTED["packages"].items()}
    assert versions == VENDOR.PACKAGES
    text = (VENDOR.FOLDER / "LICENSES").read_text(encoding="utf-8")
    for name, version in versions.items():
        assert f"{name} {version}\n" in text


@pytest.mark.parametrize("name", ["htmx.min.js", "codemirror.min.js"])
def test_scripts_load_nothing_else(name: str) -> None:
    text = (VENDOR.FOLDER / name).read_text(encoding="utf-8")
    assert "sourceMappingURL" not in text
    assert "import " not in text
