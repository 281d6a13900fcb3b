"""Names in backticks, in docstrings and comments, are names of something here."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "modicum"
PATHS = sorted(ROOT.rglob("*.py"))
NAMED = re.compile(r"`([A-Za-z_][\w.]*)(?:\(\))?`")
#: Columns that SQL statements make: `c0`, `table_1`.
NUMBERED = re.compile(r"[a-z]+_?\d")
#: Names of other things than ours: of examples, headers, libraries.
OTHERS = {
    *("ann", "city", "sx", "gauss", "USD"),
    *("Host", "Secure", "Lax", "Strict"),
    *("DpEvent", "httpfs", "prv"),
}


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield first.value


@cache
def prose(source: str) -> tuple[list[str], set[str]]:
    """Return docstrings and comments, and the words of all other code."""
    docstrings = list(_docstrings(ast.parse(source)))
    places = {(one.lineno, one.col_offset) for one in docstrings}
    found, words = [str(one.value) for one in docstrings], set[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            found.append(token.string)
        elif token.start not in places:
            words.update(re.findall(r"\w+", token.string))
    return found, words


@cache
def known() -> frozenset[str]:
    modules = {part for path in PATHS for part in path.relative_to(ROOT).parts}
    words = {word for path in PATHS for word in prose(path.read_text())[1]}
    return frozenset({one.removesuffix(".py") for one in modules} | words | OTHERS)


def unknown(source: str) -> list[str]:
    """Return the names in docstrings and comments that nothing has."""
    return [
        name
        for text in prose(source)[0]
        for name in NAMED.findall(text)
        for part in name.split(".")
        if part not in known() and not NUMBERED.fullmatch(part)
    ]


def modules_around(path: Path) -> set[str]:
    folders = (path.parent, path.parent.parent)
    return {one.stem for folder in folders for one in folder.iterdir()}


def misplaced(path: Path, source: str) -> list[str]:
    """Return what a module's docstring refers to that is not near it."""
    text = ast.get_docstring(ast.parse(source)) or ""
    names = re.findall(r"see\s+`(\w+)`", text)
    if path.name == "__init__.py":
        names += re.findall(r"`([a-z_]+)(?:\.\w+)?`", text)
    near = modules_around(path) | _own(path) | OTHERS if names else set()
    return [one for one in names if one not in near]


def _own(path: Path) -> set[str]:
    """Return the words of the code of a package, or of a module."""
    near = path.parent.rglob("*.py") if path.name == "__init__.py" else [path]
    return {word for one in near for word in prose(one.read_text())[1]}


@pytest.mark.parametrize("source", ['"""See `gone_away`."""', "# Made by `Gone`.\n"])
def test_a_name_that_nothing_has_is_found(source: str) -> None:
    assert unknown(source)
    assert misplaced(ROOT / "query" / "model.py", '"""X (see `clerk`)."""') == ["clerk"]


def test_names_in_docstrings_and_comments_exist() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): names
        for path in PATHS
        if (names := unknown(path.read_text()))
    }
    assert not found


def test_docstrings_of_modules_refer_to_modules_near_them() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): names
        for path in PATHS
        if (names := misplaced(path, path.read_text()))
    }
    assert not found
