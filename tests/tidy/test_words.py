"""Texts that users see avoid phrases that a native reader would not write."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "modicum").rglob("*.py"))
#: Pages that are written by hand; the others follow from docstrings.
GENERATED = {"json.md"}
PAGES = sorted(
    path
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    if path.name not in GENERATED
)

#: Phrases that are refused, each with what to write.
PLAIN = {
    "taken again and agree": "replayed, all match",
    "came in with entry": "reserved in entry",
    "what would pass": "what would be allowed, or: would be allowed with",
    "no change of one kind": "no single-parameter change would fit",
    "losses do not simply add": "epsilon is sub-additive under this composition",
    "may still cost rho": "remaining for a Gaussian mechanism: rho = …",
    "falls under nothing": "is covered by no equally strict rule",
    "about nothing": "matches no mechanism",
    "vouched for by": "signed by trusted keys",
    "whoever": "anyone who, or a role: the operator, the requester",
    "stands already": "already exists",
    "is there already": "already exists",
    "so many": "a number: at most N, that many",
    "what is told": "what is released, or: disclosed",
    "until told to end": "until stopped",
    "let in": "allowed",
    "bring in": "record",
    "begin one with": "create one with",
    "made-up": "synthetic",
    "no whole number": "not an integer",
    "in spite of": "despite",
    "leaves with": "exits with code",
}
#: What is refused in messages, and left alone in prose.
TERSE = {
    "all the same": "anyway",
    "any more of": "no longer",
    "is gone": "is removed",
    "goes out": "is disclosed",
    "comes in": "is recorded",
    "look whether": "check that",
    "whole number": "integer",
    "is asked for": "is requested",
    "nobody asks for": "nobody has requested",
    "of its own": "its own, or: separate",
    "does not go with": "cannot be combined with",
    "is no number": "is not a number",
    "it is not there": "not found",
    "say where": "give the source of",
    "nothing bounds": "has no bound",
    "nothing says": "is unknown, or: is missing",
    "say which": "choose",
}


def found(text: str, phrases: Mapping[str, str]) -> Iterator[str]:
    """Yield each refused phrase of a text, with what to write."""
    flat = " ".join(text.split())
    for match in _pattern(tuple(phrases)).finditer(flat):
        phrase = match[0].lower()
        yield f"`{phrase}`: write `{phrases[phrase]}`, in: {flat[:200]}"


@cache
def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    listed = "|".join(map(re.escape, phrases))
    return re.compile(rf"\b(?:{listed})\b", re.IGNORECASE)


def texts(source: str) -> Iterator[str]:
    """Yield the string constants of a module, without docstrings."""
    tree = ast.parse(source)
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            skipped.update(id(part) for part in node.values)
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "…"
                for part in node.values
            )
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in skipped
        ):
            yield node.value


def paragraphs(page: str) -> Iterator[str]:
    """Yield the paragraphs of a page."""
    yield from re.split(r"\n\s*\n", page)


SOURCE = '''"""A module: {0} {1}."""

X = (
    f"{{1}} {0}"
    " {1}."
)
'''


@pytest.mark.parametrize("phrase", sorted({*PLAIN, *TERSE}))
def test_a_refused_phrase_is_found(phrase: str) -> None:
    everything = {**PLAIN, **TERSE}
    first, _, rest = phrase.partition(" ")
    told = f"`{phrase}`: write `{everything[phrase]}`"
    (text,) = texts(SOURCE.format(first, rest))
    assert any(one.startswith(told) for one in found(text, everything))
    page = "A page.\n\nThis " + "\n".join(phrase.split()) + ".\n"
    (said,) = (one for part in paragraphs(page) for one in found(part, everything))
    assert said.startswith(told)


def test_docstrings_and_parts_of_words_are_left_alone() -> None:
    source = '"""Whoever reads it."""\nX = "outlet in"\n'
    assert list(texts(source)) == ["outlet in"]
    assert not list(found("outlet in", PLAIN))


def test_messages_are_in_plain_words() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {one}"
        for path in SOURCES
        for text in texts(path.read_text())
        for one in found(text, {**PLAIN, **TERSE})
    ]
    assert not wrong, "\n".join(wrong)


def test_pages_are_in_plain_words() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {one}"
        for path in PAGES
        for text in paragraphs(path.read_text())
        for one in found(text, PLAIN)
    ]
    assert not wrong, "\n".join(wrong)
