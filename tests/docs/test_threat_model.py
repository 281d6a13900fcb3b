"""Each claim about attacks names a test, and that test is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs/explanation"
#: The sections with claims, and the headings after them.
SECTIONS = (
    ("threat-model.md", "## What holds", "## What it does not"),
    ("what-a-rule-promises.md", "## Attempts to hide a loss", "## A release in parts"),
)
#: A line of a table of claims: what is claimed, and the test.
_CLAIM = re.compile(
    r"^\| (?P<claim>[^|]+) \| `(?P<file>tests/[^:`]+)::(?P<test>\w+)` \|$"
)


def claims(page: str, start: str, end: str) -> list[tuple[str, str, str]]:
    text = (PAGES / page).read_text(encoding="utf-8")
    held = text.partition(start)[2].partition(end)[0]
    rows = [one for one in held.splitlines() if one.startswith("| ")]
    found = [_CLAIM.match(one) for one in rows if not one.startswith("| claim")]
    assert all(found), [row for row, one in zip(rows, found, strict=False) if not one]
    return [(one["claim"], one["file"], one["test"]) for one in found if one]


CLAIMS = [claims(*section) for section in SECTIONS]


def test_there_are_claims() -> None:
    assert len(CLAIMS[0]) >= 30
    assert len(CLAIMS[1]) >= 10


@pytest.mark.parametrize(
    ("claim", "file", "test"), [one for each in CLAIMS for one in each]
)
def test_a_claim_has_a_test(claim: str, file: str, test: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    names = {
        one.name
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert test in names, claim
