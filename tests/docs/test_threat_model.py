"""Each claim of the threat model names a test, and that test is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/explanation/threat-model.md"
#: A line of a table of claims: what is claimed, and the test.
_CLAIM = re.compile(
    r"^\| (?P<claim>[^|]+) \| `(?P<file>tests/[^:`]+)::(?P<test>\w+)` \|$"
)


def claims() -> list[tuple[str, str, str]]:
    text = PAGE.read_text(encoding="utf-8")
    held = text.partition("## What holds")[2].partition("## What it does not")[0]
    rows = [one for one in held.splitlines() if one.startswith("| ")]
    found = [_CLAIM.match(one) for one in rows if not one.startswith("| claim")]
    assert all(found), [row for row, one in zip(rows, found, strict=False) if not one]
    return [(one["claim"], one["file"], one["test"]) for one in found if one]


def test_there_are_claims() -> None:
    assert len(claims()) >= 30


@pytest.mark.parametrize(("claim", "file", "test"), claims())
def test_a_claim_has_a_test(claim: str, file: str, test: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    names = {
        one.name
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert test in names, claim
