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
CLOCK = re.compile(r"\b(time|monotonic|perf_counter)(_ns)?\(\)")
#: These ask whether a run takes the same time whatever it was given.
TIMED = {
    "test_a_run_that_does_not_end_is_told_in_time_and_keeps_its_place",
    "test_a_score_that_comes_too_late_is_none",
    "test_a_run_takes_as_long_whatever_it_was_given",
    "test_a_run_is_told_at_its_end_not_before",
    "test_an_error_is_told_at_its_end_too",
    "test_time_is_left_to_end_a_run",
    "test_time_ends_it_where_fuel_does_not",
}


def test_pages_that_run_together_serve_at_ports_of_their_own() -> None:
    ports = Counter[str]()
    for page in PAGES:
        text = page.read_text()
        if "<!-- run" in text and "$ modicum serve" in text:
            found = set(re.findall(r"port[ =:]+(\d+)", text)) or {"8642"}
            assert len(found) == 1, page
            ports.update(found)
    assert len(ports) > 2
    assert set(ports.values()) == {1}, ports


def test_no_test_fails_because_the_clock_went_on() -> None:
    """A busy machine is no failure: CPU time or a count says what was meant."""
    texts = {path: path.read_text() for path in TESTS}
    clocked = [(path, text) for path, text in texts.items() if CLOCK.search(text)]
    assert len(clocked) > 20
    for path, text in clocked:
        for function in ast.walk(ast.parse(text)):
            if isinstance(function, ast.FunctionDef) and function.name not in TIMED:
                assert not hurried(function), f"{path}: {function.name}"


def hurried(function: ast.FunctionDef) -> list[str]:
    """Return the assertions that something took less than some time."""
    spans: set[str] = set()
    found = []
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and is_span(node.value, spans):
            spans |= {one.id for one in node.targets if isinstance(one, ast.Name)}
        if not isinstance(node, ast.Assert):
            continue
        for one in ast.walk(node.test):
            if isinstance(one, ast.Compare):
                sides = [one.left, *one.comparators]
                for left, sign, right in zip(sides, one.ops, sides[1:], strict=False):
                    smaller = left if isinstance(sign, ast.Lt | ast.LtE) else right
                    is_order = isinstance(sign, ast.Lt | ast.LtE | ast.Gt | ast.GtE)
                    if is_order and is_span(smaller, spans):
                        found.append(ast.unparse(one))
    return found


def is_span(node: ast.expr, spans: set[str]) -> bool:
    """Return whether an expression is how long something took."""
    return any(
        (
            isinstance(one, ast.BinOp)
            and isinstance(one.op, ast.Sub)
            and bool(CLOCK.search(ast.unparse(one)))
        )
        or (isinstance(one, ast.Name) and one.id in spans)
        for one in ast.walk(node)
    )


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("assert time.monotonic() - begun < 2", True),
        ("assert 1 <= time.monotonic() - begun < 2", True),
        ("assert 2 > (time.perf_counter_ns() - begun) * 1000", True),
        ("took = monotonic() - begun\n assert done and round(took) <= 2", True),
        ("assert time.monotonic() - begun >= 2", False),
        ("assert time.process_time() - begun < 2", False),
        ("assert time.monotonic() < until", False),
    ],
)
def test_hurried_tests_are_recognized(text: str, is_found: bool) -> None:
    (function,) = ast.parse(f"def test():\n {text}").body
    assert isinstance(function, ast.FunctionDef)
    assert bool(hurried(function)) == is_found


def test_a_case_that_is_named_by_an_address_is_refused() -> None:
    """Each process that runs tests would name it otherwise."""
    refuse_addresses(["tests/a.py::test_b[<lambda>]", "tests/a.py::test_c[0x10]"])
    with pytest.raises(pytest.UsageError, match="test_d"):
        refuse_addresses(["tests/a.py::test_d[<object object at 0x7f1e0c1b2a40>]"])
