"""The map from packages to suites is true, and CONTRIBUTING shows it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
from suites import (
    BOTTOM,
    ROOT,
    SUITES,
    TESTS,
    needs_counts,
    suite_of,
    touched_by,
    within,
)

SOURCE = ROOT / "src" / "modicum"
MODULES = sorted(TESTS.rglob("test_*.py"))


@cache
def imported(module: Path) -> frozenset[str]:
    """Return what a module of tests imports of modicum, itself or by samples."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
        elif isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        for name in names:
            top, _, rest = name.partition(".")
            path = TESTS.joinpath(*name.split(".")).with_suffix(".py")
            if top == "modicum" and _is_module(rest):
                found.add(rest)
            elif top in ("samples", "oracle") and path.is_file():
                found |= imported(path)
    return frozenset(found)


def _is_module(name: str) -> bool:
    path = SOURCE.joinpath(*name.split("."))
    return bool(name) and (path.with_suffix(".py").is_file() or path.is_dir())


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_has_the_tests_and_packages_that_it_names(name: str) -> None:
    suite = SUITES[name]
    for pattern in suite.tests:
        own = [one for one in MODULES if one.relative_to(TESTS).match(pattern)]
        assert own, pattern
        assert {suite_of(one) for one in own} == {name}, pattern
    for package in suite.packages:
        assert _is_module(package), package
        assert not within(package, BOTTOM), package


@pytest.mark.parametrize("name", SUITES)
def test_what_a_suite_uses_runs_it(name: str) -> None:
    """A change in what its tests import, above the bottom, is noticed."""
    known = (*BOTTOM, *SUITES[name].packages)
    for module in MODULES:
        if suite_of(module) == name:
            left = {
                one
                for one in imported(module)
                if not within(one, known)
                and not any(b.startswith(f"{one}.") for b in known)
            }
            assert not left, (module.name, sorted(left))


def test_every_package_runs_a_suite() -> None:
    for path in sorted(SOURCE.iterdir()):
        if path.is_dir() and path.name != "__pycache__":
            file = f"src/modicum/{path.name}/x.py"
            assert touched_by([file]), path.name


def test_what_is_touched_runs_what_may_break() -> None:
    every = [*SUITES]
    for bottom in ("core/rationals.py", "ledger/log/x.py", "__init__.py"):
        assert touched_by([f"src/modicum/{bottom}"]) == every
    for other in ("pyproject.toml", ".ci/run", "tests/samples/small.py", "?"):
        assert touched_by([other]) == every
    assert touched_by(["docs/index.md", "README.md"]) == ["docs"]
    assert touched_by(["tests/system/test_kills.py"]) == ["kills"]
    assert touched_by(["tests/unit/core/test_exact.py"]) == []
    # Written after a whole run, it is in the change of every commit from there on.
    assert touched_by([".ci/whole", "src/modicum/risk/choice.py"]) == touched_by(
        ["src/modicum/risk/choice.py"]
    )
    # Single tests of these are in suites.
    assert touched_by(["tests/docs/test_docs.py"]) == ["docs"]
    assert touched_by(["tests/unit/storage/test_store_contract.py"]) == ["postgres"]
    assert "engines" not in touched_by(["src/modicum/cli/main.py"])
    assert "engines" in touched_by(["src/modicum/engines/duckdb_engine.py"])


def test_all_examples_run_if_a_decision_may_have_changed() -> None:
    for file in ("core/rationals.py", "ledger/log/x.py", "api/local/submit.py"):
        assert needs_counts(["docs/index.md", f"src/modicum/{file}"])
    assert needs_counts(["?"])
    for file in ("api/schema/plan.py", "api/local/handlers/log.py", "console/html.py"):
        assert not needs_counts([f"src/modicum/{file}", "pyproject.toml"])


def test_contributing_shows_every_suite() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for name, one in SUITES.items():
        assert f"| `{name}` | {one.about} |" in text
