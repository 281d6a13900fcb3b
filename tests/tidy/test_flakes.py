"""What made tests fail by chance is not done again."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from conftest import refuse_addresses

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
TESTS = sorted((ROOT / "tests").rglob("*.py"))
CLOCKS = {"time", "monotonic", "perf_counter"}
#: That a run takes as long whatever it was given is what these ask.
TIMED = {
    "test_hard_to_kill.py", "test_told_scores.py", "test_webassembly.py",
}  # fmt: skip


def test_pages_that_run_together_serve_at_ports_of_their_own() -> None:
    ports = Counter[str]()
    for page in PAGES:
        text = page.read_text()
        if "<!-- run" in text:
            found = re.findall(r"(?:--port |listen: \{port: )(\d+)", text)
            assert len(set(found)) <= 1, page
            ports.update(set(found))
    assert len(ports) > 2
    assert set(ports.values()) == {1}, ports


@pytest.mark.parametrize("path", TESTS, ids=lambda one: one.name)
def test_no_test_fails_because_the_clock_went_on(path: Path) -> None:
    """A busy machine is no failure: CPU time or a count says what was meant."""
    if path.name in TIMED:
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Assert) or not isinstance(node.test, ast.Compare):
            continue
        sides = [node.test.left, *node.test.comparators]
        for smaller, sign in zip(sides, node.test.ops, strict=False):
            if isinstance(sign, ast.Lt | ast.LtE):
                assert not is_span(smaller), f"line {node.lineno}"


def is_span(node: ast.expr) -> bool:
    """Return whether an expression is how long something took."""
    return isinstance(node, ast.BinOp) and any(
        isinstance(side, ast.Call)
        and isinstance(side.func, ast.Attribute)
        and side.func.attr in CLOCKS
        for side in (node.left, node.right)
    )


def test_spans_are_recognized() -> None:
    for text, expected in {
        "time.monotonic() - begun": True,
        "time.process_time() - begun": False,
        "until - time.monotonic()": True,
        "a - b": False,
    }.items():
        assert is_span(ast.parse(text, mode="eval").body) == expected


def test_a_case_that_is_named_by_an_address_is_refused() -> None:
    """Each process that runs tests would name it otherwise."""
    refuse_addresses(["tests/a.py::test_b[<lambda>]", "tests/a.py::test_c[0x10]"])
    with pytest.raises(pytest.UsageError, match="test_d"):
        refuse_addresses(["tests/a.py::test_d[<object object at 0x7f1e0c1b2a40>]"])
