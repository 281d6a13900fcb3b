"""Two parsers read one text alike: libyaml under the product, ruamel.yaml here.

Texts are those of the repository, parts of them, and texts of pieces that are special
to YAML, with changes. Both refuse a text, or both read the same tree with the same
places. What is tolerated is named, by a reason each; a text that both read may never
mean two things.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from budget import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle.yaml_texts import RefusedError, tree

from modicum.core.document import Entries, Items, Kind, Node, Scalar
from modicum.core.errors import InputError
from modicum.core.yaml_reader import NODES_MAX, decode_text, read_document

ROOT = Path(__file__).parents[2]
FILES = sorted(
    path
    for folder in ("tests/golden", "examples", "docs")
    for kind in ("*.yaml", "*.yml", "*.json")
    for path in (ROOT / folder).rglob(kind)
    if path.stat().st_size < 20_000
)
TEXTS = [path.read_text("utf-8", "replace") for path in FILES]

#: What is special to YAML, and what is special to its readers.
PIECES = (
    *" \n\t:-?#\"'\\{}[],|>!%@`~=+\r&*",
    *(": ", "- ", "? ", " #", "|-\n", ">+\n", "|2\n", "&a ", "*a", "!!str ", "---"),
    *("...", "---\n", "\r\n", "<<: ", "a", "b", "é", "😀", "\\ud83d\\ude00", "null"),
    *("\\ud83d", "\\\\ud83d", "\\ue000", "\\u00e9", "\\x41", "\\U0001F600", "\\/"),
    *("\\\n", '\\"', "''", "  ", "\n  ", "\n- ", "a: b", '"a":1', "%YAML 1.2\n---\n"),
    *("%YAML 1.1\n---\n", "%TAG ! x\n---\n", "\\N", "\\0", "\\'", "|0\n", "x" * 1030),
)

#: Why the product refuses what the other parser reads, by its message.
NARROWER = {
    "did not find expected alphabetic or numeric character": "names of anchors",
    "a document is not a block of text": "its root may stand without indentation",
    "no space follows the anchor": "the other reads a longer name",
    "nothing follows a colon": "`{a:}` is `{a: }` to the other",
    "found unknown directive name": "the other skips the directive",
    "a tab in the indentation": "the other lets it begin a line inside brackets",
}


@st.composite
def texts(draw: st.DrawFn) -> str:
    pieces = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
    if draw(st.booleans()):
        return draw(pieces)
    lines = draw(st.sampled_from(TEXTS)).split("\n")
    first = draw(st.integers(0, len(lines) - 1))
    text = "\n".join(lines[first : first + draw(st.integers(1, 12))])
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(text)))
        left_out = draw(st.sampled_from([0, 0, 1, 3, 10]))
        text = text[:place] + draw(pieces) + text[place + left_out :]
    return text


def by_product(text: str) -> Node | str:
    try:
        return read_document(text.encode(), "a")
    except InputError as error:
        return error.problems[0].message


def by_other(text: str) -> Node | RefusedError:
    try:
        return tree(text, "a", NODES_MAX)
    except RefusedError as error:
        return error


def whole(node: Node) -> Any:
    """Return everything that a tree contains, the places of lines, too."""
    match node:
        case Scalar():
            return repr(node)
        case Items(items=items, mark=mark):
            return mark, [whole(one) for one in items]
        case Entries(entries=entries, mark=mark):
            return mark, [(whole(key), whole(value)) for key, value in entries]


def meaning(node: Node) -> Any:
    """Return a tree without places; a tab in a text is as a space."""
    match node:
        case Scalar(kind=kind, text=text, quoted=quoted):
            return kind, text.replace("\t", " "), quoted
        case Items(items=items):
            return [meaning(one) for one in items]
        case Entries(entries=entries):
            return {"": [(meaning(key), meaning(value)) for key, value in entries]}


def has_empty_key(node: Node) -> bool:
    match node:
        case Scalar():
            return False
        case Items(items=items):
            return any(map(has_empty_key, items))
        case Entries(entries=entries):
            absent = any(key.kind is Kind.NULL and not key.text for key, _ in entries)
            return absent or any(has_empty_key(value) for _, value in entries)


def must_agree(text: str) -> None:
    try:
        text = decode_text(text.encode(), "a")
    except InputError:
        return  # Neither has to read it.
    ours, other = by_product(text), by_other(text)
    if isinstance(ours, str):
        if not isinstance(other, RefusedError):
            assert any(map(ours.startswith, NARROWER)) or has_empty_key(other), text
        return
    if isinstance(other, RefusedError):
        # More are read: a tab between words, and `["a":1]`, one entry as an item.
        plainer = re.sub(r"([\"'])(\s*):", r"\1\2: ", text.replace("\t", " "))
        other = by_other(plainer)
        assert not isinstance(other, RefusedError), (text, other)
        assert meaning(ours) == meaning(other), text
        return
    assert meaning(ours) == meaning(other), text
    assert whole(ours) == whole(other), text


@pytest.mark.parametrize("text", TEXTS, ids=[str(n) for n in range(len(TEXTS))])
def test_the_texts_of_the_repository_are_read_alike(text: str) -> None:
    must_agree(text)


@given(texts())
@example('a: "\\\\ud83d \\ud83d\\ude00 \\ue000"')
@example("a: \\ud83d\nb: '\\ud83d'\nc: |  # \\ud83d\n  \\ud83d\\ude00\n")
@example("a: |\n  b")
@example("a:\tb\t#c\n")
@example('["a":]')
@example("{a:}")
@example(": a")
@example("&ä a")
@example("&a: b")
@example("- &a b\n- *a: c")
@example("|\n a")
@example("%A\n---\na")
@settings(max_examples=examples(300), deadline=None)
def test_two_parsers_read_one_text_alike(text: str) -> None:
    must_agree(text)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a: \\ud83d", "\\ud83d"),
        ('a: "\\ud83d\\ude00\\ue000"', "😀\ue000"),
        ('a: "\\\\ud83d"', "\\ud83d"),
        ('a: "\\\\\\ud83d\\ude00 \\x5cue001"', "\\😀 \\ue001"),
        ("a: |  # \\ud83d\n  \\ud83d\n  \\ue000", "\\ud83d\n\\ue000"),
    ],
)
def test_escapes_of_halves_are_read_as_written(text: str, read: str) -> None:
    node = read_document(text.encode(), "a")
    assert isinstance(node, Entries)
    value = node.entries[0][1]
    assert isinstance(value, Scalar)
    assert value.text == read
